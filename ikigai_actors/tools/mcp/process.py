"""The process of an MCP server, as a transport for the client: each message is a line of standard input or output.

    async with serving(process) as (received, sending): ...

The client's own transport has no limit, and copies an unfinished line with each piece that arrives. So one long line
would block the event loop that all agents share. Here the time for a line is proportional to its length, and a line
over the limit ends the server (`ServerProcess.fault` says so).

A server has ended when its process has ended. A child of it, such as a browser, may outlive it and keep its output
open, so the end of the output proves nothing.

A guard process ends the server's session when our process ends (see `ikigai_actors.tools.process`). Without bash on the
machine there is no guard.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from ikigai_actors.tools.mcp.lines import Heard, read_line, write_line
from ikigai_actors.tools.process import ChildProcess

if TYPE_CHECKING:
    from ikigai_actors.tools.fence.enclosure import Enclosure

_FLUSH = 0.5
"""Seconds for sending the last messages to a server that is being ended."""

_LARGEST_PIPE = 2**20
"""Bytes that a pipe holds at most, unless the process has special rights."""


_NAME = "server"
"""The name of the private directory of a server behind a fence."""


def server_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return all environment variables of a server: the few that every server gets, and these."""
    return {**get_default_environment(), **env}


class ServerProcess(ChildProcess):
    """The process of a server. It belongs to one event loop; start it with `start`."""

    fault = ""
    """Why this program ended the server, as the end of a sentence; empty when the server ended by itself."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        env: Mapping[str, str],
        stderr: int,
        limit: int,
        enclosure: "Enclosure | None" = None,
    ) -> Self:
        """Start a server.

        Args:
            command: the program and its arguments.
            env: environment variables in addition to the few that every server gets.
            stderr: the descriptor for its standard error.
            limit: the most bytes of a line that the server may write.
            enclosure: the fence around the server; None for none.

        Raises:
            OSError: the server cannot be started.
        """
        if enclosure is not None:
            fenced, start = enclosure.environment(_NAME), enclosure.launch(_NAME)
            return await cls(limit).spawn(command, environment=fenced, stderr=stderr, fence=start)
        environment = server_environment(env)
        return await cls(limit).spawn(command, environment=environment, stderr=stderr, guard=shutil.which("bash"))

    @asynccontextmanager
    async def serving(
        self, on_end: Callable[[], None], sift: Callable[[Heard], Heard | None]
    ) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Heard], MemoryObjectSendStream[SessionMessage]], None]:
        """Exchange messages with the server for as long as the block lasts. The process ends with the block.

        Args:
            on_end: called when the server's output or input has ended.
            sift: returns the message that the client gets in place of a message of the server; None for no message.
        """
        heard, received = anyio.create_memory_object_stream[Heard](0)
        sending, said = anyio.create_memory_object_stream[SessionMessage](0)
        reader = asyncio.create_task(self._read(heard, on_end, sift))
        writer = asyncio.create_task(self._write(said, heard, on_end))
        try:
            yield received, sending
        finally:
            received.close()
            sending.close()
            try:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({writer}, timeout=0.0 if self.fault else _FLUSH)
                    await self.terminate()
            finally:
                self.kill()
                reader.cancel()
                writer.cancel()
                with anyio.CancelScope(shield=True):
                    await self.reap()

    async def _read(
        self, heard: MemoryObjectSendStream[Heard], on_end: Callable[[], None], sift: Callable[[Heard], Heard | None]
    ) -> None:
        with contextlib.suppress(OSError):
            try:
                with heard:
                    while line := await self._line(self.stdout):
                        if (message := sift(read_line(line))) is not None:
                            await heard.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # nobody listens any more
            finally:
                on_end()
            while await self.stdout.read(self.limit):
                pass  # or it could not say its last words, and would not end

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        """Return the next line of the server's output; empty at the end, or if the line is too long."""
        try:
            return await stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError:
            self.fault = f"it wrote a line of more than {self.limit:,} bytes (McpServer's line_limit)"
            self.kill()
            return b""

    async def _write(
        self,
        said: MemoryObjectReceiveStream[SessionMessage],
        heard: MemoryObjectSendStream[Heard],
        on_end: Callable[[], None],
    ) -> None:
        assert self.stdin is not None
        try:
            with said:
                async for message in said:
                    self.stdin.write(write_line(message.message))
                    await self.stdin.drain()
        except OSError:  # it reads no more, though it may live
            heard.close()  # so who waits for an answer hears that there is none
            on_end()

    def process_exited(self) -> None:
        """End the server's output after the data that was written, even if another process keeps the pipe open."""
        super().process_exited()
        if not self._reading.is_closing():
            self._reading.pause_reading()
            with contextlib.suppress(OSError):
                self.received(os.read(self._reading.get_extra_info("pipe").fileno(), _LARGEST_PIPE))
            self._reading.close()
