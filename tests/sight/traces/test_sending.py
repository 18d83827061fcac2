"""The sender: what it sends again, what it gives up, and that a redirection takes nothing elsewhere."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ikigai_actors import BadInput, IkigaiError
from ikigai_actors.sight.traces.otlp import PartialSuccess, partial_success, protobuf_encoder
from ikigai_actors.sight.traces.sending import (
    Collector,
    CollectorAnswer,
    Delivery,
    SpanSender,
    address_in,
    patiently,
    pause,
    resource_of,
)
from ikigai_actors.sight.traces.spans import TraceSpan
from tests.kit.http_servers import LocalServer


def asked(*answers: CollectorAnswer) -> tuple[CollectorAnswer, list[float]]:
    """What counts of these answers, and the pauses between them."""
    slept: list[float] = []
    left = iter(answers)
    answer = patiently(slept.append, lambda: 0.0)(lambda: next(left))
    assert next(left, None) is None
    return answer, slept


def test_what_a_busy_collector_refuses_is_sent_again() -> None:
    taken = CollectorAnswer(200, "")
    assert asked(taken) == (taken, [])
    slower = CollectorAnswer(429, "slower", "7")
    assert asked(CollectorAnswer(503, "busy"), CollectorAnswer(0, "refused"), slower, taken) == (taken, [0.5, 1, 7])
    refused = CollectorAnswer(415, "Unsupported")
    assert asked(refused) == (refused, [])
    away = CollectorAnswer(0, "refused")
    assert asked(*[away] * 6) == (away, [0.5, 1, 2, 4, 8])


def span(number: int, size: int = 10) -> TraceSpan:
    return TraceSpan(bytes(16), number.to_bytes(8), b"", f"chat {number}", 3, 1, 2, {"text": "x" * size})


Answering = Callable[[bytes, bool], CollectorAnswer]
"""What a collector answers to a body, and to whether that is zipped."""


def deliver(answering: Answering, *batches: list[TraceSpan]) -> tuple[list[Delivery], list[tuple[int, bool]]]:
    """What came of batches that were sent to a collector, and its requests: how long each was, and whether zipped."""
    posts: list[tuple[int, bool]] = []

    class Answers(Collector):
        def post(self, body: bytes, kind: str, *, zipped: bool = True) -> CollectorAnswer:
            posts.append((len(body), zipped))
            return answering(body, zipped)

    collector = Answers("http://name:secret@127.0.0.1:1/v1/traces")
    sender = SpanSender(collector, protobuf_encoder({}, "this test"), "application/x-protobuf", lambda post: post())
    return [sender.send(batch) for batch in batches], posts


def always(answer: CollectorAnswer) -> Answering:
    return lambda body, zipped: answer


def test_a_body_that_is_too_large_is_halved_down_to_a_span_that_is_left_out_and_named() -> None:
    def least(body: bytes, zipped: bool) -> CollectorAnswer:
        return CollectorAnswer(413 if len(body) > 3_000 else 200, "")

    batch = [span(number, 700) for number in range(8)]
    batch[5] = span(5, 9_000)
    [delivery], _ = deliver(least, batch)
    assert delivery == Delivery(too_large=(batch[5],))
    assert delivery.lost == (
        "finds these too large, so they are left out: chat 5 "
        "(trace 00000000000000000000000000000000, span 0000000000000005)."
    )
    deliveries, posts = deliver(least, batch[:3], batch[:5], batch[:5])
    assert deliveries == [Delivery()] * 3
    assert [size for size, _ in posts if size > 3_000] == [posts[1][0]]  # what was refused is not tried once more
    many = Delivery(too_large=tuple(span(number) for number in range(9)))
    assert many.lost.endswith("and 4 more.")


def test_spans_that_are_rejected_are_counted_with_the_words_of_the_collector() -> None:
    answer = CollectorAnswer(200, "", partial=PartialSuccess(7, "spans are too old"))
    [first, second], _ = deliver(always(answer), [span(1)], [span(2)])
    both = first.and_then(second)
    assert both == Delivery(14, ("spans are too old",))
    assert both.lost == "has rejected 14 spans. It says: “spans are too old”."
    [warned], _ = deliver(always(CollectorAnswer(200, "", partial=PartialSuccess(0, "slow down"))), [span(1)])
    assert (warned.lost, warned.words) == ("", ("slow down",))


def test_a_collector_without_gzip_gets_plain_bodies_and_a_refusal_names_no_secret() -> None:
    plain = deliver(lambda body, zipped: CollectorAnswer(415 if zipped else 200, ""), [span(1)], [span(2)])
    assert plain[0] == [Delivery()] * 2
    assert [zipped for _, zipped in plain[1]] == [True, False, False]
    for answer, words in (
        (CollectorAnswer(415, "Unsupported"), "refuses the spans: 415 Unsupported"),
        (CollectorAnswer(0, "refused"), "does not answer: refused"),
        (CollectorAnswer(503, "away"), "is busy: 503 away"),
    ):
        with pytest.raises(IkigaiError, match=f"^http://127.0.0.1:1/v1/traces {words}.$"):
            deliver(always(answer), [span(1)])


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"\x0a\x15\x08\x07\x12\x11spans are too old", "application/x-protobuf", (7, "spans are too old")),
        (
            b'{"partialSuccess": {"rejectedSpans": "7", "errorMessage": "too\\nold"}}',
            "application/json",
            (7, "too old"),
        ),
        (b'{"partial_success": {"rejected_spans": 2}}', "application/json; charset=utf-8", (2, "")),
        (b"", "application/x-protobuf", (0, "")),
        (b"{}", "application/json", (0, "")),
        (b"[]", "application/json", (0, "")),
        (b"\x0a\xff\xff", "application/x-protobuf", (0, "")),
        (b"<html>", "text/html", (0, "")),
        (b"not json", "application/json", (0, "")),
    ],
)
def test_what_a_collector_says_of_a_request_that_it_took_is_read(body: bytes, kind: str, expected: object) -> None:
    assert partial_success(body, kind) == expected


def test_long_words_of_a_collector_are_cut() -> None:
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans, answer.partial_success.error_message = 1_000_000, "ä" * 400
    assert partial_success(answer.SerializeToString(), "") == PartialSuccess(1_000_000, "ä" * 300)


def test_a_pause_is_as_long_as_the_collector_asks_but_not_for_hours() -> None:
    assert pause(3, "", 0.0) == 4.0
    assert pause(0, "86400", 0.0) == 60.0
    assert pause(0, "Thu, 01 Jan 1970 00:00:20 GMT", 5.0) == 15.0
    assert pause(0, "Thu, 01 Jan 1970 00:00:01 GMT", 5.0) == 0.0
    assert pause(0, "soon", 0.0) == 0.5
    assert pause(0, "nan", 0.0) == 0.5


def test_the_variables_of_open_telemetry_are_heeded() -> None:
    known = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/", "OTEL_EXPORTER_OTLP_HEADERS": "key=a%20b,other=c"}
    assert address_in(known) == "http://c:4318/v1/traces"
    assert address_in({**known, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/x"}) == "http://d/x"
    assert address_in({}) is None
    collector = Collector.of("http://c:4318", ["other=d"], known)
    assert collector == Collector("http://c:4318/v1/traces", {"key": "a b", "other": "d"})
    assert Collector.of("https://c/api/otel", [], {}).url == "https://c/api/otel"
    assert resource_of({"OTEL_RESOURCE_ATTRIBUTES": "service.name=x,zone=1"}) == {"service.name": "x", "zone": "1"}
    assert resource_of({"OTEL_SERVICE_NAME": "mine"}) == {"service.name": "mine"}
    for url in ("ftp://c", "http://", "grpc://c:4317"):
        with pytest.raises(BadInput, match="Expected http"):
            Collector.of(url, [], {})
    with pytest.raises(BadInput, match="NAME=VALUE") as wrong:
        Collector.of("http://c", ["a-secret"], {})
    assert "a-secret" not in str(wrong.value)


class _Sink(BaseHTTPRequestHandler):
    heard: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.headers["Content-Type"], gzip.decompress(body)))
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def sink() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    heard: list[tuple[str, bytes]] = []
    with closing(LocalServer(type("Sink", (_Sink,), {"heard": heard}))) as server:
        yield server.url, heard


def test_a_body_goes_over_http_and_is_not_redirected(sink: tuple[str, list[tuple[str, bytes]]]) -> None:
    url, heard = sink
    assert Collector.of(url, [], {}).post(b"spans", "application/x-protobuf") == CollectorAnswer(200, "")
    assert heard == [("application/x-protobuf", b"spans")]
    assert Collector(f"{url}/moved").post(b"spans", "application/json").status == 302
    assert len(heard) == 2
