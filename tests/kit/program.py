"""The real program for tests: started as a process, by pipes or at a terminal, read with a deadline."""

import codecs
import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.kit.zygote import PYTHON, popen

PATIENCE = 60.0
"""Seconds after which a test gives up; nothing takes that long."""

ENDLESS = '@wait {"timeout": 600}'
"""A prompt to the offline provider that opens a turn which a test need not hurry to interrupt."""

AGAIN = 3.0
"""Seconds after which a key that was not heeded is pressed again: a busy machine needs some for what it does heed."""

COMMAND = [*PYTHON, "-m", "ikigai_actors"]

UNWANTED = ("ANTHROPIC_API_KEY", "COLUMNS", "LINES", "NO_COLOR", "PYTHONUNBUFFERED")
"""Variables that would decide for the program; a size that is given as one hides every later size of the terminal."""


def environment() -> dict[str, str]:
    """The environment of this test, without a key and with a terminal that knows no tricks."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "TERM": "dumb", "PYTHONUTF8": "1"}


def unmeasured() -> dict[str, str]:
    """That environment, for a program at which coverage does not look: it imports much, and writes files."""
    return {name: value for name, value in environment().items() if name != "COVERAGE_PROCESS_CONFIG"}


def run(*arguments: str, lines: str | bytes = b"", patience: float = PATIENCE) -> "subprocess.CompletedProcess[str]":
    """Run the program to its end, with these bytes as its standard input."""
    return completed([*COMMAND, *arguments], lines=lines, patience=patience)


def completed(
    command: Sequence[str], *, lines: str | bytes = b"", patience: float = PATIENCE, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, with these bytes as its standard input.

    Args:
        command: forked where that is possible (see `tests.kit.zygote`).
        lines: what it reads.
        patience: seconds that it may take.
        options: those of `subprocess.Popen`, if they are others than pipes and the environment of this test.
    """
    stdin = lines.encode() if isinstance(lines, str) else lines
    pipe = subprocess.PIPE
    with popen(command, **{"stdin": pipe, "stdout": pipe, "stderr": pipe, "env": environment(), **options}) as process:
        try:
            said, complained = process.communicate(stdin, timeout=patience)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(
        process.args, process.returncode, (said or b"").decode(), (complained or b"").decode()
    )


class Program:
    """A running program that is talked to. It is told to end at the end of the block; after an error it is killed."""

    def __init__(self, process: "subprocess.Popen[Any]", reading: int, writing: int) -> None:
        self.process = process
        self._reading, self._writing = reading, writing
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self.said = ""
        """All that it has printed so far."""

    @classmethod
    def by_pipe(cls, *arguments: str, notices: bool = False) -> Self:
        """Start it with pipes; notices (standard error) are dropped, or read as well."""
        process = popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if notices else subprocess.DEVNULL,
            env=environment(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        return cls(process, os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()))

    @classmethod
    def at_terminal(cls, *arguments: str, command: Sequence[str] = COMMAND, directory: Path | None = None) -> Self:
        """Start it, or another command, at a terminal of its own, 200 columns wide; in a directory."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, 200))
        process = popen(
            [*command, *arguments], terminal=True,
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment(), cwd=directory,
        )  # fmt: skip
        os.close(theirs)
        return cls(process, ours, os.dup(ours))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.end()
        finally:
            self.process.kill()
            self.process.wait(PATIENCE)
            self.close_output()
            self.end_input()

    def send(self, text: str) -> None:
        """Type this."""
        os.write(self._writing, text.encode())

    def say(self, line: str) -> None:
        """Type a line."""
        self.send(f"{line}\n")

    def end_input(self) -> None:
        """Close its standard input (a pipe)."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1
        if self.process.stdin is not None:
            self.process.stdin.close()

    def close_output(self) -> None:
        """Read no more: the reader of its output goes away."""
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1
        if self.process.stdout is not None:
            self.process.stdout.close()

    def expect(self, pattern: str) -> "re.Match[str]":
        """Read until the pattern is found in what was not expected yet; what lies before it is passed over."""
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self._text)) is None:
            assert self._read(deadline), f"The program ended without {pattern!r}:\n{self.said}"
        self._text = self._text[match.end() :]
        return match

    def ends(self, by: signal.Signals | None = None) -> int:
        """Read to the end; return the exit status. By a signal: that is sent once, first."""
        if by is not None:
            self.process.send_signal(by)
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def interrupt(self, pattern: str) -> None:
        """Press Ctrl-C until the pattern comes.

        More than once, since readline misses a signal that comes between its prompt and its waiting; but not while a
        busy machine may still be at it, for the next one asks whether to leave.
        """
        while True:
            self.send("\x03")
            deadline = time.monotonic() + AGAIN
            while re.search(pattern, self._text) is None and self._ready(deadline):
                assert self._read(deadline), f"The program ended without {pattern!r}:\n{self.said}"
            if re.search(pattern, self._text) is not None:
                self.expect(pattern)
                return

    def interrupt_until_it_ends(self) -> int:
        """Press Ctrl-C, and again when that is answered, or after a while (see `interrupt`), until it ends; return the
        exit status.
        """
        running = True
        while running:
            self._text = ""
            with contextlib.suppress(OSError):  # nobody is there any more
                self.send("\x03")
            deadline = time.monotonic() + AGAIN
            while running and re.search(r"(?s)(\[interrupted\]|again leaves).*> $", self._text) is None:
                if not self._ready(deadline):
                    break
                running = self._read(deadline)
        return self.process.wait(PATIENCE)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end by a signal, and again after a while (see `interrupt`); return the exit status."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"It does not end:\n{self.said}"
            self.process.send_signal(number)
            again = time.monotonic() + AGAIN
            while self._ready(again) and self._read(again):
                pass
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(max(0.0, again - time.monotonic()))
        return self.process.returncode

    def kill(self) -> None:
        """``kill -9``."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def _ready(self, deadline: float) -> bool:
        """Wait until there is something to read; False when there is not in time."""
        return bool(select.select([self._reading], [], [], max(0.0, deadline - time.monotonic()))[0])

    def _read(self, deadline: float) -> bool:
        """Read what is there, waiting for it; False at the end."""
        assert self._ready(deadline), f"Nothing came in time after:\n{self.said}"
        data = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
            data = os.read(self._reading, 65536)
        text = self._decoder.decode(data).replace("\r", "")
        self.said += text
        self._text += text
        return bool(data)
