"""The terminal at which the application runs, and which may vanish."""

import os
import sys

HUNG_UP = 129
"""The exit status after the terminal was closed, as that of SIGHUP."""


def terminal() -> int | None:
    """Return the file descriptor of the terminal from which the keyboard is read; None if there is none."""
    descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    return descriptor if os.isatty(descriptor) else None


def is_gone(terminal: int) -> bool:
    """Return whether the other end of a terminal is closed.

    Writing to it fails then and ends Textual's writer, for which the application would wait.
    """
    try:
        os.get_terminal_size(terminal)
    except OSError:
        return True
    return False
