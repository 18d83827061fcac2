"""One bash process, which runs commands, and returns their output and exit codes.

A command is passed to bash as one quoted word for ``eval``. So an unclosed quote is a syntax error at once, and the
shell does not wait for its end. A line with a random number marks the end of the output.

Two processes of bash do that. The *clean shell* reads what we write, and has never run a command itself. The shell of
the agent reads what the clean shell hands on to it: commands run there, and leave in it what they define. A command
*apart* runs in a subshell of the clean shell, so it finds nothing that earlier ones have defined. When either ends, so
does the other.

A command must not spoil the next one. So the commands of this module are quoted, against aliases, and called through
``builtin``, against functions. A function named ``builtin`` is removed, if ``unset`` or ``command`` was not replaced.
The mark is written to a separate descriptor, which no command gets. If a command spoils the shell in another way
(``enable -n printf``, ``set -n``), the time-out ends it, and the next call gets a new shell.
"""

import asyncio
import contextlib
import re
import resource
import secrets
import shlex
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from subprocess import STDOUT
from typing import TYPE_CHECKING, NamedTuple, Self

from ikigai_actors.tools.process import ChildProcess, ExitWaiter

if TYPE_CHECKING:
    from ikigai_actors.tools.fence.launch import FencedStart

OUTPUT_KEPT = 40_000
"""The number of bytes at the end of a command's output that are kept."""

_SHOWN = 2_000
"""The number of last bytes of output that people are shown of a command in progress."""

_LAST_WORDS = 0.5
"""Seconds to wait for the output of a shell that has ended: a process that left its session may hold the pipe open."""

_MARKS = 219
"""The descriptor for the marks at the ends of commands: the same pipe as the output, even when that is redirected. A
lower one where a process may not have that many.
"""

_BEGIN = (
    "exec 3<&0 {marks}>&1; exec < <(exec {bash} <&3 3<&- {kept}>&1 >/dev/null 2>&1 {marks}>&{marks}); exec {bash} 3<&-"
)
"""The script that becomes the shell of the agent; the clean shell writes its input."""

_HAND_ON = (
    "if ((BASH_VERSINFO > 3)); then IFS= LC_ALL=C read -r -N {length} _ikigai; "  # in pieces, not byte by byte
    "else IFS= LC_ALL=C read -r -d '' -n {length} _ikigai; fi; printf %s \"$_ikigai\" >&{kept}\n"
)
"""The line by which the clean shell passes the next ``length`` bytes on to the shell of the agent."""

_APART = (
    '[ "$_top" ] || {{ cd -P . && _top=$PWD; }}; cd -P -- "$_top"; _ikigai={elsewhere}; '
    'if ! [ "$_top" ]; then _ikigai={gone}; '
    'elif cd -P -- "/proc/$PPID/cwd" || ! [ -d /proc/self ]; then case $PWD in "/proc/$PPID/"*) _ikigai={gone};; '
    '"$_top") _ikigai={top};; "${{_top%/}}"/*) _ikigai={beneath};; esac; else _ikigai={gone}; fi; '
    "case $_ikigai in {where}) ( unset -v OLDPWD; eval {command} ) </dev/null >&{marks} 2>&1 {kept}>&- {marks}>&-; "
    "_ikigai=$?;; *) printf '\\0%s' \"$PWD\" >&{marks};; esac; printf '\\n%s:%d\\n' {nonce} \"$_ikigai\" >&{marks}\n"
)
"""The line by which the clean shell runs a command in the current directory of the agent's shell.

Where nothing shows where that is, as on macOS, it runs in the directory where the shell began.
"""

_BUILTIN = r"\unset -f builtin {marks}>&- >/dev/null 2>&1; \command unset -f builtin {marks}>&- >/dev/null 2>&1; "
_LINE = (
    rf"{_BUILTIN}\builtin eval {{command}} </dev/null 2>&1 {{marks}}>&-; _ikigai=$?; "
    rf"{_BUILTIN}\builtin printf '\n%s:%d\n' {{nonce}} " + '"$_ikigai"' + " >&{marks}\n"
)
"""The line by which the shell of the agent runs a command, and prints its mark."""


class PlaceOfShell(IntEnum):
    """Where the current directory of the agent's shell is. The numbers are larger than any exit code."""

    TOP = 256
    """The shell is in the directory where it started."""
    BENEATH = 257
    """The shell is in a subdirectory of the directory where it started."""
    ELSEWHERE = 258
    GONE = 259
    """The shell is in a directory that was removed, or that it may not enter any more."""


