"""Random trees, policies and deaths in a real store: whoever lives on is looked after, and nobody's history changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.errors import AgentDead, AgentStopped, BadInput, RootProtected
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, make_root
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.lives.deaths import LifecycleChange, WriteDeath
from ikigai_actors.records.lives.exit_mails import MOST_SINGLE
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.lives.supervision import AdoptChild, Revive, StopChildren
from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.mail.mail import EXIT, latest
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import Unit, write_alone
from supervisors.causes import Cause
from supervisors.orphans import OrphanPolicy
from supervisors.signals import Signal, Status
from tests.kit.trees import HOST, add_host, says

MOST = 25
"""Agents of a tree, agent 0 not counted."""

NOW = 1_000


@dataclass(frozen=True)
class Birthday:
    """An agent that is born: below whom, and what becomes of its children."""

    parent: int
    policy: OrphanPolicy
    words: int
    """Messages that its parent says before."""


@dataclass(frozen=True)
class Blow:
    """Something that happens to an agent: a signal, an adoption, a death without a signal, a giving up."""

    what: Signal | str
    whom: int
    spread: bool = False
    other: int = 0


BIRTHS = st.lists(
    st.builds(Birthday, st.integers(0, MOST), st.sampled_from(OrphanPolicy), st.integers(0, 2)), max_size=MOST
)
WHATS = st.sampled_from([Signal.KILL, Signal.KILL, Signal.KILL, *Signal, "adopt", "bury", "give up", "revive"])
BLOWS = st.lists(st.builds(Blow, WHATS, st.integers(0, MOST), st.booleans(), st.integers(0, MOST)), max_size=12)


@contextmanager
def planted(births: list[Birthday]) -> Iterator[tuple[Store, list[str]]]:
    """A store with this tree, and its agents in order of birth; each child inherits what its parent had said."""
    store = open_store(":memory:")
    try:
        ensure_schema(store)
        store.write(add_host)
        store.write(lambda tx: make_root(tx, "0", 1))
        heads, fence = {"0": 0}, FencingToken(HOST, 1)
        for number, birth in enumerate(births, 1):
            parent, child = str(birth.parent % number), str(number)
            said = says(parent, *range(heads[parent] + 1, heads[parent] + birth.words + 1), content=f"of {parent}")
            at = heads[parent] + birth.words + 1
            row = Birth(
                child, None, parent, at - 1, 0, "transient", number,
                (Message(child, at, "fork", "", {"parent": parent}, 1),), at, on_orphan=birth.policy.value,
            )  # fmt: skip
            message = Message(parent, at, "fork", "", {"child": child}, 1)
            write_alone(store, Append(LogUnit(parent, (*said, message), births=(row,)), fence))
            heads[parent] = heads[child] = at
        yield store, list(heads)
    finally:
        store.close()


def unit_of(blow: Blow, agents: list[str]) -> Unit:
    """What a blow writes."""
    whom, other = agents[blow.whom % len(agents)], agents[blow.other % len(agents)]
    match blow.what:
        case Signal():
            return SendSignal(whom, blow.what, NOW, spread=blow.spread, sender=other)
        case "adopt":
            return AdoptChild(whom, other, 9)
        case "give up":
            return StopChildren(whom, 9)
        case "revive":
            return Revive(whom, 9)
        case _:
            return WriteDeath(whom, HOST, "crashed", NOW, Cause.CRASHED)


def everybody(store: Store) -> dict[str, AgentRecord]:
    return {record.uuid: record for record in store.read(registry.every)}


def histories(store: Store, agents: list[str]) -> dict[str, list[tuple[str, int, str]]]:
    """What each agent remembers, read anew."""
    log_cache = LogCache(store)
    history_by_agent = {}
    for uuid in agents:
        log = log_cache.load(uuid)
        history_by_agent[uuid] = [
            (entry.agent_uuid, entry.id, entry.content) for _, _, entry in log.conversation(log.head)
        ]
    return history_by_agent


def mails(store: Store, agents: list[str]) -> dict[str, list[str]]:
    """For each agent who died, as its mailbox tells it, oldest first."""
    boxes = {uuid: store.read(lambda tx, uuid=uuid: latest(tx, uuid)) for uuid in agents}  # type: ignore[misc]
    return {uuid: [str(mail.sender) for mail in box if mail.kind == EXIT] for uuid, box in boxes.items()}


def above(records: dict[str, AgentRecord], uuid: str) -> list[str]:
    """Its supervisor, that one's supervisor, and so on to agent 0."""
    chain: list[str] = []
    supervisor = records[uuid].supervisor_uuid
    while supervisor is not None:
        assert supervisor not in chain, "the supervisors run in a circle"
        chain.append(supervisor)
        supervisor = records[supervisor].supervisor_uuid
    assert not chain or chain[-1] == "0"
    return chain


