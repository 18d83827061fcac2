"""Measuring: time, memory, the bytes that this process writes, and all that in a process that is new."""

import gc
import resource
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that the work took, and what it returned.

    Garbage of earlier work is collected first, and what is left of it is not looked at by the collector meanwhile.
    """
    gc.collect()
    gc.freeze()
    try:
        started = time.perf_counter()
        result = work()
        return time.perf_counter() - started, result
    finally:
        gc.unfreeze()


def each_time(work: Callable[[], object], repetitions: int) -> list[float]:
    """The times of many short runs; nothing happens between them."""
    gc.collect()
    taken = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return taken


def kept_bytes(work: Callable[[], object], repetitions: int) -> float:
    """Bytes of Python memory that each run of the work leaves in use."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(repetitions):
            work()
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / repetitions
    finally:
        tracemalloc.stop()


def grown(make: Callable[[], Any]) -> int:
    """Resident bytes by which the process grew for what was made."""
    gc.collect()
    before = process_memory()
    made = make()
    gc.collect()
    size = process_memory() - before
    del made
    return size


def in_new_process(work: Callable[..., T], *arguments: Any) -> T:
    """What the work returns, done in a process that has done nothing before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def process_memory() -> int:
    """Bytes of this process that are in memory now (where the system does not tell: at most so far)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


def written_by_process() -> int | None:
    """Bytes that this process has handed to write() so far; None where the system does not tell."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return None
    return int(text.partition("wchar:")[2].split()[0])
