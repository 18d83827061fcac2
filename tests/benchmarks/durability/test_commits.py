"""The answer to one commit is lost after the server has done it, in whichever way the client had asked for it."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from psycopg import Connection

from benchmarks.durability.commits import Answers, Commits
from tests.conftest import NewDatabase

pytestmark = pytest.mark.empty

INSERT = "INSERT INTO kept VALUES (%s)"


def by_simple_query(connection: Connection) -> None:
    connection.execute("BEGIN")
    connection.execute(INSERT, [1])
    connection.execute("COMMIT")


def by_prepared_query(connection: Connection) -> None:
    connection.execute("BEGIN")
    connection.execute(INSERT, [1])
    connection.execute("COMMIT", prepare=True)


def by_method(connection: Connection) -> None:
    with connection.transaction():
        connection.execute(INSERT, [1])


def by_itself(connection: Connection) -> None:
    connection.execute(INSERT, [1])


def by_sync_of_a_pipeline(connection: Connection) -> None:
    with connection.pipeline():
        connection.execute(INSERT, [1])
        connection.execute(INSERT, [2])


@pytest.mark.parametrize("commit", [by_simple_query, by_prepared_query, by_method, by_itself, by_sync_of_a_pipeline])
def test_the_answer_to_a_commit_is_lost_after_the_server_has_done_it(
    commit: Callable[[Connection], None], new_postgres: NewDatabase
) -> None:
    with closing(Commits(new_postgres())) as line, psycopg.connect(line.url, autocommit=True) as other:
        other.execute("CREATE TABLE kept (n int)")
        with psycopg.connect(line.url, autocommit=True) as connection:
            connection.execute(INSERT, [0])
            line.armed.set()
            with connection.transaction():
                assert connection.execute("SELECT n FROM kept").fetchall() == [(0,)]
            assert not line.done.is_set(), "nothing was written"
            with pytest.raises(psycopg.OperationalError):
                commit(connection)
        assert line.done.wait(10)
        assert (1,) in other.execute("SELECT n FROM kept").fetchall()


def test_a_transaction_that_ends_without_its_writes_is_no_commit(new_postgres: NewDatabase) -> None:
    with closing(Commits(new_postgres())) as line, psycopg.connect(line.url) as connection:
        connection.execute("CREATE TABLE kept (n int UNIQUE)")
        connection.commit()
        line.armed.set()
        connection.execute(INSERT, [1])
        connection.rollback()
        connection.execute(INSERT, [1])
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(INSERT, [1])
        connection.execute("COMMIT")
        assert not line.done.is_set()
        assert connection.execute("SELECT n FROM kept").fetchall() == []


def message(kind: str, body: bytes) -> bytes:
    return kind.encode() + (len(body) + 4).to_bytes(4, "big") + body


SENT = (
    message("C", b"BEGIN\0"), message("Z", b"T"), message("D", b"INSERT 0 1 \0C\0\0\0\x0bCOMMIT\0"),
    message("C", b"INSERT 0 1\0"), message("Z", b"T"), message("C", b"COMMIT\0"), message("Z", b"I"),
)  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_messages_are_whole_wherever_their_bytes_are_cut(size: int) -> None:
    answers, data = Answers(), b"".join(SENT)
    read = [each for at in range(0, len(data), size) for each in answers.read(data[at : at + size])]
    assert read == [(each, each == message("C", b"COMMIT\0")) for each in SENT]
