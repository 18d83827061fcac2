"""Random programs: whatever is done to their hosts, they answer what they would have answered, and do nothing twice."""

from random import Random

import pytest

from tests.kit.programs import cheaper
from tests.machines.program_runs import Act, Blow, Run, drawn_blows, drawn_plan, judged

LONG = 8
"""Acts of a plan."""

PLAN = (
    Act("fork", "kid-0"), Act("prompt", "a"), Act("prompt", "a"), Act("by_key", "x"), Act("wait"), Act("once", "x"),
    Act("fork", "kid-1"), Act("prompt", "b", 1), Act("again", "y"), Act("by_key", "x"), Act("wait"),
)  # fmt: skip


@pytest.mark.thorough("made-up programs; every run has those that are killed at any moment")
@pytest.mark.slow("a simulation for each program")
@cheaper("programs", 3, 150, "many programs of which each run tries a few")
def test_a_program_that_is_killed_stopped_and_interrupted_answers_the_same_and_does_nothing_twice(
    programs: int,
) -> None:
    for seed in range(programs):
        chance = Random(seed)
        plan = drawn_plan(chance, LONG)
        whole = Run(plan)
        plain = whole.answer()
        judged(plan, plain, drawn_blows(chance, whole.choices, 3), schedule=seed)


@pytest.mark.thorough("made-up programs; every run has those that are killed at any moment")
@pytest.mark.slow("a simulation for each wait")
@pytest.mark.parametrize("wait", ["wait", "first", "nap"])
def test_a_program_is_parked_while_it_waits_and_never_where_its_system_says_so(wait: str) -> None:
    plan = (Act("fork", "kid-0"), Act("prompt", "a"), Act(wait), Act("wait"))
    assert Run(plan).parked_for() > 0
    assert Run(plan, park_after=None).parked_for() == 0


@pytest.mark.slow("a simulation for each kill")
@cheaper("apart", 150, 1, "a kill at each choice of the agenda")
def test_a_program_that_is_killed_at_any_moment_answers_the_same(apart: int) -> None:
    whole = Run(PLAN)
    plain = whole.answer()
    assert plain == "X heard-a heard-a X Y X heard-b"
    for after in range(3, whole.choices, apart):
        judged(PLAN, plain, [Blow(after, "kill")])


FORKS = (Act("fork", "kid-0"), Act("once", "x"), Act("fork", "kid-1"), Act("now"), Act("fork", "kid-2"), Act("ask"))


@pytest.mark.thorough("made-up programs; every run has those that are killed at any moment")
@pytest.mark.slow("a simulation for each signal")
@cheaper("apart", 9, 1, "STOP at each choice of the agenda")
def test_a_program_that_is_stopped_at_any_moment_forks_each_child_once_and_answers_the_same(apart: int) -> None:
    whole = Run(FORKS)
    plain = whole.answer()
    assert plain == "X True"
    for after in range(3, whole.choices, apart):
        judged(FORKS, plain, [Blow(after, "stop")])


@pytest.mark.thorough("a second kind of made-up programs; every run has those that are killed")
@cheaper("programs", 1, 60, "many programs of which each run tries a few")
def test_a_program_whose_host_is_killed_goes_on_at_another_one(programs: int) -> None:
    whole = Run(PLAN, hosts=2)
    plain = whole.answer()
    for seed in range(programs):
        blows = drawn_blows(Random(seed), whole.choices, 2, ["kill", "move", "stop", "jump"])
        judged(PLAN, plain, blows, hosts=2)
