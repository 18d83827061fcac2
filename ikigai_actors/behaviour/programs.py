"""Runs of programs that judge a text, up to the end of the program, whatever child processes it leaves."""

import subprocess
from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import NamedTuple


class Ran(NamedTuple):
    """The result of a program that has ended: its exit code and its output."""

    status: int
    """The exit code, less than 0 for a signal."""
    printed: str
    complained: str
    """The text on standard error; empty if it was shown directly."""


def run_program(command: Sequence[str], text: str, timeout: float | None, *, shows_errors: bool = False) -> Ran:
    """Run a program with a text as its standard input; return its exit code and output.

    The program writes to files, because a pipe ends only when all processes that the program has started have ended.

    Args:
        command: the program and its arguments.
        timeout: seconds after which it is killed; None for no end.
        shows_errors: whether its standard error is that of this process.

    Raises:
        subprocess.TimeoutExpired: it was killed.
        OSError: it cannot be run.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        done = subprocess.run(
            list(command),
            input=text.encode(),
            stdout=output,
            stderr=None if shows_errors else errors,
            timeout=timeout,
            check=False,
        )
        for file in (output, errors):
            file.seek(0)
        return Ran(done.returncode, output.read().decode(errors="replace"), errors.read().decode(errors="replace"))
