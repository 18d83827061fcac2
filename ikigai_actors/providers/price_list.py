"""The list of prices that ``ikigai prices --update`` makes from the data of the package ``genai-prices``.

Only makers of models, and Amazon's names for theirs, are in it: a reseller has prices of its own under the same names.
A rule matches a full name of a model, or the beginning of a name. Other rules are left out,
and reported; so are prices by the hour, fees by the request, and dearer ways to ask the same model. Prices by the date
are those of today.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput

MAKERS = (
    "anthropic", "openai", "google", "mistral", "deepseek", "x-ai", "cohere", "moonshotai", "zai", "minimax",
    "perplexity", "meta", "aws",
)  # fmt: skip
"""The makers whose prices are listed; if two have the same name for a model, the first one's price is used."""

_KINDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_write": "cache_write_mtok",
    "cache_read": "cache_read_mtok",
}
_PACKAGE = "genai-prices"
_A_DAY, _CENTURY = "20260101", "20"
"""Names may be followed by a date: the table has them with the beginning of a date."""
_MISSING = f"The prices come from the package {_PACKAGE}: pip install 'ikigai-actors[prices]'."


class PriceList(NamedTuple):
    """The text of a new list of prices, and the models that were left out."""

    text: str
    """The contents of the file."""
    names: int
    left_out: list[str]
    """Models that have prices of a kind that the file cannot have."""


def price_list(now: datetime) -> PriceList:
    """Return the list with the prices valid at a time. Raises `BadInput` if the package is not installed."""
    try:
        from genai_prices.data import providers
    except ImportError as error:
        raise BadInput(_MISSING) from error
    line_by_name: dict[str, str] = {}
    left_out: list[str] = []
    by_name = {provider.id: provider for provider in providers}
    makers = [by_name[name] for name in MAKERS if name in by_name]
    for place, provider in enumerate(makers):
        for model in provider.models:
            tables = _table(model, now)
            if tables is None:
                left_out.append(f"{provider.id}:{model.id}")
            elif tables:
                for name, exact in _names(model).items():
                    known = name.removesuffix(_CENTURY) + _A_DAY if name.endswith(_CENTURY) and not exact else name
                    if [maker.find_model(known) for maker in makers[: place + 1]] == [*[None] * place, model]:
                        line_by_name.setdefault(name, _line(name, tables, exact))
    head = [f"as_of = {now.date()}", f'source = "{_PACKAGE} {version(_PACKAGE)}"', "", "[models]"]
    lines = [line for _, line in sorted(line_by_name.items())]
    return PriceList("\n".join([*head, *lines, ""]), len(lines), left_out)


def _names(model: Any) -> dict[str, bool]:
    """Return the texts that match a model's names: True for a full name, False for the beginning of a name."""
    names: dict[str, bool] = {model.id: True}
    clauses = [model.match]
    while clauses:
        clause = clauses.pop()
        clauses += getattr(clause, "or_", ())
        if (text := getattr(clause, "starts_with", None)) is not None:
            names[text] = False
        elif (text := getattr(clause, "equals", None)) is not None:
            names.setdefault(text, True)
    dated = {
        f"{name}{sign}"
        for name, exact in names.items()
        for sign in "-@"
        if exact and model.is_match(f"{name}{sign}{_A_DAY}")
    }
    return {**names, **{f"{name}{_CENTURY}": False for name in dated}}


def _table(model: Any, now: datetime) -> Mapping[str, Any] | None:
    """Return a model's prices by kind, and ``tiers``; empty if text has no price, None if no file can express them."""
    offers = model.prices if isinstance(model.prices, list) else []
    by_the_hour = any(type(price.constraint).__name__ == "TimeOfDateConstraint" for price in offers)
    prices = model.get_prices(now)
    if prices.input_mtok is None or prices.output_mtok is None:
        return {}
    if by_the_hour or getattr(prices, "requests_kcount", None) is not None:
        return None
    kinds = {kind: value for kind, field in _KINDS.items() if (value := getattr(prices, field)) is not None}
    starts = sorted({tier.start for value in kinds.values() for tier in getattr(value, "tiers", ())})
    return {
        **{kind: _of(value, 0) for kind, value in kinds.items()},
        "tiers": [
            {"above": start, **{kind: _of(value, start + 1) for kind, value in kinds.items()}} for start in starts
        ],
    }


def _of(price: Any, size: int) -> Decimal:
    """Return the price of one kind of token in a request with ``size`` tokens of input."""
    if isinstance(price, Decimal):
        return price
    chosen: Decimal = next((tier.price for tier in reversed(price.tiers) if size > tier.start), price.base)
    return chosen


def _line(name: str, table: Mapping[str, Any], exact: bool) -> str:
    fields = {kind: value for kind, value in table.items() if kind != "tiers"}
    parts = _fields(fields)
    if table["tiers"]:
        parts.append(f"tiers = [{', '.join('{' + ', '.join(_fields(tier)) + '}' for tier in table['tiers'])}]")
    if exact:
        parts.append("exact = true")
    return f"{json.dumps(name)} = {{{', '.join(parts)}}}"


def _fields(table: Mapping[str, Any]) -> list[str]:
    return [f"{kind} = {value if isinstance(value, int) else _dollars(value)}" for kind, value in table.items()]


def _dollars(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
