"""The first moments of the program, in which it imports: Ctrl-C, and what is typed meanwhile.

    begin()                     first of all
    with interruptible(): …     Ctrl-C raises `KeyboardInterrupt` in the block, and then ends the program
    give_back()                 the terminal is as it was before the program

Ctrl-C ends the program at once, without a message and with status 130. What is typed is not shown, and stays in the
terminal's buffer, where line mode reads it as its first lines. The application reads it by `take_typed`, and puts it
into its prompt. This module imports nothing of the package, and nothing that takes long to import.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any

ENDED_BY_CTRL_C = 130
"""Exit status after Ctrl-C."""

_before: list[Any] | None = None  # the former settings of the terminal; None while they are not changed
_echoed = 0  # bytes of whole lines that were typed, and echoed, before the change
_typed = ""  # the text that was taken from the terminal


def begin() -> None:
    """Take the signals that end a program, and show no more what is typed. On the main thread."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    _hush()


class interruptible:  # noqa: N801 - used as a function is; contextlib would be slow to import
    """A block that takes long and undoes what it did when it is left by an exception."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGINT, self._raise)

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        signal.signal(signal.SIGINT, _end)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            _end(signal.SIGINT, None)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, _end)  # a second Ctrl-C ends the program at once
        raise KeyboardInterrupt


def hand_over() -> None:
    """End the start: from now on signals and the keyboard do what they do in any program."""
    give_back()
    for name, handler in (
        ("SIGINT", signal.default_int_handler),
        ("SIGTERM", signal.SIG_DFL),
        ("SIGHUP", signal.SIG_DFL),
    ):
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is _end:
            signal.signal(number, handler)


def give_back() -> None:
    """Give the terminal its former settings back. What was typed stays in its buffer, and the next reader gets it."""
    global _before
    before, _before = _before, None
    if before is not None:
        _set(before)


def terminal_before() -> list[Any] | None:
    """The settings that the terminal had before the program; None when they are not changed."""
    return _before


def take_typed() -> None:
    """Read what was typed so far, keep it for `typed`, and wipe from the screen the lines that the terminal echoed."""
    global _typed
    if _before is None:
        return
    import termios

    at_once = [*_before]
    at_once[3] &= ~(termios.ECHO | termios.ICANON)
    at_once[6] = [*at_once[6]]
    at_once[6][termios.VMIN] = at_once[6][termios.VTIME] = 0
    if not _set(at_once):
        return
    data = os.read(0, 65_536)
    _typed = data.decode("utf-8", "replace")
    columns = os.get_terminal_size(1).columns or 80
    rows = sum(1 + len(line) // columns for line in data[:_echoed].split(b"\n")[:-1])
    os.write(1, (f"\x1b[{rows}A" if rows else "").encode() + b"\r\x1b[J")


def typed() -> str:
    """Return what `take_typed` has read, as keys (`as_keys`). A second call returns an empty text."""
    global _typed
    taken, _typed = _typed, ""
    return as_keys(taken)


def as_keys(text: str) -> str:
    """Translate what a terminal gave as lines into keys: a line's end is Enter, a NUL is Ctrl-D on an empty line."""
    return text.replace("\n", "\r").replace("\0", "\x04")


def _hush() -> None:
    global _before, _echoed
    try:
        import fcntl
        import termios

        if not (os.isatty(0) and os.isatty(1) and os.tcgetpgrp(0) == os.getpgrp()):
            return  # the kernel stops a background program that changes the terminal
        before = termios.tcgetattr(0)
        quiet = [*before]
        quiet[3] &= ~(termios.ECHO | termios.ECHONL)
        if quiet[3] & termios.ICANON:
            _before = before
            _set(quiet)
            _echoed = int.from_bytes(fcntl.ioctl(0, termios.FIONREAD, bytes(4)), sys.byteorder)
    except (ImportError, OSError, termios.error):  # not on Windows; a terminal that is gone
        return


def _set(attributes: list[Any]) -> bool:
    """Set the terminal, if it is ours to set; nothing of what was typed is dropped."""
    import termios

    try:
        if os.tcgetpgrp(0) != os.getpgrp():
            return False
        termios.tcsetattr(0, termios.TCSANOW, attributes)
    except (OSError, termios.error):
        return False
    return True


def _end(number: int, frame: FrameType | None) -> None:
    """End the process at once. The terminal's settings are all that must be undone."""
    give_back()
    if number == signal.SIGINT:
        os._exit(ENDED_BY_CTRL_C)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
