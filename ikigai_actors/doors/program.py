"""The programs of the doors: one process for each client, or one for all by HTTP.

Such a process ends with its input, with the process that has started it, or by a signal; never since a host has ended.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ikigai_actors.agent.subscriptions import HostChanged
from ikigai_actors.doors.access import Access
from ikigai_actors.doors.bell import NewsBell
from ikigai_actors.doors.hosting import Hosting, door_log, latest_line, start_host
from ikigai_actors.doors.json_rpc import INVALID_REQUEST, RpcConnection
from ikigai_actors.doors.lines import LONGEST_MESSAGE, StandardLines
from ikigai_actors.errors import BadInput, NoHost
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.location import home, locate

if TYPE_CHECKING:
    from ikigai_actors.doors.mcp import McpDoor

TO_CLOSE = 1.0
"""Seconds that a door takes to close, at most: its client may be waiting for its end."""


@dataclass(frozen=True, slots=True)
class DoorOptions:
    """How a door is opened."""

    database: str | None
    """The place of the database."""
    words: Sequence[str] = field(default=())
    """The global options for a host that is started, as on a command line."""
    under: str | None = None
    """The topmost agent that can be reached; None for agent 0."""
    read_only: bool = False
    """Whether nothing can be changed."""
    workspace: str | None = None
    """The directory of the agents' tools, if it is known."""


def serve_mcp(options: DoorOptions) -> int:
    """Serve MCP by standard input and output, until the input ends; return the exit status."""
    lines = StandardLines()
    with _door(options) as (access, hosting):
        asyncio.run(_serve_lines(lines, lambda: _mcp_connection(options, access, lines)))
        _close(hosting, lines)
    return 0


def serve_acp(options: DoorOptions) -> int:
    """Serve ACP by standard input and output, until the input ends; return the exit status."""
    lines = StandardLines()
    with _door(options) as (access, hosting):
        asyncio.run(_serve_lines(lines, lambda: _acp_connection(options, access, lines)))
        _close(hosting, lines)
    return 0


def serve_mcp_by_http(options: DoorOptions, port: int, show: Callable[[str], object]) -> int:
    """Serve MCP by HTTP on this machine until a signal comes; ``show`` prints how a client is attached.

    Raises `BadInput`.
    """
    with _door(options) as (access, hosting):
        asyncio.run(_serve_http(options, access, port, show))
        _close(hosting, None)
    return 0


@contextmanager
def _door(options: DoorOptions) -> Iterator[tuple[Access, Hosting]]:
    log = door_log()
    handler = logging.FileHandler(log, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s door: %(message)s"))
    logging.getLogger("ikigai_actors").addHandler(handler)
    place = locate(options.database)
    named = place.url or str(place.path)
    environ = {**os.environ, "IKIGAI_DATABASE_URL": named}
    hosting = Hosting(named, lambda: start_host(options.words, environ, log), lambda: latest_line(log))
    yield Access(hosting.attached, hosting.check_hosted, options.under), hosting


def _close(hosting: Hosting, lines: StandardLines | None) -> None:
    """Close what is open, and end this process in time: nothing here must be closed."""
    timer = threading.Timer(TO_CLOSE, os._exit, (0,))
    timer.daemon = True
    timer.start()
    if lines is not None:
        lines.flush(TO_CLOSE / 2)
    hosting.close()


def _mcp(options: DoorOptions, access: Access, bell: NewsBell) -> "McpDoor":
    from ikigai_actors.doors.mcp import McpDoor
    from ikigai_actors.doors.mcp_tools import AgentTools

    return McpDoor(AgentTools(access), bell, read_only=options.read_only)


def _mcp_connection(options: DoorOptions, access: Access, lines: StandardLines) -> RpcConnection:
    bell = NewsBell(asyncio.get_running_loop())
    _ring_at_news(access, bell)
    return RpcConnection(_mcp(options, access, bell), lines.write)


def _acp_connection(options: DoorOptions, access: Access, lines: StandardLines) -> RpcConnection:
    from ikigai_actors.doors.acp import AcpDoor

    door = AcpDoor(access, options.workspace, lambda: lines.waiting)
    connection = RpcConnection(door, lines.write)
    door.begin(connection)
    return connection


async def _serve_lines(lines: StandardLines, connect: Callable[[], RpcConnection]) -> None:
    over = asyncio.Event()
    _end_by_signals(over)
    connection = connect()

    def receive(line: bytes | None) -> None:
        if line is None:
            connection.refuse(INVALID_REQUEST, f"Expected a line of at most {LONGEST_MESSAGE:,} bytes.")
        else:
            connection.receive(line)

    lines.read(receive, over.set)
    await over.wait()
    connection.close()


async def _serve_http(options: DoorOptions, access: Access, port: int, show: Callable[[str], object]) -> None:
    from aiohttp import web

    from ikigai_actors.doors.http import LARGEST_BODY, Gatekeeper, HttpMcp, door_token

    over, bell = asyncio.Event(), NewsBell(asyncio.get_running_loop())
    _end_by_signals(over)
    token = door_token(home() / "door-token")
    listening = _listening(port)
    port = listening.getsockname()[1]
    application = web.Application(middlewares=[Gatekeeper(token, port).middleware], client_max_size=LARGEST_BODY)
    application.router.add_post("/mcp", HttpMcp(_mcp(options, access, bell)).post)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    show(f'claude mcp add --transport http ikigai http://127.0.0.1:{port}/mcp --header "Authorization: Bearer {token}"')
    _ring_at_news(access, bell)
    await over.wait()
    await runner.cleanup()


def _end_by_signals(over: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)


def _ring_at_news(access: Access, bell: NewsBell) -> None:
    """Ring whenever agents have committed something, as soon as there is a database."""

    def begin() -> None:
        subscribed = False
        while not subscribed:
            with suppress(NoHost):
                access.system.subscribe(lambda event: bell.ring(), only=(Message, Died, HostChanged))
                subscribed = True

    threading.Thread(target=begin, name="ikigai-door-news", daemon=True).start()


def _listening(port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises `BadInput`."""
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        raise BadInput(f"Port {port} is not available: {error.strerror}. Name another, or 0 for a free one.") from error
    return listening
