"""The prices of models, as the person has written them down: a file ``prices.toml`` beside the history.

    [claude-sonnet]          # a model, or how its name begins: the longest one that fits counts
    input = 3.0              # dollars for a million tokens
    output = 15.0
    cache_write = 3.75       # as input when it is left out
    cache_read = 0.3         # likewise

No price is built in: they change, and a wrong one is worse than none. Tokens without a price are not priced. Sums are
whole numbers of micro-dollars, so that adding them up loses nothing; what a request costs is rounded up once.
"""

import tomllib
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import Usage

PRICES_FILE = "prices.toml"

_KEYS = frozenset({"input", "output", "cache_write", "cache_read"})


MICRO = 1_000_000
"""Micro-dollars of a dollar."""


class Price(NamedTuple):
    """Micro-dollars for a million tokens."""

    input: int
    output: int
    cache_write: int
    cache_read: int

    def of(self, tokens: Usage) -> int:
        """The price of these tokens, in micro-dollars, rounded up."""
        counts = (
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cache_creation_input_tokens,
            tokens.cache_read_input_tokens,
        )
        return -(-sum(count * price for count, price in zip(counts, self, strict=True)) // 1_000_000)


class Prices:
    """The known prices."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = dict(sorted(prices.items(), key=lambda item: -len(item[0])))

    def __bool__(self) -> bool:
        return bool(self._prices)

    def over(self, others: "Prices") -> "Prices":
        """These prices, and for models that they do not have those of others."""
        return Prices({**others._prices, **self._prices})

    def cost(self, models: Mapping[str, Usage]) -> float | None:
        """The price of the tokens of these models, in dollars.

        None when one of the models has no price, and when there are no models.
        """
        found = [(self.of(model), tokens) for model, tokens in models.items()]
        known = [price.of(tokens) for price, tokens in found if price is not None]
        return sum(known) / MICRO if known and len(known) == len(found) else None

    def of(self, model: str) -> Price | None:
        """The price of a model, by its name; None when it has none."""
        return next((price for name, price in self._prices.items() if model.startswith(name)), None)


def known_prices(history: Path | None, configured: Mapping[str, Price] | None = None) -> tuple[Prices, list[str]]:
    """The prices beside a history, and a complaint about the file, if there is one.

    Args:
        history: the history; None for no file.
        configured: prices that count before those of the file.
    """
    first = Prices(configured or {})
    try:
        return first.over(read_prices(history.with_name(PRICES_FILE))) if history is not None else first, []
    except BadInput as error:
        return first, [str(error)]


def read_prices(path: Path) -> Prices:
    """Read the file; a missing file has no prices. Raises `BadInput` for a file that is no price list."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Prices({})
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The prices cannot be read from {path}: {error}") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"Expected {path} to be TOML: {error}") from error
    return Prices({name: read_price(str(path), name, table) for name, table in tables.items()})


def read_price(source: str, name: str, table: Any) -> Price:
    """Read the price of a model.

    Args:
        source: the file, for errors.
        name: the table, for errors.
        table: what it holds.

    Raises:
        BadInput: it is no price.
    """
    if not isinstance(table, dict) or not {"input", "output"} <= table.keys() <= _KEYS or not all(
        isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 for value in table.values()
    ):  # fmt: skip
        raise BadInput(
            f"Expected [{name}] in {source} to give input and output, and at most cache_write and cache_read, as "
            f"dollars for a million tokens; got {table!r}."
        )
    prices = {"cache_write": table["input"], "cache_read": table["input"], **table}
    try:
        return Price(**{kind: _micro(dollars) for kind, dollars in prices.items()})
    except ArithmeticError as error:
        raise BadInput(f"Expected the prices of [{name}] in {source} to be dollars; got {table!r}.") from error


def _micro(dollars: float) -> int:
    """Dollars as micro-dollars, rounded up: as they are written, not as the binary number next to that."""
    return int((Decimal(str(dollars)) * MICRO).to_integral_value(ROUND_CEILING))
