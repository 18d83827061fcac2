"""Branches: a birth that a model asks for is refused where many live in the same branch."""

from dataclasses import replace

import pytest

from ikigai_actors.errors import TooManyAgents
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.store import Store
from ikigai_actors.store.unit import write_alone
from tests.kit.trees import HOST, change, plant, record, says


def bear(store: Store, parent: str, limit: int, *, at: int = 1, is_set: bool = False) -> str:
    """Have an agent's model fork; return the child."""
    child = f"{parent}-{at}"
    birth = Birth(child, None, parent, at - 1, 0, "transient", at, says(child, at, kind="fork"), at, limit, is_set)
    unit = LogUnit(parent, says(parent, at, kind="fork"), births=(birth,))
    write_alone(store, Append(unit, FencingToken(HOST, FIRST_EPOCH)))
    return child


def test_each_branch_is_counted_by_itself_and_agent_0_counts_all(store: Store) -> None:
    plant(store, a="root", b="root", a1="a", a2="a1", a3="a")
    change(store, "a1", "status = 'dead', ended_at = 1, exit_cause = 'killed'")
    assert [record(store, agent).branch for agent in ("root", "a", "a2")] == [None, "a", "a"]
    assert record(store, bear(store, "b", 2)).branch == "b"
    with pytest.raises(TooManyAgents, match=r"fewer than 3 agents live in the branch of a \(the usual limit\)"):
        bear(store, "a2", 3)  # a, a2, a3
    assert record(store, bear(store, "a2", 4)).branch == "a"
    with pytest.raises(TooManyAgents, match="fewer than 7 agents live altogether"):
        bear(store, "root", 7)
    assert record(store, bear(store, "root", 8)).branch == "root-1"


def test_a_budget_of_agents_replaces_the_usual_limit_but_not_a_setting(store: Store) -> None:
    plant(store, a="root", b="a")
    write_alone(store, SetBudget("a", Budget(agents=5)))
    configured = replace(says("b", 1, kind="configure")[0], data={"max_agents": 1})
    write_alone(store, Append(LogUnit("b", (configured,)), FencingToken(HOST, FIRST_EPOCH)))
    with pytest.raises(TooManyAgents, match="max_agents, set by b"):
        bear(store, "b", 1, at=2, is_set=True)
    assert record(store, bear(store, "b", 1, at=2)).living
