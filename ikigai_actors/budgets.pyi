# The names that this module hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.records.budgets.budget import Budget as Budget
from ikigai_actors.records.budgets.budget import BudgetStatus as BudgetStatus
from ikigai_actors.records.budgets.spendings import Spending as Spending

__all__: list[str]
