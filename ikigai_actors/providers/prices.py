"""The prices of models.

The prices that a person has written into ``prices.toml``, beside the history, take precedence:

    [claude-sonnet]          # a model, or how its name begins: the longest one that fits counts
    input = 3.0              # dollars for a million tokens
    output = 15.0
    cache_write = 3.75       # as input when it is left out
    cache_read = 0.3         # likewise
    exact = true             # of the model with this very name alone
    tiers = [{above = 200000, input = 6.0, output = 22.5}]    # of a request with more tokens of input than that

Next are the prices that ``ikigai prices --update`` has written, or the prices of the project, which the same command
made, if these are newer. Tokens without a price are not priced. Sums are whole numbers of micro-dollars, so that adding
them up loses nothing; what a request costs is rounded up once.
"""

import logging
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_CEILING, Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import Usage

PRICES_FILE = "prices.toml"
KNOWN_FILE = "known-prices.toml"
"""The file that ``ikigai prices --update`` writes, in ikigai's home."""
OURS = Path(__file__).with_name(PRICES_FILE)
"""The prices of the project."""

_KINDS = frozenset({"input", "output", "cache_write", "cache_read"})


HOURLY = 2
"""The price of a token cached for an hour, as a multiple of the input price; Anthropic's value, the only one
published.
"""

BATCH_PERCENT = 50
"""The default price in a batch, in percent of the usual price, as at Anthropic and OpenAI."""

