"""The status of a budget for people."""

from ikigai_actors.records.budgets.budget import BudgetStatus, by_unit
from ikigai_actors.store.base import Transaction


def budget_of(tx: Transaction, agent: str) -> BudgetStatus | None:
    """Return the nearest budget with limits above an agent; None if there is none."""
    rows = tx.run("budget_of", uuid=agent)
    if not rows:
        return None
    owner, strict, created_at = rows[0][:3]
    granted: dict[str, int] = {}
    held: dict[str, int] = {}
    spent: dict[str, int] = {}
    risk: dict[str, int] = {}
    beyond: dict[str, int] = {}
    waiting = 0
    for of, _, _, unit, most, used, past_risk, now_held, now_spent, now_risk, requests, waits, now in rows:
        if of != owner:
            break
        waiting = waits
        granted[unit] = most
        spent[unit] = {"ms": max(0, now - created_at), "requests": requests}.get(unit, used + now_spent)
        if unit in ("tokens", "usd"):
            held[unit], risk[unit] = now_held, 0
            (beyond if strict else risk)[unit] = past_risk + now_risk
    return BudgetStatus(
        owner,
        bool(strict),
        by_unit(granted),
        by_unit(held),
        by_unit(spent),
        by_unit(risk),
        waiting,
        by_unit(beyond),
    )


def budgets_that_limit(tx: Transaction, most: int) -> list[BudgetStatus]:
    """Return the budgets with limits, agent 0's first; at most this many."""
    [(root,)] = tx.run("root_budget") or [("",)]
    owners = sorted({owner for owner, *_ in tx.run("all_limits")}, key=lambda owner: (owner != root, owner))
    return [budget for owner in owners[:most] if (budget := budget_of(tx, owner)) is not None]
