"""What may not be after faults of hosts. Pure: from facts, the database, and what tools did, every violation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store.base import Store, Transaction
from tests.foreign.histories import Operation, anomalies
from tests.kit.databases import sql
from tests.torture import judge
from tests.torture.fleet.facts import Asked, Fact, Published, Sent
from tests.torture.snapshot import NOTHING, Snapshot, take
from tests.torture.victim import Bereft, Died, Entered, Forked, Said


class Found(NamedTuple):
    """What a database holds."""

    agents: Snapshot
    mails: dict[tuple[str, int], tuple[str, str]]
    """Sender and body of each mail, by recipient and number."""
    versions: dict[tuple[str, int], str]
    """The body of each version, by path and number."""


def find(store: Store) -> Found:
    """Read everything at one moment after all is quiet."""

    def read(tx: Transaction) -> tuple[dict[tuple[str, int], tuple[str, str]], dict[tuple[str, int], str]]:
        mails = sql(tx, "SELECT recipient, id, sender, body FROM mail WHERE kind = 'mail'")
        versions = sql(tx, "SELECT path, version, body FROM documents")
        return {(row[0], row[1]): (row[2], row[3]) for row in mails}, {(row[0], row[1]): row[2] for row in versions}

    mails, versions = store.read(read)
    return Found(take(store), mails, versions)


def violations(facts: Sequence[Fact], found: Found, ran: Counter[str]) -> Iterator[str]:
    """Everything that is wrong, but what ``ikigai fsck`` and the audit of writers find.

    Args:
        facts: what hands were told.
        found: the database, after all is quiet.
        ran: how often each call ran, by the name of its tool and its key.
    """
    reports = [one for one in facts if isinstance(one, Forked | Said | Entered | Died | Bereft)]
    yield from judge.lost(reports, found.agents)
    yield from judge.undead(NOTHING, reports, found.agents)
    yield from judge.doubled(found.agents)
    yield from judge.untrue(found.agents, ran)
    yield from _unanswered([one for one in facts if isinstance(one, Asked)], found.agents)
    yield from _escaped(found.agents)
    yield from _undelivered([one for one in facts if isinstance(one, Sent)], found)
    yield from _unpublished([one for one in facts if isinstance(one, Published)], found)


def blamed(history: Sequence[Operation]) -> list[str]:
    """The anomalies of mails and versions as they were written and read on the way."""
    return [f"history: {one.name}: {one.explanation}" for one in anomalies(history)]


def _unanswered(asked: Sequence[Asked], now: Snapshot) -> Iterator[str]:
    """Each prompt stands once, with one answer; of the dead, at most once."""
    kinds = (Kind.USER, Kind.ASSISTANT)
    told = Counter((one.agent_uuid, one.kind, one.content) for one in now.messages if one.kind in kinds)
    for agent, text in asked:
        counts = told[agent, Kind.USER, text], told[agent, Kind.ASSISTANT, f"answer to {text}"]
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


def _undelivered(sent: Sequence[Sent], found: Found) -> Iterator[str]:
    """Each mail has its number, and every body is there once."""
    for sender, recipient, number, body in sent:
        if (there := found.mails.get((recipient, number))) != (sender, body):
            yield f"undelivered: mail {number} of {recipient} is {there}, and {body!r} was sent"
    for body, times in Counter(body for _, body in found.mails.values()).items():
        if times > 1:
            yield f"undelivered: {body!r} was sent {times} times"


def _unpublished(published: Sequence[Published], found: Found) -> Iterator[str]:
    """Each version is what was written, and every text was written once."""
    for path, version, body in published:
        if (there := found.versions.get((path, version))) != body:
            yield f"unpublished: version {version} of {path} is {there!r}, and {body!r} was written"
    for body, times in Counter(found.versions.values()).items():
        if times > 1:
            yield f"unpublished: {body!r} was written {times} times"
