"""The real program on a terminal of its own, whose screen a test reads: a pty, and an emulator that draws it."""

import os
import pty
import re
import select
import signal
import termios
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pyte

from tests.kit.program import COMMAND, PATIENCE, environment
from tests.kit.zygote import popen

# What the emulator would print instead of leaving it out: modes with an intermediate byte, or a prefix like > or =.
_UNKNOWN = re.compile(rb"\x1b\[[?>=<]?[0-9;]*\$[a-z]|\x1b\[[>=<][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*u|\x1bP[^\x1b]*\x1b\\")

_SCREENS = re.compile(rb"(\x1b\[\?1049[hl])")

LEAVES_CLEAN = ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l", "\x1b[?2004l")
"""What a program that gives the terminal back must have sent: main screen, cursor, no mouse, no bracketed paste."""

UP, DOWN, RIGHT, LEFT = ("\x1b[1;5A", "\x1b[1;5B", "\x1b[1;5C", "\x1b[1;5D")
"""The arrow keys with Ctrl."""


class FullScreen:
    """A running program, and its screen. Killed at the end of the block, if it still runs."""

    def __init__(
        self,
        *arguments: str,
        size: tuple[int, int] = (80, 24),
        command: Sequence[str] = (),
        controlling: bool = True,
        fresh: bool = False,
        **variables: str,
    ) -> None:
        """Start it, or another command; ``variables`` are added to its environment. What the terminal does not control
        gets no signal from it. A fresh one imports all anew, and is a child of this process.
        """
        self._ours, theirs = pty.openpty()
        self.before = termios.tcgetattr(theirs)
        """How the terminal was set."""
        columns, lines = size
        termios.tcsetwinsize(theirs, (lines, columns))
        self._normal = self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._terminal = theirs
        self.sent = b""
        """All that the program has sent."""
        self.process = popen(
            command or [*COMMAND, *arguments],
            terminal=controlling,
            fresh=fresh,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment(), "TERM": "xterm-256color", **variables},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._terminal)
        os.close(self._ours)

    @property
    def lines(self) -> list[str]:
        """The screen."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def type(self, text: str) -> None:
        """Press these keys."""
        data = text.encode()
        while data:
            written = os.write(self._ours, data[:1024])
            data = data[written:]
            self._read(0.0)

    def say(self, line: str) -> None:
        """Type a line and press Enter."""
        self.type(f"{line}\r")

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        termios.tcsetwinsize(self._terminal, (lines, columns))
        self._screen.resize(lines, columns)
        self.process.send_signal(signal.SIGWINCH)

    def expect(self, pattern: str) -> "re.Match[str]":
        """Wait until the screen shows this."""
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self.text)) is None:
            assert self._read(deadline - time.monotonic()), f"Not shown: {pattern!r}\n{self.text}"
        return match

    def expect_gone(self, pattern: str) -> None:
        """Wait until the screen shows this no more."""
        deadline = time.monotonic() + PATIENCE
        while re.search(pattern, self.text) is not None:
            assert self._read(deadline - time.monotonic()), f"Still shown: {pattern!r}\n{self.text}"

    def expect_sent(self, text: str, times: int) -> None:
        """Wait until the program has sent this so often."""
        deadline = time.monotonic() + PATIENCE
        while self.sent.count(text.encode()) < times:
            assert self._read(deadline - time.monotonic()), f"Not sent {times} times: {text!r}\n{self.text}"

    def ends(self) -> int:
        """Read to the end; return the exit status."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            self._read(0.05)
            assert time.monotonic() < deadline, f"It does not end:\n{self.text}"
        while self._read(0.05):
            pass
        return self.process.returncode

    def hang_up(self) -> int:
        """Close the window; return the exit status."""
        ours, self._ours = self._ours, os.open(os.devnull, os.O_RDONLY)
        os.close(ours)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """``kill -9``."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def is_clean(self) -> bool:
        """Whether the terminal is as it was before the program; call it when that has ended."""
        sent = self.sent.decode(errors="replace")
        return termios.tcgetattr(self._terminal) == self.before and all(text in sent for text in LEAVES_CLEAN)

    def _read(self, seconds: float) -> bool:
        """Draw what the program has sent; False when nothing comes in time."""
        if not select.select([self._ours], [], [], max(0.0, seconds))[0]:
            return False
        data = os.read(self._ours, 65536)
        self.sent += data
        for part in _SCREENS.split(_UNKNOWN.sub(b"", data)):
            self._draw(part)
        return True

    def _draw(self, data: bytes) -> None:
        """Draw, on a screen that is empty each time it is taken, or on the normal one."""
        if data == b"\x1b[?1049h":
            self._screen = pyte.Screen(self._screen.columns, self._screen.lines)
        elif data == b"\x1b[?1049l":
            self._screen = self._normal
        else:
            self._stream.feed(data)
            return
        self._stream = pyte.ByteStream(self._screen)
