"""Failures that the kit finds: they are shrunk, they are the true ones, and each can be kept as a test."""

import ast
import doctest
from contextlib import suppress
from inspect import getmembers
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RULE_MARKER, rule, run_state_machine_as_test

import ikigai_actors.testing
from ikigai_actors.testing import AgentTreeMachine, Broken, Faults, Schedule, schedules, simulate, simulated
from tests.kit.programs import SAME
from tests.testing.test_simulate import counts

SHORT = settings(
    SAME, max_examples=200, stateful_step_count=3, phases=[Phase.generate, Phase.shrink], report_multiple_bugs=False
)
"""Explaining a failure takes longer than all the rest."""


class Failing(AgentTreeMachine):
    """Has a rule that fails; a look at the end would find something else."""

    failed = False

    @rule(times=st.integers(0, 7))
    def fails(self, times: int) -> None:
        """Fail."""
        self.failed = True
        raise Broken("mine")

    def comes_to_rest(self) -> None:
        """See `AgentTreeMachine.comes_to_rest`."""
        if self.failed:
            raise Broken("looked at after the failure")


@pytest.fixture(scope="module")
def failure() -> tuple[str, list[str]]:
    """What is reported, and the shrunk program that leads there."""
    with pytest.raises(Broken) as caught:
        run_state_machine_as_test(Failing, settings=SHORT)
    notes = "\n".join(caught.value.__notes__).splitlines()
    begin = notes.index("state = Failing()")
    return str(caught.value), notes[begin : notes.index("state.teardown()") + 1]


class FailingAtOnce(Failing):
    """Has no other rule, so a run comes to that one at its first step."""


for name, member in getmembers(Failing):
    if hasattr(member, RULE_MARKER) and name != "fails":
        setattr(FailingAtOnce, name, None)


def test_a_failure_of_a_rule_is_reported_and_not_what_a_look_at_the_end_would_find() -> None:
    with pytest.raises(Broken, match="mine") as caught:
        run_state_machine_as_test(FailingAtOnce, settings=settings(SHORT, phases=[Phase.generate]))
    assert "state.teardown()" in "\n".join(caught.value.__notes__)


@pytest.mark.thorough("Hypothesis shrinks a failure of the whole machine")
def test_a_failure_of_a_rule_is_what_is_reported_and_shrunk_to_the_steps_that_it_needs(
    failure: tuple[str, list[str]],
) -> None:
    text, program = failure
    assert text == "mine"
    rules = [line.split("(")[0] for line in program if line.startswith("state.") and not line.endswith("()")]
    assert rules == ["state.begin", "state.fails"]  # invariants, and the end, take no arguments


@pytest.mark.thorough("Hypothesis shrinks a failure of the whole machine")
def test_the_program_that_a_failing_machine_prints_runs_again_as_it_stands(failure: tuple[str, list[str]]) -> None:
    _, program = failure
    names: dict[str, Any] = {name: getattr(ikigai_actors, name) for name in ikigai_actors.__all__}
    names |= {"Failing": Failing, "Faults": Faults, "Schedule": Schedule}
    try:
        with pytest.raises(Broken, match="mine"):
            exec("\n".join(program[:-1]), names)
    finally:
        with suppress(Broken):
            names["state"].teardown()


@pytest.mark.thorough("dozens of simulations; docs/build/testing.md has a smaller one")
def test_the_smallest_example_of_the_guide_runs() -> None:
    failed, tried = doctest.testmod(ikigai_actors.testing)
    assert (failed, tried) == (0, 4)


@pytest.mark.thorough("a run of pytest")
def test_a_failing_schedule_can_be_kept_as_an_example() -> None:
    with pytest.raises(AssertionError) as caught:
        simulate(counts, examples=100)
    [line] = [line for line in "\n".join(caught.value.__notes__).splitlines() if line.startswith("Replay: ")]
    kept = Schedule.parse(ast.literal_eval(line.removeprefix("Replay: ")))

    @settings(phases=[Phase.explicit], database=None, deadline=None)
    @given(schedule=schedules())
    @example(schedule=kept)
    def runs(schedule: Schedule) -> None:
        with simulated(schedule) as world:
            counts(world)

    with pytest.raises(AssertionError):
        runs()
