"""The arithmetic of budgets, by itself: how what is left is divided among hosts."""

import pytest

from ikigai_actors.records.budgets.ceilings import BudgetLimit, Level, Portion, allot


def level(notified: int = 0) -> Level:
    """A budget of 1,000 tokens: host a holds 100 and has spent 50, of 300; host b has none yet."""
    portions = {("tokens", "a"): Portion(allotted=300, held=100, spent=50)}
    return Level("owner", limits={"tokens": BudgetLimit(1_000, notified=notified)}, portions=portions)


@pytest.mark.parametrize(("hosts", "spare"), [(1, 550), (2, 137), (4, 68)])
def test_a_host_that_is_short_gets_what_others_do_not_use_and_some_more_and_leaves_them_what_they_hold(
    hosts: int, spare: int
) -> None:
    budget = level()
    allot(budget, "tokens", "b", 100, hosts)
    assert budget.portions["tokens", "a"].allotted == 150
    assert budget.portions["tokens", "b"].allotted == 100 + spare


def test_no_more_is_allotted_than_up_to_the_line_of_which_the_owner_was_not_told_but_what_is_needed() -> None:
    budget = level()
    allot(budget, "tokens", "b", 750, 1)
    assert budget.portions["tokens", "b"].allotted == 750
    budget = level(notified=1)
    allot(budget, "tokens", "b", 750, 1)
    assert budget.portions["tokens", "b"].allotted == 850
