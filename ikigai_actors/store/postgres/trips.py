"""Round trips: statements are collected and sent to the server together.

A statement whose rows are not needed at once is collected. It is sent with the next statement whose rows are needed, or
with COMMIT. So a transaction waits for the server once for each read, and once more for its end. A trip ends with a
Sync: between two trips the server has done everything that it was sent, and its time-out for idle transactions runs.

The first statement that fails ends the trip: the server skips those after it, COMMIT too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.errors import PipelineAborted

from ikigai_actors.store.base import Row

Connection = psycopg.Connection[Row]

PSYCOPG_ERRORS = (psycopg.Error, psycopg.Warning, UnicodeEncodeError, OverflowError)
"""The errors that a call of psycopg may raise. The last two are for values that PostgreSQL cannot hold."""

_Parameters = Mapping[str, Any] | Sequence[Any] | None


class Gathered:
    """A statement that waits for its round trip, or was sent in one."""

    def __init__(self, sql: bytes, parameters: _Parameters = None) -> None:
        self.sql, self.parameters = sql, parameters
        self._cursor: psycopg.Cursor[Row] | None = None

    @property
    def is_sent(self) -> bool:
        """Return whether the statement was sent to the server."""
        return self._cursor is not None

    def send(self, connection: Connection) -> None:
        """Send the statement; outside of a pipeline, wait until it is done."""
        self._cursor = connection.cursor()
        self.execute(self._cursor)

    def execute(self, cursor: psycopg.Cursor[Row]) -> None:
        """Execute the statement once. A statement without parameters is not prepared, since that would gain nothing."""
        cursor.execute(self.sql, self.parameters, prepare=None if self.parameters is not None else False)

    def rows(self) -> list[Row]:
        """Return the rows, after the round trip; empty for a statement that returns none."""
        assert self._cursor is not None
        return self._cursor.fetchall() if self._cursor.description else []

    def names(self) -> list[str]:
        """Return the names of the columns, after the round trip."""
        assert self._cursor is not None
        return [column.name for column in self._cursor.description or ()]

    def tag(self) -> str | None:
        """Return the command tag that the server reported, after the round trip."""
        assert self._cursor is not None
        return self._cursor.statusmessage


class GatheredMany(Gathered):
    """A statement that runs once for each of several parameter sets, and returns no rows."""

    def __init__(self, sql: bytes, many: Sequence[Mapping[str, Any] | Sequence[Any]]) -> None:
        super().__init__(sql)
        self._many = many

    def execute(self, cursor: psycopg.Cursor[Row]) -> None:
        cursor.executemany(self.sql, self._many)


class Trips:
    """Collects the statements of a transaction, and sends them together."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._gathered: list[Gathered] = []

    def gather(self, statement: Gathered) -> Gathered:
        """Add a statement to the next round trip."""
        self._gathered.append(statement)
        return statement

    def go(self) -> None:
        """Send the collected statements, and wait until the server has run them.

        Raises the error of the first that failed.
        """
        gathered, self._gathered = self._gathered, []
        if len(gathered) == 1:
            gathered[0].send(self._connection)
        elif gathered:
            _go_together(self._connection, gathered)

    def rows(self, statement: Gathered) -> list[Row]:
        """Return the rows of a collected statement; sends the collected statements first, if they are not sent yet."""
        if not statement.is_sent:
            self.go()
        return statement.rows()


def _go_together(connection: Connection, gathered: Sequence[Gathered]) -> None:
    failure: Exception | None = None
    try:
        with connection.pipeline():
            try:
                for statement in gathered:
                    statement.send(connection)
            except PSYCOPG_ERRORS as error:
                # Kept, and raised below: psycopg logs what it meets while an error leaves the block of a pipeline.
                failure = error
    except psycopg.Error as error:
        failure = failure or _first(error)
    if failure is not None:
        raise failure


def _first(error: psycopg.Error) -> psycopg.Error:
    """Return the error that ended a pipeline. psycopg may raise the error of a later statement that was skipped."""
    while isinstance(error, PipelineAborted) and isinstance(error.__context__, psycopg.Error):
        error = error.__context__
    return error
