"""Budgets above an agent."""

import pytest

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.records.budgets.purse import budget_chain


def test_a_database_that_has_lost_the_budget_of_agent_0_is_refused_by_name() -> None:
    with pytest.raises(StoreUnusable, match="fsck"):
        budget_chain({}, None)