class CommandOutput(NamedTuple):
    """The outcome of a command: its output and exit code, or the fact that it was not started."""

    output: str
    """The output, or the end of it."""
    dropped: int
    """The number of bytes of earlier output that were dropped."""
    code: int | None
    """The exit code; None when the command did not end in time, or was not started."""
    place: PlaceOfShell | None = None
    """The place of the agent's shell, if the command was not started because of it; ``output`` is then its directory.
    Else None.
    """


class Bash(ChildProcess):
    """A bash process. Start it with `start`. It runs one command at a time."""

    def __init__(self, exits: ExitWaiter) -> None:
        super().__init__()
        self.used = False
        """Whether the shell of the agent has run a command, and may hold what that has defined."""
        self.told_apart = False
        """Whether a result has said what does not hold for commands apart."""
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
            directory: the first working directory.
            environment: all environment variables of the shell.
            exits: ends the processes of the session.
            fence: starts the shell in a fence; None for no fence.

        Raises:
            OSError: the shell cannot be started.
        """
        shell = cls(exits)
        own = f"{shlex.quote(program)} --noprofile --norc"
        script = _BEGIN.format(bash=own, marks=shell._marks, kept=shell._marks - 1)
        return await shell.spawn(
            [program, "--noprofile", "--norc", "-c", script],
            environment=environment, directory=directory, stderr=STDOUT, guard=program, fence=fence,
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether the shell has ended, or is about to end."""
        return self._ending is not None

    @property
    def printed(self) -> str:
        """The latest output of the command in progress. Thread-safe."""
        return bytes(self._output[-_SHOWN:]).decode(errors="replace")

    async def run(self, command: str, seconds: float) -> CommandOutput:
        """Run a command, with empty standard input.

        A command that does not end in time runs on: call `stop` in that case.

        Args:
            command: the command for bash.
            seconds: the seconds that the command may take.
        """
        self.used = True
        fields = {"nonce": self._expect_mark(), "marks": self._marks, "kept": self._marks - 1}
        # No braces around it: after a syntax error in an eval, bash does not know the next `{` for what it is.
        line = _LINE.format(command=shlex.quote(command), **fields).encode(errors="replace")
        return await self._hear(_HAND_ON.format(length=len(line), **fields).encode() + line, seconds)

    async def run_apart(self, command: str, seconds: float, where: Iterable[PlaceOfShell]) -> CommandOutput:
        """Run a command as `run` does, but without the definitions of earlier commands, and without leaving any.

        Args:
            command: the command for bash.
            seconds: the seconds that the command may take.
            where: the places in which the agent's shell may be; elsewhere the command is not started.
        """
        line = _APART.format(
            command=shlex.quote(command), where="|".join(f"{flag:d}" for flag in where),
            nonce=self._expect_mark(), marks=self._marks, kept=self._marks - 1,
            **{place.name.lower(): f"{place:d}" for place in PlaceOfShell},
        )  # fmt: skip
        return await self._hear(line.encode(errors="replace"), seconds)

    def _expect_mark(self) -> str:
        """Begin to look for the mark at the end of a command; return the random text with which the mark begins."""
        nonce = secrets.token_hex(16)
        self._said = None
        self._end_of_command = re.compile(rb"\n%b:(\d+)\n" % nonce.encode())
        self._code = asyncio.get_running_loop().create_future()
        return nonce

    async def _hear(self, line: bytes, seconds: float) -> CommandOutput:
        """Write a line to the shell, wait for the mark at the end of its output, and return the command's output."""
        if not self.over:
            assert self.stdin is not None
            self.stdin.write(line)
            await asyncio.wait({self._code}, timeout=seconds)
        code = self._code.result() if self._code.done() else None
        said = self._output if self._said is None else self._said
        if code is not None and code >= PlaceOfShell.TOP:
            jobs, _, directory = said.rpartition(b"\0")
            self._output[:0] = jobs  # for the next result
            return CommandOutput(directory.decode(errors="replace"), 0, None, PlaceOfShell(code))
        kept = said[-OUTPUT_KEPT:]
        dropped, self._dropped = self._dropped + len(said) - len(kept), 0
        return CommandOutput(kept.decode(errors="replace"), dropped, code)

    def stop(self) -> "asyncio.Task[None]":
        """End the shell and every process in it. The returned task is done when all have ended."""
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
        """Handle output, also between commands, and keep the end of it."""
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
