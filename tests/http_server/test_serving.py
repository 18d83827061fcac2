"""What a server answers before anything of an application has run, and to a probe."""

import asyncio

import pytest

from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.guard import Guard
from ikigai_actors.http_server.requests import AsgiScope, HttpRequest, Receive, SendEvent
from ikigai_actors.http_server.server import serving
from tests.kit.blocking_provider import DEADLINE


class Failing:
    """An application with a defect."""

    async def __call__(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        await HttpRequest(scope, receive).body(10)
        raise RuntimeError("planted")

    def drain(self) -> None:
        """Nothing is open."""


def answered(*requests: bytes) -> list[tuple[str, dict[str, str], str]]:
    """The status, headers and text of the answer to each request, on a connection of its own."""

    async def ask(port: int, request: bytes) -> tuple[str, dict[str, str], str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request.replace(b"PORT", str(port).encode()))
        head, _, text = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        first, *lines = head.split("\r\n")
        return first.split()[1], {name.title(): value for name, value in (line.split(": ", 1) for line in lines)}, text

    async def run() -> list[tuple[str, dict[str, str], str]]:
        listening = listen("127.0.0.1", 0)
        port = listening.getsockname()[1]
        async with serving(Failing(), Guard(f"127.0.0.1:{port}", token="t"), listening, ConnectionLimits(), 1.0):
            return [await asyncio.wait_for(ask(port, request), DEADLINE) for request in requests]

    return asyncio.run(run())


def test_an_answer_that_comes_before_the_guard_has_its_rules_and_names_no_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = answered(
        b"rubbish\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"GET /" + b"a" * 100_000,
    )
    assert [status for status, *_ in answers] == ["400", "400", "431"]
    assert caplog.records == []  # a stranger writes no log
    answers += answered(
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"POST /fail HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n",
    )
    assert [status for status, *_ in answers[3:]] == ["403", "500"]
    for _, headers, text in answers:
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert (headers["Server"], headers["X-Content-Type-Options"]) == ("ikigai", "nosniff")
        assert "planted" not in text
    assert [record.message for record in caplog.records] == ["Exception in ASGI application\n"]


def test_a_probe_learns_that_the_server_answers_by_any_name_and_nothing_else() -> None:
    for request in (b"GET /healthz HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n", b"GET /healthz HTTP/1.0\r\n\r\n"):
        [(status, headers, text)] = answered(request)
        assert (status, headers.get("Connection", "close"), text) == ("200", "close", "ok\n")
    [(status, *_)] = answered(b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 0\r\n\r\n")
    assert status == "401"
