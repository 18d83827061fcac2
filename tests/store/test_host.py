"""One host at a time: a second one is refused, a dead one is taken over, a late one is fenced."""

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import StoreError, StoreInUse, StoreUnusable
from ikigai_actors.records.agents.registry import ensure_root
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.hosts.host import new_host
from ikigai_actors.store.hosts.membership import UNHELD
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.testing import ManualClock
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, printed, python, sql
from tests.kit.faults import FaultyStore
from tests.kit.hosts import Hosts, owners, plant
from tests.kit.trees import add_host, record

OWN = """
    import os, sys
    from ikigai_actors.records.agents.registry import ensure_root
    from ikigai_actors.actors.clock import SystemClock
    from ikigai_actors.errors import StoreInUse
    from ikigai_actors.store.hosts.host import new_host, take_database
    from ikigai_actors.store import open_store
    from ikigai_actors.store.migrations import ensure_schema
    store = open_store(sys.argv[1])
    ensure_schema(store)
"""


LONG = 600.0
"""Seconds of a lease that nobody renews, and that does not run out before another process has begun."""


@pytest.fixture
def beside(durable: str) -> Iterator[Store]:
    """The same database for the test's own look-ups."""
    store = open_store(durable)
    ensure_schema(store)
    yield store
    store.close()


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_a_host_that_never_came_to_write_writes_nothing_when_it_is_released(new_sqlite: NewDatabase) -> None:
    """A database that another process locks would keep it, and Ctrl-C would wait for that again."""
    with closing(FaultyStore(open_store(new_sqlite()))) as store:
        host = new_host(store, "host a", SystemClock())
        store.fails(StoreError("The disk does not answer."))
        with pytest.raises(StoreError, match="does not answer"):
            host.begin()
        begun = store.writes
        host.release()
        assert store.writes == begun


def test_a_second_host_is_refused_and_told_who_the_first_is(durable: str, take: Hosts) -> None:
    take(durable)
    with pytest.raises(StoreInUse) as refused:
        take(durable)
    message = str(refused.value)
    assert f"host {socket.gethostname()}, pid {os.getpid()}, since " in message
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", message)
    assert "--database or $IKIGAI_DATABASE_URL" in message


def test_a_second_host_in_another_process_is_refused(durable: str, take: Hosts) -> None:
    take(durable, lease=LONG)
    second = python(
        f"""{OWN}
    try:
        take_database(new_host(store, "second", SystemClock()))
    except StoreInUse as error:
        print(error)
    store.close()
    """,
        durable,
    )
    assert f"host {socket.gethostname()}, pid {os.getpid()}, since " in printed(second)


def test_the_refused_host_changes_nothing(durable: str, take: Hosts, beside: Store) -> None:
    first = take(durable)
    plant(beside, first.id)
    with pytest.raises(StoreInUse):
        take(durable)
    assert owners(beside) == [(first.id, 1, True)]
    assert (record(beside, "a").owner, record(beside, "a").epoch) == (first.id, 1)


def test_a_database_in_memory_is_taken_too(take: Hosts) -> None:
    take("sqlite:///:memory:")
    take("sqlite:///:memory:")


def test_after_a_release_the_next_host_gets_in_at_once(durable: str, take: Hosts, beside: Store) -> None:
    first = take(durable)
    first.release()
    first.release()
    second = take(durable)
    assert owners(beside) == [(first.id, 1, False), (second.id, 2, True)]


def test_a_new_host_owns_every_shard_in_a_new_epoch(durable: str, take: Hosts, beside: Store) -> None:
    first = take(durable)
    plant(beside, first.id)
    first.release()
    second = take(durable)
    for agent in ("root", "a", "dead"):
        assert record(beside, agent).owner == second.id
    assert beside.read(lambda tx: sql(tx, "SELECT DISTINCT host, epoch FROM shards")) == [(second.id, 2)]


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_killed_owner_on_this_machine_is_taken_over_at_once(
    kind: str, new_sqlite: NewDatabase, new_postgres: NewDatabase, take: Hosts
) -> None:
    url = new_sqlite() if kind == "file" else new_postgres()
    owner = python(
        f"""{OWN}
    host = take_database(new_host(store, "first", SystemClock()))
    print("mine", flush=True)
    sys.stdin.readline()
    """,
        url,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "mine\n"
    with pytest.raises(StoreInUse, match=f"pid {owner.pid}"):
        take(url)
    owner.kill()
    owner.communicate(timeout=DEADLINE)
    began = time.monotonic()
    take(url)
    assert time.monotonic() - began < UNHELD
    store = open_store(url)
    assert [(epoch, owns) for _, epoch, owns in owners(store)] == [(1, False), (2, True)]
    store.close()


def test_a_file_is_locked_under_all_its_names(new_sqlite: NewDatabase, take: Hosts) -> None:
    file = path_of(new_sqlite())
    take(file)
    other_name = file.with_name("other.db")
    other_name.symlink_to(file)
    with pytest.raises(StoreInUse):
        take(other_name)


def test_a_lock_file_that_cannot_be_made_is_an_error_with_its_name(new_sqlite: NewDatabase, take: Hosts) -> None:
    file = path_of(new_sqlite())
    file.with_name(file.name + ".lock").mkdir()
    with pytest.raises(StoreUnusable, match=r"\.lock"):
        take(file)


def test_a_file_that_cannot_be_taken_after_all_is_not_locked(new_sqlite: NewDatabase, take: Hosts) -> None:
    url = new_sqlite()
    with closing(open_store(url)) as store:
        ensure_schema(store)
        row = {"id": "believed", "hostname": "elsewhere", "pid": 1, "lease": 60_000}
        # As of a database that was copied from a server.
        store.write(lambda tx: (tx.run("register_host", **row), tx.run("claim_shards", host="believed")))
        with pytest.raises(StoreInUse, match=r"elsewhere, pid 1, .*try again in") as refused:
            take(url)
        store.write(lambda tx: tx.run("end_host", id="believed"))
        take(url)
        assert refused.tb is not None  # it keeps the first attempt alive: nobody else gives the lock back


@pytest.mark.slow("takes a second")
def test_a_file_whose_new_owner_is_not_registered_yet_is_in_use_too(new_sqlite: NewDatabase, take: Hosts) -> None:
    file = path_of(new_sqlite())
    with FileLock(file.with_name(file.name + ".lock")), pytest.raises(StoreInUse, match="in use by another process"):
        take(file)


def test_a_host_without_a_lease_may_always_act(new_sqlite: NewDatabase, take: Hosts) -> None:
    clock = ManualClock()
    host = take(new_sqlite(), clock)
    clock.advance(1_000_000)
    assert host.may_act(lambda: pytest.fail("nothing was postponed"))


def test_agent_0_is_made_once_whoever_comes_first(durable: str, beside: Store) -> None:
    stores = [open_store(durable) for _ in range(4)]
    together = threading.Barrier(4)

    def make(number: int) -> None:
        stores[number].write(lambda tx: take_row(tx, f"host {number}"))
        together.wait(DEADLINE)
        ensure_root(stores[number], os.urandom, 1)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(make, number) for number in range(4)]:
            done.result(DEADLINE)
    assert beside.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM agents")) == [(1,)]
    for store in stores:
        store.close()


def take_row(tx: Transaction, host: str) -> None:
    """A host's row; hosts are counted, so they follow one another."""
    tx.run("tree_change")
    add_host(tx, host)
