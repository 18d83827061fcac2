"""What may not be after faults of hosts. Pure: from facts, the database, and what tools did, every violation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store.base import Store, Transaction
from tests.foreign.histories import Operation, anomalies
from tests.kit.databases import sql
from tests.machines.budget_audit import left_behind
from tests.torture import judge
from tests.torture.fleet.facts import (
    Addressed,
    Asked,
    Fact,
    Granted,
    Grouped,
    Published,
    Reminded,
    Sent,
    Told,
    TookIn,
)
from tests.torture.snapshot import NOTHING, Snapshot, take_in


class Found(NamedTuple):
    """What a database holds."""

    agents: Snapshot
    mails: dict[tuple[str, int], tuple[str, str]]
    """Sender and body of each mail, by recipient and number."""
    versions: dict[tuple[str, int], str]
    """The body of each version, by path and number."""
    notices: Counter[tuple[str, str]]
    """How often an agent was reminded of something."""
    waiting: frozenset[tuple[str, str]]
    """The agent and the text of each timer whose time has not come."""
    groups: dict[str, frozenset[str]]
    """The members of each group."""
    budgets: dict[str, tuple[int, int, int]]
    """Of each strict budget: tokens granted, spent by its own account, and spent as messages tell."""
    unsettled: list[str]
    """Agents with a request that counts as under way, whose host has ended."""


def find(store: Store) -> Found:
    """Read everything at one moment after all is quiet."""

    return store.read(lambda tx: _find(tx, take_in(tx)))


def _find(tx: Transaction, agents: Snapshot) -> Found:
    mails = sql(tx, "SELECT recipient, id, sender, body FROM mail WHERE kind = 'mail'")
    versions = sql(tx, "SELECT path, version, body FROM documents")
    notices = sql(tx, "SELECT recipient, body FROM mail WHERE kind = 'notice'")
    [(now,)] = tx.run("time")
    groups: dict[str, frozenset[str]] = {}
    for name, agent in sql(tx, "SELECT name, agent_uuid FROM groups"):
        groups[name] = groups.get(name, frozenset()) | {agent}
    return Found(
        agents,
        {(row[0], row[1]): (row[2], row[3]) for row in mails},
        {(row[0], row[1]): row[2] for row in versions},
        Counter((row[0], row[1]) for row in notices),
        frozenset((row[0], row[1]) for row in sql(tx, f"SELECT agent_uuid, body FROM timers WHERE due_at > {now}")),
        groups,
        _budgets(tx, agents),
        left_behind(tx),
    )


def _budgets(tx: Transaction, agents: Snapshot) -> dict[str, tuple[int, int, int]]:
    spending = Counter[str]()
    for agent, tokens in sql(tx, "SELECT agent_uuid, tokens FROM spendings"):
        above: str | None = agent
        while above is not None:
            spending[above] += tokens
            above = agents.records[above].parent_uuid
    limits = sql(
        tx,
        "SELECT l.budget, l.granted, l.used - l.base + COALESCE((SELECT SUM(p.spent) FROM portions p"
        " WHERE p.budget = l.budget AND p.unit = l.unit), 0)"
        " FROM limits l JOIN budgets b ON b.owner = l.budget WHERE b.strict = 1 AND l.unit = 'tokens'",
    )
    return {owner: (granted, int(spent), spending[owner]) for owner, granted, spent in limits}


MOST_BACK = 5_000
"""Milliseconds by which a message may be older than the one before it: hosts learn the server's time by asking."""


def violations(facts: Sequence[Fact], now: Found, ran: Counter[str]) -> Iterator[str]:
    """Everything that is wrong, but what ``ikigai fsck`` and the audit of writers find.

    Args:
        facts: what hands were told.
        now: the database, after all is quiet.
        ran: how often each call ran, by the name of its tool and its key.
    """
    reports = [fact for fact in facts if isinstance(fact, Told)]
    yield from judge.lost(reports, now.agents)
    yield from judge.undead(NOTHING, reports, now.agents)
    yield from judge.doubled(now.agents)
    yield from judge.untrue(now.agents, ran)
    yield from _back(now.agents)
    yield from _unanswered([fact for fact in facts if isinstance(fact, Asked)], now.agents)
    yield from _escaped(now.agents)
    yield from _undelivered([fact for fact in facts if isinstance(fact, Sent)], now)
    yield from _unpublished([fact for fact in facts if isinstance(fact, Published)], now)
    yield from _forgotten([fact for fact in facts if isinstance(fact, Reminded)], now)
    yield from _scattered([fact for fact in facts if isinstance(fact, Addressed | Grouped)], now)
    yield from _unmerged([fact for fact in facts if isinstance(fact, TookIn)], now.agents)
    yield from _overspent([fact for fact in facts if isinstance(fact, Granted)], now)


def blamed(history: Sequence[Operation]) -> list[str]:
    """The anomalies of mails and versions as they were written and read on the way."""
    return [f"history: {anomaly.name}: {anomaly.explanation}" for anomaly in anomalies(history)]


