"""The process of an MCP server, as a transport for the client: each message is a line of its standard input or output.

    async with serving(process) as (received, sending): ...

The client's own transport has no limit, and copies all of an unfinished line for every piece that comes: one long line
would hold up the event loop that all agents share. Here a line costs time in proportion to its length, and one over the
limit ends the server (`ServerProcess.fault` says so).

The process leads a session of its own, with a guard that ends the rest of it with our process (see
`ikigai_actors.tools.lifeline`). Where there is no bash, there is no guard.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from ikigai_actors.tools.lifeline import Lifeline

_GRACE = 2.0
"""Seconds that a server has to end by itself after its input was closed, and again after TERM."""

_FLUSH = 0.5
"""Seconds for sending the last messages to a server that is being ended."""

Heard = SessionMessage | Exception


class ServerProcess(SubprocessStreamProtocol):
    """The process. Belongs to one event loop; start it with `start`."""

    def __init__(self, lifeline: Lifeline | None, limit: int) -> None:
        """Use `start`."""
        super().__init__(limit=limit, loop=asyncio.get_running_loop())
        self._lifeline, self._longest = lifeline, limit
        self._exited = asyncio.Event()
        self._process: asyncio.SubprocessTransport
        self.fault = ""
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
        bash = shutil.which("bash")
        if bash is None:
            return await cls._start(command, env, stderr, limit, None)
        with Lifeline() as lifeline:
            return await cls._start(lifeline.command(bash, command), env, stderr, limit, lifeline)

    @classmethod
    async def _start(
        cls, command: Sequence[str], env: Mapping[str, str], stderr: int, limit: int, lifeline: Lifeline | None
    ) -> Self:
        process, self = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(lifeline, limit), *command, stdin=PIPE, stdout=PIPE, stderr=stderr,
            env={**get_default_environment(), **env}, start_new_session=True,
            pass_fds=() if lifeline is None else (lifeline.reading,),
        )  # fmt: skip
        self._process = process
        return self

    def process_exited(self) -> None:
        super().process_exited()
        self._exited.set()

    def kill(self) -> None:
        """End it at once, with all of its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.get_pid(), signal.SIGKILL)

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
                    await self._end(writer)
            finally:
                self.kill()
                if self._lifeline is not None:
                    self._lifeline.cut()
                reader.cancel()
                writer.cancel()
                with anyio.CancelScope(shield=True):
                    await self._gone()  # when the loop closes, nobody could wait for its end any more
                self._process.close()

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
            while await self.stdout.read(self._longest):
                pass  # or it could not say its last words, and would not end

    async def _line(self, stdout: asyncio.StreamReader) -> bytes:
        """The next line; empty at the end, and when the line is too long."""
        try:
            return await stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError:
            self.fault = f"it wrote a line of more than {self._longest:,} bytes (McpServer's line_limit)"
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

    async def _end(self, writer: "asyncio.Task[None]") -> None:
        """Wait until it ends by itself, then send TERM."""
        await asyncio.wait({writer}, timeout=0.0 if self.fault else _FLUSH)
        assert self.stdin is not None
        self.stdin.close()
        if await self._gone():
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.get_pid(), signal.SIGTERM)
        if not await self._gone():
            self.kill()
            await self._gone()

    async def _gone(self) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), _GRACE)
        return self._exited.is_set()


def _message(line: bytes) -> SessionMessage | Exception:
    """The message in a line. For a line without one, the error, which the session handles."""
    try:
        message: Any = jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False)
    except ValueError as error:
        return error
    return SessionMessage(message)
