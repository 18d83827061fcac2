"""The sender: what it sends again, what it gives up, and that a redirection takes nothing elsewhere."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ikigai_actors import BadInput, IkigaiError
from ikigai_actors.sight.traces.sending import (
    Collector,
    CollectorAnswer,
    address_in,
    pause,
    resource_of,
    send_patiently,
)

URL = "http://127.0.0.1:1/v1/traces"


def sent(*answers: CollectorAnswer) -> list[float]:
    """The pauses of a sender that gets these answers. The next one ends the test."""
    slept: list[float] = []
    left = iter(answers)
    send_patiently(lambda: next(left), URL, slept.append, lambda: 0.0)
    assert next(left, None) is None
    return slept


def test_what_a_busy_collector_refuses_is_sent_again() -> None:
    assert sent(CollectorAnswer(200, "")) == []
    assert sent(
        CollectorAnswer(503, "busy"),
        CollectorAnswer(0, "refused"),
        CollectorAnswer(429, "slower", "7"),
        CollectorAnswer(202, ""),
    ) == [0.5, 1, 7]
    with pytest.raises(IkigaiError, match="refuses the spans: 415 Unsupported"):
        sent(CollectorAnswer(415, "Unsupported"))
    with pytest.raises(IkigaiError, match="does not answer: refused"):
        sent(*[CollectorAnswer(0, "refused")] * 6)
    with pytest.raises(IkigaiError, match="is busy: 503 away"):
        sent(*[CollectorAnswer(503, "away")] * 6)


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
    given = Collector.of("http://c:4318", ["other=d"], known)
    assert given == Collector("http://c:4318/v1/traces", {"key": "a b", "other": "d"})
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
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Sink", (_Sink,), {"heard": heard}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_body_goes_over_http_and_is_not_redirected(sink: tuple[str, list[tuple[str, bytes]]]) -> None:
    url, heard = sink
    assert Collector.of(url, [], {}).post(b"spans", "application/x-protobuf") == CollectorAnswer(200, "")
    assert heard == [("application/x-protobuf", b"spans")]
    assert Collector(f"{url}/moved").post(b"spans", "application/json").status == 302
    assert len(heard) == 2
