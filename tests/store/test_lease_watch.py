"""A network that takes everything and passes nothing on: the host says so, and ends, and no call hangs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

import psycopg
import pytest

from ikigai_actors import ActorSystem, IkigaiError, OfflineProvider, StoreTrouble, SystemClosed
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.errors import Fenced, OutcomeUnknown, StoreUnavailable
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.hosts.host import LOST, Host, Renewal, renewal
from ikigai_actors.store.hosts.membership import rhythm
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.testing import Simulation, simulated
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, eventually, sql
from tests.kit.faults import FaultyStore
from tests.kit.network import with_settings
from tests.kit.program import Program
from tests.kit.sessions import Session
from tests.kit.wire import Wire

T = TypeVar("T")

LEASE = 10.0
SHORT = 0.4
"""Seconds of a lease that a test waits out."""


@pytest.mark.parametrize(
    ("age", "awake", "judged"),
    [
        (0.0, 99.0, Renewal.KEPT),
        (LEASE - 0.1, 99.0, Renewal.KEPT),
        (LEASE, 99.0, Renewal.LATE),
        (LOST * LEASE - 0.1, 99.0, Renewal.LATE),
        (LOST * LEASE, 99.0, Renewal.LOST),
        (8 * 3600.0, 1.0, Renewal.LATE),  # the machine was suspended, and has just gone on
        (8 * 3600.0, LOST * LEASE, Renewal.LOST),
    ],
)
def test_a_lease_is_judged_by_the_age_of_its_renewal(age: float, awake: float, judged: Renewal) -> None:
    assert renewal(age, awake, LEASE) is judged


class Swallowing(FaultyStore):
    """A store whose network can swallow everything: then every write waits until the store is abandoned."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._changed = current_threads().condition()
        self.swallows = False
        self.why = ""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        with self._changed:
            self._changed.wait_for(lambda: self.why or not self.swallows)
        if self.why:
            raise SystemClosed(self.why)
        return super().write(work)

    def answers_again(self) -> None:
        """The network passes everything on."""
        with self._changed:
            self.swallows = False
            self._changed.notify_all()

    def abandon(self, why: str) -> None:
        """See `Store.abandon`."""
        with self._changed:
            self.why = why
            self._changed.notify_all()


class Watched:
    """A host with a lease, in a simulation, and what it tells."""

    def __init__(self, world: Simulation, store: Swallowing) -> None:
        self._world = world
        self.store = store
        store.write(lambda tx: tx.run("register_host", id="host", hostname="h", pid=1, lease=int(LEASE * 1000)))
        self.host = Host(store, "host", world.clock, LEASE, current_threads())
        self.troubles: list[tuple[float, bool]] = []
        self.ends: list[tuple[float, IkigaiError]] = []
        self.began = world.clock.monotonic()
        self.host.keep(self._end, lambda reason: self.troubles.append((self.now, reason is not None)))

    @property
    def now(self) -> float:
        return self._world.clock.monotonic() - self.began

    def _end(self, error: IkigaiError) -> None:
        self.ends.append((self.now, error))

    def passes(self, seconds: float) -> None:
        self._world.process.threads.sleep(seconds)


@pytest.fixture
def watched() -> Iterator[Watched]:
    """A host whose network can swallow everything, in a time that costs nothing."""
    with simulated() as world:
        world.open()
        with closing(SQLiteStore()) as inner:
            ensure_schema(inner)
            watched = Watched(world, Swallowing(inner))
            yield watched
            watched.host.release()


@pytest.mark.slow("takes a tenth of a second")
def test_a_lease_is_renewed_in_time_and_is_no_trouble(watched: Watched) -> None:
    before = watched.store.writes
    for _ in range(400):
        watched.passes(rhythm(LEASE))
        assert watched.host.may_act(lambda: None)
    assert (watched.troubles, watched.ends) == ([], [])
    assert 395 <= watched.store.writes - before <= 405


def test_a_lease_that_cannot_be_renewed_holds_effects_back_until_it_is(watched: Watched) -> None:
    woken: list[float] = []
    watched.store.swallows = True
    watched.passes(LEASE)
    assert not watched.host.may_act(lambda: woken.append(watched.now))
    assert woken == []
    watched.store.answers_again()
    watched.passes(LEASE / 4)
    assert len(woken) == 1
    assert watched.host.may_act(lambda: None)


def test_a_host_that_was_taken_over_ends_at_its_next_renewal(watched: Watched) -> None:
    watched.store.write(lambda tx: tx.run("end_host", id="host"))
    watched.passes(LEASE)
    [(ended, error)] = watched.ends
    assert ended <= LEASE / 2
    assert isinstance(error, Fenced)


def test_a_host_whose_renewals_are_swallowed_tells_after_one_lease_and_ends_after_three(watched: Watched) -> None:
    watched.passes(LEASE)
    watched.store.swallows = True
    before = watched.now
    watched.passes(4 * LEASE)
    [(when, is_trouble)] = watched.troubles
    [(ended, error)] = watched.ends
    assert is_trouble
    assert LEASE / 2 <= when - before <= 1.5 * LEASE
    assert 2.5 * LEASE <= ended - before <= 3.5 * LEASE
    assert isinstance(error, StoreUnavailable)
    assert "has not renewed the lease of 10 s" in str(error)
    assert "start again" in str(error)
    assert watched.store.why == str(error)


