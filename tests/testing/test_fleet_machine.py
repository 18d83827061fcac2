"""The machine of the kit over several hosts: programs that Hypothesis makes up, and the invariants they must keep."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ikigai_actors.actors.futures import Future
from ikigai_actors.testing import Broken, FleetMachine
from ikigai_actors.testing.machine.fleet_ledger import check_followed
from ikigai_actors.testing.simulation.faults import NONE
from ikigai_actors.testing.simulation.schedule import PLAIN
from supervisors.signals import Signal
from tests.kit.databases import sql
from tests.kit.programs import programs, run_programs

pytestmark = pytest.mark.slow("programs of several simulated hosts")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def machine() -> Iterator[FleetMachine]:
    """One with two hosts, to take rules by hand."""
    made = FleetMachine()
    made.begin(hosts=2, schedule=PLAIN, misfortunes=NONE)
    yield made
    made._context.__exit__(None, None, None)


@programs(few=1, many=30)
def test_made_up_programs_of_several_hosts_keep_every_invariant(examples: int) -> None:
    run_programs(FleetMachine, examples, steps=12)


@pytest.mark.thorough("a second play of hosts")
def test_agents_are_asked_on_hosts_that_do_not_run_them_and_all_is_answered(machine: FleetMachine) -> None:
    machine.fork(who=0, prompt="go", reply="ok")
    machine.fork(who=8, prompt=None, reply="ok")
    for who in (0, 1, 2, 8, 9, 10):  # of the first host, and of the second
        machine.prompt(who=who, text="go", answers=["ok"])
        machine.mark(who=who, label="here")
        machine.clear(who=who)
    machine.comes_to_rest()
    machine.what_was_acknowledged_is_there()
    assert len(machine.ledger.marks) == 6
    assert all(future.get(timeout=0).text == "ok" for _, future in machine.facts.prompts.values())


@pytest.mark.thorough("every end of a host")
def test_hosts_that_end_in_every_way_leave_nothing_behind(machine: FleetMachine) -> None:
    machine.fork(who=0, prompt="go", reply="ok")
    machine.stop_for(host=0, leases=1.1)
    machine.prompt_and_go_on(who=1, how="slow")
    machine.partition(host=0, silent=True)
    machine.time_passes(seconds=30)
    machine.recover()
    machine.kill_host(host=0)
    machine.revive()
    machine.drain(host=1)
    machine.move(who=1, to=1)
    machine.comes_to_rest()
    machine.what_was_acknowledged_is_there()


AIMED: dict[str, dict[str, Any]] = {
    "write_late": {"who": 1},
    "wake_as_it_is_judged": {"host": 0},
    "end_as_it_is_done": {"who": 1},
    "signal_remotely": {"who": 1, "signal": Signal.CONT},
    "ask_as_it_moves": {"who": 1, "marks": 12},
    "look_on_late": {"who": 1, "seconds": 0.3},
    "move_one_of_a_group": {"who": 0, "strategy": "one_for_all"},
    "adopt_into_a_group": {"who": 1, "strategy": "rest_for_one"},
    "become_older": {"who": 1},
    "prompt_and_interrupt": {"who": 1},
}
"""Rules that aim at one situation each."""


@pytest.mark.sample(1, "three hosts for each rule")
@pytest.mark.parametrize("name", AIMED)
def test_what_an_aimed_rule_brings_about_does_no_harm(machine: FleetMachine, name: str) -> None:
    for host in (0, 1):
        machine.fork(who=8 * host, prompt=None, reply="ok")
    getattr(machine, name)(**AIMED[name])
    machine.comes_to_rest()
    machine.what_was_acknowledged_is_there()


def test_no_host_goes_on_that_knows_more_than_the_database(machine: FleetMachine) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.become_older(who=1)
    assert "older" in {line.kind for line in machine.world.trace.lines}
    assert [host for host in machine.world.hosts if host.running is not None] == []


def test_an_actor_that_does_not_follow_the_registry_is_found(machine: FleetMachine) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    [*_, record] = machine.living()
    owner = next(host for host in machine.world.hosts if host.host_id == record.owner)
    check_followed(owner, record.uuid)
    owner.process.looked_at.write(
        lambda tx: sql(tx, f"UPDATE agents SET status = 'stopped' WHERE uuid = '{record.uuid}'")
    )
    with pytest.raises(Broken, match=f"followed: agent {record.uuid} is stopped, and its actor at host"):
        check_followed(owner, record.uuid)


@pytest.mark.thorough("a second law of the machine that is broken")
def test_an_agent_that_nobody_runs_at_rest_is_found(machine: FleetMachine) -> None:
    machine.fork(who=0, prompt=None, reply="ok")
    machine.comes_to_rest()
    [*_, record] = machine.living()
    owner = next(host for host in machine.world.hosts if host.host_id == record.owner)
    owner.system._processes.serve_shards([])
    owner.system._processes.leave(record.uuid).get(timeout=5)
    with pytest.raises(Broken, match=f"placed: agent {record.uuid} is host {record.owner}'s, and has actors at"):
        machine.facts.check_rest(machine.living())


@pytest.mark.thorough("a second fault that is found")
def test_a_message_that_who_looks_on_is_told_of_twice_or_never_is_found(machine: FleetMachine) -> None:
    host = machine.host(1)
    machine.look_on(host=1, begins=True)
    machine.prompt(who=0, text="go", answers=["ok"])
    machine.comes_to_rest()
    [(looker, _)] = machine.facts.lookers.values()
    looker.heard.append(looker.heard[0])
    with pytest.raises(Broken, match=f"heard: at host {host.name} message 1 of agent .* comes after 2"):
        machine.facts.check()
    looker.heard[:] = looker.heard[1:]
    looker.heard.pop()
    with pytest.raises(Broken, match=f"heard: at host {host.name} nobody heard of"):
        machine.facts.check_rest(machine.living())
    machine.look_on(host=1, begins=False)
    machine.comes_to_rest()


@pytest.mark.thorough("a second fault that is found")
def test_who_prompts_an_agent_and_does_not_hear_the_answer_is_found(machine: FleetMachine) -> None:
    machine.prompt(who=0, text="go", answers=["ok"])
    machine.comes_to_rest()
    [(text, (asked, _))] = machine.facts.prompts.items()
    machine.facts.prompts[text] = asked, Future()
    with pytest.raises(Broken, match=f"heard: '{text}' has opened a turn, which is over"):
        machine.facts.check_rest(machine.living())
