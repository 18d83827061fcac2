"""The files for systemd and Kubernetes: what they say is done with plain processes."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ikigai_actors.shell.cli.host import DRAIN, REPLACED
from ikigai_actors.store.hosts.host import LEASE, LOST
from ikigai_actors.system.remote.client import Client
from tests.conftest import NewDatabase
from tests.kit.databases import ROOT, eventually
from tests.kit.notified import Notified
from tests.kit.program import COMMAND, PATIENCE, environment, run

UNIT, MANIFEST = ROOT / "examples" / "ikigai-host@.service", ROOT / "examples" / "kubernetes.yaml"
NAMES = ("one", "two", "three")


class Starter:
    """Runs hosts as a file says, and starts them again when they end."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url, self.directory = url, directory
        shutil.copy(ROOT / "examples" / "shop.py", directory)  # all that its working directory has
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def command(self, name: str) -> list[str]:
        """What the file says for a host."""
        raise NotImplementedError

    def is_ready(self, name: str) -> bool:
        """Whether the host runs agents, by the means of the file."""
        raise NotImplementedError

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a host."""
        return {**environment(), "IKIGAI_DATABASE_URL": self.url}

    def start(self, name: str) -> None:
        """Start one, and wait until it runs agents."""
        program, *arguments = self.command(name)
        assert Path(program).name == "ikigai"
        self.running[name] = subprocess.Popen(
            [*COMMAND, *arguments], cwd=self.directory, env=self.environment(name), stderr=subprocess.DEVNULL
        )
        eventually(lambda: self.is_ready(name), f"host {name}")

    def end(self, name: str, grace: float) -> int:
        """End one as the starters do: by SIGTERM."""
        self.running[name].terminate()
        return self.running[name].wait(grace)

    def close(self) -> None:
        """Kill what runs."""
        for process in self.running.values():
            process.kill()
            process.wait(PATIENCE)


class Systemd(Starter):
    """The unit."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url, directory)
        unit = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
        unit.read(UNIT, encoding="utf-8")
        self.service = unit["Service"]
        self.sockets: dict[str, Notified] = {}
        self._hearing: list[Notified] = []

    def command(self, name: str) -> list[str]:
        return shlex.split(self.service["ExecStart"].replace("%H", "machine").replace("%i", name))

    def environment(self, name: str) -> dict[str, str]:
        assert self.service["Type"] == "notify"
        place = self.directory / f"{name}-{len(self._hearing)}"
        self.sockets[name] = Notified(place)
        self._hearing.append(self.sockets[name])
        return {**super().environment(name), "NOTIFY_SOCKET": str(place)}

    def is_ready(self, name: str) -> bool:
        return "READY=1" in self.sockets[name].told

    def end(self, name: str, grace: float) -> int:
        status = super().end(name, grace)
        eventually(lambda: "STOPPING=1" in self.sockets[name].told, "the word that it ends")
        return status

    def close(self) -> None:
        super().close()
        for listening in self._hearing:
            listening.close()


class Kubernetes(Starter):
    """The StatefulSet."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url, directory)
        matches = re.findall(r"^ +command: (\[.*\])$", MANIFEST.read_text(encoding="utf-8"), re.MULTILINE)
        self.container, self.startup, self.liveness = map(json.loads, matches)

    def command(self, name: str) -> list[str]:
        return [word.replace("$(POD_NAME)", f"ikigai-{name}") for word in self._here(self.container, name)]

    def is_ready(self, name: str) -> bool:
        return self._succeeds(self.startup, name)

    def is_alive(self, name: str) -> bool:
        """What the probe finds."""
        return self._succeeds(self.liveness, name)

    def _succeeds(self, command: list[str], name: str) -> bool:
        return subprocess.run(self._here(command, name), stderr=subprocess.DEVNULL, check=False).returncode == 0

    def _here(self, command: list[str], name: str) -> list[str]:
        return [word.replace("/tmp/alive", str(self.directory / f"alive-{name}")) for word in command]


@contextmanager
def three(kind: type[Starter], url: str, directory: Path) -> Iterator[Starter]:
    """Three hosts."""
    with ExitStack() as stack:
        starter = kind(url, directory)
        stack.callback(starter.close)
        for name in NAMES:
            starter.start(name)
        yield starter


def shares(url: str) -> dict[str, int]:
    """The shards of each host that lives, by the last part of its name."""
    with Client.open(url) as client:
        return {
            str(host.name).rpartition("-")[2]: host.shards
            for host in client.hosts()
            if host.state in ("runs", "drains")
        }


def asked(url: str) -> str:
    """What agent 0 answers."""
    with Client.open(url) as client:
        root = client.root()
    assert root is not None
    done = run("--database", url, "prompt", "--wait", root.uuid, "tea")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough("three hosts, as systemd and Kubernetes start them")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [Systemd, Kubernetes])
def test_what_the_file_says_keeps_three_hosts_answering(
    kind: type[Starter], new_postgres: NewDatabase, tmp_path: Path
) -> None:
    url = new_postgres()
    with three(kind, url, tmp_path) as starter:
        eventually(lambda: all(shares(url).get(name) for name in NAMES), "shards for each")
        assert "tea" in asked(url)
        starter.running["one"].kill()
        assert starter.running["one"].wait(PATIENCE) == -signal.SIGKILL
        assert "tea" in asked(url)
        starter.start("one")
        eventually(lambda: all(shares(url).get(name) for name in NAMES), "shards for each again")
        assert starter.end("one", DRAIN + PATIENCE) == 0
        assert "one" not in shares(url)
        assert sum(shares(url).values()) == 64
        assert "tea" in asked(url)


@pytest.mark.thorough("a directory of a starter is installed")
@pytest.mark.slow("starts a host")
def test_the_files_name_an_app_that_a_directory_with_it_alone_gives(new_postgres: NewDatabase, tmp_path: Path) -> None:
    starter = Kubernetes(new_postgres(), tmp_path)
    assert Systemd("", tmp_path).command("one")[-1] == starter.container[starter.container.index("--app") + 1]
    try:
        starter.start("one")
        assert starter.end("one", DRAIN + PATIENCE) == 0
    finally:
        starter.close()


def test_systemd_waits_longer_than_a_drain_and_a_lease_last_and_starts_again_who_may_run(tmp_path: Path) -> None:
    service = Systemd("", tmp_path).service
    assert service["Restart"] == "always"
    never = {int(status) for status in service["RestartPreventExitStatus"].split()}
    assert never == {1, 2, REPLACED}
    assert float(service["WatchdogSec"]) == LOST * LEASE
    assert float(service["TimeoutStopSec"]) > DRAIN
    assert service["TimeoutStartSec"] == "infinity"


def test_kubernetes_waits_longer_than_a_drain_lasts() -> None:
    [grace] = re.findall(r"terminationGracePeriodSeconds: (\d+)", MANIFEST.read_text(encoding="utf-8"))
    assert int(grace) > DRAIN


def test_the_probe_of_kubernetes_finds_a_host_that_hangs(tmp_path: Path) -> None:
    probes = Kubernetes("", tmp_path)
    alive = tmp_path / "alive-one"
    assert not probes.is_ready("one")
    alive.touch()
    assert not probes.is_ready("one")
    alive.write_text("30\n", encoding="utf-8")
    assert probes.is_ready("one")
    assert probes.is_alive("one")
    os.utime(alive, (0, alive.stat().st_mtime - 31))
    assert not probes.is_alive("one")
