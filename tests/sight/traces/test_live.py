"""Turns that are exported as they end, and spans of tools and providers below them."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, FunctionProvider, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.events import Instrument
from ikigai_actors.reach.turn_sources import TurnSources
from ikigai_actors.sight import Tracing, trace_turns
from ikigai_actors.sight.traces.ids import call_span, request_span
from ikigai_actors.sight.traces.live import TurnTracer
from ikigai_actors.sight.traces.otlp import SCOPE
from ikigai_actors.sight.traces.reading import TraceScope, ended_turns
from ikigai_actors.sight.traces.spans import TraceSpan
from tests.kit.collector import collector

TIMEOUT = 60


class Places(Instrument):
    """Keeps the ids that the spans of running work will have."""

    def __init__(self) -> None:
        self.ids: list[bytes] = []

    def request_runs(self, agent: Tally, turn: int, number: int) -> None:
        self.ids.append(request_span(agent.uuid, turn, number))

    def tool_runs(self, agent: Tally, turn: int, reply: int, place: int) -> None:
        self.ids.append(call_span(agent.uuid, reply, place))


@tool
def look(at: str) -> str:
    """Look."""
    return at


@tool
async def peek(at: str) -> str:
    """Peek."""
    return at


def test_the_ids_of_running_work_are_those_of_its_spans(database: str) -> None:
    calls = (ToolCall("look", {"at": "a"}, "1"), ToolCall("peek", {"at": "b"}, "1"), ToolCall("fork", {"name": "kid"}))
    script = {"top": [Reply("", calls), Reply("one"), Reply("two")], "kid": [Reply("", calls[:1]), Reply("three")]}
    places = Places()
    with ActorSystem.open(database, ScriptedProvider(script), tools=[look, peek], instruments=[places]) as system:
        top = system.root.fork(name="top")
        top.prompt("go").get(timeout=TIMEOUT)
        top.prompt("on").get(timeout=TIMEOUT)
        system.agent("kid").reply(timeout=TIMEOUT)
        spans = [span for turn in ended_turns(TurnSources.of(system), TraceScope()) for span in turn if span.parent]
    assert len(places.ids) == len(set(places.ids)) == 8
    assert {*places.ids} == {span.id for span in spans if not span.name.startswith("execute_tool fork")}


class Kept:
    """An exporter that is away for a while."""

    def __init__(self, refusals: int = 0) -> None:
        self.spans: list[TraceSpan] = []
        self.refusals = refusals

    def __call__(self, spans: Sequence[TraceSpan]) -> str:
        if self.refusals:
            self.refusals -= 1
            return "away"
        self.spans += spans
        return ""


def test_each_turn_is_exported_once_when_it_has_ended(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(["one", "two", "three"])) as system:
        system.root.prompt("before").get(timeout=TIMEOUT)
        kept = Kept()
        with TurnTracer(system, kept, content=False):
            for text in ("a", "b"):
                system.root.prompt(text).get(timeout=TIMEOUT)
        everything = [span for turn in ended_turns(TurnSources.of(system), TraceScope()) for span in turn]
        assert sorted(span.id for span in kept.spans) == sorted(span.id for span in everything)


def test_what_an_exporter_does_not_take_is_kept_for_later(database: str, caplog: pytest.LogCaptureFixture) -> None:
    with ActorSystem.open(database, ScriptedProvider(["one", "two"])) as system:
        kept = Kept(refusals=2**30)
        with caplog.at_level(logging.WARNING), TurnTracer(system, kept, content=False):
            system.root.prompt("a").get(timeout=TIMEOUT)
        assert kept.spans == []
        assert "Later: ikigai trace export --since" in caplog.text
        again = Kept()
        with TurnTracer(system, again, content=False):
            pass
        assert [span.name.split()[0] for span in again.spans] == ["invoke_agent", "chat"]


def test_what_is_no_exporter_is_refused() -> None:
    with ActorSystem.open(":memory:", "offline") as system:
        for wrong in ("localhost", object(), 3):
            with pytest.raises(BadInput, match="Expected"):
                trace_turns(system, wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="open system"):
        trace_turns("d.db", "http://localhost")  # type: ignore[arg-type]


@pytest.mark.slow("takes a tenth of a second")
def test_spans_of_tools_and_providers_lie_below_those_of_their_calls_and_requests() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="needs the extra otel")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    tracer: Any = sdk.TracerProvider(shutdown_on_exit=False)
    theirs = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    tracer.add_span_processor(pytest.importorskip("opentelemetry.sdk.trace.export").SimpleSpanProcessor(theirs))
    spans: Callable[[str], Any] = tracer.get_tracer("theirs").start_as_current_span

    @tool
    def plain(at: str) -> str:
        """Look."""
        with spans("in the plain tool"):
            return at

    @tool
    async def slow(at: str) -> str:
        """Look."""
        with spans("in the tool"):
            return at

    def answer(request: Request) -> Reply:
        with spans("in the provider"):
            if len(request.messages) > 1:
                return Reply("done")
            return Reply("", (ToolCall("plain", {"at": "a"}, "1"), ToolCall("slow", {"at": "b"}, "2")))

    async def later(request: Request) -> Reply:
        return answer(request)

    for provider in (answer, later):
        memory.clear()
        theirs.clear()
        parts: dict[str, Any] = {"tools": [plain, slow], "instruments": [Tracing()]}
        opened = ActorSystem.open(":memory:", FunctionProvider(provider), **parts)
        with opened as system, trace_turns(system, memory):
            system.root.prompt("go").get(timeout=TIMEOUT)
        ours = {span.context.span_id: span for span in memory.get_finished_spans()}
        finished_spans = theirs.get_finished_spans()
        below = {(span.name, ours[span.parent.span_id].name) for span in finished_spans}
        asked = next(span.name for span in ours.values() if span.name.startswith("chat"))
        assert below == {
            ("in the provider", asked),
            ("in the plain tool", "execute_tool plain"),
            ("in the tool", "execute_tool slow"),
        }
        assert {span.context.trace_id for span in finished_spans} == {span.context.trace_id for span in ours.values()}
        assert len(finished_spans) == 4
        assert {span.instrumentation_scope.name for span in ours.values()} == {SCOPE}


def test_spans_that_a_collector_rejects_are_a_warning_and_are_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    with (
        collector((200, b"\x0a\x15\x08\x02\x12\x11spans are too old")) as url,
        ActorSystem.open(":memory:", ScriptedProvider(["one"])) as system,
    ):
        with trace_turns(system, url, usage="chat") as tracer:
            system.root.prompt("go").get(timeout=TIMEOUT)
        assert not tracer._failed
        with pytest.raises(BadInput, match="usage"):
            trace_turns(system, url, usage="none")
    [record] = caplog.records
    assert record.getMessage() == f"{url}/v1/traces has rejected 2 spans. It says: “spans are too old”."
