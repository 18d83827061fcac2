"""Commands that run to their end, with a text as their input. The result is their output."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ikigai_actors.tools.process import ChildProcess

if TYPE_CHECKING:
    from ikigai_actors.tools.fence.launch import FencedStart

MOST_OUTPUT = 2**16
"""The most bytes that a command may write to standard output, and the most to standard error."""


async def run_command(
    bash: str,
    command: str,
    text: str,
    *,
    directory: Path,
    environment: Mapping[str, str],
    fence: "FencedStart | None" = None,
) -> tuple[int, str, str]:
    """Run a command until its end. Its child processes end with it, also if this call is cancelled.

    Args:
        bash: the path of bash.
        command: the command, for bash.
        text: the standard input of the command.
        directory: the working directory of the command.
        environment: the variables of the command; ``CLAUDE_PROJECT_DIR`` is added, with the directory.
        fence: starts the command behind a fence; None for no fence.

    Returns:
        The exit code, the output and the standard error.

    Raises:
        OSError: the command cannot be started.
        RuntimeError: the command prints too much.
    """
    variables = {**environment, "CLAUDE_PROJECT_DIR": str(directory)}
    where = directory if fence is None else None
    process = ChildProcess()
    errors = _Errors(process.kill)
    try:
        await process.spawn(
            [bash, "-c", command], environment=variables, stderr=errors.writing,
            directory=where, guard=bash, fence=fence,
        )  # fmt: skip
        errors.read()
        try:
            assert process.stdin is not None
            process.stdin.write(text.encode(errors="replace"))
            process.stdin.close()
            output = b""
            while piece := await process.stdout.read(MOST_OUTPUT):
                output += piece
                if len(output) > MOST_OUTPUT:
                    raise RuntimeError(f"it printed more than {MOST_OUTPUT:,} bytes")
            await process.ended(None)
        finally:
            if process.exit_code is None:
                process.kill()
            await process.reap()
    finally:
        wrote = errors.close()
    if len(wrote) > MOST_OUTPUT:
        raise RuntimeError(f"it wrote more than {MOST_OUTPUT:,} bytes to standard error")
    return process.exit_code or 0, output.decode(errors="replace"), wrote.decode(errors="replace")


class _Errors:
    """The standard error of a command: a pipe, so that a command which writes without end fills no disk."""

    def __init__(self, on_excess: Callable[[], object]) -> None:
        """Make the pipe. ``on_excess`` is called when the command has written too much."""
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._on_excess, self._text, self._loop = on_excess, b"", asyncio.get_running_loop()

    def read(self) -> None:
        """Begin to read the standard error of the command, which has inherited the other end of the pipe."""
        os.close(self.writing)
        self.writing = -1
        self._loop.add_reader(self._reading, self._take)

    def close(self) -> bytes:
        """Close the pipe; return the bytes that were read, which may exceed `MOST_OUTPUT` by one piece."""
        self._loop.remove_reader(self._reading)
        self._drain()
        for end in (self._reading, self.writing):
            if end >= 0:
                os.close(end)
        return self._text

    def _take(self) -> None:
        if self._drain():
            self._loop.remove_reader(self._reading)
            if len(self._text) > MOST_OUTPUT:
                self._on_excess()

    def _drain(self) -> bool:
        """Read the available bytes; return whether reading is over, at the pipe's end or after too much output."""
        while len(self._text) <= MOST_OUTPUT:
            try:
                piece = os.read(self._reading, MOST_OUTPUT)
            except BlockingIOError:
                return False
            if not piece:
                break
            self._text += piece
        return True
