"""The machine of experiments: programs that Hypothesis makes up, with histories that are searched from and bisected."""

import logging
from collections.abc import Iterator

import pytest

from ikigai_actors.testing.simulation.faults import Faults
from ikigai_actors.testing.simulation.schedule import Schedule
from tests.kit.programs import programs, run_programs
from tests.machines.behaviour_rules import TYPED, USE, BehaviourMachine


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow("takes two seconds")
@programs(few=1, many=60)
def test_made_up_programs_keep_every_law_of_experiments(examples: int) -> None:
    run_programs(BehaviourMachine, examples, steps=20)


@pytest.mark.sample(1, "a kind of steps each")
@pytest.mark.parametrize(("between", "each"), [("clear", "log"), ("undo", "log"), (TYPED, "step")])
def test_replays_of_logs_and_of_typed_steps_keep_every_law(between: str, each: str) -> None:
    machine = BehaviourMachine()
    machine.begin(Schedule({}), Faults())
    try:
        machine.fork_of(machine.agent(0))
        machine.change_between_turns(1, between)
        machine.replay_history(0, each, "stop", 1, False, "", ("", USE))
        [begun] = machine.experiments.begun.values()
        assert len(begun.ends) == (2 if each == "log" else 4)
    finally:
        machine.teardown()