def _unanswered(asked: Sequence[Asked], now: Snapshot) -> Iterator[str]:
    """Each prompt stands once, with one answer; of the dead, at most once."""
    kinds = (Kind.USER, Kind.ASSISTANT)
    counts_of = Counter(
        (message.agent_uuid, message.kind, message.content) for message in now.messages if message.kind in kinds
    )
    for agent, text in asked:
        counts = counts_of[agent, Kind.USER, text], counts_of[agent, Kind.ASSISTANT, f"answer to {text}"]
        record = now.records.get(agent)
        if counts != (1, 1) and (record is None or record.living or max(counts) > 1):
            yield f"unanswered: {text!r} stands {counts[0]} times in the log of {agent}, with {counts[1]} answers"


def _escaped(now: Snapshot) -> Iterator[str]:
    """Whoever dies here is killed with all below it: nobody lives below the dead, however late it was born."""
    dead = {uuid for uuid, record in now.records.items() if not record.living}
    for uuid, record in now.records.items():
        above = record.parent_uuid
        while record.living and above is not None and above not in dead:
            above = now.records[above].parent_uuid
        if record.living and above is not None:
            yield f"escaped: {uuid} lives below {above}, which was killed with all below it"


def _undelivered(sent: Sequence[Sent], now: Found) -> Iterator[str]:
    """Each mail has its number, and every body is there once."""
    for sender, recipient, number, body in sent:
        if (there := now.mails.get((recipient, number))) != (sender, body):
            yield f"undelivered: mail {number} of {recipient} is {there}, and {body!r} was sent"
    for (recipient, body), times in Counter((to, body) for (to, _), (_, body) in now.mails.items()).items():
        if times > 1:
            yield f"undelivered: {body!r} was sent to {recipient} {times} times"


def _unpublished(published: Sequence[Published], now: Found) -> Iterator[str]:
    """Each version is what was written, and every text was written once."""
    for path, version, body in published:
        if (there := now.versions.get((path, version))) != body:
            yield f"unpublished: version {version} of {path} is {there!r}, and {body!r} was written"
    for body, times in Counter(now.versions.values()).items():
        if times > 1:
            yield f"unpublished: {body!r} was written {times} times"


def _forgotten(reminded: Sequence[Reminded], now: Found) -> Iterator[str]:
    """Each timer fires once, and none that was taken back; of the dead, at most once."""
    for agent, body, cancelled in reminded:
        times, living = now.notices[agent, body], now.agents.records[agent].living
        expected = {True: (0,), False: (1,), None: (0, 1)}[cancelled] if (agent, body) not in now.waiting else (0,)
        if times not in (expected if living else (0, 1)):
            yield f"forgotten: {agent} was reminded of {body!r} {times} times, cancelled: {cancelled}"


def _scattered(messages: Sequence[Addressed | Grouped], now: Found) -> Iterator[str]:
    """A mail to a group has reached its members of then, and nobody else; who has joined is a member."""
    reached: dict[str, set[str]] = {}
    for (recipient, _), (_, body) in now.mails.items():
        reached.setdefault(body, set()).add(recipient)
    for message in messages:
        there = (
            reached.get(message.body, set())
            if isinstance(message, Addressed)
            else now.groups.get(message.group, frozenset())
        )
        if there != message.members:
            yield f"scattered: {message}; there are {sorted(there)}"


def _unmerged(merged: Sequence[TookIn], now: Snapshot) -> Iterator[str]:
    """Each merge is where it was said to be, and no child was taken in twice: none says more afterwards."""
    for agent, child, position in merged:
        there = now.logs[agent].get(position)
        if there is None or there.kind != Kind.MERGE or there.data["from"] != child:
            yield f"unmerged: {child} was merged at {position} of {agent}; there is {there}"
    merges = Counter(
        (message.agent_uuid, message.data["from"]) for message in now.messages if message.kind == Kind.MERGE
    )
    for (agent, child), times in merges.items():
        if times > 1:
            yield f"unmerged: {agent} has merged {child} {times} times"


def _overspent(granted: Sequence[Granted], now: Found) -> Iterator[str]:
    """A strict budget grants what it was said to, and no more was spent; it knows of all that messages tell of."""
    for owner, least, most in granted:
        limit, spent, paid = now.budgets[owner]
        if not least <= limit <= most or not paid <= spent <= limit:
            yield f"overspent: {owner} grants {limit} of {least} to {most}; spent {spent}, and messages tell of {paid}"
    yield from (f"overspent: {agent} holds something, and its host has ended" for agent in now.unsettled)


def _back(now: Snapshot) -> Iterator[str]:
    """No message is older than the one before it: all hosts go by the server's clock, however wrong their own are."""
    for log in now.logs.values():
        for before, after in pairwise(log.values()):
            if after.created_at < before.created_at - MOST_BACK:
                yield f"back: {after} is {before.created_at - after.created_at} ms older than the message before it"
