"""Progress of work on a database: callers may show a bar, or the present step."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int, int], object]
"""A function that takes the number of finished items and the number of all items."""

Bar = Callable[[str], AbstractContextManager[Advance]]
"""A context manager that shows how many items are finished; the argument names the items."""


@contextmanager
def no_bar(what: str) -> Iterator[Advance]:
    """Yield a function that shows nothing, in place of a progress bar."""
    yield lambda done, total: None


@contextmanager
def no_line(what: str) -> Iterator[None]:
    """Show nothing, in place of a line about the present step."""
    yield
