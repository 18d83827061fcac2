"""A warning that a server answers slowly: opening a database takes many round trips."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ikigai_actors.store.location import locate

SLOW_OPENING = 5.0
"""Seconds after which a warning is logged that opening a database takes long."""


@contextmanager
def says_if_slow(database: str | os.PathLike[str] | None, after: float = SLOW_OPENING) -> Iterator[None]:
    """Log a warning when the block, which opens a database on a server, is not over after this many seconds."""
    place = locate(database)
    if place.url is None:
        yield
        return
    timer = threading.Timer(after, _say, (place.shown, after))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(shown: str, after: float) -> None:
    import logging  # 10 ms, for what hardly happens

    logging.getLogger(__name__).warning(
        "Database %s is being opened for %g s now: its server answers slowly, or another host is waited for.",
        shown,
        after,
    )
