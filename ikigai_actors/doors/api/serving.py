"""Serves the API until a signal comes. Then /readyz answers 503, streams end, and waiting requests are answered."""

import asyncio
import ipaddress
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from ikigai_actors.doors.api.application import Api
from ikigai_actors.errors import BadInput
from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.server import HttpServer
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.principal import principal_of_token

DRAIN_SECONDS = 10.0
"""The seconds that requests in progress have when the server shuts down."""

MOST_CONNECTIONS = 1_000


class ApiOptions(NamedTuple):
    """The options of ``ikigai api``."""

    database: str | None
    """The path or URL of the database; None for the default."""
    listen: str
    """The address to listen on, ``HOST:PORT``."""
    url: str = ""
    """The address for clients."""
    root: str = ""
    """The path that a proxy cuts off."""
    trusted: Sequence[str] = ()
    """The networks of trusted proxies."""
    under: str | None = None
    """The topmost agent that can be reached; None for all."""
    keys: Sequence[str] = ()
    """References to operator's keys; empty for those of the environment."""
    allowed: Sequence[str] = ()
    """Networks that a server's accounts may name; empty for those of the environment."""


def serve_api(options: ApiOptions, show: Callable[[str], object], tell: Callable[[str], object]) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; return the exit status.

    Raises `BadInput` for an address that cannot be used, or that other machines can reach without a proxy.

    Args:
        options: the options.
        show: prints the address.
        tell: shows the person a notice.
    """
    host, port = _checked(options)
    with AttachedSystem.open(options.database) as system:
        under = None if options.under is None else system.agent(options.under).uuid
        listening = listen(host, port)
        at = listening.getsockname()
        place = options.url or f"http://{at[0]}:{at[1]}{options.root}"
        known = options.url if options.trusted else place  # behind a proxy nobody knows the address of this machine
        api = Api(
            system,
            lambda request: principal_of_token(system, request.bearer, under),
            known,
            options.keys,
            options.allowed or None,
        )
        limits = ConnectionLimits(ConnectionLimits.of_process().strangers, MOST_CONNECTIONS)
        server = HttpServer(api, listening, limits, root=options.root, trusted=options.trusted)
        try:
            return asyncio.run(_serve(server, lambda: show(place), tell))
        finally:
            api.close()


async def _serve(server: HttpServer, ready: Callable[[], object], tell: Callable[[str], object]) -> int:
    stop, came, loop = asyncio.Event(), list[int](), asyncio.get_running_loop()

    def note(number: int) -> None:
        came.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, note, number)
    await server.serve(stop, DRAIN_SECONDS, ready, lambda: tell("Ending: requests under way are done first."))
    return 0 if came[0] == signal.SIGINT else 128 + came[0]


def _checked(options: ApiOptions) -> tuple[str, int]:
    """Return the host and port of the address to listen on. Raises `BadInput`."""
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
