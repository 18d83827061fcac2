"""A host as a child: ended, revived and killed by its parent. No Ray is needed."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors.cluster.child import HostProcess, Launch
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.system.remote.client import Client
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, eventually, printed, python
from tests.kit.ray_cluster import processes

APP = """
def app():
    return {"provider": "offline", "lease": 1.0}
"""


@pytest.fixture
def launch(new_postgres: NewDatabase, tmp_path: Path) -> Launch:
    """A way to start hosts."""
    (tmp_path / "shop.py").write_text(APP, encoding="utf-8")
    return Launch(new_postgres(), "shop:app", str(tmp_path), 0, {})


class Started:
    """Children, and whether their parent would be started again."""

    def __init__(self) -> None:
        self.children: list[HostProcess] = []
        self.revived = threading.Event()

    def __call__(self, launch: Launch) -> HostProcess:
        self.children.append(HostProcess("host-1", launch, lambda status: self.revived.set()))
        return self.children[-1]


@pytest.fixture
def start() -> Iterator[Started]:
    started = Started()
    yield started
    for child in started.children:
        child.stop(0)


def living(launch: Launch) -> list[HostRecord]:
    """The hosts that run agents."""
    try:
        with Client.open(launch.url) as client:
            return [host for host in client.hosts() if host.state == "runs" and host.shards]
    except Exception:  # no tables yet
        return []


@pytest.mark.thorough("a second process; what happens at the end of a host that hangs happens here too")
def test_a_host_that_is_killed_ends_its_parent(launch: Launch, start: Started) -> None:
    killed = start(launch)
    eventually(lambda: living(launch), "the host")
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    assert start.revived.wait(DEADLINE)
    assert killed.status == -signal.SIGKILL


@pytest.mark.thorough("a host as a process")
def test_a_host_that_hangs_ends_its_parent(launch: Launch, start: Started) -> None:
    hangs = start(launch)
    eventually(lambda: [host.pid for host in living(launch)] == [hangs.pid], "the host")
    assert hangs.pid is not None
    os.kill(hangs.pid, signal.SIGSTOP)
    assert start.revived.wait(DEADLINE)
    assert (hangs.status, hangs.said) == (-signal.SIGKILL, "host host-1 has sent no heartbeat for 3 s")


@pytest.mark.thorough("two processes; the decision is a unit test")
def test_a_host_that_is_told_to_end_does_not_come_back(launch: Launch, start: Started) -> None:
    child = start(launch)
    eventually(lambda: living(launch), "the host")
    assert child.stop(DEADLINE) == 0
    assert not start.revived.is_set()
    assert not living(launch)


@pytest.mark.thorough("hosts as processes")
@pytest.mark.sample(1, "a mistake each")
@pytest.mark.parametrize(
    ("app", "directory", "words"),
    [("shop:nothing", None, "AttributeError: module 'shop' has no attribute 'nothing'"), ("shop:app", "gone", "gone")],
)
def test_why_a_host_could_not_be_started_is_known(
    launch: Launch, start: Started, app: str, directory: str | None, words: str
) -> None:
    place = str(Path(launch.directory or "") / directory) if directory else launch.directory
    child = start(Launch(launch.url, app, place, 0, {}))
    assert start.revived.wait(DEADLINE)
    assert child.status == 1
    assert words in child.said


def test_a_password_stands_in_no_list_of_processes_and_in_no_message(launch: Launch, start: Started) -> None:
    child = start(launch)
    assert launch.url not in repr(launch)
    assert launch.url not in " ".join(process.command for process in processes() if process.pid == child.pid)


@pytest.mark.thorough("three interpreters")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux ends a child with its parent")
def test_a_host_ends_with_its_parent(launch: Launch) -> None:
    script = """
        import sys
        from ikigai_actors.cluster.child import HostProcess, Launch
        child = HostProcess("host-1", Launch(*sys.argv[1:4], 0, {}), lambda: None)
        print(child.pid, flush=True)
        sys.stdin.read()
    """
    with python(script, launch.url, launch.app, launch.directory) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        eventually(lambda: [host.pid for host in living(launch)] == [pid], "the host")
        parent.kill()
        eventually(lambda: all(process.pid != pid for process in processes()), "its end")


SHIM = """
import sys, threading
from ikigai_actors.cluster.child import Launch
from ikigai_actors.cluster.shim import Shim

shim = Shim("host-1", Launch("postgresql://nowhere/team", "shop:app", sys.argv[1], 0, {}))
for thread in threading.enumerate():
    if thread.name == "ikigai-child":
        thread.join()
print(shim.report().status)
"""


def test_a_shim_stays_when_the_place_of_its_host_was_taken_and_ray_starts_nothing_against_that(tmp_path: Path) -> None:
    package = tmp_path / "ikigai_actors"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import sys; sys.exit(76)", encoding="utf-8")
    with python(SHIM, tmp_path) as shim:
        assert printed(shim) == "76"
