"""Patience with a store that is disturbed."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ikigai_actors.errors import StoreUnavailable

T = TypeVar("T")


def retry(act: Callable[[], T], seconds: float) -> T:
    """Do something for which the store must answer, as soon as it does; after so many seconds it fails."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while True:
        try:
            return act()
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            pause.wait(0.1)
