"""Forecasts: what an experiment will ask, and what that costs, said before its first request. Pure.

A trial is expected to cost what the record says of such requests, at the price of the model that will be asked. Of what
the record does not say nothing is made up: such requests are counted, and have no tokens. A forecast of several trials
is the sum of theirs.
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
    """A request that a trial is expected to make."""

    model: PricedModel
    usage: Usage | None
    """The cost of such a request; None where the record does not say."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The requests that an experiment still has to make."""

    trials: int = 0
    """The most."""
    requests: int = 0
    """How many are expected of these trials, by the record."""
    unrecorded: int = 0
    """How many of these have no tokens in the record."""
    input_tokens: int = 0
    """Tokens of all requests, those of a cache too."""
    output_tokens: int = 0
    """Tokens of all replies."""
    micro_dollars: int = 0
    """The cost of tokens with a price."""
    models: tuple[str, ...] = ()
    """The models that will be asked, as ``provider:model``."""
    unpriced: tuple[str, ...] = ()
    """The models among them without a price."""
    new_readers: tuple[str, ...] = ()
    """The models that may read a recorded history and have written none of it, nor are they its agent's."""
    new_services: tuple[str, ...] = ()
    """The providers of them that none of these models have: a history leaves for another service. Not the offline
    provider, which answers here.
    """

    @property
    def usd(self) -> float | None:
        """Dollars; None when a model has no price, or the record has no tokens."""
        is_known = not self.unpriced and (self.unrecorded < self.requests or not self.requests)
        return dollars(self.micro_dollars) if is_known else None

    def text(self) -> str:
        """One or two sentences for a person."""
        if not self.trials:
            return "Nothing is left to be asked."
        to = f" to {_listed(self.models)}" if self.models else ""
        said = f"At most {_counted(self.trials, 'trial')}, {_counted(self.requests, 'request')}{to}{self._cost()}."
        if not self.new_readers:
            return said
        which = "which has" if len(self.new_readers) == 1 else "which have"
        return f"{said} Recorded histories are read by {_listed(self.new_readers)}, {which} written none of them."

    def json(self) -> str:
        """All of it as JSON."""
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
    """The forecast of one trial.

    Args:
        requests: what it is expected to ask. A model without a name is one that only another process knows.
        models: the models that it asks, whether the record has a request or not.
        readers: all models that may read its history: others are asked where one fails.
        known: the models that have written it, or are its agent's.
    """
    told = [(one.model, one.usage) for one in requests if one.usage is not None]
    writers = {"", *known}
    new = tuple(dict.fromkeys(name for name in readers if name not in writers))
    services = dict.fromkeys(map(_service, new))
    asked = {one.name: one for one in (*models, *(one.model for one in requests)) if one.name}
    return Forecast(
        1,
        len(requests),
        len(requests) - len(told),
        sum(usage.all_tokens - usage.output_tokens for _, usage in told),
        sum(usage.output_tokens for _, usage in told),
        sum(model.price.of(usage) for model, usage in told if model.price is not None),
        tuple(asked),
        tuple(name for name, model in asked.items() if model.price is None),
        new,
        tuple(one for one in services if one not in {OfflineProvider.name, *map(_service, writers)}),
    )


def total_of(forecasts: Iterable[Forecast]) -> Forecast:
    """The forecast of several trials."""
    every = list(forecasts)

    def sum_of(count: Callable[[Forecast], int]) -> int:
        return sum(map(count, every))

    return Forecast(
        sum_of(lambda one: one.trials),
        sum_of(lambda one: one.requests),
        sum_of(lambda one: one.unrecorded),
        sum_of(lambda one: one.input_tokens),
        sum_of(lambda one: one.output_tokens),
        sum_of(lambda one: one.micro_dollars),
        *_united(every),
    )


def largest(forecasts: Sequence[Forecast]) -> Forecast:
    """The most that one of several trials costs, by its tokens; with the models of all, as any of them may be made."""
    most = max(forecasts, key=lambda one: (one.input_tokens + one.output_tokens, one.requests))
    counts = most.trials, most.requests, most.unrecorded, most.input_tokens, most.output_tokens, most.micro_dollars
    return Forecast(*counts, *_united(forecasts))


def _united(forecasts: Sequence[Forecast]) -> tuple[tuple[str, ...], ...]:
    """The names in several forecasts, each once: models, those without a price, new readers, and their services."""
    return (
        tuple(dict.fromkeys(chain.from_iterable(one.models for one in forecasts))),
        tuple(dict.fromkeys(chain.from_iterable(one.unpriced for one in forecasts))),
        tuple(dict.fromkeys(chain.from_iterable(one.new_readers for one in forecasts))),
        tuple(dict.fromkeys(chain.from_iterable(one.new_services for one in forecasts))),
    )


def _service(model: str) -> str:
    return model.partition(":")[0]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _listed(models: Sequence[str]) -> str:
    """The names of models for people. A provider with one model gives that its own name."""
    return ", ".join(name.removesuffix(":") for name in models)
