"""The machine of experiments: programs that Hypothesis makes up, with histories that are searched from and bisected."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from ikigai_actors.testing.machine.behaviour_rules import BehaviourMachine


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow("takes some seconds")
def test_made_up_programs_keep_every_law_of_experiments() -> None:
    some = settings(
        max_examples=24,
        stateful_step_count=20,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(BehaviourMachine, settings=some)
