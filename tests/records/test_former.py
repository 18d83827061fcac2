"""What stood in rows that change in place can be read as of any moment, and a prune deletes what is old."""

from collections.abc import Callable
from random import Random

import pytest

from ikigai_actors.errors import IkigaiError
from ikigai_actors.records.agents.former import FORMER_MS
from ikigai_actors.records.agents.registry import Rename
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.membership import JoinGroup, LeaveGroup
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.lives.supervision import AdoptChild, SetSupervision, StopChildren
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import CancelTimer, DueTimer, Fire, SetTimer
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.unit import Unit, write_alone
from ikigai_actors.testing.machine.former_oracle import AFTER_EVERYTHING, Then, as_of
from supervisors.causes import Cause
from supervisors.signals import Signal
from tests.kit.databases import sql
from tests.kit.trees import HOST, plant

AGENTS = ("a", "b", "c", "d", "e")


def acts(random: Random, now: int, tx: Transaction) -> Unit:
    """Something that changes rows in place."""
    actor, other = random.sample(AGENTS, 2)
    timers = sql(tx, "SELECT agent_uuid, id, sender, due_at FROM timers")
    ways: list[Callable[[], Unit]] = [
        lambda: Rename(actor, random.choice(["x", "y", None]), now),
        lambda: AdoptChild(actor, other, now),
        lambda: SendSignal(actor, random.choice([Signal.STOP, Signal.CONT, Signal.TERM]), now, spread=bool(now % 2)),
        lambda: StopChildren(actor, now),
        lambda: SetSupervision(actor, now, intensity=random.randrange(9), policy=random.choice(["stop", "cascade"])),
        lambda: JoinGroup(actor, "team", now),
        lambda: LeaveGroup(actor, "team", now),
        lambda: SetTimer(actor, None, "tea", Appointment(now + 5, random.choice([None, "0 * * * *"]), "UTC"), now),
    ]
    if timers:
        agent, number, sender, due = random.choice(timers)
        ways += [
            lambda: CancelTimer(agent, number, now),
            lambda: Fire(DueTimer(agent, number, due, sender), max(now, due)),
        ]
    if random.random() < 0.1:
        return WriteDeath(actor, HOST, "over", now, Cause.CRASHED)
    return random.choice(ways)()


@pytest.mark.parametrize("seed", range(4))
def test_every_moment_can_be_read_after_any_changes(store: Store, seed: int) -> None:
    plant(store, **dict(zip(AGENTS, ("root", "a", "b", "root", "d"), strict=True)))
    random, now, known = Random(seed), 100, dict[int, Then]()
    for _ in range(60):
        unit = store.read(lambda tx: acts(random, now, tx))  # noqa: B023 - it is read at once
        try:
            write_alone(store, unit)
        except IkigaiError:
            continue
        now = max(now, unit.now if isinstance(unit, Fire) else 0)
        known[now] = store.read(lambda tx: as_of(tx, AFTER_EVERYTHING))
        now += random.randrange(1, 20)
    assert len(known) > 20
    for at, state in known.items():
        for moment in (at, at + 1):
            then = store.read(lambda tx: as_of(tx, moment))  # noqa: B023 - it is read at once
            assert moment in known.keys() - {at} or then == state, f"at {moment}"


def changes_a_budget(random: Random) -> Unit:
    """Something that makes a budget, or changes what it grants."""
    agent, amount = random.choice(AGENTS), random.randrange(1_000)
    ways: list[Callable[[], Unit]] = [
        lambda: SetBudget(agent, Budget(tokens=amount, strict=random.random() < 0.3)),
        lambda: SetBudget(agent, Budget(seconds=amount)),
        lambda: SetBudget(agent, Budget(agents=amount)),
        lambda: Grant(agent, {"tokens": amount}),
        lambda: Grant(agent, {"ms": amount}, sets=True),
    ]
    return random.choice(ways)()


def moment_that_passes(store: Store) -> int:
    """The time of the store, once it is over."""
    [(now,)] = store.read(lambda tx: tx.run("time"))
    while store.read(lambda tx: tx.run("time")) == [(now,)]:
        pass
    return int(now)


@pytest.mark.parametrize("seed", range(2))
def test_every_limit_can_be_read_as_of_any_moment(store: Store, seed: int) -> None:
    plant(store, **dict(zip(AGENTS, ("root", "a", "b", "root", "d"), strict=True)))
    random, known = Random(seed), dict[int, Then]()
    for _ in range(40):
        try:
            write_alone(store, changes_a_budget(random))
        except IkigaiError:
            continue
        state = store.read(lambda tx: as_of(tx, AFTER_EVERYTHING))
        known[moment_that_passes(store)] = state
    limits = [value for state in known.values() for place, value in state.items() if place[1] == "limit"]
    assert len(set(limits)) > 20
    for at, state in known.items():
        assert store.read(lambda tx: as_of(tx, at)) == state, f"at {at}"  # noqa: B023 - it is read at once


def test_what_a_budget_granted_is_kept_by_unit(store: Store) -> None:
    plant(store, a="root")
    write_alone(store, SetBudget("a", Budget(tokens=1_000)))
    write_alone(store, Grant("a", {"tokens": 5_000}, sets=True))
    write_alone(store, SetBudget("a", Budget(tokens=5_000, agents=9)))
    rows = store.read(lambda tx: sql(tx, "SELECT key, value FROM former WHERE what = 'limit' ORDER BY key, value"))
    assert [row for row in rows if row[0] != "strict"] == [("agents", ""), ("tokens", "1000")]


def test_two_changes_by_clocks_that_differ_keep_their_order(store: Store) -> None:
    plant(store, a="root")
    write_alone(store, Rename("a", "x", 1_000))
    write_alone(store, Rename("a", "y", 700))  # by a host whose clock is behind
    write_alone(store, Rename("a", "z", 1_200))
    rows = store.read(lambda tx: sql(tx, "SELECT until, value FROM former WHERE what = 'name' ORDER BY until"))
    assert rows == [(1_000, ""), (1_200, "y")]
    assert store.read(lambda tx: as_of(tx, 1_100))["a", "name", ""] == "y"


def test_a_prune_deletes_what_was_so_more_than_a_month_ago(store: Store) -> None:
    plant(store, a="root")
    write_alone(store, Rename("a", "x", 1_000))
    write_alone(store, Rename("a", "y", 2_000))
    prune_logs(store, 0, 1_500 + FORMER_MS)
    assert store.read(lambda tx: sql(tx, "SELECT until, value FROM former")) == [(2_000, "x")]
