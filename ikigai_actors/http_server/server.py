"""Serves an ASGI application by uvicorn, through the acceptor that closes the connections of silent strangers.

stop            the server calls ``drain``: streams end, and waits answer at once
within a while  requests that are under way end
then            connections are cut off

With a guard, a request that the guard accepts makes its connection a guest. Without a guard any complete request does,
and the application authenticates the client.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol
from urllib.parse import parse_qsl

from ikigai_actors.http_server.acceptor import Acceptor, ConnectionLimits
from ikigai_actors.http_server.answers import TEXT, answer, asgi_headers
from ikigai_actors.http_server.guard import Guard, RequestHead
from ikigai_actors.http_server.requests import MOST_HEADERS, AsgiScope, Receive, SendEvent

KEPT_SECONDS = 75
"""Seconds that an idle connection is kept open between two requests."""

Peer = tuple[str, int]


class ServedApplication(Protocol):
    """An ASGI application with a method that its server calls before it ends."""

    async def __call__(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        """Answer a request."""

    def drain(self) -> None:
        """End streams and waits, since the server is about to end."""


class HttpServer:
    """Serves one ASGI application on one socket, until it is stopped."""

    def __init__(
        self,
        application: ServedApplication,
        listening: socket.socket,
        limits: ConnectionLimits,
        guard: Guard | None = None,
        *,
        root: str = "",
        trusted: Sequence[str] = (),
        kept: int = KEPT_SECONDS,
    ) -> None:
        """Prepare a server.

        Args:
            application: the application.
            listening: the bound socket; it is closed with the server.
            limits: how many connections may be open.
            guard: decides on every request, before all else.
            root: the path that a proxy has cut off.
            trusted: the addresses of proxies whose ``X-Forwarded-*`` count, as networks.
            kept: seconds for which a connection is kept between two requests.
        """
        import uvicorn
        from uvicorn.server import ServerState

        self._application, self._listening, self._limits = application, listening, limits
        self._guard = guard
        self._transports: dict[Peer, asyncio.BaseTransport] = {}
        self._config = uvicorn.Config(
            application,
            interface="asgi3",
            root_path=root,
            proxy_headers=bool(trusted),
            forwarded_allow_ips=[*trusted],
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=kept,
            ws="none",
            http="httptools",
        )
        self._config.load()
        # Around what puts the address of the client in the place of the proxy's: the acceptor knows connections alone.
        self._behind_proxies, self._config.loaded_app = self._config.loaded_app, self._admitting
        self._protocol = limited_heads(self._config.http_protocol_class)
        self._state = ServerState()
        self._state.default_headers = [] if guard is None else asgi_headers(guard.rules)

    async def serve(
        self,
        stop: asyncio.Event,
        ending: float,
        on_ready: Callable[[], object] = lambda: None,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        """Serve until ``stop``; then give requests in progress ``ending`` seconds."""
        self._acceptor = Acceptor(self._listening, self._connect, self._limits)
        on_ready()
        try:
            await stop.wait()
        finally:
            on_end()
            self._application.drain()
            await self._acceptor.close()
            for connection in [*self._state.connections]:
                connection.shutdown()  # after the answer that is under way
            with suppress(TimeoutError):
                async with asyncio.timeout(ending):
                    while self._state.tasks:
                        await asyncio.wait([*self._state.tasks])
            for transport in [*self._transports.values()]:
                transport.close()

    async def _admitting(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        """Send the guard's refusal, or make the connection a guest and call the application."""
        client = scope.get("client")
        transport = self._transports.get(tuple(client)) if client else None
        if self._guard is None:
            self._acceptor.admit(transport)
            await self._behind_proxies(scope, receive, out)
            return
        refused = self._guard.answer(guarded_head(scope), lambda: self._acceptor.admit(transport))
        if refused is not None:
            await answer(out, refused.status, refused.text.encode(), refused.headers, TEXT)
        else:
            await self._behind_proxies(scope, receive, out)

    def _connect(self) -> asyncio.Protocol:
        made = self._protocol(config=self._config, server_state=self._state, app_state={})
        begin, finish = made.connection_made, made.connection_lost
        peer: Peer | None = None

        def connection_made(transport: asyncio.Transport) -> None:
            nonlocal peer
            name = transport.get_extra_info("peername")
            if name:
                peer = (str(name[0]), int(name[1]))
                self._transports[peer] = transport
            begin(transport)

        def connection_lost(error: Exception | None) -> None:
            if peer is not None:
                self._transports.pop(peer, None)
            finish(error)

        made.connection_made, made.connection_lost = connection_made, connection_lost
        return made  # type: ignore[no-any-return]


@asynccontextmanager
async def serving(
    application: ServedApplication, guard: Guard, listening: socket.socket, limits: ConnectionLimits, ending: float
) -> AsyncIterator[None]:
    """Serve an application with its guard within the block.

    Args:
        application: the application; it has no guard yet.
        guard: decides on every request, before all else.
        listening: the bound socket; it is closed with the block.
        limits: how many connections may be open.
        ending: seconds that open requests have when the block ends.
    """
    stop, ready = asyncio.Event(), asyncio.Event()
    server = HttpServer(application, listening, limits, guard)
    work = asyncio.create_task(server.serve(stop, ending, ready.set))
    try:
        await ready.wait()
        yield
    finally:
        stop.set()
        await work


def guarded_head(scope: AsgiScope) -> RequestHead:
    """Return the head of a request, as its guard needs it."""
    headers: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
    return RequestHead(scope["method"], scope["path"], headers, query)


def limited_heads(protocol: Any) -> Any:
    """Return the protocol of a connection with a limit for headers; the parser would keep endless headers in memory.

    The requests of strangers are not logged.
    """

    class LimitedHeads(protocol):  # type: ignore[misc]  # uvicorn names its class by the configuration
        _in_head, _size = False, 0

        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            self.logger = _connections

        def on_message_begin(self) -> None:
            self._in_head, self._size = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._size = self._size + len(data) if self._in_head else 0
            if self._size > MOST_HEADERS and not self.transport.is_closing():
                fields = [*self.server_state.default_headers, *_TOO_LARGE]
                lines = b"".join(b"%s: %s\r\n" % field for field in fields)
                self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + lines + b"\r\n")
                self.transport.close()

    return LimitedHeads


_TOO_LARGE = ((b"connection", b"close"), (b"content-length", b"0"))

_connections = logging.getLogger("ikigai_actors.http_server.connections")
_connections.setLevel(logging.ERROR)
