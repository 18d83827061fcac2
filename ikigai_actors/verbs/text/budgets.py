"""Amounts of money, and the lines about a budget, as text for people."""

from collections.abc import Iterator

from ikigai_actors.providers.prices import MICRO
from ikigai_actors.records.budgets.budget import UNITS, BudgetStatus, amount_text
from ikigai_actors.verbs.text.words import in_thousands, money


def dollars(micro: int) -> float:
    """Convert an amount of micro-dollars to dollars."""
    return micro / MICRO


def cost_text(tokens: int, micro: int) -> str:
    """Return tokens and micro-dollars as text for people; without dollars if nothing had a price."""
    counted = amount_text("tokens", tokens)
    return f"{counted}, {dollar_text(micro)}" if micro else counted


def dollar_text(micro: int) -> str:
    """Return an amount of micro-dollars as text for people."""
    return amount_text("usd", micro)


def budget_lines(status: BudgetStatus | None, name: str) -> Iterator[str]:
    """Return a line for each limit of a budget; ``name`` is the name of its owner."""
    if status is None:
        yield "no budget limits it"
        return
    strict = " (strict)" if status.strict else ""
    yield f"budget of {name}{strict}" + (f", {status.waiting} waiting for it" if status.waiting else "")
    for unit, granted in status.granted.items():
        parts = [f"{_shown(unit, status.spent.get(unit, 0))} of {_shown(unit, granted)}"]
        if held := status.held.get(unit):
            parts.append(f"{_shown(unit, held)} held")
        if risk := status.risk.get(unit):
            parts.append(f"up to {_shown(unit, risk)} more at worst")
        if beyond := status.beyond.get(unit):
            parts.append(f"{_shown(unit, beyond)} of it beyond what providers were allowed")
        yield "  " + ", ".join(parts)


def short_budget(status: BudgetStatus) -> tuple[str, float]:
    """Return the spent part of a budget for a meter: ``$1.24 of $5.00``, and the fraction."""
    unit = main_unit(status)
    spent, granted = status.spent.get(unit, 0), status.granted[unit]
    part = spent / granted if granted else 1.0
    if unit == "usd":
        return f"{money(spent)} of {money(granted)}", part
    if unit == "tokens":
        return f"{in_thousands(int(spent))} of {in_thousands(int(granted))} tokens", part
    return f"{_shown(unit, spent)} of {_shown(unit, granted)}", part


def main_unit(status: BudgetStatus) -> str:
    """Return the unit of a budget that matters most: dollars, or else tokens, or else any limit."""
    return next((unit for unit in ("usd", "tokens") if unit in status.granted), next(iter(status.granted)))


def _shown(unit: str, amount: float) -> str:
    stored = {"usd": MICRO, "seconds": 1000}.get(unit, 1)
    return amount_text(UNITS[unit], round(amount * stored))
