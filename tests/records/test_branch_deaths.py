"""A branch that dies whole leaves what the deaths of its agents, decided one by one, would leave."""

import random

import pytest

from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.lives.deaths import LifecycleChange, branch, end_agents
from ikigai_actors.records.lives.exit_mails import End
from ikigai_actors.records.lives.membership import JoinGroup, MonitorAgent
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import SetTimer
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.memory import open_with_tables
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit, write_alone
from supervisors.causes import Cause
from supervisors.orphans import ways
from supervisors.signals import Signal, Status, cascade
from tests.conftest import NewDatabase
from tests.jar.world import contents
from tests.kit.databases import sql
from tests.kit.trees import add, change, plant

NOW = 1_000
TOP = "n3"


class OneByOne(Unit):
    """The deaths of an agent and of all below it, each with the decisions that its policy asks for."""

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        family = branch(tx, TOP)
        gone = {uuid for uuid, relative in family.items() if relative.status is Status.DEAD}
        order = cascade(TOP, {uuid: relative.supervisor for uuid, relative in family.items()}, gone)
        done = end_agents(tx, locked, family, order, End(Cause.KILLED, "enough"), NOW, (TOP,))
        turn = locked[TOP].turn
        tx.run(
            "add_signal",
            agent=TOP,
            signal="KILL",
            spread=1,
            turn=turn,
            sender=None,
            reason="enough",
            now=NOW,
            principal=None,
        )
        return done


def grow(seed: int, number: int, url: str = ":memory:") -> Store:
    """A tree in which anything may be: the dead, the stopped, names, policies, budgets, requests, ties."""
    draw, store = random.Random(seed), open_with_tables(url)
    plant(store)
    names = [f"n{place}" for place in range(number)]
    parents = {name: draw.choice(names[max(0, place - 20) : place] or ["root"]) for place, name in enumerate(names)}
    parents |= dict.fromkeys(names[4::9], TOP)

    def register(tx: Transaction) -> None:
        for place, name in enumerate(names):
            add(tx, name, parents[name], name=draw.choice([None, f"called {name}"]), now=10 + place // 3)

    store.write(register)
    for name in names:
        some = draw.random()
        if some < 0.1 and name != TOP:
            change(store, name, "status = 'dead', exit_cause = 'killed', ended_at = 5")
        elif some < 0.2:
            change(store, name, "status = 'stopped'")
        if draw.random() < 0.3:
            change(store, name, f"on_orphan = '{draw.choice(['cascade', 'stop', 'continue'])}', turn = 4, awake = 1")
    living = {uuid for (uuid,) in store.read(lambda tx: sql(tx, "SELECT uuid FROM agents WHERE status <> 'dead'"))}
    leads = ways(living, parents, set(names) - living)
    store.write(lambda tx: tx.run("mark_ways", uuids=sorted(leads)))
    write_alone(store, SetBudget("root", Budget(tokens=100_000)))
    for name in (child for child in names if child in living):
        if draw.random() < 0.15:
            write_alone(store, SetBudget(name, Budget(tokens=1_000)))
        if draw.random() < 0.15:
            write_alone(store, SetTimer(name, None, "tea", Appointment(9_000, None, "UTC"), 5))
        if draw.random() < 0.15:
            write_alone(store, JoinGroup(name, "team", 5))
        if draw.random() < 0.2 and (other := draw.choice(sorted(living - {name, "root"}))):
            write_alone(store, MonitorAgent(name, other, 5))
        if draw.random() < 0.1:
            change(store, name, "held_at = 3, held_tokens = 40, held_host = 'host 1'")
    for mend in ("UPDATE budgets SET created_at = 1", "DELETE FROM former WHERE what = 'limit'"):
        store.write(lambda tx, mend=mend: sql(tx, mend))  # type: ignore[misc]  # the clock's time
    store.write(lambda tx: sql(tx, "DELETE FROM portions"))
    store.write(
        lambda tx: sql(
            tx,
            "INSERT INTO portions (budget, unit, host, allotted, held, spent, wanted)"
            " SELECT owner, 'tokens', 'host 1', 99000, 90000, 0, 1 FROM budgets",
        )
    )
    return store


@pytest.mark.parametrize(("seed", "number"), [*((seed, 40) for seed in range(6)), (6, 120)])
def test_a_branch_dies_as_if_each_death_had_been_decided(seed: int, number: int) -> None:
    dies_both_ways(grow(seed, number), grow(seed, number))


@pytest.mark.thorough("made-up trees on PostgreSQL; every run has them on SQLite")
def test_it_does_on_postgresql_too(new_postgres: NewDatabase) -> None:
    urls = [new_postgres(), new_postgres()]
    for url in urls:
        store = open_with_tables(url)
        ensure_schema(store)
        store.close()
    dies_both_ways(*(grow(7, 40, url) for url in urls))


def dies_both_ways(whole: Store, one_by_one: Store) -> None:
    done = write_alone(whole, SendSignal(TOP, Signal.KILL, NOW, spread=True, reason="enough"))
    expected = write_alone(one_by_one, OneByOne())
    assert list(done.dead.items()) == list(expected.dead.items())
    assert (done.status, done.notified, done.freed) == (expected.status, expected.notified, expected.freed)
    assert contents(whole) == contents(one_by_one)
    whole.close()
    one_by_one.close()


def test_a_circle_of_supervisors_dies_whole_and_agent_0_hears_of_it() -> None:
    store = open_with_tables(":memory:")
    plant(store, a="root", b="a", below="b", beside="root")
    change(store, "a", "supervisor_uuid = 'b'")
    done = write_alone(store, SendSignal("a", Signal.KILL, NOW, spread=True))
    assert done.dead.keys() == {"a", "b", "below"}
    assert {recipient for recipient, _ in done.notified} == {"root"}
    store.close()