def check_whole(records: dict[str, AgentRecord]) -> None:
    """Everybody who lives has a living supervisor, unless that one left it as an orphan."""
    for record in records.values():
        above(records, record.uuid)
        supervisor = records.get(record.supervisor_uuid or "")
        if record.living and supervisor is not None:
            assert supervisor.living or supervisor.on_orphan == OrphanPolicy.CONTINUE


def check_mail(
    before: dict[str, AgentRecord], after: dict[str, AgentRecord], dead: list[str], came: dict[str, list[str]]
) -> None:
    """To the nearest survivor above one mail for each death, leaves first; or one of the topmost, where many die."""
    assert {uuid for uuid in before if before[uuid].living and not after[uuid].living} == set(dead)
    heard: dict[str, list[str]] = {uuid: [] for uuid in came}
    for uuid in dead:
        heard[next(ancestor for ancestor in above(before, uuid) if after[ancestor].living)].append(uuid)
    for recipient, box in came.items():
        if len(heard[recipient]) <= MOST_SINGLE:
            assert box == heard[recipient]
        else:
            [top] = box
            assert top in heard[recipient]
            assert before[top].supervisor_uuid not in dead
    for place, uuid in enumerate(dead):
        assert not set(dead[:place]) & set(above(before, uuid)), f"{uuid} is reported after one above it"


@pytest.mark.slow("takes a second")
@settings(max_examples=80, deadline=None)
@given(BIRTHS, BLOWS)
def test_after_any_deaths_all_who_live_are_looked_after_and_remember_what_they_did(
    births: list[Birthday], blows: list[Blow]
) -> None:
    with planted(births) as (store, agents):
        remembered, mails_before = histories(store, agents), mails(store, agents)
        for blow in blows:
            before = everybody(store)
            try:
                done = write_alone(store, unit_of(blow, agents))
            except (AgentDead, AgentStopped, BadInput, RootProtected):
                done = LifecycleChange()  # refused, so nothing may have changed
            after, now = everybody(store), mails(store, agents)
            check_whole(after)
            check_mail(before, after, list(done.dead), {uuid: now[uuid][len(mails_before[uuid]) :] for uuid in agents})
            for uuid, status in done.status.items():
                assert after[uuid].status == status
            changed = {uuid for uuid in agents if after[uuid].status != before[uuid].status}
            assert changed == {*done.dead, *done.status}
            mails_before = now
        assert histories(store, agents) == remembered
        assert fsck.check(store) == []


@pytest.mark.slow("takes a second")
@settings(max_examples=60, deadline=None)
@given(BIRTHS, st.integers(0, MOST))
def test_a_cascade_leaves_nobody_below_alive_whatever_the_policies(births: list[Birthday], top: int) -> None:
    with planted([*births, Birthday(0, OrphanPolicy.REPARENT, 0)]) as (store, agents):
        victim = agents[1 + top % (len(agents) - 1)]
        below = {uuid for uuid in agents if victim in above(everybody(store), uuid)}
        done = write_alone(store, SendSignal(victim, Signal.KILL, NOW, spread=True))
        assert set(done.dead) == {victim, *below}
        assert [uuid for uuid, record in everybody(store).items() if not record.living] == [
            uuid for uuid in agents if uuid in done.dead
        ]
        assert {record.status for record in everybody(store).values()} == {Status.RUNNING, Status.DEAD}
