"""The processes of the doors: one for each client, or one for all clients by HTTP.

Such a process ends with its input, with the process that has started it, or by a signal. The end of a host does not end
it.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ikigai_actors.doors.json_rpc import INVALID_REQUEST, RpcConnection
from ikigai_actors.doors.lines import LONGEST_MESSAGE, StandardLines
from ikigai_actors.errors import IkigaiError
from ikigai_actors.extras import NeedsExtra

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from ikigai_actors.doors.hosting import Hosting
    from ikigai_actors.reach.access import Access

TO_CLOSE = 1.0
"""Seconds that a door takes to close, at most: its client may be waiting for its end."""


@dataclass(frozen=True, slots=True)
class DoorOptions:
    """The options of a process that serves a door."""

    database: str | None
    """The path or URL of the database; None for the default."""
    words: Sequence[str] = field(default=())
    """The global options for a host that is started, as on a command line."""
    under: str | None = None
    """The topmost agent that can be reached; None for agent 0."""
    read_only: bool = False
    """Whether clients can only read."""
    workspace: str | None = None
    """The directory of the agents' tools; None if unknown."""
    tasks: bool = False
    """Whether clients that support tasks get a task for a turn."""
    json_log: bool = False
    """Whether the lines of the log are JSON."""


class DoorOpening:
    """A door that is being opened, on a separate thread, because its imports take long."""

    def __init__(self, options: DoorOptions) -> None:
        self._options = options
        self._opened: Future[tuple[Access, Hosting]] = Future()
        threading.Thread(target=self._open, name="ikigai-door-opening", daemon=True).start()

    def access(self) -> "Access":
        """Return the agents that the client may reach; waits for the database.

        Raises `BadInput` for a wrong database.
        """
        return self._opened.result()[0]

    def close(self) -> None:
        """Close the database, once it is open."""
        with suppress(IkigaiError):
            self._opened.result()[1].close()

    def _open(self) -> None:
        from ikigai_actors.doors.hosting import Hosting, door_log, latest_line, start_host
        from ikigai_actors.reach.access import Access
        from ikigai_actors.reach.databases import place_of
        from ikigai_actors.verbs.text.logs import log_formatter

        try:
            log, place = door_log(), place_of(self._options.database)
            handler = logging.FileHandler(log, encoding="utf-8", delay=True)
            handler.setFormatter(log_formatter("%(asctime)s door: %(message)s", as_json=self._options.json_log))
            for name in ("ikigai_actors", "mcp"):
                logging.getLogger(name).addHandler(handler)
            named = place.address
            environ = {**os.environ, "IKIGAI_DATABASE_URL": named}
            start = partial(start_host, self._options.words, environ, log)
            hosting = Hosting(named, start, partial(latest_line, log))
        except (IkigaiError, OSError) as error:
            self._opened.set_exception(error)
        else:
            access = Access(hosting.attached, hosting.check_hosted, self._options.under)
            self._opened.set_result((access, hosting))


def serve_mcp(options: DoorOptions) -> int:
    """Serve MCP by standard input and output, until the input ends; return the exit status."""
    lines = StandardLines()
    with NeedsExtra("mcp", "ikigai mcp"):
        from ikigai_actors.doors.mcp import McpDoor
        from ikigai_actors.doors.mcp_lines import McpLines

    opening = DoorOpening(options)
    door = McpDoor(opening.access, read_only=options.read_only, tasks=options.tasks)
    asyncio.run(_serve_lines(lines, lambda end: McpLines(door.server, lines.write, end)))
    _close(opening, lines)
    return 0


def serve_acp(options: DoorOptions) -> int:
    """Serve ACP by standard input and output, until the input ends; return the exit status."""
    lines = StandardLines()
    with NeedsExtra("acp", "ikigai acp"):
        from ikigai_actors.doors.acp.door import AcpDoor

    opening = DoorOpening(options)

    def connected(end: Callable[[], object]) -> RpcConnection:
        door = AcpDoor(opening.access(), options.workspace, lambda: lines.waiting)
        connection = RpcConnection(door, lines.write)
        door.begin(connection)
        return connection

    asyncio.run(_serve_lines(lines, connected))
    _close(opening, lines)
    return 0


def serve_mcp_by_http(options: DoorOptions, port: int, show: Callable[[str], object]) -> int:
    """Serve MCP by HTTP on this machine until a signal comes; ``show`` prints how to connect a client.

    Raises `BadInput`.
    """
    with NeedsExtra("mcp", "ikigai mcp"):
        from ikigai_actors.doors.mcp import McpDoor

    opening = DoorOpening(options)
    mcp = McpDoor(opening.access, read_only=options.read_only, tasks=options.tasks).server
    asyncio.run(_serve_http(options, opening, mcp, port, show))
    _close(opening, None)
    return 0


def _close(opening: DoorOpening, lines: StandardLines | None) -> None:
    """Close the door, and end the process in time, even if closing takes too long."""
    timer = threading.Timer(TO_CLOSE, os._exit, (0,))
    timer.daemon = True
    timer.start()
    if lines is not None:
        lines.flush(TO_CLOSE / 2)
    opening.close()


class Connected(Protocol):
    """A client that a door serves by lines."""

    def receive_line(self, line: bytes) -> None:
        """Handle a line from the client."""

    def refuse(self, code: int, text: str) -> None:
        """Send an error for a line that is no message."""

    def close(self) -> None:
        """End all waits of the client."""


async def _serve_lines(lines: StandardLines, connect: Callable[[Callable[[], object]], Connected]) -> None:
    over = asyncio.Event()
    _end_by_signals(over)
    connection = connect(over.set)

    def receive(line: bytes | None) -> None:
        if line is None:
            connection.refuse(INVALID_REQUEST, f"Expected a line of at most {LONGEST_MESSAGE:,} bytes.")
        else:
            connection.receive_line(line)

    lines.read(receive, over.set)
    await over.wait()
    connection.close()


async def _serve_http(
    options: DoorOptions, opening: DoorOpening, mcp: "Server[Any]", port: int, show: Callable[[str], object]
) -> None:
    from ikigai_actors.doors.protocols import DoorApplication
    from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
    from ikigai_actors.http_server.guard import Guard
    from ikigai_actors.http_server.server import serving
    from ikigai_actors.http_server.token_file import token_in
    from ikigai_actors.reach.databases import kept_of_user

    over = asyncio.Event()
    _end_by_signals(over)
    token = token_in(kept_of_user("door-token"))
    listening = listen("127.0.0.1", port)
    port = listening.getsockname()[1]
    application = DoorApplication(mcp, opening.access(), read_only=options.read_only)
    guard = Guard(f"127.0.0.1:{port}", f"localhost:{port}", token=token)
    limits = replace(ConnectionLimits.of_process(), guests=sys.maxsize)  # one client may have many runs
    command = "claude mcp add --transport http ikigai"
    async with serving(application, guard, listening, limits, TO_CLOSE):
        show(f'{command} http://127.0.0.1:{port}/mcp --header "Authorization: Bearer {token}"')
        await over.wait()


def _end_by_signals(over: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
