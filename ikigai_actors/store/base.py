"""What a database must be able to do: `Store` and `Transaction`, the border between SQL and everything above it.

Work is a function of a `Transaction`; the store runs it, and may run it again (a deadlock, a lost read connection), so
work must be safe to run twice: it keeps its results in what it returns. Statements are named in ``queries.sql``;
parameters are given by name; rows are tuples. No driver's exception passes this border: each becomes one of ours, the
cause kept.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Watch(Protocol):
    """Watches one database. For one thread, and another one that closes it."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until something may have changed; False when the watch was closed, or after ``timeout`` seconds."""

    def close(self) -> None:
        """End the waiting."""


class Transaction(Protocol):
    """One transaction in progress. Valid only inside the work it was given to."""

    def run(self, query: str, **parameters: Any) -> list[Row]:
        """Run the named statement now; return its rows (none for a statement that gives none).

        A parameter may be text, an integer, None, or a list of texts (for ``= ANY(:name)``).
        """

    def defer(self, query: str, **parameters: Any) -> None:
        """Run the named statement before COMMIT, together with its likes; their order among one another is kept."""

    def append(self, rows: Sequence[Row], table: str = "messages") -> None:
        """Insert rows into ``messages`` (see `Message.row`) or ``mail`` before COMMIT, in bulk, after the deferred
        statements.
        """

    def end_stalled(self, before: int) -> None:
        """End transactions of others that have locked agents, began before this moment (in milliseconds since 1970),
        and now stand still: their process was stopped, or its machine is gone. Where the file lock of a dead owner is
        free, there are none.
        """

    def is_hosted(self) -> bool:
        """Whether a process holds the lock by which a host owns the database. True where there is no such lock: a lease
        decides, or nobody else can come.
        """

    def notify(self, *, by_host: bool = False) -> None:
        """Wake the other processes at this database when this is committed; at most once per transaction. What a host
        commits wakes only those who follow hosts: see `Store.watch`.
        """


class Store(Protocol):
    """An open database. Safe to share between threads; one transaction writes at a time."""

    location: str
    """How a person names it: a path, or a URL without its password."""

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run work that only reads, in one consistent snapshot; return what it returns."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run work in one write transaction and commit it; return what it returns.

        An exception from the work rolls back and passes through. Raises `StoreConflict`, `StoreUnavailable`,
        `StoreUnusable`, and `CommitUnknown` when COMMIT was heard by the database, perhaps, and gave no good answer.
        """

    def checkpoint(self) -> None:
        """Bring the database's file up to date, where commits go to a log beside it first. Nothing depends on it for
        being right: whoever copies the file alone loses less.
        """

    def separate(self) -> "Store":
        """The same database through a connection of its own, which other work does not delay. Closed by itself."""

    def watch(self, *, hosts: bool = False) -> Watch:
        """A watch on what other processes do; with ``hosts`` also on what hosts commit, which is far more. Whoever
        asked for it closes it.
        """

    def abandon(self, why: str) -> None:
        """Cut every connection off, also those on which others wait for an answer, of separate stores too. They fail,
        and whoever comes later gets `SystemClosed`. A file answers in any case, and goes on.
        """

    def close(self) -> None:
        """Give back every connection; a second call does nothing."""
