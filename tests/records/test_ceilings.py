"""The arithmetic of budgets, by itself: how what is left is divided among hosts."""

import pytest

from ikigai_actors.records.budgets.ceilings import BudgetLimit, Level, Portion, allot


def level(notified: int = 0) -> Level:
    """A budget of 1,000 tokens: host a holds 100 and has spent 50, of 300; host b has none yet."""
    portions = {("tokens", "a"): Portion(allotted=300, held=100, spent=50)}
    return Level("owner", limits={"tokens": BudgetLimit(1_000, notified=notified)}, portions=portions)


@pytest.mark.parametrize(("hosts", "spare"), [(1, 400), (2, 100), (4, 50)])
def test_a_host_that_is_short_takes_nothing_from_others_while_enough_is_not_theirs(hosts: int, spare: int) -> None:
    budget = level()
    allot(budget, "tokens", "b", 100, hosts)
    assert budget.portions["tokens", "a"].allotted == 300
    assert budget.portions["tokens", "b"].allotted == 100 + spare


@pytest.mark.parametrize(("hosts", "spare"), [(1, 200), (2, 50), (4, 25)])
def test_a_host_that_is_short_gets_what_others_do_not_use_and_some_more_and_leaves_them_what_they_hold(
    hosts: int, spare: int
) -> None:
    budget = level()
    allot(budget, "tokens", "b", 450, hosts)
    assert budget.portions["tokens", "a"].allotted == 150
    assert budget.portions["tokens", "b"].allotted == 450 + spare


def test_hosts_that_share_a_budget_seldom_ask_for_more_before_its_end() -> None:
    budget = Level("owner", limits={"tokens": BudgetLimit(10**6)})
    asked = 0
    for number in range(4_000):
        host = "abcd"[number % 4]
        own = budget.portion("tokens", host)
        if own.allotted - own.taken < 150:
            allot(budget, "tokens", host, 150, 4)
            asked += 1
        own.book(spent=150)
    assert budget.spent("tokens") == 600_000
    assert asked < 60


def test_no_more_is_allotted_than_up_to_the_line_of_which_the_owner_was_not_told_but_what_is_needed() -> None:
    budget = level()
    allot(budget, "tokens", "b", 750, 1)
    assert budget.portions["tokens", "b"].allotted == 750
    budget = level(notified=1)
    allot(budget, "tokens", "b", 750, 1)
    assert budget.portions["tokens", "b"].allotted == 850
