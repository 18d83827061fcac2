"""Progress of work on a database: callers may show a bar, or the present step."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int, int], object]
"""Is called with how much is done, and how much there is."""

Bar = Callable[[str], AbstractContextManager[Advance]]
"""Shows how many of some things are done, for the length of a block."""


@contextmanager
def no_bar(what: str) -> Iterator[Advance]:
    """Show no bar."""
    yield lambda done, total: None


@contextmanager
def no_line(what: str) -> Iterator[None]:
    """Show no step."""
    yield
