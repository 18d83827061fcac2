"""How a host ends that cannot run the agents: its exit status, and what it says; called within this process."""

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import BadInput, Fenced, HostReplaced, IkigaiError, StoreUnavailable, SystemClosed
from ikigai_actors.shell.cli import main
from ikigai_actors.shell.cli.host import REPLACED, START_AGAIN, IdleWatch, run_host
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.memory import open_with_tables
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.verbs.opening import Options
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, eventually, sql
from tests.kit.program import Program
from tests.kit.wire import Wire

T = TypeVar("T")


def options(database: str) -> Options:
    """Those of a command line that names a database."""
    return Options(database, "offline", None)


def started(database: str, name: str | None = "a") -> tuple[int, list[str]]:
    """Start a host, and end it as soon as it runs the agents: its exit status, and what it said."""
    said: list[str] = []
    status = run_host(options(database), name, None, None, None, lambda system, wait: 0, said.append)
    return status, said


def test_a_server_that_does_not_answer_is_tried_again() -> None:
    status, [said] = started("postgresql://bob@127.0.0.1:1/db")
    assert status == START_AGAIN
    assert "it does not answer. Check that it runs" in said


@pytest.mark.sample(1, "a host for each")
@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("at", [b"COMMIT\0", b"INTO hosts", b"UPDATE shards", b"INTO agents"])
def test_a_host_whose_connection_breaks_while_it_starts_is_started_again(
    new_postgres: NewDatabase, at: bytes, heard: bool
) -> None:
    url = new_postgres()
    if at != b"INTO agents":
        ActorSystem.open(url, OfflineProvider()).close()
    wire = Wire(url, heard=heard, at=at)
    wire.armed.set()
    with closing(wire):
        status, [said] = started(wire.url)
    assert (status, said.count("\n")) == (START_AGAIN, 0)
    assert started(url)[0] == 0


def test_a_file_that_another_host_has_may_be_free_later(tmp_path: Path) -> None:
    file = str(tmp_path / "team.db")
    with ActorSystem.open(file, OfflineProvider()):
        status, [said] = started(file, None)
        assert status == START_AGAIN
        assert "is in use by host" in said
    assert started(file, None)[0] == 0


def test_an_app_that_is_no_function_is_told_what_it_is(tmp_path: Path) -> None:
    of_app = Options(str(tmp_path / "team.db"), None, None, app="sys:maxsize")
    with pytest.raises(BadInput, match="--app sys:maxsize is an int and no function"):
        run_host(of_app, None, None, None, None, lambda system, wait: 0, print)


