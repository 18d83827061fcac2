"""A shell session whose lines a test writes, into a pipe or as a person would."""

import io
import signal
from collections.abc import Callable

import pytest

from ikigai_actors.providers.base import Provider
from ikigai_actors.shell.line.input import Keyboard, Pipe
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.repl import LineMode
from ikigai_actors.shell.line.session import Shell
from ikigai_actors.system.handles.ref import System

Line = str | bytes | Callable[[], object]
"""A line, or something that happens when the shell asks for the next one."""


class Lines(io.BytesIO):
    """A stream of lines that are made when they are read."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        super().__init__()
        self._lines = iter(lines)

    def readline(self, size: int | None = -1) -> bytes:
        for line in self._lines:
            if isinstance(line, str | bytes):
                return (line.encode() if isinstance(line, str) else line) + b"\n"
            line()
        return b""


class Typist(Pipe):
    """A person at a keyboard, who types nothing while an answer arrives."""

    interactive = True

    def __init__(self, *lines: Line) -> None:
        super().__init__(Lines(lines))
        self._half = ""

    def ctrl_c(self, half: str = "") -> None:
        """Press Ctrl-C, after half a line."""
        self._half = half
        signal.raise_signal(signal.SIGINT)

    def unfinished(self) -> str:
        """See `Keyboard.unfinished`."""
        return self._half


class Session:
    """Runs lines through a shell and gives what it printed."""

    def __init__(
        self, system: System, capsys: pytest.CaptureFixture[str], columns: Callable[[], int] | None = None
    ) -> None:
        """Prepare; ``columns`` gives the width of a terminal, None where there is none."""
        self.system = system
        self._columns = columns
        self.notices = ""
        self.status: int | None = None
        """How the last one ended."""
        self._capsys = capsys

    def __call__(self, *lines: Line) -> list[str]:
        return self.by(Pipe(Lines(lines)))

    def by(self, keyboard: Keyboard) -> list[str]:
        """The same for the lines of a keyboard."""
        self._capsys.readouterr()
        interrupts = Interrupts().install()
        try:
            self.status = LineMode(Shell(self.system, keyboard, Screen(self._columns), interrupts)).run()
        finally:
            interrupts.remove()
        printed = self._capsys.readouterr()
        self.notices = printed.err
        return printed.out.splitlines()


OpenSession = Callable[[Provider], Session]
