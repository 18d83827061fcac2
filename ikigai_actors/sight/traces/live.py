"""Live traces: each turn is exported when it has ended, and spans of tools and providers become its children.

    with ActorSystem.open("team.db", instruments=[Tracing()]) as system, trace_turns(system, "http://localhost:6006"):
        ...

Turns are read from the log after they were committed. While an exporter is unreachable, only a time and the agents with
new turns are kept in memory. So no turn is lost, and a turn that is exported twice has the same ids.
"""

import logging
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ikigai_actors.actors.closing import ClosedByBlock
from ikigai_actors.actors.service import Service
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.arguments import check_choice, check_flag, shown
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.extras import NeedsExtra
from ikigai_actors.reach.turn_sources import TurnSources
from ikigai_actors.reach.views import check_open, now_of
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.sight.traces.conventions import CHAT, OWN_LINK
from ikigai_actors.sight.traces.ids import call_span, request_span, trace_of
from ikigai_actors.sight.traces.otlp import SCOPE, batches, protobuf_encoder
from ikigai_actors.sight.traces.reading import TraceScope, ended_turns
from ikigai_actors.sight.traces.sending import Collector, SpanSender, resource_of
from ikigai_actors.sight.traces.spans import BOTH, TraceSpan
from ikigai_actors.system.handles.ref import System

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

logger = logging.getLogger(__name__)

_AGAIN = 600_000
"""Milliseconds before its start whose turns a tracer exports again: a killed program may not have exported them."""

_MARGIN = 60_000
"""Milliseconds that each export reads again, because a turn may be committed later than its time says."""

_GATHERED = 0.2
"""Seconds during which ended turns are collected, to be exported together."""

_LONGEST_PAUSE = 60.0

_MOST_KNOWN = 10_000
"""The most exported turns that are remembered, so that none is exported twice."""

_BATCH = 1_000
"""The number of spans that are exported together; the last turn may exceed it."""


class SpanExporter(Protocol):
    """The interface of an exporter of OpenTelemetry's SDK."""

    def export(self, spans: "Sequence[ReadableSpan]") -> Any:
        """Export spans; return ``SpanExportResult.SUCCESS`` if they were accepted."""


Export = Callable[[Sequence[TraceSpan]], str]
"""Exports spans; returns the reason if they were not accepted, else an empty text. May block."""


class Tracing(Instrument):
    """An instrument that makes spans of tools and providers children of the span of their call or request.

    The id of such a span is known before the work begins. The span itself is exported when its turn has ended. Needs
    the package ``opentelemetry-api``, which comes with the client of Anthropic.
    """

    def __init__(self) -> None:
        from opentelemetry import context, trace

        def attach(trace_id: bytes, span_id: bytes) -> None:
            place = trace.SpanContext(
                int.from_bytes(trace_id), int.from_bytes(span_id), is_remote=False, trace_flags=trace.TraceFlags(1)
            )
            context.attach(trace.set_span_in_context(trace.NonRecordingSpan(place)))  # it ends with its context

        self._attach = attach

    def request_runs(self, agent: Tally, turn: int, number: int) -> None:
        if turn:
            self._attach(trace_of(agent.uuid, turn), request_span(agent.uuid, turn, number))

    def tool_runs(self, agent: Tally, turn: int, reply: int, place: int) -> None:
        self._attach(trace_of(agent.uuid, turn), call_span(agent.uuid, reply, place))


class TurnTracer(Service, ClosedByBlock):
    """Exports the turns of a system as they end, until it is closed. Make it by `trace_turns`."""

    def __init__(self, system: System, export: Export, content: bool, usage: str = BOTH) -> None:
        """Begin with the turns that ended in the last ten minutes."""
        super().__init__("ikigai-traces")
        self._system, self._export, self._content, self._usage = system, export, content, usage
        self._known: dict[bytes, None] = {}
        self._upto = now_of(system) - _AGAIN + _MARGIN  # what ended before was exported
        self._due: set[str] | None = None  # agents that may have a turn to be exported; None: everybody may
        self._failed = 0
        self._subscription = system.subscribe(self._hear, (Message, Died))
        self.start()

    def close(self, timeout: float | None = None) -> None:
        """Export the turns that have ended, if the exporter accepts them, and stop. The system stays open."""
        self._subscription.close()
        super().close(timeout)

    def run(self) -> None:
        while self.awaits(lambda: self._due is None or self._due):
            if self.pause(_GATHERED if not self._failed else min(0.5 * 2**self._failed, _LONGEST_PAUSE)):
                self._work()
        self._due = None  # what was not heard of yet, too
        self._work()
        if self._failed:
            since = datetime.fromtimestamp((self._upto - _MARGIN) / 1000, UTC).isoformat(timespec="seconds")
            logger.warning("Some turns were not exported. Later: ikigai trace export --since %s", since)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Died) or (isinstance(event, Message) and event.ends_turn):
            with self._changed:
                if self._due is not None:
                    self._due.add(event.agent_uuid)
                self._changed.notify_all()

    def _work(self) -> None:
        with self._changed:
            due, self._due = self._due, set()
        now = now_of(self._system)
        try:
            why = self._export_turns(due)
        except IkigaiError as error:  # the database is away
            why = str(error)
        except Exception as error:  # other people's code
            logger.exception("The exporter failed")
            why = repr(error)
        if not why:
            self._upto, self._failed = now, 0
            return
        self._failed += 1
        if self._failed == 1:
            logger.warning("Turns could not be exported, and will be: %s", why)
        with self._changed:
            self._due = None if due is None or self._due is None else self._due | due

    def _export_turns(self, due: set[str] | None) -> str:
        """Export the turns of these agents that ended since the last time; return the reason if that fails, else ""."""
        scope = TraceScope(due, max(0, self._upto - _MARGIN), content=self._content, usage=self._usage)
        new = (turn for turn in ended_turns(TurnSources.of(self._system), scope) if turn[0].id not in self._known)
        for turns in batches(new, _BATCH):
            if why := self._export([span for turn in turns for span in turn]):
                return why
            self._known |= dict.fromkeys(turn[0].id for turn in turns)
        for old in list(self._known)[:-_MOST_KNOWN]:
            del self._known[old]
        return ""


