"""Forecasts: the requests that an experiment will make and their cost, before its first request. Pure.

The expected tokens of a trial are those of the same requests in the record, at the price of the model that will be
asked. Requests without recorded tokens are counted, but no tokens are made up for them. A forecast of several trials is
the sum of their forecasts.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from ikigai_actors.providers.base import Usage
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.providers.prices import PricedModel
from ikigai_actors.verbs.text.budgets import dollar_text, dollars


class ExpectedRequest(NamedTuple):
    """A request that a trial is expected to make: the model, and the tokens."""

    model: PricedModel
    usage: Usage | None
    """The tokens of the request; None if the record does not say."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The requests that an experiment still has to make, and their cost."""

    trials: int = 0
    """The largest number of trials."""
    requests: int = 0
    """The number of requests expected of these trials, according to the record."""
    unrecorded: int = 0
    """The number of these requests whose tokens are not recorded."""
    input_tokens: int = 0
    """Input tokens of all requests, cached ones included."""
    output_tokens: int = 0
    """Output tokens of all replies."""
    micro_dollars: int = 0
    """The cost of tokens with a price."""
    models: tuple[str, ...] = ()
    """The models that will be asked, as ``provider:model``."""
    unpriced: tuple[str, ...] = ()
    """The models of the forecast that have no known price."""
    new_readers: tuple[str, ...] = ()
    """Models that may read a recorded history, though they have written none of it and are not its agent's model."""
    new_services: tuple[str, ...] = ()
    """Providers of such models that received none of these histories before: a history would go to another service.
    Without the offline provider.
    """

    @property
    def usd(self) -> float | None:
        """Return the cost in US dollars; None if a model has no price or the record has no tokens."""
        is_known = not self.unpriced and (self.unrecorded < self.requests or not self.requests)
        return dollars(self.micro_dollars) if is_known else None

    def text(self) -> str:
        """Return the forecast as one or two sentences for people."""
        if not self.trials:
            return "Nothing is left to be asked."
        to = f" to {_listed(self.models)}" if self.models else ""
        said = f"At most {_counted(self.trials, 'trial')}, {_counted(self.requests, 'request')}{to}{self._cost()}."
        if not self.new_readers:
            return said
        which = "which has" if len(self.new_readers) == 1 else "which have"
        return f"{said} Recorded histories are read by {_listed(self.new_readers)}, {which} written none of them."

    def json(self) -> str:
        """Return the forecast as JSON text."""
        counts = "trials", "requests", "unrecorded", "input_tokens", "output_tokens", "usd"
        names = *counts, "models", "unpriced", "new_readers", "new_services"
        return json.dumps({name: getattr(self, name) for name in names}, ensure_ascii=False)

    def _cost(self) -> str:
        if not self.requests:
            return ""
        if self.unrecorded == self.requests:
            return "; no tokens on record"
        tokens = f", about {self.input_tokens:,} tokens in and {self.output_tokens:,} out by the record"
        if self.unrecorded:
            tokens += f" ({_counted(self.unrecorded, 'request')} without tokens on record)"
        if self.unpriced:
            return f"{tokens}; no price is known here for {_listed(self.unpriced)}"
        return f"{tokens}: {dollar_text(self.micro_dollars)}"


def trial_forecast(
    requests: Sequence[ExpectedRequest], models: Sequence[PricedModel], readers: Iterable[str], known: Iterable[str]
) -> Forecast:
    """Return the forecast of one trial.

    Args:
        requests: the expected requests. A model without a name is one that only another process knows.
        models: the models that will be asked, whether or not a recorded request names them.
        readers: all models that may read the history, also those asked when another model fails.
        known: the models that have written the history, or are its agent's.
    """
    usages = [(request.model, request.usage) for request in requests if request.usage is not None]
    writers = {"", *known}
    new = tuple(dict.fromkeys(name for name in readers if name not in writers))
    services = dict.fromkeys(map(_service, new))
    asked = {model.name: model for model in (*models, *(request.model for request in requests)) if model.name}
    return Forecast(
        1,
        len(requests),
        len(requests) - len(usages),
        sum(usage.all_tokens - usage.output_tokens for _, usage in usages),
        sum(usage.output_tokens for _, usage in usages),
        sum(model.price.of(usage) for model, usage in usages if model.price is not None),
        tuple(asked),
        tuple(name for name, model in asked.items() if model.price is None),
        new,
        tuple(service for service in services if service not in {OfflineProvider.name, *map(_service, writers)}),
    )


def total_of(forecasts: Iterable[Forecast]) -> Forecast:
    """Return the sum of the forecasts of several trials."""
    every = list(forecasts)

    def sum_of(count: Callable[[Forecast], int]) -> int:
        return sum(map(count, every))

    return Forecast(
        sum_of(lambda forecast: forecast.trials),
        sum_of(lambda forecast: forecast.requests),
        sum_of(lambda forecast: forecast.unrecorded),
        sum_of(lambda forecast: forecast.input_tokens),
        sum_of(lambda forecast: forecast.output_tokens),
        sum_of(lambda forecast: forecast.micro_dollars),
        *_united(every),
    )


def largest(forecasts: Sequence[Forecast]) -> Forecast:
    """Return the forecast of several trials with the most tokens, naming the models of all of them."""
    most = max(forecasts, key=lambda forecast: (forecast.input_tokens + forecast.output_tokens, forecast.requests))
    counts = most.trials, most.requests, most.unrecorded, most.input_tokens, most.output_tokens, most.micro_dollars
    return Forecast(*counts, *_united(forecasts))


def _united(forecasts: Sequence[Forecast]) -> tuple[tuple[str, ...], ...]:
    """Return the names in several forecasts, each once: models, models without price, new readers, services."""
    return (
        tuple(dict.fromkeys(chain.from_iterable(forecast.models for forecast in forecasts))),
        tuple(dict.fromkeys(chain.from_iterable(forecast.unpriced for forecast in forecasts))),
        tuple(dict.fromkeys(chain.from_iterable(forecast.new_readers for forecast in forecasts))),
        tuple(dict.fromkeys(chain.from_iterable(forecast.new_services for forecast in forecasts))),
    )


def _service(model: str) -> str:
    return model.partition(":")[0]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _listed(models: Sequence[str]) -> str:
    """Return the names of models as text for people. A provider without a model name is shown without its colon."""
    return ", ".join(name.removesuffix(":") for name in models)
