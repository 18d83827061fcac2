"""Which limits there are: what a budget is made with."""

from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.store.base import Transaction


def add_budget(tx: Transaction, owner: str, parent: str, budget: Budget, now: int) -> None:
    """Give an agent that is being born a budget of its own, below those of its parent, whose row is locked."""
    tx.run("add_budget", owner=owner, parent=parent, strict=int(budget.strict), now=now)
    for unit, granted in budget.limits().items():
        add_limit(tx, owner, unit, granted)


def add_limit(tx: Transaction, budget: str, unit: str, granted: int, base: int = 0, used: int = 0) -> None:
    """Limit a unit of a budget. ``base`` is what its members had spent; ``used``, of agents, how many there are."""
    tx.run("set_limit", budget=budget, unit=unit, granted=granted, base=base, used=used, risk=0, notified=0)