def trace_turns(
    system: System, exporter: SpanExporter | str, *, content: bool = False, usage: str = BOTH
) -> TurnTracer:
    """Export each turn as a trace when it has ended.

        with ActorSystem.open("team.db") as system, trace_turns(system, "http://localhost:6006"):
            ...

    Turns that ended in the ten minutes before are exported too, because a killed program may not have exported them. A
    repeated turn has the same ids, so the collector keeps no turn twice. If the exporter is unreachable, the turns are
    read from the log again later.

    Args:
        system: an open system, or an attached one.
        exporter: the address of a collector, or an exporter of OpenTelemetry's SDK.
        content: whether spans contain the texts of prompts, replies, arguments and results.
        usage: which spans have tokens: ``"both"`` turns and requests, or ``"chat"`` requests alone, for tools that add
            up what the spans of a trace have.

    Returns:
        The tracer; close it, or use it by ``with``.

    Raises:
        BadInput: the exporter is none, or the extra ``otel`` is missing.
        SystemClosed: the system is closed.
    """
    if not isinstance(system, System):
        raise BadInput(f"Expected an open system; got {shown(system)}.")
    check_flag(content, "content")
    check_choice(usage, "usage", (BOTH, CHAT))
    check_open(system)
    if isinstance(exporter, str):
        collector = Collector.of(exporter, (), os.environ)
        encode = protobuf_encoder(resource_of(os.environ), "trace_turns")
        sender = SpanSender(collector, encode, "application/x-protobuf", lambda post: post())
        export: Export = partial(_sent, collector, sender)
    elif callable(getattr(exporter, "export", None)):
        export = partial(_hand_to, exporter, _readable())
    else:
        raise BadInput(f"Expected the address of a collector, or an exporter of OpenTelemetry; got {shown(exporter)}.")
    return TurnTracer(system, export, content, usage)


def _sent(collector: Collector, sender: SpanSender, spans: Sequence[TraceSpan]) -> str:
    try:
        delivery = sender.send(spans)
    except IkigaiError as error:
        return str(error)
    if delivery.lost or delivery.words:
        logger.warning("%s %s", collector.place, delivery.lost or f"says: {' '.join(delivery.words)}")
    return ""  # what a collector rejects is not to be sent again


def _hand_to(
    exporter: SpanExporter, readable: "Callable[[TraceSpan], ReadableSpan]", spans: Sequence[TraceSpan]
) -> str:
    done = exporter.export([readable(span) for span in spans])
    return "" if getattr(done, "name", "SUCCESS") == "SUCCESS" else f"{type(exporter).__name__} has not taken them"


def _readable() -> "Callable[[TraceSpan], ReadableSpan]":
    """Return a function that converts our spans to spans of OpenTelemetry's SDK. Raises `BadInput` without the SDK."""
    with NeedsExtra("otel", "An exporter of OpenTelemetry's SDK"):
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

    resource = Resource.create(resource_of(os.environ))
    scope = InstrumentationScope(SCOPE)
    kinds = {1: SpanKind.INTERNAL, 3: SpanKind.CLIENT}

    def context(trace: bytes, span: bytes) -> Any:
        return SpanContext(int.from_bytes(trace), int.from_bytes(span), is_remote=False, trace_flags=TraceFlags(1))

    def readable(span: TraceSpan) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=context(span.trace, span.id),
            parent=context(span.trace, span.parent) if span.parent else None,
            resource=resource,
            attributes=dict(span.attributes),
            links=[Link(context(link.trace, link.span), {OWN_LINK: link.why}) for link in span.links],
            kind=kinds[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=span.start * 1_000_000,
            end_time=span.end * 1_000_000,
            instrumentation_scope=scope,
        )

    return readable
