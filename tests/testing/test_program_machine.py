"""The machine of durable programs: programs that Hypothesis makes up, under kills, signals and whatever comes."""

import logging
from collections.abc import Iterator

import pytest

from ikigai_actors import Signal
from ikigai_actors.testing import Broken
from ikigai_actors.testing.simulation.faults import NONE
from ikigai_actors.testing.simulation.schedule import PLAIN
from tests.kit.programs import run_programs
from tests.machines.program_rules import ProgramMachine


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def machine() -> Iterator[ProgramMachine]:
    """One that has begun, to take rules by hand."""
    made = ProgramMachine()
    made.begin(schedule=PLAIN, misfortunes=NONE)
    yield made
    made.teardown()


@pytest.mark.thorough("a few made-up programs hardly reach a durable one; every run has aimed ones")
def test_made_up_programs_with_durable_ones_keep_every_invariant() -> None:
    run_programs(ProgramMachine, 60, steps=20)


@pytest.mark.slow("takes a tenth of a second")
def test_a_program_that_is_steered_stopped_and_killed_does_each_step_once(machine: ProgramMachine) -> None:
    machine.follow_plan(who=0, kinds=("prompt", "once", "wait", "by_key", "nap"), steps=40)
    machine.steer(who=1)
    machine.crash()
    machine.signal(who=1, signal=Signal.STOP, spread=False)
    machine.goes_on(steps=10)
    machine.signal(who=1, signal=Signal.CONT, spread=False)
    machine.comes_to_rest()
    assert [kind for _, kind in machine.outside.done] == ["once", "by_key"]


@pytest.mark.slow("takes a tenth of a second")
def test_a_program_may_wait_for_a_child_that_is_stopped_and_for_nobody_else(machine: ProgramMachine) -> None:
    machine.follow_plan(who=0, kinds=("nap", "prompt"), steps=60)
    machine.what_was_acknowledged_is_there()  # the child is known from now on
    machine.signal(who=2, signal=Signal.STOP, spread=False)
    machine.comes_to_rest()
    [lead] = machine.leads
    assert machine.system.handle(lead).record.turn
    machine.signal(who=2, signal=Signal.CONT, spread=False)
    machine.comes_to_rest()
    assert not machine.system.handle(lead).record.turn


def test_a_step_that_is_done_again_under_its_key_is_found(machine: ProgramMachine) -> None:
    machine.outside.done += [("k", "once"), ("k", "once")]
    with pytest.raises(Broken, match="effect: steps were done again under k"):
        machine.no_step_is_done_again()
    machine.outside.done.clear()
