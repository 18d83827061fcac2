"""Ends a process, which is useless without its parent, when the parent ends."""

import os
import threading

_INTERVAL = 1.0
"""Seconds between two checks whether the parent lives, because not every system reports its death."""


def end_with_parent() -> None:
    """End this process at once when its parent ends. Nothing is closed, so the process must own nothing."""
    threading.Thread(target=_watch, args=(os.getppid(),), name="ikigai-orphan", daemon=True).start()


def _watch(parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_INTERVAL)
    os._exit(1)
