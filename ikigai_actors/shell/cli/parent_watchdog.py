"""A process that is of no use without the one that started it, and ends with it."""

import os
import threading

_INTERVAL = 1.0
"""Seconds between two looks at who the parent is: nothing reports its death everywhere."""


def end_with_parent() -> None:
    """From now on this process ends at once when its parent is no more: nothing is closed, so it must own nothing."""
    threading.Thread(target=_watch, args=(os.getppid(),), name="ikigai-orphan", daemon=True).start()


def _watch(parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_INTERVAL)
    os._exit(1)
