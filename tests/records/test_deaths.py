"""Deaths of many agents in one transaction."""

import pytest

from ikigai_actors.records.agents import registry
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.fsck.budgets import check_budgets
from ikigai_actors.records.lives.deaths import MANY_DEATHS, WriteDeath
from ikigai_actors.records.lives.membership import JoinGroup, MonitorAgent, every_group
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.mail.schedules import Appointment
from ikigai_actors.records.mail.timers import SetTimer, every_timer
from ikigai_actors.store import Store, Transaction
from supervisors.signals import Signal
from tests.kit.mailboxes import every
from tests.kit.trees import HOST, add, change, record
from tests.records.test_units import Desk


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


@pytest.mark.parametrize("policy", ["reparent", "cascade"])
def test_what_many_dead_had_is_ended_with_them_and_what_others_have_is_not(desk: Desk, policy: str) -> None:
    number, store = MANY_DEATHS + 5, desk.store
    line = [f"n{place}" for place in range(number)]

    def grow(tx: Transaction) -> None:
        for place, uuid in enumerate(line):
            add(tx, uuid, line[place - 1] if place else "a", now=10 + place)

    store.write(grow)
    desk.accepts(SetBudget("root", Budget(agents=1_000)))
    desk.accepts(SetBudget("n7", Budget(agents=500)))
    for uuid in ("n3", "d"):
        desk.accepts(SetTimer(uuid, None, "tea", Appointment(9_000, None, "UTC"), 5))
        desk.accepts(JoinGroup(uuid, "team", 5))
    desk.accepts(MonitorAgent("n4", "d", 5))
    desk.accepts(MonitorAgent("d", "n4", 5))
    if policy == "cascade":
        change(store, "n0", "on_orphan = 'cascade'")
        desk.accepts(WriteDeath("n0", HOST, "test", 6))
        assert record(store, "n9").exit_reason == "its supervisor n8 died, and takes those with it that it looks after"
    else:
        desk.accepts(SendSignal("n0", Signal.KILL, 6, spread=True))
        assert record(store, "n9").exit_reason == "KILL by a person"
    assert sorted(desk.supervisors()) == ["a", "b", "c", "d", "root"]
    assert [timer.agent_uuid for timer in store.read(every_timer)] == ["d"]
    assert store.read(every_group) == {"team": ["d"]}
    assert store.read(lambda tx: tx.run("all_monitors")) == []
    assert [(mail.sender, mail.kind) for mail in every(store, "d")] == [("n4", "exit")]
    [summary] = every(store, "a")
    assert (summary.sender, f"{number} agents died at once" in summary.body) == ("n0", True)
    assert store.read(lambda tx: [*check_budgets(tx, {record.uuid: record for record in registry.every(tx)})]) == []


@pytest.mark.parametrize("at_once", [False, True])
def test_a_signal_reaches_an_orphan_through_all_the_dead_above_it(desk: Desk, at_once: bool) -> None:
    """Of "top", "mid" and "low" one below the other the last one leaves "orphan" behind, and "other" died long ago."""
    store, line = desk.store, ("top", "mid", "low", "orphan", "below")

    def grow(tx: Transaction) -> None:
        for place, uuid in enumerate(line):
            add(tx, uuid, line[place - 1] if place else "a", now=10 + place)
        add(tx, "other", "top", now=20)

    store.write(grow)
    change(store, "low", "on_orphan = 'continue'")
    desk.accepts(WriteDeath("other", HOST, "test", 30))
    if at_once:
        change(store, "mid", "on_orphan = 'stop'")
    for uuid in ("low", "mid"):
        desk.accepts(WriteDeath(uuid, HOST, "test", 31))
    assert (record(store, "orphan").status, record(store, "orphan").supervisor_uuid) == ("running", "low")
    assert sorted(uuid for (uuid,) in store.read(lambda tx: tx.run("ways"))) == ["low", "mid"]
    if at_once:
        desk.accepts(WriteDeath("top", HOST, "test", 32))
        assert sorted(uuid for (uuid,) in store.read(lambda tx: tx.run("ways"))) == ["low", "mid", "top"]
    desk.accepts(SendSignal("a" if at_once else "top", Signal.STOP, 33, spread=True))
    assert [record(store, uuid).status for uuid in ("orphan", "below")] == ["stopped"] * 2
    desk.accepts(SendSignal("a" if at_once else "top", Signal.KILL, 34, spread=True))
    assert [record(store, uuid).status for uuid in ("orphan", "below")] == ["dead"] * 2
