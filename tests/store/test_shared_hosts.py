"""Hosts that share the shards of a database: who has which, and who takes those of a host that has ended."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import pytest

from ikigai_actors.errors import Fenced, IkigaiError, NoHost, StoreInUse
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.hosts.host import Host
from ikigai_actors.store.hosts.membership import UNHELD
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.hosts.shards import Drain
from ikigai_actors.store.unit import write_alone
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
    """A host that waits on a thread until it may join."""

    def __init__(self, threads: ThreadPoolExecutor, take: Hosts, url: str, name: str, lease: float = LONG) -> None:
        self.sees = threading.Event()
        """It waits for somebody."""
        self._host: Future[Host] = threads.submit(take, url, None, lease, name, self._wait)

    def _wait(self, owner: HostRecord) -> None:
        self.sees.set()

    @property
    def waits(self) -> bool:
        """Whether it has not joined yet."""
        return not self._host.done()

    def host(self) -> Host:
        """The host, when it has joined."""
        return self._host.result(DEADLINE)


def counts(store: Store) -> dict[str | None, int]:
    """How many shards each host has."""
    return dict(store.read(lambda tx: sql(tx, "SELECT host, COUNT(*) FROM shards GROUP BY host")))


def is_ended(store: Store, host: str) -> bool:
    """Whether somebody has ended a host's row."""
    return store.read(lambda tx: sql(tx, f"SELECT ended_at FROM hosts WHERE id = '{host}'")) != [(None,)]


@pytest.mark.slow("waits for a real lease")
def test_who_was_killed_is_followed_long_before_its_lease_is_over(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    take.kill(take(url, lease=LONG))
    began = time.monotonic()
    second = take(url, lease=LONG)
    assert UNHELD <= time.monotonic() - began < DEADLINE
    with closing(open_store(url)) as store:
        assert counts(store) == {second.id: 1024}


@pytest.mark.thorough("a second host that was killed")
def test_who_was_killed_and_comes_back_by_its_name_is_followed_at_once(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    first = take(url, lease=LONG, name="a")
    first.claim()
    second = take(url, lease=LONG, name="a", on_wait=lambda owner: pytest.fail("it waits"))
    second.claim()
    with closing(open_store(url)) as store:
        assert counts(store) == {second.id: 1024}
    with pytest.raises(Fenced):
        first.renew()
    with pytest.raises(Fenced):
        first.claim()


@pytest.mark.thorough("a second host that joins")
def test_who_joins_waits_until_a_host_that_shares_with_nobody_gives_the_database_up(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor
) -> None:
    url = new_postgres()
    first = take(url, lease=LONG)
    second = Waiting(threads, take, url, "b")
    assert second.sees.wait(DEADLINE)
    assert second.waits
    first.release()
    assert second.host().name == "b"
    with pytest.raises(StoreInUse):
        take(url)


@pytest.mark.thorough("waits for a real lease")
def test_who_joins_goes_on_when_a_host_that_shares_with_nobody_is_killed(
    new_postgres: NewDatabase, take: Hosts, threads: ThreadPoolExecutor
) -> None:
    url = new_postgres()
    first = take(url, lease=LONG)
    second = Waiting(threads, take, url, "b")
    assert second.sees.wait(DEADLINE)
    take.kill(first)
    second.host().claim()
    with closing(open_store(url)) as store:
        assert counts(store) == {second.host().id: 1024}


def test_hosts_that_share_take_their_part_of_what_nobody_has(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    hosts = [take(url, lease=LONG, name=name) for name in ("a", "b", "c")]
    with closing(open_store(url)) as store:
        for host in (*hosts, *hosts):
            host.claim()
        assert counts(store) == {hosts[0].id: 342, hosts[1].id: 342, hosts[2].id: 340}
        hosts[1].release()
        hosts[2].claim()
        assert counts(store) == {hosts[0].id: 342, hosts[1].id: 170, hosts[2].id: 512}
        hosts[0].claim()
        assert counts(store) == {hosts[0].id: 512, hosts[2].id: 512}


@pytest.mark.thorough("a second lease that runs out")
def test_who_hangs_is_ended_after_its_lease_and_then_writes_nothing(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    first = take(url, lease=SHORT, name="a")  # it never renews, and its connections stay
    first.claim()
    ends: list[IkigaiError] = []
    second = take(url, lease=SHORT, name="b")
    second.keep(ends.append)
    with closing(open_store(url)) as store:
        eventually(lambda: is_ended(store, first.id), "the end of the one that hangs")
        second.claim()
        assert counts(store) == {second.id: 1024}
    with pytest.raises(Fenced):
        first.renew()
    assert ends == []


@pytest.mark.thorough("waits for a real lease")
def test_a_host_that_renews_its_lease_is_left_alone(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    ends: list[IkigaiError] = []
    hosts = [take(url, lease=SHORT, name=name) for name in ("a", "b")]
    for host in hosts:
        host.keep(ends.append)
    with closing(open_store(url)) as store:

        def beats() -> int:
            [(count,)] = store.read(lambda tx: sql(tx, f"SELECT beat FROM hosts WHERE id = '{hosts[0].id}'"))
            return int(count)

        eventually(lambda: beats() > 12, "three leases")
        assert not any(is_ended(store, host.id) for host in hosts)
    assert ends == []


@pytest.mark.thorough("waits for a real lease")
def test_a_host_that_is_killed_before_it_has_a_shard_is_ended(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    first = take(url, lease=LONG, name="a")
    first.keep(lambda error: pytest.fail(str(error)))
    take.kill(take(url, lease=LONG, name="b"))
    with closing(open_store(url)) as store:
        eventually(lambda: is_ended(store, "host 2"), "its end")
        assert not is_ended(store, first.id)


@pytest.mark.thorough("a host drains; every run has one in tests/system/test_sharing.py")
def test_one_of_two_hosts_may_drain_and_gets_no_shard_any_more(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    first, second = (take(url, lease=LONG, name=name) for name in ("a", "b"))
    with closing(open_store(url)) as store:
        write_alone(store, Drain(first.id))
        with pytest.raises(NoHost, match="No other host"):
            write_alone(store, Drain(second.id))
        first.claim()
        assert counts(store) == {None: 1024}
        second.claim()
        assert counts(store) == {second.id: 1024}
