"""The simulated database of several hosts does what a server does: the same tests, on both."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from ikigai_actors.actors.clock import Clock, SystemClock
from ikigai_actors.actors.threads import SYSTEM_THREADS, Threads, one_of
from ikigai_actors.errors import Fenced, StoreUnavailable, SystemClosed
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.base import Watch
from ikigai_actors.store.hosts.host import Host, new_host, take_database
from ikigai_actors.store.hosts.shards import shares
from ikigai_actors.store.memory import empty_image
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.testing import ManualClock, Schedule
from ikigai_actors.testing.simulation.changes import StoredChange
from ikigai_actors.testing.simulation.scheduler import Agenda
from ikigai_actors.testing.simulation.store import Commits, CommitTrouble, SimulatedStore
from ikigai_actors.testing.simulation.threads import SimulatedThreads
from tests.kit.databases import DEADLINE, Admin, eventually, tree_change

LONG = 600.0
"""Seconds of a lease that no test waits out."""


END_HOSTS = b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ikigai host a'"
"""Ends the connections of one host at a server."""


class Smooth(Commits):
    """Nothing goes wrong."""

    def reads(self) -> None: ...

    def before(self) -> CommitTrouble | None:
        return None

    def rings(self) -> bool:
        return True

    def hears(self, hint: Callable[[], object]) -> None:
        hint()

    def after(self, changes: Sequence[StoredChange]) -> None: ...


class Server:
    """A database with leases, for as many processes as a test opens."""

    def __init__(
        self,
        connect: Callable[[], Store],
        disconnect: Callable[[], object],
        clock: Clock,
        threads: Threads,
        undone: ExitStack,
    ) -> None:
        self._connect, self._disconnect = connect, disconnect
        self._clock, self._threads, self._undone = clock, threads, undone

    def store(self) -> Store:
        """The database, as another process has it."""
        store = self._connect()
        self._undone.callback(store.close)
        ensure_schema(store)
        return store

    def disconnect(self) -> None:
        """End every connection of those that are hosts."""
        self._disconnect()

    def host(self, store: Store, host_id: str, name: str | None) -> Host:
        """A host that has joined."""
        host = take_database(new_host(store, host_id, self._clock, LONG, self._threads, name=name))
        self._undone.callback(host.release)
        return host


@pytest.fixture(params=["simulated", "postgres"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A simulated database, and one on a server."""
    with ExitStack() as undone:
        if request.param == "postgres":
            url = request.getfixturevalue("new_postgres")()
            admin: Admin = request.getfixturevalue("postgres_admin")
            yield Server(
                lambda: open_store(url), lambda: admin.execute(END_HOSTS), SystemClock(), SYSTEM_THREADS, undone
            )
            return
        clock, opened = ManualClock(), list[SimulatedStore]()
        threads = SimulatedThreads(Agenda(Schedule({}).begin(), clock))

        def connect() -> Store:
            beside = opened[0] if opened else None
            opened.append(SimulatedStore(clock.now_ms, empty_image(), Smooth(), threads, beside, leases=True))
            return opened[-1]

        def close_database() -> None:
            if opened:
                opened[0].close_database()

        def disconnect() -> None:
            for store in opened:
                store.disconnect()

        undone.callback(close_database)
        undone.enter_context(one_of(threads))
        yield Server(connect, disconnect, clock, threads, undone)


def held(store: Store, *hosts: str) -> set[str]:
    """Return which of these hosts live."""
    return store.read(lambda tx: tx.held(hosts))


def renews(host: Host) -> bool:
    """Renew the lease; return whether the database answered. A server ends a connection after its locks are free."""
    with suppress(StoreUnavailable):
        host.renew()
        return True
    return False


@contextmanager
def closed(watch: Watch) -> Iterator[Watch]:
    """A watch for the time of a block; who waits gives back what it has."""
    yield watch
    watch.close()
    watch.wait(0)


def test_the_lock_of_a_host_is_held_until_its_connection_is_closed(server: Server) -> None:
    first, second = server.store(), server.store()
    own = first.separate()
    own.write(lambda tx: tx.hold("a"))
    own.write(lambda tx: tx.hold("a"))
    assert held(first, "a", "b") == held(second, "a", "b") == {"a"}
    own.close()
    eventually(lambda: not held(second, "a", "b"), "the end of the connection at the server")


def test_a_lock_that_was_lost_with_its_connection_is_held_again_at_the_next_renewal(server: Server) -> None:
    store = server.store()
    host = server.host(server.store(), "host a", "a")
    assert held(store, host.id) == {host.id}
    server.disconnect()
    eventually(lambda: not held(store, host.id), "the end of the connections at the server")
    eventually(lambda: renews(host), "a renewal on another connection")
    assert held(store, host.id) == {host.id}


def test_an_abandoned_store_says_why_and_frees_its_locks_and_others_go_on(server: Server) -> None:
    first, second = server.store(), server.store()
    with closing(first.separate()) as own:
        own.write(lambda tx: tx.hold("a"))
        own.abandon("no heartbeat")
        for store in (own, first):
            with pytest.raises(SystemClosed, match="no heartbeat"):
                store.write(tree_change)
    with pytest.raises(SystemClosed, match="no heartbeat"):
        first.read(lambda tx: tx.run("tree_version"))
    second.write(tree_change)
    eventually(lambda: not held(second, "a"), "the end of the connection at the server")


def test_those_who_follow_hosts_hear_of_every_commit_and_others_when_they_are_rung_for(server: Server) -> None:
    store = server.store()
    with closed(store.watch()) as clients, closed(store.watch(hosts=True)) as everybody:
        ringing = server.store()
        assert [clients.wait(DEADLINE), everybody.wait(DEADLINE)] == [True, True]  # they know nothing of the past
        ringing.ring()
        assert [everybody.wait(DEADLINE), clients.wait(0.05)] == [True, False]
        ringing.ring(hosts=True)
        assert [everybody.wait(DEADLINE), clients.wait(DEADLINE)] == [True, True]
        ringing.write(lambda tx: tx.notify())
        assert [everybody.wait(DEADLINE), clients.wait(DEADLINE)] == [True, True]


def test_hosts_with_names_share_the_shards_and_the_next_of_a_name_replaces_the_one_before(server: Server) -> None:
    store = server.store()
    first, second = (server.host(server.store(), f"host {name}", name) for name in ("a", "b"))
    first.claim()
    second.claim()
    assert len(store.read(lambda tx: shares(tx, first.id)).own) == len(store.read(lambda tx: shares(tx, second.id)).own)
    again = server.host(server.store(), "host a again", "a")
    again.claim()
    with pytest.raises(Fenced):
        first.renew()
    divided = store.read(lambda tx: shares(tx, again.id))
    assert (len(divided.own), divided.vacant, {member.host for member in divided.members}) == (
        divided.shards // 2,
        0,
        {"host b", "host a again"},
    )
