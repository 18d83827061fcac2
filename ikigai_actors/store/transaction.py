"""The common part of both databases' transactions: the order of statements, failures, and the end.

Deferred statements are gathered by name and run as one ``executemany`` each, in order of first appearance; then the
appended rows; then the statement that is required. A statement that fails ends the transaction: even if the work
catches the error, nothing is committed. (PostgreSQL would roll back silently at COMMIT. SQLite rolls back by itself
when the disk is full, and the later statements of the work would be committed alone.)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, ParamSpec, Protocol, TypeVar

from ikigai_actors.errors import StoreError
from ikigai_actors.store.base import Row, SchemaTransaction, Transaction
from ikigai_actors.store.queries import queries
from ikigai_actors.store.queries import query as check
from ikigai_actors.store.word_index import is_of_index

P = ParamSpec("P")
T = TypeVar("T")
Parameters = dict[str, Any]
_PLACE = itemgetter(0, 1)

_TEXT, _NUMBER, _BYTES = "text", "int8", "bytea"
COLUMNS = {
    "messages": {
        "agent_uuid": _TEXT, "id": _NUMBER, "kind": _TEXT, "content": _TEXT, "data": _TEXT, "created_at": _NUMBER,
        "hash": _BYTES,
    },
    "mail": {
        "recipient": _TEXT, "id": _NUMBER, "sender": _TEXT, "kind": _TEXT, "body": _TEXT, "created_at": _NUMBER,
        "read_at": _NUMBER, "data": _TEXT, "interrupted": _NUMBER,
    },
    "spendings": {
        "agent_uuid": _TEXT, "id": _NUMBER, "labels": _TEXT, "created_at": _NUMBER, "tokens": _NUMBER, "usd": _NUMBER,
    },
    "trees": {
        "agent_uuid": _TEXT, "base": _TEXT, "machine": _TEXT, "forked_as": _TEXT, "parent": _TEXT, "below": _NUMBER,
        "upper": _NUMBER, "since": _NUMBER, "created_at": _NUMBER, "applied_at": _NUMBER,
    },
    "guest_entries": {
        "log": _TEXT, "id": _NUMBER, "part": _TEXT, "about": _TEXT, "key": _TEXT, "tag": _TEXT, "data": _TEXT,
        "body": _BYTES,
    },
    "pieces": {"host": _TEXT, "id": _NUMBER, "agent_uuid": _TEXT, "reply": _NUMBER, "at": _NUMBER, "body": _TEXT},
}  # fmt: skip
"""The tables that take rows in bulk, with the types of their columns. All begin with their primary key."""


SCANNED = 1_000
"""Rows that `BaseTransaction.scan` reads at a time."""


class Cursor(Protocol):
    """The rows of a statement, fetched piece by piece."""

    def fetchmany(self, size: int, /) -> list[Row]:
        """Return the next rows; empty at the end."""

    def close(self) -> object:
        """Close the cursor."""


STAMPS = frozenset({"applied_at", "changed_at", "created_at", "ended_at", "imported_at", "read_at", "removed_at"})
"""The names of columns that hold the time of an event, in milliseconds since 1970."""

HEARD = "heard"
"""The name of a last column that holds a time stamp and is not returned to the caller."""


class BaseTransaction(Transaction, SchemaTransaction, ABC):
    """The base of both databases' transactions. An adapter runs statements, and translates its driver's errors."""

    DRIVER_ERRORS: tuple[type[Exception], ...]
    """The errors that a call of the driver may raise."""
    _stamps: ClassVar[dict[str, tuple[tuple[int, ...], bool]]]
    """By statement, the columns of its rows that are stamps, and whether the last one is for `hear` alone."""
    heard = 0

    def __init__(self) -> None:
        self._failure: StoreError | None = None
        self._deferred: dict[str, list[Parameters]] = {}
        self._appended: dict[str, list[Row]] = {}
        self._required: tuple[str, Callable[[Transaction], Exception], Parameters] | None = None

    def hear(self, query: str, rows: list[Row], names: Callable[[], Iterable[str]]) -> list[Row]:
        """Keep the latest time stamp of the rows in ``heard``; return the rows without a last column of this name.

        Args:
            query: the name of the statement.
            rows: its rows.
            names: gives the names of their columns.
        """
        if (places := self._stamps.get(query)) is None:
            named = list(names())
            stamps = tuple(place for place, name in enumerate(named) if name in STAMPS)
            places = self._stamps[query] = (stamps, HEARD in named[-1:])
        columns, is_last = places
        if is_last:
            self.heard = max([self.heard, *(row[-1] for row in rows if row[-1] is not None)])
            return [row[:-1] for row in rows]
        for column in columns:
            for row in rows:
                if type(stamp := row[column]) is int and stamp > self.heard:  # a damaged database has others
                    self.heard = stamp
        return rows

    @property
    def schema(self) -> SchemaTransaction:
        return self

    def run(self, query: str, **parameters: Any) -> list[Row]:
        if self._failure is not None:
            raise self._failure
        try:
            return self._run(query, parameters)
        except self.DRIVER_ERRORS as error:
            self._fail(error)

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        rows = self.run(query, **parameters)
        return lambda: rows

    def run_all(self, query: str, each: Sequence[Parameters]) -> None:
        self._guard(self._run_many, query, list(each))

    def require(self, query: str, otherwise: Callable[[Transaction], Exception], **parameters: Any) -> None:
        if query not in queries():
            check(query)
        self._required = query, otherwise, parameters

    def defer(self, query: str, **parameters: Any) -> None:
        if query not in queries():
            check(query)  # a wrong name shows where it was written
        self._deferred.setdefault(query, []).append(parameters)

    def append(self, rows: Sequence[Row], table: str = "messages") -> None:
        if rows:
            self._appended.setdefault(table, []).extend(rows)

    @property
    def locks_rows(self) -> bool:
        return False

    def share_tree(self) -> None:
        """Do nothing: only one transaction writes at a time."""

    def end_stalled(self, host: str, before: int) -> None:
        """Do nothing: a file lock is free once its owner is dead, and so are its transactions."""

    def hold(self, host: str) -> None:
        """Do nothing: see `is_hosted`."""

    def held(self, hosts: Sequence[str]) -> set[str]:
        return set(hosts)

    def is_hosted(self) -> bool:
        return True

    def notify(self, agents: Collection[str] | None = None) -> None:
        self._guard(self._notify, agents)

    def execute(self, sql: str) -> list[Row]:
        return self._guard(self._execute, sql)

    def tables(self) -> set[str]:
        return {name for (name,) in self._guard(self._tables) if not is_of_index(name)}

    def columns(self, table: str) -> list[str]:
        return sorted(name for (name,) in self._guard(self._columns, table))

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        cursor = self._guard(self._open, f"SELECT {', '.join(columns)} FROM {table}")
        try:
            while rows := self._guard(cursor.fetchmany, SCANNED):
                yield rows
        finally:
            cursor.close()

    def load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None:
        self._guard(self._load, table, columns, batches)

    def flush(self) -> None:
        """Run the deferred statements, append the rows, and run the required statement.

        Raises the error that ended the transaction before, if one did.
        """
        if self._failure is not None:
            raise self._failure
        try:
            for query, parameters in self._deferred.items():
                self._run_many(query, parameters)
            for table, rows in self._appended.items():
                rows.sort(key=_PLACE)
                self._append(table, rows)
            is_met = self._required is None or self._require(self._required[0], self._required[2])
        except self.DRIVER_ERRORS as error:
            self._fail(error)
        if self._required is not None and not is_met:
            raise self._required[1](self)

    def finish(self) -> None:
        """Refuse every later call, because the transaction was committed or rolled back."""
        self._failure = StoreError("This transaction is over: it is valid only inside the work it was given to.")

    def _guard(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._failure is not None:
            raise self._failure
        try:
            return step(*args, **kwargs)
        except self.DRIVER_ERRORS as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        self._failure = self.ours(error)
        raise self._failure from self.cause(error)

    @abstractmethod
    def ours(self, error: Exception) -> StoreError:
        """Return the `StoreError` for an error of the driver."""

    def cause(self, error: Exception) -> Exception | None:
        """Return the driver's error as the cause of ours; None if its text must not be shown."""
        return error

    @abstractmethod
    def _run(self, query: str, parameters: Parameters) -> list[Row]: ...

    def _require(self, query: str, parameters: Parameters) -> bool:
        """Run a required statement; return whether it gives a row. An adapter that finds out at COMMIT returns True."""
        return bool(self._run(query, parameters))

    @abstractmethod
    def _run_many(self, query: str, parameters: list[Parameters]) -> None: ...

    @abstractmethod
    def _append(self, table: str, rows: list[Row]) -> None: ...

    @abstractmethod
    def _notify(self, agents: Collection[str] | None) -> None: ...

    @abstractmethod
    def _execute(self, sql: str) -> list[Row]: ...

    @abstractmethod
    def _tables(self) -> list[Row]: ...

    @abstractmethod
    def _columns(self, table: str) -> list[Row]: ...

    @abstractmethod
    def _open(self, sql: str) -> Cursor: ...

    @abstractmethod
    def _load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None: ...
