"""Budgets: the limits as people write them, and the status of a budget as people read it."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any

from ikigai_actors.arguments import check_count, check_flag, check_seconds, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.prices import MICRO

MOST = 10**15
"""The most of any unit that a budget can grant."""

MOST_A_MINUTE = 10_000
"""The most requests a minute that a budget can grant."""

UNITS = {
    "tokens": "tokens",
    "usd": "usd",
    "agents": "agents",
    "agents_ever": "agents_ever",
    "seconds": "ms",
    "requests_per_minute": "requests",
}
"""The units of a `Budget`, and their names in table ``limits``."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that an agent and all its descendants may spend. None is no limit, and 0 allows nothing.

    Raises `BadInput` for an invalid value.
    """

    tokens: int | None = None
    """The tokens that models' services count: input, cache writes, cache reads, output."""
    usd: float | None = None
    """The dollars, with six decimal places."""
    agents: int | None = None
    """The number of agents that live at the same time below the owner."""
    agents_ever: int | None = None
    """The number of agents that are ever born below the owner."""
    seconds: float | None = None
    """The seconds since the budget was made in which requests may be made."""
    requests_per_minute: int | None = None
    """The requests to models within any 60 seconds; at most 10,000."""
    strict: bool = False
    """Whether the budget is never exceeded, because replies are cut to what is left. Otherwise the cost of a request is
    estimated from earlier ones, and may be higher.
    """

    def __post_init__(self) -> None:
        for name in ("tokens", "agents", "agents_ever"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, most=MOST)
        if self.requests_per_minute is not None:
            check_count(self.requests_per_minute, "requests_per_minute", most=MOST_A_MINUTE)
        if self.usd is not None:
            micro_dollars(self.usd)
        if self.seconds is not None:
            check_seconds(self.seconds, "seconds")
        check_flag(self.strict, "strict")

    def limits(self) -> dict[str, int]:
        """Return the limits, by the units of table ``limits``."""
        amounts = {
            "tokens": self.tokens,
            "usd": None if self.usd is None else micro_dollars(self.usd),
            "agents": self.agents,
            "agents_ever": self.agents_ever,
            "ms": None if self.seconds is None else int(self.seconds * 1000),
            "requests": self.requests_per_minute,
        }
        return {unit: amount for unit, amount in amounts.items() if amount is not None}


def as_budget(budget: object) -> Budget | None:
    """Return a budget from a `Budget`, a dict of its arguments, or None. Raises `BadInput`."""
    if budget is None or isinstance(budget, Budget):
        return budget
    known = [field.name for field in fields(Budget)]
    if not isinstance(budget, Mapping) or not all(name in known for name in budget):
        raise BadInput(
            f"Expected budget to be a Budget, or a dict with some of {', '.join(known)}; got {shown(budget)}."
        )
    return Budget(**budget)


def tighter(parent_budget: Budget, other: Budget | None) -> Budget:
    """Return the combination of two budgets: the lower of each limit, and strict if one of them is."""
    if other is None:
        return parent_budget
    tightest: dict[str, Any] = {}
    for name in UNITS:
        limits = [limit for limit in (getattr(parent_budget, name), getattr(other, name)) if limit is not None]
        tightest[name] = min(limits, default=None)
    return Budget(**tightest, strict=parent_budget.strict or other.strict)


def encode_budget(budget: Budget | None) -> str | None:
    """Return a budget as text, for a command to another process; None for none."""
    return None if budget is None else json.dumps(asdict(budget))


def decode_budget(text: str | None) -> Budget | None:
    """Return the budget from a text of `encode_budget`. Raises `BadInput`."""
    try:
        return None if text is None else as_budget(json.loads(text))
    except ValueError as error:
        raise BadInput(f"Expected a budget as JSON: {error}.") from error


_WRITTEN = {
    "tokens": "tokens",
    "usd": "usd",
    "agents": "agents",
    "agents_ever": "agents_ever",
    "seconds": "seconds",
    "requests_per_minute": "requests_per_minute",
    "s": "seconds",
    "m": "seconds",
    "h": "seconds",
    "d": "seconds",
    "requests": "requests_per_minute",
}
"""The suffix of an amount, and the unit of `Budget` that it means."""

_SECONDS = {"m": 60, "h": 3_600, "d": 86_400}

_THOUSANDS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKM]?)")

_MORE = re.compile(rf"\+{_AMOUNT.pattern} ?([a-z_]+)")

