"""The watchdog of an event loop, where it meets the interpreter."""

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from ikigai_actors.actors.clock import SYSTEM_CLOCK
from ikigai_actors.actors.loop_watchdog import LoopWatchdog


@pytest.fixture
def eager_collections() -> Iterator[list[str]]:
    """The functions in which a collection has begun, while nearly each allocation begins one."""
    began: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began.append(sys._getframe(1).f_code.co_name)

    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    yield began
    gc.set_threshold(*before)
    gc.callbacks.remove(note)


def test_no_collection_begins_while_the_interpreter_lists_what_its_threads_do(eager_collections: list[str]) -> None:
    loop, over = asyncio.new_event_loop(), threading.Event()
    watchdog = LoopWatchdog(loop, threading.current_thread(), SYSTEM_CLOCK)
    threads = [threading.Thread(target=over.wait) for _ in range(9)]
    for thread in threads:
        thread.start()
    watchdog.holder()
    over.set()
    for thread in threads:
        thread.join()
    loop.close()
    assert eager_collections
    assert "_stack" not in eager_collections
    assert gc.isenabled()
