"""The terminal at which the application runs, and which may vanish."""

import os
import sys

HUNG_UP = 129
"""Exit status when the terminal is gone: that of SIGHUP."""


def terminal() -> int | None:
    """The descriptor of the terminal that the keyboard is read from; None when there is none."""
    descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    return descriptor if os.isatty(descriptor) else None


def is_gone(terminal: int) -> bool:
    """Whether the other end of a terminal is closed.

    Writing to it fails then and ends Textual's writer, for which the application would wait.
    """
    try:
        os.get_terminal_size(terminal)
    except OSError:
        return True
    return False