def test_a_lease_that_is_renewed_in_time_is_no_trouble_any_more(watched: Watched) -> None:
    watched.store.swallows = True
    watched.passes(2 * LEASE)
    watched.store.answers_again()
    watched.passes(LEASE)
    assert [is_trouble for _, is_trouble in watched.troubles] == [True, False]
    assert watched.ends == []


@pytest.fixture
def wire(new_postgres: NewDatabase) -> Iterator[Wire]:
    """A way to a fresh PostgreSQL database that can swallow everything."""
    wire = Wire(with_settings(new_postgres(), connect_timeout="2"), heard=True)
    yield wire
    wire.close()


@pytest.mark.thorough("a second network that swallows")
def test_no_call_of_a_program_hangs_when_the_network_swallows_everything(wire: Wire) -> None:
    system = ActorSystem.open(wire.url, OfflineProvider(), lease=SHORT)
    events: list[StoreTrouble] = []
    final = threading.Event()

    def hear(event: Any) -> None:
        if isinstance(event, StoreTrouble):
            events.append(event)
            if event.final:
                final.set()

    system.subscribe(hear)
    root, child = system.root, system.root.fork()
    child.prompt("before").get(timeout=DEADLINE)
    wire.swallows.set()
    calls: list[Callable[[], object]] = [
        child.prompt("never answered").get,  # its unit is in the journal's connection
        root.prompt("nor this").get,
        lambda: root.send(child, "nor mail"),
        system.agents,
        lambda: root.fork().record,
        lambda: system.documents.write("a.md", "text"),
    ]
    with ThreadPoolExecutor(len(calls)) as threads:
        for call in [threads.submit(call) for call in calls]:
            with pytest.raises(SystemClosed):
                call.result(DEADLINE)
    assert final.wait(DEADLINE)
    assert [event.final for event in events][-1]
    assert events[0].reason is not None
    assert "has not renewed the lease" in events[0].reason
    with pytest.raises(SystemClosed, match="has not renewed the lease"):
        child.prompt("later")
    system.close()


def test_a_unit_that_was_being_committed_when_the_network_swallowed_its_answer_is_in_doubt(wire: Wire) -> None:
    system = ActorSystem.open(wire.url, OfflineProvider(), lease=SHORT)
    root = system.root
    wire.swallows_at_commit()
    with pytest.raises(OutcomeUnknown, match="may or may not be written"):
        root.send(root, "heard, perhaps")
    system.close()


def test_a_watch_whose_server_never_answers_is_closed_at_once(wire: Wire) -> None:
    with closing(open_store(wire.url)) as store, ThreadPoolExecutor(1) as threads:
        ensure_schema(store)
        watch = store.watch()
        wire.swallows_from(b"LISTEN")
        waiting = threads.submit(watch.wait)
        assert wire.swallows.wait(DEADLINE)
        watch.close()
        waiting.result(DEADLINE)


@pytest.mark.thorough("a second play of a network that is gone")
def test_a_shell_tells_of_the_trouble_and_ends(wire: Wire, capsys: pytest.CaptureFixture[str]) -> None:
    system = ActorSystem.open(wire.url, OfflineProvider(), lease=SHORT)
    session = Session(system, capsys)
    with pytest.raises(SystemClosed, match="has not renewed the lease"):
        session("tea", wire.swallows.set, "milk")
    assert "Trouble with the database" in capsys.readouterr().err
    system.close()


@pytest.mark.thorough("a program that waits for its lease")
@pytest.mark.parametrize("command", [[], ["serve"]], ids=["shell", "serve"])
def test_a_process_that_waits_for_its_person_ends_with_a_line_when_its_host_does(
    new_postgres: NewDatabase, command: list[str]
) -> None:
    url = new_postgres()
    with Program.by_pipe("--database", url, "--provider", "offline", *command, notices=True) as program:
        if command:
            program.expect("http://")
        else:
            program.say("tea")
            program.expect("You said “tea”")
        with psycopg.connect(url) as beside:
            beside.execute("UPDATE hosts SET ended_at = 1")  # as another host that takes over
        program.expect(
            "ikigai: (The system stopped|Nothing is written any more): Another host has taken this database over"
        )
        assert program.ends() == 1


def test_a_store_that_is_abandoned_lets_nobody_wait(new_postgres: NewDatabase) -> None:
    url = new_postgres()
    with (
        closing(open_store(url)) as store,
        psycopg.connect(url, autocommit=True) as beside,
        ThreadPoolExecutor() as threads,
    ):
        sleeping = [
            threads.submit(use, lambda tx: sql(tx, "SELECT pg_sleep(600)")) for use in (store.read, store.write)
        ]
        asked = b"SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
        eventually(lambda: len(beside.execute(asked).fetchall()) == 2, "both statements")
        store.abandon("The lease is lost, as planned.")
        for future in sleeping:
            with pytest.raises((StoreUnavailable, SystemClosed)):
                future.result(DEADLINE)
