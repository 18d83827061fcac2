"""The progress of a command: a line that names the present work, or a bar if the work can be counted.

    with progress_line("Opening team.db"):
        system = ActorSystem.open("team.db")
    with progress_bar("messages") as advance:
        advance(300, 1_000)

The line and the bar are shown only at a terminal, on standard error, and disappear when the work is over. The line
comes after a while, so that nothing flickers.
"""

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator

from ikigai_actors.shell import start
from ikigai_actors.shell.cli import program_log
from ikigai_actors.shell.first_picture import working

_PATIENCE = 0.4
"""Seconds of waiting before a line is shown."""


@contextlib.contextmanager
def progress_line(what: str) -> Iterator[None]:
    """Show ``what`` on standard error if the block takes long and standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(what, over), name="ikigai-waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], object]]:
    """Show a progress bar; the block gets a function that takes the number of finished items and of all items.

    Without a terminal that can draw it, nothing is shown.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda done, total: None
        return
    from rich.console import Console  # slow to import

    from ikigai_actors.shell.cli.bars import bar_on

    with bar_on(Console(stderr=True), what) as advance:
        yield advance


def show_notice(text: str) -> None:
    """Print a notice on standard error, above a progress bar if one is shown."""
    program_log.announce(text)


def _show(what: str, over: threading.Event) -> None:
    if over.wait(_PATIENCE):
        return
    if start.draw_over(working(shutil.get_terminal_size().lines, what)):
        return
    from rich.console import Console  # slow to import, and mostly not needed
    from rich.markup import escape

    with Console(stderr=True).status(f"{escape(what)} …"):
        over.wait()
