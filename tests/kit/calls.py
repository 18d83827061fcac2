"""How many functions of the product something calls, on all threads: what a processor pays, free of noise.

    with Calls() as calls, ActorSystem.open(url, provider=provider) as system:
        counted = calls.of(lambda: system.root.prompt("And now?").get(), 20)

List, set and dict comprehensions are functions in some versions of Python only, so they do not count. A change of file
is a call of a function in another file than that of the call before, on the same thread.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple, Self

import ikigai_actors

THREADS = ("MainThread", "ikigai-worker", "ikigai-journal")
"""The threads that count: what others do depends on the time that passes."""

PACKAGE = str(Path(ikigai_actors.__file__).parent) + "/"
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>"}


class Counted(NamedTuple):
    """What one run called, as the mean of some."""

    calls: float
    changes: float
    files: int
    """Files that were called at all."""
    between: Counter[tuple[str, str]]
    """Changes of all runs, by the two files, in the order of the alphabet."""
    functions: Counter[CodeType]
    """Calls of all runs."""


class Calls:
    """Sees each call of the threads that start while it is open."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, CodeType]] | None = None
        self._counts: dict[int, bool] = {}  # by thread

    def __enter__(self) -> Self:
        threading.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        threading.setprofile(None)

    def of(self, work: Callable[[], object], runs: int) -> Counted:
        """What the work calls on all threads, once it was done before."""
        seen: list[tuple[int, CodeType]] = []
        for _ in range(runs):
            self._seen = seen
            sys.setprofile(self._profile)
            try:
                work()
            finally:
                sys.setprofile(None)
        self._seen = None
        return _counted(seen, runs)

    def end(self) -> None:
        """Count no more until the next run begins."""
        self._seen = None

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (seen := self._seen) is not None:
            thread = threading.get_ident()
            if (counts := self._counts.get(thread)) is None:
                counts = self._counts[thread] = threading.current_thread().name in THREADS
            if counts:
                seen.append((thread, frame.f_code))


def _counted(seen: list[tuple[int, CodeType]], runs: int) -> Counted:
    product = {code for _, code in seen if code.co_filename.startswith(PACKAGE)}
    ours = [(thread, code) for thread, code in seen if code in product and code.co_name not in _COMPREHENSIONS]
    before: dict[int, str] = {}
    between: Counter[tuple[str, str]] = Counter()
    for thread, code in ours:
        file = code.co_filename.removeprefix(PACKAGE)
        last = before.get(thread, file)
        if last != file:
            between[min(last, file), max(last, file)] += 1
        before[thread] = file
    files = {code.co_filename for _, code in ours}
    functions = Counter(code for _, code in ours)
    return Counted(len(ours) / runs, between.total() / runs, len(files), between, functions)
