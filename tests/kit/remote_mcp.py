"""A remote MCP server on loopback, by the official SDK, behind a door at which a test decides on answers."""

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from tests.kit.blocking_provider import DEADLINE
from tests.kit.certificates import Certificate
from tests.kit.databases import eventually

READS = ToolAnnotations(read_only_hint=True)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def plain_server() -> MCPServer:
    """A server with two tools."""
    server = MCPServer("remote-for-tests")

    @server.tool(annotations=READS)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(annotations=READS)
    def fail(text: str) -> str:
        """Fail."""
        raise ValueError(text)

    return server


ASKED, DONE, CALLED = "asked", "done", "called"
"""A request for tokens has come; it was carried out, and its answer is not sent; a tool is called."""


class Halt:
    """A point at which one request waits, so that a test kills its client there, or does something meanwhile.

    Only the client of a request that was carried out gets an answer.
    """

    def __init__(self, point: str) -> None:
        self.point = point
        self.reached, self.released = threading.Event(), threading.Event()

    async def wait(self) -> None:
        self.reached.set()
        await asyncio.to_thread(self.released.wait, DEADLINE)

    async def at_token(self, app: App, scope: Message, receive: Receive, send: Send) -> None:
        answer = list[Message]()

        async def hold(message: Message) -> None:
            answer.append(message)

        if self.point == DONE:
            await app(scope, receive, hold)
        await self.wait()
        for message in answer:
            await send(message)


class RemoteMcp:
    """The server, on a port of its own. It can be stopped, and started again on the same port."""

    def __init__(
        self,
        make: Callable[[], MCPServer] = plain_server,
        token: str = "",
        certificate: Certificate | None = None,
        **options: Any,
    ) -> None:
        """Make it; with a ``token`` it takes requests alone that carry it, and with a certificate those by TLS."""
        self._make, self._token, self._certificate, self._options = make, token, certificate, options
        self._port = free_port()
        self.refuses: list[int | str] = []
        """What happens to the next calls of tools in place of an answer: a status, or ``cut``."""
        self.is_old = False
        """Whether it speaks a version of the protocol that has sessions alone."""
        self.calls: list[dict[str, Any]] = []
        """The calls of tools that came through the door."""
        self.connections = 0
        """How often a client has begun a session, or asked what this is."""
        self.challenge_of: Callable[[str], str] = lambda token: ""
        """The header with which a call that has this token is refused with 403; empty for a call that is let in."""
        self.answers_tokens = ""
        """The answer of the token endpoint in place of its own; empty for none."""
        self.token_status = 400
        """The status of that answer."""
        self.halt: Halt | None = None
        """Where the next request halts."""
        self.describes = ""
        """The description of its authorization server in place of its own; empty for none."""
        self._server: uvicorn.Server | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self._certificate else ''}://127.0.0.1:{self._port}/mcp"

    def start(self) -> "RemoteMcp":
        app = self._make().streamable_http_app(**self._options)
        config = uvicorn.Config(self._door(app), port=self._port, log_level="critical", timeout_graceful_shutdown=0)
        if self._certificate is not None:
            config.ssl_certfile, config.ssl_keyfile = self._certificate
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        started = threading.Event()
        began = self._server.startup

        async def startup(sockets: list[socket.socket] | None = None) -> None:
            await began(sockets)
            started.set()

        self._server.startup = startup  # type: ignore[method-assign]
        self._thread.start()
        assert started.wait(DEADLINE)
        return self

    def stop(self) -> None:
        if self._server is not None:
            if self._certificate is not None:  # its end would leave those of TLS half open
                connections = self._server.server_state.connections
                eventually(lambda: not connections, "the end of every connection")
            self._server.should_exit = self._server.force_exit = True
            self._thread.join(DEADLINE)
            self._server = None

    def _door(self, app: App) -> App:
        async def handle(scope: Message, receive: Receive, send: Send) -> None:
            if self.answers_tokens and scope.get("path") == "/token":
                head = [(b"content-type", b"application/json")]
                await _answer(send, self.token_status, head, self.answers_tokens.encode())
                return
            if scope.get("path") == "/token" and self.halt is not None and self.halt.point in (ASKED, DONE):
                halt, self.halt = self.halt, None
                await halt.at_token(app, scope, receive, send)
                return
            if self.describes and scope.get("path", "").startswith("/.well-known/oauth-authorization-server"):
                await _answer(send, 200, [(b"content-type", b"application/json")], self.describes.encode())
                return
            if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            headers = dict(scope["headers"])
            if self._token and headers.get(b"authorization") != f"Bearer {self._token}".encode():
                await _answer(send, 401)
                return
            body, again = await _body(receive)
            asked = json.loads(body)
            if self.is_old and asked.get("method") == "server/discover":
                await _answer(send, 404)
                return
            self.connections += asked.get("method") in ("initialize", "server/discover")
            if asked.get("method") == "tools/call":
                self.calls.append(asked["params"])
                if self.halt is not None and self.halt.point == CALLED:
                    halt, self.halt = self.halt, None
                    await halt.wait()
                    return
                bearer = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
                if challenge := self.challenge_of(bearer):
                    await _answer(send, 403, [(b"www-authenticate", challenge.encode())])
                    return
                refusal = self.refuses.pop(0) if self.refuses else None
                if isinstance(refusal, int):
                    await _answer(send, refusal)
                    return
                if refusal == "cut":
                    await _cut(send)
                    return
            await app(scope, again, send)

        return handle


async def _answer(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]] = (), body: bytes = b"") -> None:
    head = [(b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def _cut(send: Send) -> None:
    """Begin an answer, and end it before it is whole."""
    head = [(b"content-type", b"application/json"), (b"content-length", b"500")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b'{"jsonrpc": "2.0"', "more_body": True})
    raise ConnectionAbortedError


async def _body(receive: Receive) -> tuple[bytes, Receive]:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body, more = body + message.get("body", b""), message.get("more_body", False)
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return body, again


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
