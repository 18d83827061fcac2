"""A line that tells a person what is waited for, when that takes long. It goes when it is over.

    with progress_line("Opening team.db"):
        system = ActorSystem.open("team.db")

Only on a terminal; and only after a while, so that nothing flickers.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator

_PATIENCE = 0.4
"""Seconds that may pass in silence."""


@contextlib.contextmanager
def progress_line(what: str) -> Iterator[None]:
    """Show on standard error what the block does, if it lasts and somebody is there to read it."""
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


def _show(what: str, over: threading.Event) -> None:
    if over.wait(_PATIENCE):
        return
    from rich.console import Console  # slow to import, and mostly not needed
    from rich.markup import escape

    with Console(stderr=True).status(f"{escape(what)} …"):
        over.wait()
