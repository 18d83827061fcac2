"""One bash process: commands go in, their output and exit codes come out.

A command is given to bash as one quoted word for ``eval``. So a quote that is not closed is a syntax error at once, and
the shell does not wait for its other half. A line with a random number marks the end of the output.

A command must not spoil the next one. So our own words are quoted, which keeps aliases off, and called through
``builtin``, which keeps functions off; a function of that name is removed, as long as one of ``unset`` and ``command``
is itself. The mark goes through a descriptor of its own, which no command gets. A shell that is spoiled all the same
(``enable -n printf``, ``set -n``) runs into the time-out, and the next call gets a new one.
"""

import asyncio
import contextlib
import re
import resource
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from subprocess import STDOUT
from typing import TYPE_CHECKING, NamedTuple, Self

from ikigai_actors.tools.process import ChildProcess, ExitWaiter

if TYPE_CHECKING:
    from ikigai_actors.tools.fence.launch import FencedStart

OUTPUT_KEPT = 40_000
"""How many of the last bytes of a command's output are kept."""

_SHOWN = 2_000
"""How many of the last bytes of a command in progress are shown to people."""

_LAST_WORDS = 0.5
"""Seconds to wait for the output of a shell that has ended: a process that left its session may hold the pipe open."""

_MARKS = 219
"""The descriptor for the marks at the ends of commands: the same pipe as the output, even when that is redirected. A
lower one where a process may not have that many.
"""

_BUILTIN = r"\unset -f builtin {marks}>&- >/dev/null 2>&1; \command unset -f builtin {marks}>&- >/dev/null 2>&1; "
_LINE = (
    rf"{_BUILTIN}\builtin eval {{command}} </dev/null 2>&1 {{marks}}>&-; _ikigai=$?; "
    rf"{_BUILTIN}\builtin printf '\n%s:%d\n' {{nonce}} " + '"$_ikigai"' + " >&{marks}\n"
)
"""The line that runs a command."""


class CommandOutput(NamedTuple):
    """The result of a command."""

    output: str
    """Its output, or the end of it."""
    dropped: int
    """Bytes before it that were not kept."""
    code: int | None
    """Its exit code; None when it did not end in time."""


class Bash(ChildProcess):
    """A bash process. Start it with `start`; one command at a time."""

    def __init__(self, exits: ExitWaiter) -> None:
        """Use `start`."""
        super().__init__()
        self._exits = exits
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._marks = _MARKS if most == resource.RLIM_INFINITY else min(_MARKS, most - 1)
        self._output = bytearray()
        self._said: bytes | None = None
        self._dropped = 0
        self._end_of_command = re.compile(rb"(?!)")
        self._code: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        program: str,
        directory: Path,
        environment: Mapping[str, str],
        exits: ExitWaiter,
        fence: "FencedStart | None" = None,
    ) -> Self:
        """Start a shell.

        Args:
            program: the path of bash.
            directory: its first working directory.
            environment: all its variables.
            exits: ends the processes of the session.
            fence: starts it behind a fence.

        Raises:
            OSError: it cannot be started.
        """
        shell = cls(exits)
        script = f"exec {shlex.quote(program)} --noprofile --norc {shell._marks}>&1"
        return await shell.spawn(
            [program, "--noprofile", "--norc", "-c", script],
            environment=environment, directory=directory, stderr=STDOUT, guard=program, fence=fence,
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._ending is not None

    @property
    def printed(self) -> str:
        """The end of what the command in progress has printed so far. Thread-safe."""
        return bytes(self._output[-_SHOWN:]).decode(errors="replace")

    async def run(self, command: str, seconds: float) -> CommandOutput:
        """Run a command, whose standard input is empty.

        A command that does not end in time goes on: `stop` the shell then.

        Args:
            command: the command for bash.
            seconds: how long it may take.
        """
        self._said = None
        nonce = secrets.token_hex(16)
        self._end_of_command = re.compile(rb"\n%b:(\d+)\n" % nonce.encode())
        self._code = asyncio.get_running_loop().create_future()
        if not self.over:
            # No braces around it: after a syntax error in an eval, bash does not know the next `{` for what it is.
            line = _LINE.format(command=shlex.quote(command), nonce=nonce, marks=self._marks)
            assert self.stdin is not None
            self.stdin.write(line.encode(errors="replace"))
            await asyncio.wait({self._code}, timeout=seconds)
        said = self._output if self._said is None else self._said
        kept = said[-OUTPUT_KEPT:]
        dropped, self._dropped = self._dropped + len(said) - len(kept), 0
        return CommandOutput(kept.decode(errors="replace"), dropped, self._code.result() if self._code.done() else None)

    def stop(self) -> "asyncio.Task[None]":
        """End the shell and every process in it; the task is done when that has happened."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        return self._ending

    async def _end(self) -> None:
        gone = self._exits.wait_for(self.pid)
        while not gone.done():
            with contextlib.suppress(asyncio.CancelledError):  # the system closes; `ExitWaiter` makes haste then
                await asyncio.wait({gone})
        try:
            with contextlib.suppress(OSError):  # also that it takes too long
                await asyncio.wait_for(self.stdout.read(), _LAST_WORDS)  # only its end: the output is taken below
        finally:
            self._settle(None)
            await self.reap()

    def _settle(self, code: int | None) -> None:
        if not self._code.done():
            self._code.set_result(code)

    def received(self, data: bytes) -> None:
        """Take output, also between commands; keep the end of it."""
        searched = max(0, len(self._output) - 64)  # the line that ends a command may come in two pieces
        self._output += data
        if match := self._end_of_command.search(self._output, searched):
            self._settle(int(match[1]))
            self._said = bytes(self._output[: match.start()])
            del self._output[: match.end()]
        if (surplus := len(self._output) - OUTPUT_KEPT) > OUTPUT_KEPT:
            del self._output[:surplus]
            self._dropped += surplus

    def process_exited(self) -> None:
        """End the processes that the shell has left running."""
        super().process_exited()
        self.stop()
