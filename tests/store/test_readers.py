"""The connections for reads on PostgreSQL."""

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from ikigai_actors.errors import StoreError, StoreUnavailable
from ikigai_actors.store.postgres.readers import MOST_READERS, Readers
from ikigai_actors.store.postgres.trips import Connection
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin

pytestmark = pytest.mark.empty


class Server:
    """Makes connections, but for the first few times."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.down = 0
        """How often it does not answer yet."""
        self.asked = 0

    def connect(self) -> Connection:
        self.asked += 1
        if self.down:
            self.down -= 1
            raise StoreUnavailable("It starts, as planned.")
        return psycopg.connect(self.url)


@pytest.fixture
def server(new_postgres: NewDatabase) -> Server:
    return Server(new_postgres())


@pytest.fixture
def readers(server: Server) -> Iterator[Readers]:
    readers = Readers(server.connect, DEADLINE, "here")
    yield readers
    readers.close()


def test_a_connection_is_used_again_and_one_that_broke_is_made_again(
    server: Server, readers: Readers, postgres_admin: Admin
) -> None:
    with readers.lent() as first:
        pass
    with readers.lent() as second:
        assert second is first
    postgres_admin.execute("SELECT pg_terminate_backend(%s, 60000)", (first.info.backend_pid,))
    with readers.lent() as third:
        assert third is not first
    assert server.asked == 2


def test_a_server_that_starts_is_asked_until_it_answers(server: Server, readers: Readers) -> None:
    server.down = 3
    with readers.lent() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert server.asked == 4


def test_when_patience_is_over_the_server_does_not_answer(server: Server) -> None:
    server.down = 1_000_000
    with pytest.raises(StoreUnavailable, match="as planned"), Readers(server.connect, 0.05, "here").lent():
        raise AssertionError("nothing was lent")


def test_no_more_than_a_few_are_lent_at_once(server: Server) -> None:
    readers = Readers(server.connect, 0.01, "here")
    with ExitStack() as stack:
        for _ in range(MOST_READERS):
            stack.enter_context(readers.lent())
        with pytest.raises(StoreUnavailable, match="are in use"):
            stack.enter_context(readers.lent())
    with readers.lent():
        pass
    assert server.asked == MOST_READERS
    readers.close()


def test_what_is_lent_when_all_is_closed_is_closed_when_it_comes_back(server: Server) -> None:
    readers = Readers(server.connect, DEADLINE, "here")
    with readers.lent() as connection:
        readers.close()
    assert connection.closed
    with pytest.raises(StoreError, match="was closed"), readers.lent():
        raise AssertionError("nothing was lent")


class Interrupted(psycopg.Connection[tuple[object, ...]]):
    """A connection at which Ctrl-C comes while it is looked at."""

    looked_at = False

    def fileno(self) -> int:
        if self.looked_at:
            raise KeyboardInterrupt
        return super().fileno()


def test_ctrl_c_while_an_idle_connection_is_looked_at_leaves_none_open(server: Server) -> None:
    made = Interrupted.connect(server.url)
    readers = Readers(lambda: made, DEADLINE, "here")
    with readers.lent():
        pass
    made.looked_at = True
    with pytest.raises(KeyboardInterrupt), readers.lent():
        raise AssertionError("nothing was lent")
    assert made.closed
    readers.close()
