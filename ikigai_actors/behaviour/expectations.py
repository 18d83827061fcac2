"""Forecasts of requests: the number and size of the requests that trials will probably send, from recorded requests."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ikigai_actors.behaviour.forecasts import ExpectedRequest, Forecast, trial_forecast
from ikigai_actors.behaviour.turns import TurnRequest
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.providers.base import Usage
from ikigai_actors.providers.prices import PricedModel
from ikigai_actors.providers.selection import models_in
from ikigai_actors.reach.histories import latest_such, settings_with, views_of
from ikigai_actors.reach.trials import check_answered, models_asked
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.system.handles.ref import System


def expected_trial(
    system: System,
    requests: Sequence[TurnRequest],
    then: Mapping[str, Any],
    change: Mapping[str, Any] = NO_DATA,
    judge: object = None,
) -> Forecast:
    """Return the forecast of a trial that repeats recorded requests.

    Args:
        system: the system that knows the models and prices.
        requests: the recorded requests that the trial is expected to repeat.
        then: the settings at the position where the trial begins.
        change: settings that differ from these.
        judge: what judges the trial; it may ask a model.

    Raises:
        BadInput: a model cannot be asked.
    """
    settings = settings_with(then, change)
    writers = {request.model for request in requests if request.model}
    asked, summarised = (_asked(system, settings, writers, summary) for summary in (False, True))
    expected = [
        ExpectedRequest((summarised if request.kind == Kind.SUMMARY else asked)[0], request.usage)
        for request in requests
    ]
    readers, models = [*asked, *summarised], [asked[0]]
    if hasattr(judge, "model"):
        judges = _asked(system, settings_with(settings, {"model": judge.model}) if judge.model else settings, writers)
        read = expected[-1].usage if expected else None
        expected.append(ExpectedRequest(judges[0], None if read is None else Usage(read.all_tokens)))
        readers, models = [*readers, *judges], [*models, judges[0]]
    own = _own(system, then) if not writers or then.get("model") or then.get("compact_model") else set()
    return trial_forecast(expected, models, [reader.name for reader in readers], writers | own)


def expected_answer(
    system: System, uuid: str, at: int, change: Mapping[str, Any] = NO_DATA, judge: object = None
) -> Forecast:
    """Return the forecast of a trial that gets one prompt at a position of a history.

    Raises `BadInput`, and `ProviderMissing` where nobody is there to be asked.
    """
    reply = latest_such(system, uuid, at, lambda reader: reader.is_whole_reply)
    request, then = further_request([] if reply is None else [reply]), settings_of(system, uuid, [at])[at]
    check_answered(system, settings_with(then, change), [request.model] if request.model else [])
    return expected_trial(system, [request], then, change, judge)


def further_request(newest_first: Iterable[Message]) -> TurnRequest:
    """Return the expected request for one more prompt after these messages, as large as the latest reply among them."""
    for message in newest_first:
        if message.is_whole_reply:
            spent, model = message.spent, str(message.data.get("model", ""))
            usage = None if spent is None else Usage(spent.usage.all_tokens, spent.usage.output_tokens)
            return TurnRequest(message.id, message.kind, model, usage)
    return TurnRequest(0, Kind.ASSISTANT, "", None)


def settings_of(system: System, uuid: str, positions: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    """Return the settings in force at positions of a history; the same object where nothing changed between two."""
    return {position: view.settings for position, view in views_of(system, uuid, positions).items()}


def _asked(
    system: System, settings: Mapping[str, Any], writers: Iterable[str], summary: bool = False
) -> tuple[PricedModel, ...]:
    """Return the models that an agent with these settings asks, or asks for summaries.

    If only another process has these models, return the models that the settings name, or else the ``writers``.
    """
    if models := models_asked(system, settings, summary):
        return models
    named = models_in((settings.get("compact_model") if summary else None) or settings.get("model"))
    return tuple(PricedModel(name, None) for name in named or sorted(writers) or [""])


def _own(system: System, settings: Mapping[str, Any]) -> set[str]:
    """Return the names of the models of an agent with these settings that this process can ask."""
    own: set[str] = set()
    for summary in (False, True):
        with suppress(BadInput):
            own |= {reader.name for reader in _asked(system, settings, (), summary)}
    return own
