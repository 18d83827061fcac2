"""The amounts of a request to a model: its need, its reserved amount, its cost. Pure."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

LEAST_OUTPUT = 1_024
"""A strict budget lets a request wait rather than cut its reply below this many tokens."""


class Amount(NamedTuple):
    """The highest cost that a request may have: tokens of the request and the reply, and their prices."""

    input: int
    """The tokens of the request."""
    output: int
    """The tokens of the reply."""
    input_usd: int = 0
    output_price: int = 0
    least: int = 1
    """The least tokens that must be left in a budget for the request to be sent."""

    @property
    def tokens(self) -> int:
        """Return the tokens of the request and the reply."""
        return self.input + self.output

    @property
    def usd(self) -> int:
        """Return the price of both in micro-dollars."""
        return self.input_usd + price_of(self.output, self.output_price)


@dataclass(frozen=True, slots=True)
class Need:
    """The amounts that an agent's next request needs in the budgets above the agent."""

    at: int
    """The position of the message that the request answers."""
    turn: int
    """The position of the message that opened the turn."""
    expected: Amount
    """The amount to reserve, if every budget above allows more than expected."""
    strict: Amount
    """The highest possible cost, which strict budgets reserve."""
    priced: bool = True
    """Whether the model has a price, or costs nothing."""
    thinking: int = 0
    """The tokens that the settings reserve for thinking. The reply is never cut below this."""
    model: str = ""
    """The name of the model, for a notice that it has no price."""

    @property
    def is_nothing(self) -> bool:
        """Return whether no model can be asked. The request then fails before it is sent, so no budget delays it."""
        return self.strict.tokens == 0

    def encode(self) -> str:
        """Return the need as JSON text for the database."""
        return json.dumps(
            [self.at, self.turn, self.expected, self.strict, self.priced, self.thinking, self.model],
            separators=(",", ":"),
        )

    @staticmethod
    def decode(stored: str) -> "Need":
        """Return the need from a text of `encode`. Raises `ValueError` and `TypeError` for any other text."""
        at, turn, expected, strict, priced, thinking, model = json.loads(stored)
        return Need(at, turn, Amount(*expected), Amount(*strict), priced, thinking, model)


class Held(NamedTuple):
    """The amount that was reserved for a request. The request may be sent."""

    at: int
    """The position of the message that the request answers."""
    tokens: int
    usd: int
    output: int
    """The tokens of the reply that are reserved."""
    max_tokens: int | None = None
    """The most tokens of the reply, if a budget above is strict; else None."""
    risk_tokens: int = 0
    """The possible cost beyond the reserved amount, in tokens, at worst."""
    risk_usd: int = 0
    freed: tuple[str, ...] = ()
    """As `Settled.freed`."""
    notified: tuple[tuple[str, str], ...] = ()
    """As `Settled.notified`."""

    @property
    def strict(self) -> bool:
        """Return whether a budget above is strict."""
        return self.max_tokens is not None


class Paused(NamedTuple):
    """The reason why a request waits for a budget."""

    budget: str
    """The uuid of the owner of that budget."""
    unit: str
    """The unit of which too little is left."""
    text: str
    """A text for people about the wait, with what to do."""
    due: int | None = None
    """The time when it may go on by itself, in milliseconds since 1970; None when it waits for a grant."""
    at: int = 0
    """The position of the message that the request answers."""
    again_at: int | None = None
    """The time when the budget is checked again, in milliseconds since 1970, even without a grant; None when only a
    grant helps.
    """
    freed: tuple[str, ...] = ()
    """As `Settled.freed`."""
    notified: tuple[tuple[str, str], ...] = ()
    """As `Settled.notified`."""


class Settled(NamedTuple):
    """The answer of a unit that has settled a request and reserved nothing for another."""

    freed: tuple[str, ...]
    """The owners of budgets to be checked again, because an agent waits for them or a notice is due."""
    notified: tuple[tuple[str, str], ...] = ()
    """The notices that were sent: the recipient, and the agent that each is about."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of a request that has ended."""

    tokens: int = 0
    usd: int = 0
    risk_tokens: int = 0
    """The tokens that it may have cost in addition, because no service reported them."""
    risk_usd: int = 0


NO_CHARGE = Charge()
"""The cost of a request that was never sent."""


def price_of(tokens: int, price: int) -> int:
    """Return the price of tokens in micro-dollars, rounded up. ``price`` is that of a million tokens."""
    return -(-tokens * price // 1_000_000)


def affordable(usd: int, price: int, most: int) -> int:
    """Return how many tokens this amount buys, at most ``most``. ``price`` is that of a million tokens."""
    return most if price == 0 else max(0, min(most, usd * 1_000_000 // price))


def whole_hold(row: Any) -> Charge:
    """Return the whole amount reserved in an agent's locked ``row`` as the cost of a request with unknown cost."""
    return Charge(row.held_tokens, row.held_usd, row.held_risk_tokens, row.held_risk_usd)


class SpendingRow(NamedTuple):
    """A row of table ``spendings``: the cost of a request."""

    agent_uuid: str
    id: int
    """The position of the message that reports the request."""
    labels: str
    """The id of the labels in force (`set_id`)."""
    created_at: int
    tokens: int
    usd: int
    """The cost in micro-dollars."""
