"""``ikigai prices``: the prices of models, and the files with prices."""

from datetime import UTC, datetime
from pathlib import Path

from ikigai_actors.errors import BadInput
from ikigai_actors.providers.price_list import price_list
from ikigai_actors.providers.prices import KNOWN_FILE, MICRO, PRICES_FILE, KnownPrices, Price, Prices, known_prices
from ikigai_actors.store.location import home
from ikigai_actors.system.configuration import configuration
from ikigai_actors.system.options import usual_prices


def sources() -> list[str]:
    """Return lines about the known prices: how many, their date, and the files that come first."""
    known = KnownPrices.newest(home())
    return [
        f"{len(known.prices)} names of models, of {known.as_of}, from {known.source}",
        f"the prices in {home() / PRICES_FILE} counts first",
    ]


def price_lines(model: str, config: str | None) -> list[str]:
    """Return lines about the price of a model. Raises `BadInput` if no price is known."""
    prices = Prices(configuration(config).prices).over(usual_prices())
    price = prices.of_model(model)
    if price is None:
        raise BadInput(
            f"No price is known for {model}: its tokens count as tokens, and no dollars. Write it into "
            f"{home() / PRICES_FILE}."
        )
    steps = [("", price), *((f", above {above:,} tokens of input", tier) for above, tier in price.tiers)]
    return [f"{model}{where}: {_amounts(step)}" for where, step in steps]


def update(file: str | None) -> list[str]:
    """Update the file of prices; return lines about it. Raises `BadInput`."""
    made = price_list(datetime.now(UTC))
    path = Path(file) if file is not None else home() / KNOWN_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.new")
        new.write_text(made.text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise BadInput(f"The prices cannot be written to {path}: {error}") from error
    left = (
        f"; without {', '.join(made.left_out)}, whose prices depend on the hour or the request" if made.left_out else ""
    )
    return [f"{made.names} names of models are in {path}{left}"]


def trouble_with_prices(history: Path | None, config: str | None) -> list[str]:
    """Return the faults of the prices in ``ikigai.toml``, and in the file of prices in the database's directory."""
    try:
        return known_prices(home(), history, configuration(config).prices)[1]
    except BadInput as error:
        return [*known_prices(home(), history)[1], str(error)]


def _amounts(price: Price) -> str:
    kinds = zip(("input", "output", "cache write", "cache read"), price.kinds, strict=True)
    return ", ".join(f"{kind} ${amount / MICRO:.10g}" for kind, amount in kinds) + " for a million tokens"
