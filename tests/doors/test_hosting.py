"""Who runs the agents while a door is open: one host at a time, started again when it is gone."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.doors.hosting import LOG_SIZE, Hosting, StartSchedule, door_log, latest_line, start_host
from ikigai_actors.errors import NoHost
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually


def test_one_host_is_started_at_a_time_and_later_after_each_that_has_failed() -> None:
    schedule, started = StartSchedule(), list[float]()
    for now in range(200):
        if schedule.starts(now, hosted=False, starting=False):
            started.append(now)
    assert started == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert not schedule.starts(1_000, hosted=False, starting=True)
    assert not schedule.starts(1_000, hosted=True, starting=False)
    assert schedule.starts(1_001, hosted=False, starting=False)
    assert schedule.starts(1_002, hosted=False, starting=False)  # the pause is short again


class HostHere:
    """A host of this process, in place of another one."""

    def __init__(self, database: str) -> None:
        self._system: ActorSystem | None = ActorSystem.open(database, ScriptedProvider(["tea"] * 9))

    def poll(self) -> int | None:
        return None if self._system is not None else 0

    def end(self) -> None:
        assert self._system is not None
        self._system.close()
        self._system = None


def test_a_host_is_started_when_there_is_none_and_again_when_it_has_ended(tmp_path: Path) -> None:
    file, hosts = str(tmp_path / "team.db"), list[HostHere]()

    def start() -> HostHere:
        hosts.append(HostHere(file))
        return hosts[-1]

    hosting = Hosting(file, start, lambda: "")
    try:
        assert hosting.attached(DEADLINE).root.prompt("tea?").get(timeout=DEADLINE).text == "tea"
        hosting.check_hosted(DEADLINE)
        hosts[0].end()
        eventually(lambda: len(hosts) == 2, "the next host")
        hosting.check_hosted(DEADLINE)
    finally:
        hosting.close()
        hosts[-1].end()
    assert len(hosts) == 2


def test_a_host_that_is_there_is_used(new_sqlite: Callable[[], str]) -> None:
    database = new_sqlite()

    def start() -> HostHere:
        raise AssertionError("there is a host")

    with ActorSystem.open(database, ScriptedProvider([])) as host:
        hosting = Hosting(database, start, lambda: "")
        assert hosting.attached(DEADLINE).root.uuid == host.root.uuid
        hosting.check_hosted(DEADLINE)
        eventually(lambda: not host._is_idle(1), "the presence of the door")
        hosting.close()
        assert host._is_idle(1)


def test_a_call_waits_for_the_host_that_its_door_has_started_whatever_its_own_time(tmp_path: Path) -> None:
    with ActorSystem.open(tmp_path / "team.db", ScriptedProvider([])):
        pass  # a database of yesterday, which nobody runs
    starting, hosts = Event(), list[HostHere]()

    class Slow:
        def poll(self) -> int | None:
            return None

    def start() -> Slow:
        starting.set()
        return Slow()

    hosting = Hosting(str(tmp_path / "team.db"), start, lambda: "")
    called = Event()

    def call() -> None:
        hosting.check_hosted(0)
        called.set()

    caller = Thread(target=call)
    caller.start()
    try:
        assert starting.wait(DEADLINE)
        hosts.append(HostHere(str(tmp_path / "team.db")))
        assert called.wait(DEADLINE)
    finally:
        hosting.close()
        caller.join()
        hosts[0].end()


class Failed:
    """A host that could not begin."""

    def poll(self) -> int | None:
        return 1


def test_a_host_that_cannot_begin_is_named_with_its_latest_line(tmp_path: Path) -> None:
    hosting = Hosting(str(tmp_path / "team.db"), Failed, lambda: "ikigai: no such provider")
    with pytest.raises(NoHost, match=r"No host at the moment.*: nothing was done\."):
        hosting.attached(0)
    eventually(lambda: "no such provider" in str(refusal(hosting)), "the reason")
    hosting.close()


def refusal(hosting: Hosting) -> NoHost | None:
    try:
        hosting.check_hosted(0)
    except NoHost as error:
        return error
    return None


def test_the_log_is_made_private_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    assert [stat.S_IMODE(door_log().stat().st_mode) for _ in range(2)] == [0o600] * 2


@pytest.mark.slow("starts a program")
def test_the_log_is_private_and_begins_again_when_it_is_long(tmp_path: Path) -> None:
    log = tmp_path / "doors.log"
    log.write_bytes(b"x" * LOG_SIZE + b"\nthe end\n")
    assert latest_line(log) == "the end"
    host = start_host(["--no-such-option"], dict(os.environ), log)
    eventually(lambda: host.poll() is not None, "the end of a host that cannot begin")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert (log.with_suffix(".log.1").stat().st_size, "No such option" in latest_line(log)) == (LOG_SIZE + 9, True)
    assert latest_line(tmp_path / "none") == ""
    log.write_text('{"level": "error", "message": "the end, as JSON"}\n')
    assert latest_line(log) == "the end, as JSON"
