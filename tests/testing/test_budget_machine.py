"""The machine of budgets: programs that Hypothesis makes up, with a service that counts for itself."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from ikigai_actors.testing.machine.budget_rules import BudgetMachine


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow("takes some seconds")
def test_made_up_programs_keep_every_law_of_budgets() -> None:
    some = settings(
        max_examples=60,
        stateful_step_count=20,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(BudgetMachine, settings=some)
