"""The first moments of the program, while it imports modules: the handling of Ctrl-C, and of typed text.

    begin()                     first of all
    with interruptible(): …     Ctrl-C raises `KeyboardInterrupt` in the block, and then ends the program
    cover(picture)              the screen is the program's, and shows its first picture
    give_back()                 the terminal is as it was before the program

Ctrl-C ends the program at once, without a message and with status 130. Typed text is not shown, and stays in the
terminal's buffer, where line mode reads it as its first lines. The application gets the text by `typed`, and puts it
into its prompt. This module imports nothing of the package, and nothing that takes long to import.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any

ENDED_BY_CTRL_C = 130
"""The exit status after Ctrl-C."""

_before: list[Any] | None = None  # the former settings of the terminal; None while they are not changed
_echoed = 0  # bytes of whole lines that were typed, and echoed, before the change
_typed = b""  # what was taken from the terminal
_covered = False  # whether the screen shows the first picture

TAKE_SCREEN, LEAVE_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
"""The sequences that make a terminal show a screen of its own, and the former one again."""


def begin() -> None:
    """Handle the signals that end a program, and stop showing typed text. Call it on the main thread."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    _hush()


class interruptible:  # noqa: N801 - used as a function is; contextlib would be slow to import
    """A block of slow work in which Ctrl-C raises `KeyboardInterrupt`, and then ends the program."""

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
    """Restore the usual signal handlers and the terminal's settings, at the end of the start."""
    give_back()
    for name, handler in (
        ("SIGINT", signal.default_int_handler),
        ("SIGTERM", signal.SIG_DFL),
        ("SIGHUP", signal.SIG_DFL),
    ):
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is _end:
            signal.signal(number, handler)


def give_back() -> None:
    """Restore the terminal's former settings and screen. Typed text that was not taken stays in the terminal."""
    global _before
    before, _before = _before, None
    leave_screen()
    if before is not None:
        _set(before)


def terminal_before() -> list[Any] | None:
    """Return the terminal's settings before the program began; None if they are unchanged."""
    return _before


def cover(picture: str) -> None:
    """Switch to the terminal's other screen, and draw the first picture; does nothing if we do not own the terminal."""
    global _covered
    take_typed()
    if _before is not None:
        _covered = True
        _draw(TAKE_SCREEN + picture)


def draw_over(picture: str) -> bool:
    """Draw a picture over the first picture of the shell; return False if that picture is not on the screen."""
    if _covered:
        _draw(picture)
    return _covered


def screen_is_covered() -> bool:
    """Return whether the screen shows the first picture. From then on the caller must restore the screen."""
    global _covered
    covered, _covered = _covered, False
    return covered


def leave_screen() -> None:
    """Restore the former screen if the first picture is shown. The keyboard's settings stay."""
    if screen_is_covered():
        _draw(LEAVE_SCREEN)


def take_typed() -> None:
    """Read the text typed so far, store it for `typed`, and wipe the lines that the terminal echoed from the screen.

    From then on the terminal delivers keys instead of lines.
    """
    global _typed, _echoed
    if _before is None:
        return
    import termios

    at_once = [*_before]
    at_once[3] &= ~(termios.ECHO | termios.ICANON)
    at_once[6] = [*at_once[6]]
    at_once[6][termios.VMIN] = at_once[6][termios.VTIME] = 0
    at_once[6][termios.VSUSP] = bytes([os.fpathconf(0, "PC_VDISABLE") & 0xFF])  # a stop would leave the screen taken
    if not _set(at_once):
        return
    data, echoed, _echoed = os.read(0, 65_536), _echoed, 0
    _typed += data
    if not _covered:
        columns = os.get_terminal_size(1).columns or 80
        rows = sum(1 + len(line) // columns for line in data[:echoed].split(b"\n")[:-1])
        os.write(1, (f"\x1b[{rows}A" if rows else "").encode() + b"\r\x1b[J")


def typed() -> bytes:
    """Return the bytes that `take_typed` has read, unchanged. Call `forget_typed` once they are used."""
    return _typed


def forget_typed() -> None:
    """Drop the bytes that `take_typed` has read."""
    global _typed
    _typed = b""


def as_keys(text: str) -> str:
    """Convert lines from a terminal to keys: a line's end becomes Enter, and a NUL becomes Ctrl-D."""
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
    """Change the terminal's settings if this process owns it; return whether it does. Typed text is not lost."""
    import termios

    try:
        if os.tcgetpgrp(0) != os.getpgrp():
            return False
        termios.tcsetattr(0, termios.TCSANOW, attributes)
    except (OSError, termios.error):
        return False
    return True


def _draw(text: str) -> None:
    try:
        os.write(2, text.encode())
    except OSError:  # the terminal is gone
        return


def _end(number: int, frame: FrameType | None) -> None:
    """End the process at once, after restoring the terminal's settings."""
    give_back()
    if number == signal.SIGINT:
        os._exit(ENDED_BY_CTRL_C)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
