"""The amounts of a request to a model: its need, its hold, its cost. Pure.

Dollars are micro-dollars, prices are micro-dollars for a million tokens.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

LEAST_OUTPUT = 1_024
"""A strict budget makes a request wait rather than cut its reply below this many tokens."""


class Amount(NamedTuple):
    """The possible cost of a request."""

    input: int
    """Tokens of the request."""
    output: int
    """Tokens of the reply."""
    input_usd: int = 0
    output_price: int = 0
    least: int = 1
    """How many tokens must be left, at least, so that it may leave."""

    @property
    def tokens(self) -> int:
        """Tokens of both."""
        return self.input + self.output

    @property
    def usd(self) -> int:
        """The price of both."""
        return self.input_usd + price_of(self.output, self.output_price)


@dataclass(frozen=True, slots=True)
class Need:
    """The need of an agent's next request, by the budgets above it."""

    at: int
    """Position of the message that it answers."""
    turn: int
    """Position of the message that opened the turn."""
    expected: Amount
    """The hold, where every budget above allows more than expected."""
    strict: Amount
    """The most that it can cost."""
    priced: bool = True
    """Whether its model has a price, or costs nothing."""
    thinking: int = 0
    """Tokens of the reply that the settings reserve for thinking: it is never cut below that."""
    model: str = ""
    """The model, for the notice that it has no price."""

    @property
    def is_nothing(self) -> bool:
        """Whether no model can be asked: the request fails before it leaves, so no budget can hold it up."""
        return self.strict.tokens == 0

    def encode(self) -> str:
        """The form in which it is stored."""
        return json.dumps(
            [self.at, self.turn, self.expected, self.strict, self.priced, self.thinking, self.model],
            separators=(",", ":"),
        )

    @staticmethod
    def decode(stored: str) -> "Need":
        """The need that a text stores. Raises `ValueError` and `TypeError` for any other text."""
        at, turn, expected, strict, priced, thinking, model = json.loads(stored)
        return Need(at, turn, Amount(*expected), Amount(*strict), priced, thinking, model)


class Held(NamedTuple):
    """The hold of a request, which may leave."""

    at: int
    """Position of the message that it answers."""
    tokens: int
    usd: int
    output: int
    """The tokens of its reply, of those held."""
    max_tokens: int | None = None
    """Where a budget above is strict: the most tokens that the reply may have."""
    risk_tokens: int = 0
    """The possible cost beyond that, at worst."""
    risk_usd: int = 0
    freed: tuple[str, ...] = ()
    """As `Settled.freed`."""
    notified: tuple[tuple[str, str], ...] = ()
    """As `Settled.notified`."""

    @property
    def strict(self) -> bool:
        """Whether a budget above is strict."""
        return self.max_tokens is not None


class Paused(NamedTuple):
    """A request that waits for a budget."""

    budget: str
    """The budget, by its owner."""
    unit: str
    """The unit that is short."""
    text: str
    """The same for people, and what to do."""
    due: int | None = None
    """When it may go on by itself, in milliseconds since 1970; None when it waits for a grant."""
    at: int = 0
    """Position of the message that it answers."""
    again_at: int | None = None
    """When the budget is looked at again, even if nobody grants anything; None when only a grant helps."""
    freed: tuple[str, ...] = ()
    """As `Settled.freed`."""
    notified: tuple[tuple[str, str], ...] = ()
    """As `Settled.notified`."""


class Settled(NamedTuple):
    """The answer of a unit that settled a request and placed none."""

    freed: tuple[str, ...]
    """The budgets, by their owners, to be looked at again: an agent waits for them, or a notice is due."""
    notified: tuple[tuple[str, str], ...] = ()
    """The notices that were sent: recipient, and the agent that it is about."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of a finished request."""

    tokens: int = 0
    usd: int = 0
    risk_tokens: int = 0
    """How much more it may have cost, since nobody has told."""
    risk_usd: int = 0


NO_CHARGE = Charge()
"""The charge of a request that never left."""


def price_of(tokens: int, price: int) -> int:
    """The price of tokens, rounded up."""
    return -(-tokens * price // 1_000_000)


def affordable(usd: int, price: int, most: int) -> int:
    """How many tokens this buys, at most ``most``."""
    return most if price == 0 else max(0, min(most, usd * 1_000_000 // price))


def whole_hold(row: Any) -> Charge:
    """The charge of a request of which nothing is known but what was held: all of that. ``row`` is a locked agent."""
    return Charge(row.held_tokens, row.held_usd, row.held_risk_tokens, row.held_risk_usd)


class SpendingRow(NamedTuple):
    """A row of table ``spendings``."""

    agent_uuid: str
    id: int
    """Position of the message that reports the request."""
    labels: str
    """The id of the labels that were in force (`set_id`)."""
    created_at: int
    tokens: int
    usd: int
    """In micro-dollars."""
