"""Serving the API by uvicorn: through the acceptor that puts out silent strangers, until a signal, then to the end.

stop            /readyz answers 503; streams say bye; waits answer with what they have
within DRAIN_SECONDS    requests that are under way end
then            connections are cut off
"""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ikigai_actors.doors.api.application import Api
from ikigai_actors.doors.api.requests import MOST_HEADERS, AsgiScope, Receive, SendEvent
from ikigai_actors.errors import BadInput
from ikigai_actors.http_server.acceptor import Acceptor, ConnectionLimits, listen
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.principal import principal_of_token

DRAIN_SECONDS = 10.0
"""Seconds that requests under way have when the server ends."""

KEPT_SECONDS = 75
"""Seconds for which a connection is kept between two requests."""

MOST_CONNECTIONS = 1_000

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

Peer = tuple[str, int]


class ApiOptions(NamedTuple):
    """How ``ikigai api`` serves."""

    database: str | None
    """The place of the database."""
    listen: str
    """``HOST:PORT``."""
    url: str = ""
    """The address for clients."""
    root: str = ""
    """The path that a proxy cuts off."""
    trusted: Sequence[str] = ()
    """Networks of proxies."""
    under: str | None = None
    """The topmost agent that can be reached; None for all."""


def serve_api(options: ApiOptions, show: Callable[[str], object], tell: Callable[[str], object]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; return the exit status.

    Raises `BadInput` for an address that cannot be had, or that other machines reach without a proxy.

    Args:
        options: how.
        show: prints the address.
        tell: gives the person a notice.
    """
    host, port = _checked(options)
    with AttachedSystem.open(options.database) as system:
        under = None if options.under is None else system.agent(options.under).uuid
        listening = listen(host, port)
        at = listening.getsockname()
        api = Api(system, lambda request: principal_of_token(system, request.bearer, under), options.url)
        place = options.url or f"http://{at[0]}:{at[1]}{options.root}"
        server = ApiServer(api, listening, options.root, options.trusted)
        try:
            return asyncio.run(_serve(server, lambda: show(place), tell))
        finally:
            api.close()


async def _serve(server: "ApiServer", ready: Callable[[], object], tell: Callable[[str], object]) -> int:
    stop, came, loop = asyncio.Event(), list[int](), asyncio.get_running_loop()

    def note(number: int) -> None:
        came.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, note, number)
    await server.serve(stop, ready, lambda: tell("Ending: requests under way are done first."))
    return 0 if came[0] == signal.SIGINT else 128 + came[0]


def _checked(options: ApiOptions) -> tuple[str, int]:
    """The host and port of an address. Raises `BadInput`."""
    host, _, port = options.listen.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 65_536):
        raise BadInput(f"Expected --listen HOST:PORT, such as 127.0.0.1:8080; got {options.listen!r}.")
    for network in options.trusted:
        with suppress(ValueError):
            ipaddress.ip_network(network)
            continue
        raise BadInput(f"Expected --trust-proxy to be an address or network, such as 10.0.0.0/8; got {network!r}.")
    try:
        is_own = ipaddress.ip_address(host or "0.0.0.0").is_loopback
    except ValueError:
        is_own = host == "localhost"
    if not is_own and not options.trusted:
        raise BadInput(
            f"Other machines reach {options.listen}, and nothing is encrypted: name the proxy with TLS in front of it "
            "by --trust-proxy, or listen at 127.0.0.1."
        )
    if options.root and not options.root.startswith("/"):
        raise BadInput(f"Expected --root-path to begin with a slash; got {options.root!r}.")
    return host or "0.0.0.0", int(port)


class ApiServer:
    """Serves one application on one socket."""

    def __init__(self, api: Api, listening: socket.socket, root: str = "", trusted: Sequence[str] = ()) -> None:
        """Make it.

        Args:
            api: the application.
            listening: the bound socket; it is closed with the server.
            root: the path that a proxy has cut off.
            trusted: the addresses of proxies whose ``X-Forwarded-*`` count, as networks.
        """
        import uvicorn
        from uvicorn.server import ServerState

        self._api, self._listening = api, listening
        self._transports: dict[Peer, asyncio.BaseTransport] = {}
        self._config = uvicorn.Config(
            api,
            interface="asgi3",
            root_path=root,
            proxy_headers=bool(trusted),
            forwarded_allow_ips=[*trusted],
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEPT_SECONDS,
            ws="none",
            http="httptools",
        )
        self._config.load()
        # Around what puts the address of the client in the place of the proxy's: the acceptor knows connections alone.
        self._behind_proxies, self._config.loaded_app = self._config.loaded_app, self._admitting
        self._protocol = limited_heads(self._config.http_protocol_class)
        self._state = ServerState()

    async def serve(
        self,
        stop: asyncio.Event,
        on_ready: Callable[[], object] = lambda: None,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        """Serve until it has to stop, and then what is under way, for `DRAIN_SECONDS` seconds."""
        limits = ConnectionLimits.of_process()
        self._acceptor = Acceptor(self._listening, self._connect, ConnectionLimits(limits.strangers, MOST_CONNECTIONS))
        on_ready()
        await stop.wait()
        on_end()
        self._api.drain()
        await self._acceptor.close()
        for connection in [*self._state.connections]:
            connection.shutdown()  # after the answer that is under way
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._state.tasks:
                    await asyncio.wait([*self._state.tasks])
        for transport in [*self._transports.values()]:
            transport.close()

    async def _admitting(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        """The application, as the acceptor sees it: a request that is complete makes a guest of its connection."""
        client = scope.get("client")
        self._acceptor.admit(self._transports.get(tuple(client)) if client else None)
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


def limited_heads(protocol: Any) -> Any:
    """The protocol of a connection that cuts off a client whose headers do not end: its parser would keep them all."""

    class LimitedHeads(protocol):  # type: ignore[misc]  # uvicorn names its class by the configuration
        _in_head, _size = False, 0

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
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    return LimitedHeads
