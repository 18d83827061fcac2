"""The machine of experiments: programs that Hypothesis makes up, with histories that are searched from and bisected."""

import logging
from collections.abc import Iterator

import pytest

from ikigai_actors.testing.machine.behaviour_rules import BehaviourMachine
from tests.kit.programs import programs, run_programs


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow("takes two seconds")
@programs(few=10, many=60)
def test_made_up_programs_keep_every_law_of_experiments(examples: int) -> None:
    run_programs(BehaviourMachine, examples, steps=20)
