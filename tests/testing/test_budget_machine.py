"""The machines of budgets: programs that Hypothesis makes up, with a service that counts for itself."""

import logging
from collections.abc import Iterator

import pytest

from ikigai_actors.testing.simulation.faults import NONE
from ikigai_actors.testing.simulation.schedule import PLAIN
from tests.kit.programs import programs, run_programs
from tests.machines.budget_rules import BudgetMachine, FleetBudgetMachine


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults are planned here: nobody wants to read of each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow("takes two seconds")
@programs(few=2, many=60)
def test_made_up_programs_keep_every_law_of_budgets(examples: int) -> None:
    run_programs(BudgetMachine, examples, steps=20)


@pytest.mark.thorough("programs of several hosts; every run has those of one")
@pytest.mark.slow("takes two seconds")
@programs(few=1, many=30)
def test_made_up_programs_of_several_hosts_keep_every_law_of_budgets(examples: int) -> None:
    run_programs(FleetBudgetMachine, examples, steps=12)


@pytest.mark.thorough("several simulated hosts; the machine without budgets does so in each run")
def test_under_budgets_no_host_goes_on_that_knows_more_than_the_database() -> None:
    machine = FleetBudgetMachine()
    machine.begin(hosts=2, schedule=PLAIN, misfortunes=NONE)
    machine.fork(who=0, prompt="go", reply="ok")
    machine.become_older(who=1)
    machine.comes_to_rest()
    machine.what_was_acknowledged_is_there()
    assert "older" in {line.kind for line in machine.world.trace.lines}
    machine._context.__exit__(None, None, None)
