"""The heartbeats of a host, for systemd, for Kubernetes, and for a parent process."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.shell.cli.liveness import Liveness
from tests.conftest import NewDatabase
from tests.kit.databases import eventually
from tests.kit.notified import Notified
from tests.kit.program import Program, run

APP = """
def app():
    return {"provider": "offline", "lease": 1.0}
"""


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notified]:
    """Hears what systemd would hear."""
    listening = Notified(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    yield listening
    listening.close()


def test_systemd_hears_of_the_start_of_life_and_of_the_end(systemd: Notified) -> None:
    liveness = Liveness(None, 10.0)
    liveness.ready()
    liveness.beat()
    liveness.stopping()
    eventually(lambda: systemd.told == ["READY=1", "WATCHDOG=1", "STOPPING=1"], "all three")


def test_what_a_host_starts_is_not_heard_by_systemd(systemd: Notified) -> None:
    Liveness(None, 10.0)
    assert "NOTIFY_SOCKET" not in os.environ


@pytest.mark.skipif(not os.path.exists("/proc"), reason="abstract sockets are Linux's")  # noqa: PTH110 - a constant
def test_an_abstract_socket_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = Notified(f"\0ikigai-{os.getpid()}")
    monkeypatch.setenv("NOTIFY_SOCKET", f"@ikigai-{os.getpid()}")
    Liveness(None, 10.0).ready()
    eventually(lambda: listening.told == ["READY=1"], "the start")
    listening.close()


def test_a_socket_that_is_full_or_gone_holds_no_beat_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(place))
        monkeypatch.setenv("NOTIFY_SOCKET", str(place))
        liveness = Liveness(None, 10.0)
        for _ in range(10_000):
            liveness.beat()
    place.unlink()
    liveness.beat()


def test_in_the_file_stands_after_how_many_seconds_of_silence_a_host_should_be_killed(tmp_path: Path) -> None:
    file = tmp_path / "alive"
    liveness = Liveness(str(file), 2.5)
    liveness.beat()
    liveness.beat()
    assert file.read_text(encoding="utf-8") == "8\n"
    file.unlink()
    liveness.beat()
    assert file.read_text(encoding="utf-8") == "8\n"


@pytest.mark.thorough("a pipe is filled")
def test_a_pipe_gets_a_line_for_each_sign_and_holds_nobody_up_when_it_is_full() -> None:
    reading, writing = os.pipe()
    liveness = Liveness(f"/dev/fd/{writing}", 10.0)
    liveness.beat()
    liveness.beat()
    assert os.read(reading, 1000) == b"30\n30\n"
    for _ in range(100_000):
        liveness.beat()
    os.close(reading)
    liveness.beat()
    os.close(writing)


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written: No such file or directory"):
        Liveness(str(tmp_path / "nowhere" / "alive"), 10.0)
    done = run("host", "--alive", str(tmp_path))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "Is a directory" in done.stderr


def test_a_host_lives_by_the_renewals_of_its_lease(
    new_postgres: NewDatabase, systemd: Notified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(APP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    alive = tmp_path / "alive"
    asked = ("--database", new_postgres(), "host", "--name", "a", "--app", "shop:app", "--alive", str(alive))
    with Program.by_pipe(*asked, notices=True) as program:
        program.expect("runs postgresql")
        eventually(lambda: systemd.told.count("WATCHDOG=1") > 3, "heartbeats")
        assert systemd.told.count("READY=1") == 1
        alive.unlink()
        eventually(alive.exists, "another sign")
        assert program.end() == 0
    eventually(lambda: "STOPPING=1" in systemd.told, "the end")
    assert {*systemd.told} == {"READY=1", "WATCHDOG=1", "STOPPING=1"}


@pytest.mark.thorough("waits for renewals; every run has the renewals of a host")
def test_the_host_of_a_file_gives_signs_too(systemd: Notified, tmp_path: Path) -> None:
    with Program.by_pipe(
        "--database", str(tmp_path / "team.db"), "--model", "offline", "host", notices=True
    ) as program:
        program.expect("runs ")
        eventually(lambda: systemd.told[:3] == ["WATCHDOG=1", "READY=1", "WATCHDOG=1"], "heartbeats")
