"""A place where tools of the MCP server for tests meet the test, and a bench to call them at without agents."""

import os
import queue
import signal
import socket
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ikigai_actors import McpServer
from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.jobs import ToolRun
from ikigai_actors.testing import ManualClock
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.function import Result, Tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.program import PATIENCE

SERVER = [sys.executable, "-S", str(Path(__file__).with_name("mcp_server.py"))]
COMMAND = " ".join(SERVER)


class Visit:
    """A process that meets the test."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(DEADLINE)
        self._connection = connection
        self.pid = int(connection.recv(20))

    def say(self, line: str) -> None:
        """Let the tool that waits here return this."""
        self._connection.sendall(f"{line}\n".encode())

    def wait_until_it_leaves(self) -> None:
        """Return when the tool was cancelled, or its process has ended."""
        assert self._connection.recv(1) == b""

    def hang_up(self) -> None:
        """See the visitor no more."""
        self._connection.close()

    def kill(self) -> None:
        """``kill -9`` of the process."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait_until_it_leaves()


class Meeting:
    """A Unix socket at which tools of the server meet the test."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)  # a program that imports all that it needs comes first
        self._socket.bind(self.path)
        self._socket.listen()
        self._visits: list[Visit] = []

    def visit(self) -> Visit:
        """The next process that comes."""
        self._visits.append(Visit(self._socket.accept()[0]))
        return self._visits[-1]

    def close(self) -> None:
        for visit in self._visits:
            visit.hang_up()
        self._socket.close()


class Bench:
    """Tools of servers, called without agents."""

    def __init__(self) -> None:
        self._executor = Executor()
        self._closed = False
        self.tools: dict[str, Tool] = {}
        self.told: queue.Queue[str] = queue.Queue()
        self.clock = ManualClock()

    def open(self, server: Toolset) -> None:
        self.tools |= {tool.name: tool for tool in self._executor.open(server, self.told.put)}

    def start(self, **options: Any) -> None:
        """Open the server for tests, as ``t``."""
        self.open(McpServer(SERVER, name="t", clock=self.clock, **options))

    def begin(self, tool: str, /, **arguments: object) -> tuple["Future[Result]", ToolRun]:
        future: Future[Result] = Future()
        return future, self._executor.run_tool(self.tools[f"t__{tool}"], arguments, None, future.set_result)

    def call(self, tool: str, /, **arguments: object) -> Result:
        return self.begin(tool, **arguments)[0].result(DEADLINE)

    def hear(self) -> str:
        return self.told.get(timeout=DEADLINE)

    def end(self, meeting: Meeting) -> str:
        """Kill the server between calls; return what was told of it."""
        held, _ = self.begin("meet", path=meeting.path)
        visit = meeting.visit()
        visit.say("thanks")
        assert held.result(DEADLINE) == Result("thanks")
        os.kill(visit.pid, signal.SIGKILL)
        return self.hear()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._executor.close([])