def test_what_no_other_try_would_mend_is_another_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.db").write_bytes(b"no database at all" * 100)
    assert main.run(["--database", str(tmp_path / "other.db"), "host"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.thorough("a second host that ends with its status")
def test_a_host_whose_place_another_one_has_taken_says_so_once(
    new_postgres: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    url, said = new_postgres(), list[str]()

    def until_it_is_lost(system: ActorSystem) -> int:
        with closing(open_store(url)) as store:
            store.write(lambda tx: sql(tx, "UPDATE hosts SET ended_at = 1"))
        with pytest.raises(IkigaiError):
            system.root.rename("root")
        system._check_open()
        return 0

    with caplog.at_level(logging.WARNING):
        status = run_host(
            options(url), "a", None, None, None, lambda system, wait: until_it_is_lost(system), said.append
        )
    assert status == START_AGAIN
    assert len([line for line in [*caplog.messages, *said] if "sent no heartbeat" in line]) == 1


def test_a_host_whose_place_another_one_of_its_name_has_taken_must_not_be_started_again(
    new_postgres: NewDatabase,
) -> None:
    url, said = new_postgres(), list[str]()

    def until_it_is_replaced(system: ActorSystem) -> int:
        with ActorSystem.open(url, OfflineProvider(), join=True, name="a"), pytest.raises(IkigaiError):
            system.root.rename("root")
        system._check_open()
        return 0

    status = run_host(
        options(url), "a", None, None, None, lambda system, wait: until_it_is_replaced(system), said.append
    )
    assert status == REPLACED
    assert "Another host named a was started, and has taken the place of this one: " in said[-1]


@pytest.mark.parametrize(("why", "status"), [(Fenced, START_AGAIN), (HostReplaced, REPLACED)])
def test_a_host_that_was_ended_says_so_though_it_has_met_its_closed_database_first(
    tmp_path: Path, why: type[Fenced], status: int
) -> None:
    said: list[str] = []

    def look(system: ActorSystem) -> int:
        system._fail(why("Other hosts have taken its agents."))
        while True:  # until the thread has closed it that closes a system which has stopped
            system._ungated_store.read(lambda tx: tx.run("time"))

    file = options(str(tmp_path / "team.db"))
    assert run_host(file, None, None, None, None, lambda system, wait: look(system), said.append) == status
    assert said[1:] == ["The system stopped: Other hosts have taken its agents."]


class Interrupted(ForwardingStore):
    """A store of a host that is ended while it opens; what this reads then comes after the store was closed."""

    def __init__(self, store: Store, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__(store)
        self._caplog, self._closed = caplog, threading.Event()

    def read(self, work: Callable[[Transaction], T]) -> T:
        if threading.current_thread() is threading.main_thread():
            if not self.is_said("sent no heartbeat") and self._store.write(
                lambda tx: sql(
                    tx,
                    "UPDATE hosts SET ended_at = 1 WHERE name = 'a' AND id IN (SELECT host FROM shards) RETURNING id",
                )
            ):
                eventually(lambda: self.is_said("sent no heartbeat"), "the end of the host")
            if self.is_said("The system stopped"):
                assert self._closed.wait(DEADLINE)
        return super().read(work)

    def is_said(self, text: str) -> bool:
        return text in self._caplog.text

    def close(self) -> None:
        super().close()
        self._closed.set()


@pytest.mark.thorough("a second host that ends with its status")
def test_a_host_that_is_ended_while_it_opens_says_so(
    new_postgres: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    url = new_postgres()
    ActorSystem.open(url, OfflineProvider()).close()
    parts = replace(SYSTEM_PLATFORM, open_store=lambda url: Interrupted(open_with_tables(url), caplog))
    with pytest.raises(SystemClosed, match="sent no heartbeat"):
        ActorSystem.open(url, OfflineProvider(), join=True, name="a", lease=2.0, parts=parts)


class Bench:
    """A host on a clock of its own, which is needed or not as a test says."""

    def __init__(self, seconds: float) -> None:
        self.time, self.idle = 0.0, True
        self.error: StoreUnavailable | None = None
        self.watch = IdleWatch(seconds, self.look, lambda: self.time)

    def look(self) -> bool:
        if self.error is not None:
            raise self.error
        return self.idle

    def at(self, time: float, *, idle: bool = True) -> bool:
        self.time, self.idle = time, idle
        return self.watch.is_over()


def test_a_host_ends_once_it_was_idle_at_every_look_for_long_enough() -> None:
    bench = Bench(60)
    assert bench.watch.pause == 5
    assert [bench.at(time) for time in (5, 30, 59.9, 60)] == [False, False, False, True]
    bench = Bench(1)
    assert bench.watch.pause == 0.25
    assert [bench.at(0.5, idle=False), bench.at(1.4), bench.at(1.5)] == [False, False, True]


def test_a_host_whose_database_is_gone_for_long_enough_ends_too() -> None:
    bench = Bench(10)
    assert not bench.at(5, idle=False)
    bench.error = StoreUnavailable("down")
    assert [bench.at(14.9), bench.at(15)] == [False, True]


def test_a_host_that_nobody_needs_ends_by_itself(tmp_path: Path) -> None:
    file = str(tmp_path / "team.db")
    with Program.by_pipe("--database", file, "--model", "offline", "host", "--until-idle", "1", notices=True) as host:
        host.expect("runs ")
        assert host.ends() == 0
