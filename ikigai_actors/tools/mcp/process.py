"""The process of an MCP server, as a transport for the client: each message is a line of its standard input or output.

    async with serving(process) as (received, sending): ...

The client's own transport has no limit, and copies all of an unfinished line for every piece that comes: one long line
would hold up the event loop that all agents share. Here a line costs time in proportion to its length, and one over the
limit ends the server (`ServerProcess.fault` says so).

A guard ends its session with our process (see `ikigai_actors.tools.process`). Where there is no bash, there is none.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from ikigai_actors.tools.process import ChildProcess

_FLUSH = 0.5
"""Seconds for sending the last messages to a server that is being ended."""

Heard = SessionMessage | Exception


class ServerProcess(ChildProcess):
    """The process. Belongs to one event loop; start it with `start`."""

    fault = ""
    """Why it was ended by us, as the end of a sentence about it."""

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], stderr: int, limit: int) -> Self:
        """Start a server.

        Args:
            command: the program and its arguments.
            env: variables beside the few that every server gets.
            stderr: the descriptor for its standard error.
            limit: bytes of a line that it may write.

        Raises:
            OSError: it cannot be started.
        """
        environment = {**get_default_environment(), **env}
        return await cls(limit).spawn(command, environment=environment, stderr=stderr, guard=shutil.which("bash"))

    @asynccontextmanager
    async def serving(
        self, on_end: Callable[[], None]
    ) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Heard], MemoryObjectSendStream[SessionMessage]], None]:
        """Its messages, and a way to send it some, for as long as the block lasts; the process ends with the block.

        Args:
            on_end: called when it sends no more.
        """
        heard, received = anyio.create_memory_object_stream[Heard](0)
        sending, said = anyio.create_memory_object_stream[SessionMessage](0)
        reader = asyncio.create_task(self._read(heard, on_end))
        writer = asyncio.create_task(self._write(said, heard))
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

    async def _read(self, heard: MemoryObjectSendStream[Heard], on_end: Callable[[], None]) -> None:
        assert self.stdout is not None
        with contextlib.suppress(OSError):
            try:
                with heard:
                    while line := await self._line(self.stdout):
                        await heard.send(_message(line))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # nobody listens any more
            finally:
                on_end()
            while await self.stdout.read(self.limit):
                pass  # or it could not say its last words, and would not end

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        """The next line; empty at the end, and when the line is too long."""
        try:
            return await stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError:
            self.fault = f"it wrote a line of more than {self.limit:,} bytes (McpServer's line_limit)"
            self.kill()
            return b""

    async def _write(
        self, said: MemoryObjectReceiveStream[SessionMessage], heard: MemoryObjectSendStream[Heard]
    ) -> None:
        assert self.stdin is not None
        try:
            with said:
                async for message in said:
                    self.stdin.write(
                        message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                    )
                    await self.stdin.drain()
        except OSError:
            heard.close()  # so who waits for an answer hears that there is none


def _message(line: bytes) -> SessionMessage | Exception:
    """The message in a line. For a line without one, the error, which the session handles."""
    try:
        message: Any = jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False)
    except ValueError as error:
        return error
    return SessionMessage(message)