MICRO = 1_000_000
"""Micro-dollars in a dollar."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model, in micro-dollars for a million tokens of each kind."""

    input: int
    output: int
    cache_write: int
    cache_read: int
    tiers: "tuple[tuple[int, Price], ...]" = ()
    """The prices of requests with more tokens of input than that, ascending."""
    batch: int = BATCH_PERCENT
    """The price in a batch, in percent of the usual price."""

    def of(self, tokens: Usage, batched: bool = False) -> int:
        """Return the price of these tokens in micro-dollars, rounded up; ``batched`` uses the price of batches."""
        written, read = tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens
        price = self.at(tokens.input_tokens + written + read)
        hourly = min(written, tokens.cache_creation_1h_input_tokens)
        counts = tokens.input_tokens + HOURLY * hourly, tokens.output_tokens, written - hourly, read
        whole = sum(count * each for count, each in zip(counts, price.kinds, strict=True))
        return -(-whole * self.batch // 100_000_000) if batched else -(-whole // 1_000_000)

    @property
    def kinds(self) -> tuple[int, int, int, int]:
        """The prices of the four kinds of tokens, without tiers."""
        return self.input, self.output, self.cache_write, self.cache_read

    def at(self, size: int) -> "Price":
        """Return the price that applies to a request with ``size`` tokens of input."""
        for above, price in reversed(self.tiers):
            if size > above:
                return price
        return self

    def dearest(self, size: int) -> "Price":
        """Return the highest price of each kind of token in requests with at most ``size`` tokens of input."""
        if not self.tiers:
            return self
        steps = [self, *(price for above, price in self.tiers if size > above)]
        return Price(*(max(kind) for kind in zip(*(step.kinds for step in steps), strict=True)))


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model that may be asked, with the facts for an estimate of the cost."""

    name: str
    """The name, as ``provider:model``."""
    price: Price | None


class Prices:
    """The known prices of models, by name.

    Args:
        prices: by the name of the model, or by the beginning of its name.
        exact: the names that are those of one model.
        others: returns the prices to use for models without a price here.
    """

    def __init__(
        self,
        prices: Mapping[str, Price],
        exact: frozenset[str] = frozenset(),
        others: "Callable[[], Prices] | None" = None,
    ) -> None:
        self._prices, self._exact, self._others = dict(prices), exact, others
        self._longest = max(map(len, self._prices), default=-1)
        self._found = lru_cache(256)(self._find)  # each step of each turn asks

    def over(self, others: "Prices") -> "Prices":
        """Return prices that fall back to ``others`` for models without a price here."""
        behind = self._others
        wider = cache(lambda: others if behind is None else behind().over(others))
        return Prices(self._prices, self._exact, wider)

    def __len__(self) -> int:
        return len(self._prices)

    def cost(self, models: Mapping[str, Usage]) -> float | None:
        """Return the price of these tokens by model, in dollars.

        None when one of the models has no price, and when there are no models.
        """
        priced = [(self.of(model), tokens) for model, tokens in models.items()]
        known = [price.of(tokens) for price, tokens in priced if price is not None]
        return sum(known) / MICRO if known and len(known) == len(priced) else None

    def of(self, model: str, least: int = 0) -> Price | None:
        """Return the price of a model, by its name; None if no price is known.

        Args:
            model: the name.
            least: the least number of characters of the name that must match.
        """
        for end in range(min(len(model), self._longest), least - 1, -1):
            name = model[:end]
            if (price := self._prices.get(name)) is not None and (end == len(model) or name not in self._exact):
                return price
        return self._others().of(model, least) if self._others is not None else None

    def of_model(self, model: str, made_by: str = "") -> Price | None:
        """Return the price of requests to a model; None if no price is known.

        Args:
            model: ``provider:model``, or a name alone. A price of this provider takes precedence.
            made_by: the name of the model that its service reports, which takes precedence; empty if unknown.
        """
        return self._found(model, made_by)

    def _find(self, model: str, made_by: str) -> Price | None:
        provider, colon, name = model.partition(":")
        if not colon:
            return self.of(made_by or model) or self.of(model)
        return self.of(model, len(provider)) or self.of(made_by or name) or self.of(name)


def known_prices(
    home: Path, history: Path | None = None, configured: Mapping[str, Price] | None = None
) -> tuple[Prices, list[str]]:
    """Return all known prices, including those of the user's file; and sentences on errors in that file.

    Args:
        home: the directory of ikigai's files.
        history: the history file: the price file is in the same directory; None for ``home``.
        configured: prices that take precedence over those of the file.
    """
    others = updated_prices(home)
    first = Prices(configured or {})
    try:
        return first.over(read_prices((history or home / "history").with_name(PRICES_FILE))).over(others), []
    except BadInput as error:
        return first.over(others), [str(error)]


def updated_prices(home: Path) -> Prices:
    """Return the prices that ``ikigai prices --update`` has stored. They are read at the first use."""
    return Prices({}, others=lambda: KnownPrices.newest(home).prices)


class KnownPrices(NamedTuple):
    """The prices in a file that ``ikigai prices`` has written, with their date."""

    as_of: date
    source: str
    prices: Prices

    @staticmethod
    @cache
    def newest(home: Path) -> "KnownPrices":
        """Return the prices of ``ikigai prices --update``, or those of the project if these are newer."""
        ours = KnownPrices.ours()
        try:
            updated = KnownPrices.read(home / KNOWN_FILE)
        except FileNotFoundError:
            return ours
        except BadInput as error:
            logger.warning("%s ikigai prices --update rewrites it; the prices of %s apply.", error, ours.as_of)
            return ours
        return updated if updated.as_of > ours.as_of else ours

    @staticmethod
    @cache
    def ours() -> "KnownPrices":
        """Return the prices of the project: 900 lines of TOML, parsed once in a process."""
        return KnownPrices.read(OURS)

    @staticmethod
    def read(path: Path) -> "KnownPrices":
        """Read a file that ``ikigai prices`` has written. Raises `FileNotFoundError` and `BadInput`."""
        tables = _read_toml(path)
        as_of, source, models = tables.get("as_of"), tables.get("source"), tables.get("models")
        if type(as_of) is not date or not isinstance(source, str) or not isinstance(models, dict):
            raise BadInput(f"Expected {path} to be a table of prices, with as_of, source and models.")
        return KnownPrices(as_of, source, _prices_of(path, models))


def read_prices(path: Path) -> Prices:
    """Read a price file; a missing file gives no prices. Raises `BadInput` for a malformed file."""
    try:
        return _prices_of(path, _read_toml(path))
    except FileNotFoundError:
        return Prices({})


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The prices cannot be read from {path}: {error}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"Expected {path} to be TOML: {error}") from error


def _prices_of(path: Path, tables: Mapping[str, Any]) -> Prices:
    exact = frozenset(name for name, table in tables.items() if isinstance(table, dict) and table.get("exact") is True)
    return Prices({name: read_price(str(path), name, table) for name, table in tables.items()}, exact)


def read_price(source: str, name: str, table: Any) -> Price:
    """Parse the price of a model.

    Args:
        source: the file, for errors.
        name: the table, for errors.
        table: the contents of that table.

    Raises:
        BadInput: the table is no price.
    """
    try:
        kinds = {kind: value for kind, value in table.items() if kind not in ("batch", "exact", "tiers")}
        tiers = table.get("tiers", [])
        if not isinstance(table.get("exact", False), bool) or not isinstance(tiers, list):
            raise TypeError
        steps = sorted((_tokens(tier["above"]), _step(tier, "above")) for tier in tiers)
        return replace(_step(kinds), tiers=tuple(steps), batch=_percent(table.get("batch", BATCH_PERCENT / 100)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"Expected [{name}] in {source} to give input and output, and at most cache_write and cache_read, as "
            f"dollars for a million tokens, batch (0.5 where a batch costs half), exact and tiers; got {table!r}."
        ) from error
    except ArithmeticError as error:
        raise BadInput(f"Expected the prices of [{name}] in {source} to be dollars; got {table!r}.") from error


def _step(table: Mapping[str, Any], beside: str = "") -> Price:
    """Return the price in a table, without tiers. Raises `TypeError`, `ValueError` and `ArithmeticError`."""
    kinds = {kind: value for kind, value in table.items() if kind != beside}
    if not {"input", "output"} <= kinds.keys() <= _KINDS:
        raise ValueError
    for value in kinds.values():
        if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
            raise TypeError
    usual = kinds["input"]
    written, read = kinds.get("cache_write", usual), kinds.get("cache_read", usual)
    return Price(_micro(usual), _micro(kinds["output"]), _micro(written), _micro(read))


def _percent(part: object) -> int:
    if not isinstance(part, int | float) or isinstance(part, bool) or not 0 <= part <= 1:
        raise TypeError
    return round(part * 100)


def _tokens(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError
    return value


def _micro(dollars: float) -> int:
    """Return dollars as micro-dollars, rounded up. The decimal digits count, not the binary approximation."""
    return int((Decimal(str(dollars)) * MICRO).to_integral_value(ROUND_CEILING))