EXAMPLES = "usd=5,tokens=1M,agents=20,seconds=3600,strict"


def parse_budget(text: str) -> Budget:
    """Parse a budget as a person writes it: ``usd=5,tokens=1M,strict``. Raises `BadInput`."""
    arguments: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = part.partition("=")
        if name == "strict" and not equals:
            arguments[name] = True
        elif name in UNITS and (match := _AMOUNT.fullmatch(value.strip())) is not None:
            arguments[name] = _number(match[1], match[2])
        else:
            raise BadInput(f"Expected a budget such as {EXAMPLES}; got {part!r}.")
    if not arguments:
        raise BadInput(f"Expected a budget such as {EXAMPLES}; got {text!r}.")
    return Budget(**arguments)


def parse_grant(text: str) -> dict[str, Any]:
    """Parse a grant as a person writes it: ``+5usd``, ``+100ktokens``, ``+1h``. Raises `BadInput`.

    Returns:
        The argument of `AgentRef.grant`, by its name.
    """
    match = _MORE.fullmatch(text.strip())
    if match is None or match[3] not in _WRITTEN:
        raise BadInput(f"Expected what to grant, such as +5usd, +100ktokens, +2agents or +1h; got {text!r}.")
    return {_WRITTEN[match[3]]: _number(match[1], match[2], _SECONDS.get(match[3], 1))}


def checked_limits(budget: Budget | None) -> Budget:
    """Check that a budget limits something, and return it. Raises `BadInput`."""
    if budget is None or not budget.limits():
        raise BadInput(f"Expected budget to be one or more limits, e.g. usd=5; got {shown(budget)}.")
    return budget


def _number(digits: str, thousands: str, factor: int = 1) -> int | float:
    amount = Decimal(digits) * _THOUSANDS[thousands] * factor
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def micro_dollars(dollars: object) -> int:
    """Convert dollars to micro-dollars. Raises `BadInput` for an invalid amount."""
    try:
        if isinstance(dollars, bool) or not isinstance(dollars, int | float | Decimal):
            raise InvalidOperation
        sum_ = (Decimal(str(dollars)) * MICRO).to_integral_value(ROUND_CEILING)
        if not 0 <= sum_ <= MOST:
            raise InvalidOperation
        return int(sum_)
    except ArithmeticError:
        raise BadInput(f"Expected usd as dollars, from 0 to {MOST // MICRO:,}; got {shown(dollars)}.") from None


def amount_text(unit: str, amount: int) -> str:
    """Return an amount of a unit of table ``limits`` as text for people."""
    match unit:
        case "usd":
            return f"${amount / MICRO:,.2f}" if amount % 10_000 == 0 or amount >= MICRO else f"${amount / MICRO:.6f}"
        case "ms":
            return f"{amount / 1000:,g} s"
        case "requests":
            return f"{amount:,} requests a minute"
        case "agents" | "agents_ever":
            return f"{amount:,} agents"
    return f"{amount:,} {unit}"


def shown_amount(unit: str, amount: int) -> float:
    """Return an amount of a unit of table ``limits`` as people count it: in dollars or seconds, else unchanged."""
    return amount / {"usd": MICRO, "ms": 1000}.get(unit, 1) if unit in ("usd", "ms") else amount


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """The limits of a budget, and how much of each is used, by the units of `Budget`.

    A unit without an entry has no limit.
    """

    owner: str
    """The uuid of the agent that owns the budget."""
    strict: bool
    """Whether the budget is strict (`Budget.strict`). Only usage that providers report `beyond` what was allowed
    exceeds it.
    """
    granted: Mapping[str, float]
    held: Mapping[str, float]
    """The amounts reserved for requests under way."""
    spent: Mapping[str, float]
    """The used amounts: tokens and dollars spent, agents that live or were born, seconds that have passed, and requests
    of the last minute.
    """
    risk: Mapping[str, float] = field(default_factory=dict)
    """The tokens and dollars that may have been spent in addition, or that requests under way may still spend."""
    waiting: int = 0
    """The number of agents that wait for the budget."""
    beyond: Mapping[str, float] = field(default_factory=dict)
    """For a strict budget, the spent amounts that providers reported beyond what was allowed."""


def by_unit(amounts: Mapping[str, int]) -> dict[str, Any]:
    """Convert amounts keyed by the units of table ``limits`` to amounts keyed by the units of `Budget`."""
    return {name: shown_amount(unit, amounts[unit]) for name, unit in UNITS.items() if unit in amounts}
