"""What costs less in each run than in the thorough tier: how many there are of a thing, and programs of a machine.

Hypothesis makes the programs up: a few that reach nearly every rule in each run, many by hand.
"""

from collections.abc import Iterator
from itertools import count, islice

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from ikigai_actors.testing import CrashPoint

SAME = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
"""The same programs each time: the suite is no place to meet a new one, ``python -m tests.mutants.hunt`` is."""


def cheaper(name: str, usual: object, thorough: object, why: str) -> pytest.MarkDecorator:
    """A parameter with one value in each run, and another one, which takes longer, in the thorough tier."""
    return pytest.mark.parametrize(name, [usual, pytest.param(thorough, marks=pytest.mark.thorough(why))])


def programs(few: int, many: int) -> pytest.MarkDecorator:
    """How many ``examples`` a test tries: a few, and in the thorough tier many."""
    return cheaper("examples", few, many, "many programs of a machine of which each run tries a few")


def each_commit(step: int) -> pytest.MarkDecorator:
    """How many places apart a test lets a host end: ``step``, and in the thorough tier 1."""
    return cheaper("step", step, 1, "a host ends at each commit; every run has a part of them")


def crash_points(step: int) -> Iterator[CrashPoint]:
    """Each ``step``-th place to end at, from the first commit on, before it and after it; without end."""
    return islice((CrashPoint(commit, after) for commit in count(1) for after in (False, True)), 0, None, step)


def run_programs(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    """Run so many programs of so many steps."""
    run_state_machine_as_test(machine, settings=settings(SAME, max_examples=examples, stateful_step_count=steps))
