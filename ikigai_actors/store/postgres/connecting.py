"""The first statement of a connection, with a time limit, and a ROLLBACK whose answer is read later."""

import selectors
import time
from typing import NamedTuple

import psycopg
from psycopg import pq

from ikigai_actors.store.postgres.durability import MUST_BE_ON, losing
from ikigai_actors.store.postgres.trips import Connection

IDLE_IN_TRANSACTION = 5_000
"""Milliseconds after which the server ends a transaction that does nothing: its locks would stop every other host. A
transaction that has read many rows gets one for each row.
"""

_UNLIMITED = ("statement_timeout", "lock_timeout", "idle_session_timeout")
"""The time limits of a role or a database that are lifted: a count, a check or the death of a large branch may take
long, an idle host sends nothing, and a transaction may wait long for a lock."""

_SINCE_17 = ("transaction_timeout",)

UNANSWERED = "no answer to the first statement"
"""The start of the error message for a server that did not answer in time."""


class Greeting(NamedTuple):
    """The answer of a server to a new connection."""

    is_pooled: bool
    """Whether a pooler gave the connection another server process than the one it first named."""
    losing: str
    """The settings by which the server may lose committed data, in words; empty for none."""


def set_up(connection: Connection, patience: float) -> Greeting:
    """Run the first statement of a new connection, which makes settings and asks for properties of the server.

    Raises an error of psycopg, also when no answer came within ``patience`` seconds.
    """
    unlimited = _UNLIMITED + (_SINCE_17 if connection.info.server_version >= 170_000 else ())
    limits = [name for name in unlimited if name not in connection.info.options]  # the URL's own count
    settings = {"idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION), **dict.fromkeys(limits, "0")}
    asked = [
        *(f"current_setting('{name}', true)" for name in MUST_BE_ON),
        *(f"set_config('{name}', '{value}', false)" for name, value in settings.items()),
    ]
    answer = _answer(connection.pgconn, f"SELECT pg_backend_pid(), {', '.join(asked)}", patience)
    is_pooled = int(answer.get_value(0, 0) or 0) != connection.info.backend_pid
    for each in ("BEGIN", "COMMIT") if is_pooled else ():  # a pooler that takes no transactions says so at BEGIN alone
        _answer(connection.pgconn, each, patience)
    values = [answer.get_value(0, column) for column in range(1, 1 + len(MUST_BE_ON))]
    return Greeting(is_pooled, losing([None if value is None else value.decode() for value in values]))


def leave_unread(connection: Connection) -> None:
    """End a transaction that has only read: send ROLLBACK without waiting; `take_answer` reads the answer."""
    line = connection.pgconn
    try:
        if line.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
            line.send_query(b"ROLLBACK")
            line.flush()
        elif line.transaction_status != pq.TransactionStatus.IDLE:
            connection.close()  # in the middle of a statement: then the server rolls back
    except psycopg.Error:
        connection.close()


def take_answer(connection: Connection) -> None:
    """Read the answer to a statement that was sent without waiting. Closes a connection that broke."""
    try:
        if connection.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
            _answers(connection.pgconn, None)
    except psycopg.Error:
        connection.close()


def _answer(line: pq.abc.PGconn, statement: str, patience: float) -> pq.abc.PGresult:
    line.send_query(statement.encode())
    answer, *_ = _answers(line, patience)
    if answer.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(answer)
    return answer


def _answers(line: pq.abc.PGconn, patience: float | None) -> list[pq.abc.PGresult]:
    """Return the answers to sent statements, waiting at most this many seconds.

    None waits forever, without blocking other threads.
    """
    until = None if patience is None else time.monotonic() + patience
    answers: list[pq.abc.PGresult] = []
    with selectors.DefaultSelector() as selector:
        selector.register(line.socket, selectors.EVENT_READ)
        while True:
            line.flush()
            if line.is_busy():
                if not selector.select(None if until is None else until - time.monotonic()):
                    raise psycopg.OperationalError(f"{UNANSWERED} within {patience} s")
                try:
                    line.consume_input()
                except psycopg.Error:
                    if answers:  # who ended the line has said why
                        return answers
                    raise
            elif (answer := line.get_result()) is None:
                return answers
            else:
                answers.append(answer)
