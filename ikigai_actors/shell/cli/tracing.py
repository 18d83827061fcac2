"""The work of ``ikigai trace export``: exports turns as spans."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ikigai_actors.arguments import check_since
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.reach.agent_lists import branches_of
from ikigai_actors.reach.turn_sources import TurnSources
from ikigai_actors.sight.traces.otlp import batches, protobuf_encoder, spans_as_json
from ikigai_actors.sight.traces.reading import FOREVER, TraceScope, ended_turns
from ikigai_actors.sight.traces.sending import Collector, Delivery, SpanSender, address_in, patiently, resource_of
from ikigai_actors.sight.traces.spans import BOTH, TraceSpan
from ikigai_actors.system.remote.client import Client
from ikigai_actors.verbs.text.words import counted
from ikigai_actors.verbs.upkeep.transfer import writing

_BATCH = 1_000
"""The number of spans in a request; the last turn may exceed it."""

_AGAIN = 60_000
"""Milliseconds that the next export repeats, because turns may be committed later than their times say."""

PROTOBUF, JSON = "protobuf", "json"
"""The forms of a request."""


class Wanted(NamedTuple):
    """The selection of turns to export, from the options."""

    agents: Sequence[str] = ()
    since: str | None = None
    until: str | None = None
    content: bool = False
    join: bool = False
    usage: str = BOTH


def export_traces(
    database: str | None,
    wanted: Wanted,
    target: str | None,
    *,
    headers: Iterable[str] = (),
    form: str | None = None,
    environment: Mapping[str, str],
) -> str:
    """Send spans to a collector, or write them to a new file; return a line for a person.

    Raises `BadInput` for arguments that cannot be used, `IkigaiError` where a collector refuses or rejects spans, and
    what `existing` does.
    """
    target = target or address_in(environment)
    if not target:
        raise BadInput("Expected --to URL or --to FILE: where the spans go. Or set OTEL_EXPORTER_OTLP_ENDPOINT.")
    spans = turns = 0
    delivery = Delivery()
    with Client.open(database) as client, _taking(target, headers, form, environment) as take:
        now = client.now_ms()
        scope = TraceScope(
            branches_of(client, wanted.agents) if wanted.agents else None,
            check_since(wanted.since, now),
            FOREVER if wanted.until is None else check_since(wanted.until, now),
            wanted.content,
            wanted.join,
            wanted.usage,
        )
        for batch in batches(ended_turns(TurnSources.of(client), scope), _BATCH):
            try:
                delivery = delivery.and_then(take(batch))
            except IkigaiError as error:
                taken = f" It has taken {counted(spans, 'span')} of {counted(turns, 'turn')}." if spans else ""
                again = "The same command sends all of them again, with the same ids."
                raise IkigaiError(f"{error}{taken} {again}") from error
            spans, turns = spans + sum(map(len, batch)), turns + len(batch)
    later = datetime.fromtimestamp((now - _AGAIN) / 1000, UTC).isoformat(timespec="seconds")
    sent, place = f"{counted(spans, 'span')} of {counted(turns, 'turn')}", _shown_place(target)
    if delivery.lost:
        raise IkigaiError(f"Of {sent}, {place} {delivery.lost} The others are exported. Later ones: --since {later}")
    said = f" The collector says: {' '.join(delivery.words)}" if delivery.words else ""
    return f"Exported {sent} to {place}. Later ones: --since {later}{said}"


def _shown_place(target: str) -> str:
    return Collector(target).place if "://" in target else target


@contextlib.contextmanager
def _taking(
    target: str, headers: Iterable[str], form: str | None, environment: Mapping[str, str]
) -> Iterator[Callable[[list[list[TraceSpan]]], Delivery]]:
    """Yield a function that sends or writes batches of turns. After an error in the block the file does not exist."""
    resource = resource_of(environment)
    if "://" in target:
        collector = Collector.of(target, headers, environment)
        kind, encode = _encoding(form, resource)
        sender = SpanSender(collector, encode, kind, patiently(time.sleep, time.time))
        yield lambda turns: sender.send([span for turn in turns for span in turn])
        return
    if form == PROTOBUF:
        raise BadInput("A file has lines of JSON: leave out --format protobuf, or give --to the URL of a collector.")
    with writing(target, "an export of spans") as file:

        def write(turns: list[list[TraceSpan]]) -> Delivery:
            file.write(spans_as_json((span for turn in turns for span in turn), resource).encode() + b"\n")
            return Delivery()

        yield write


def _encoding(form: str | None, resource: Mapping[str, str]) -> tuple[str, Callable[[Sequence[TraceSpan]], bytes]]:
    """Return the media type of a request, and the function that makes its body."""
    if form == JSON:
        return "application/json", lambda spans: spans_as_json(spans, resource).encode()
    return "application/x-protobuf", protobuf_encoder(resource, "ikigai trace export without --format json")
