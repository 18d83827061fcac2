"""Programs that Hypothesis makes up for a machine: a few that reach nearly every rule in each run, many by hand."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

SAME = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
"""The same programs each time: the suite is no place to meet a new one, ``python -m tests.mutants.hunt`` is."""


def programs(few: int, many: int) -> pytest.MarkDecorator:
    """How many ``examples`` a test tries: a few, and in the thorough tier many."""
    more = pytest.param(many, marks=pytest.mark.thorough("many programs of a machine of which each run tries a few"))
    return pytest.mark.parametrize("examples", [few, more])


def run_programs(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    """Run so many programs of so many steps."""
    run_state_machine_as_test(machine, settings=settings(SAME, max_examples=examples, stateful_step_count=steps))
