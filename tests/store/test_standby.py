"""Hosts that take turns on a server: one has the agents, the others wait until it is gone."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest

from ikigai_actors.errors import Fenced, IkigaiError, StoreInUse
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.host import Host
from ikigai_actors.store.membership import UNHELD
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.owner import HostRow
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, eventually, sql
from tests.kit.hosts import Hosts

LONG = 600.0
"""Seconds of a lease that no test waits out."""

SHORT = 1.0
"""Seconds of a lease that a test waits out."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Threads for hosts that wait."""
    with ThreadPoolExecutor(4) as threads:
        yield threads


class Waiting:
    """A host that waits for its turn on a thread."""

    def __init__(self, threads: ThreadPoolExecutor, take: Hosts, url: str, name: str, lease: float = LONG) -> None:
        self.sees = threading.Event()
        """It waits for somebody."""
        self._host: Future[Host] = threads.submit(take, url, None, lease, name, self._wait)

    def _wait(self, owner: HostRow) -> None:
        self.sees.set()

    @property
    def waits(self) -> bool:
        """Whether it has not got its turn yet."""
        return not self._host.done()

    def host(self) -> Host:
        """The host, when it has got its turn."""
        return self._host.result(DEADLINE)


def shards(store: Store) -> dict[str | None, int]:
    """How many shards each host has."""
    return dict(store.read(lambda tx: sql(tx, "SELECT host, COUNT(*) FROM shards GROUP BY host")))


def test_who_was_killed_is_followed_long_before_its_lease_is_over(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    take.kill(take(url, lease=LONG))
    began = time.monotonic()
    second = take(url, lease=LONG)
    assert UNHELD <= time.monotonic() - began < DEADLINE
    with closing(open_store(url)) as store:
        assert shards(store) == {second.id: 64}


def test_who_was_killed_and_comes_back_by_its_name_is_followed_at_once(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    first = take(url, lease=LONG, name="a")
    second = take(url, lease=LONG, name="a", on_wait=lambda owner: pytest.fail("it waits"))
    with closing(open_store(url)) as store:
        assert shards(store) == {second.id: 64}
    with pytest.raises(Fenced):
        first.renew()


@pytest.mark.parametrize("name", ["a", None])
def test_who_waits_goes_on_when_the_other_gives_the_database_up(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor, name: str | None
) -> None:
    url = new_postgres()
    first = take(url, lease=LONG, name=name)
    second = Waiting(threads, take, url, "b")
    assert second.sees.wait(DEADLINE)
    assert second.waits
    first.release()
    assert second.host().name == "b"
    with pytest.raises(StoreInUse):
        take(url)


def test_who_waits_goes_on_when_the_other_is_killed(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor
) -> None:
    url = new_postgres()
    first = take(url, lease=LONG, name="a")
    second = Waiting(threads, take, url, "b")
    assert second.sees.wait(DEADLINE)
    take.kill(first)
    with closing(open_store(url)) as store:
        assert shards(store) == {first.id: 64}
        took = second.host()
        assert shards(store) == {took.id: 64}


def test_who_hangs_is_followed_after_its_lease_and_then_writes_nothing(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor
) -> None:
    url = new_postgres()
    first = take(url, lease=SHORT, name="a")  # it never renews, and its connections stay
    second = Waiting(threads, take, url, "b", lease=SHORT)
    ends: list[IkigaiError] = []
    second.host().keep(ends.append)
    with pytest.raises(Fenced):
        first.renew()
    assert ends == []


def test_a_host_that_renews_its_lease_is_left_alone(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor
) -> None:
    url = new_postgres()
    ends: list[IkigaiError] = []
    first = take(url, lease=SHORT, name="a")
    first.keep(ends.append)
    second = Waiting(threads, take, url, "b", lease=SHORT)
    assert second.sees.wait(DEADLINE)
    with closing(open_store(url)) as store:

        def beats() -> int:
            [(count,)] = store.read(lambda tx: sql(tx, f"SELECT beat FROM hosts WHERE id = '{first.id}'"))
            return int(count)

        eventually(lambda: beats() > 12, "three leases")
    assert second.waits
    assert ends == []
    first.release()
    second.host()


def test_of_several_that_wait_one_gets_all(new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor) -> None:
    url = new_postgres()
    first = take(url, lease=LONG)
    others = [Waiting(threads, take, url, name) for name in ("b", "c", "d")]
    for other in others:
        assert other.sees.wait(DEADLINE)
    first.release()
    with closing(open_store(url)) as store:
        while others:
            eventually(lambda: any(not other.waits for other in others), "the next of them")
            [owner] = [other for other in others if not other.waits]
            assert shards(store) == {owner.host().id: 64}
            others.remove(owner)
            owner.host().release()


def test_who_waits_sees_that_the_other_two_are_dead_though_none_of_them_was_the_owner(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor
) -> None:
    """A host that is killed while it waits leaves a row that somebody must end."""
    url = new_postgres()
    first = take(url, lease=LONG, name="a")
    first.keep(lambda error: pytest.fail(str(error)))
    with closing(open_store(url)) as store:
        store.write(lambda tx: tx.run("register_host", id="gone", hostname="here", pid=1, lease=600_000))
        store.write(lambda tx: tx.run("describe_host", id="gone", name="b", lease=600_000))
        eventually(
            lambda: store.read(lambda tx: sql(tx, "SELECT 1 FROM hosts WHERE id = 'gone' AND ended_at > 0")), "it"
        )
        assert shards(store) == {first.id: 64}


def test_a_host_of_an_older_version_is_not_waited_for(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    with closing(open_store(url)) as store:
        ensure_schema(store)
        store.write(lambda tx: tx.run("register_host", id="old", hostname="here", pid=1, lease=600_000))
        store.write(lambda tx: tx.run("set_schema_version", version=1))
        for name in (None, "b"):
            with pytest.raises(StoreInUse, match="here, pid 1"):
                take(url, name=name)
