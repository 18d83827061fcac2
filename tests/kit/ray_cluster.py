"""A cluster of Ray on this machine, of a head and further nodes, whose processes a test may kill."""

import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from tests.kit.databases import ROOT, eventually

needs_ray = [
    pytest.mark.thorough("Ray takes a minute to start"),
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="RAY IS NOT INSTALLED, so nothing of the cluster was tested: pip install 'ikigai-actors[ray]'",
    ),
]
"""Marks of tests on Ray."""

RAY_PATIENCE = 240.0
"""Seconds after which a command has failed that starts Ray, or hosts on it: on a busy machine that takes a minute."""

QUICK = {"initial_delay_ms": 1000, "period_ms": 1000, "timeout_ms": 3000, "failure_threshold": 3}
"""How soon a node counts as dead."""


class Process(NamedTuple):
    """A process of this machine."""

    pid: int
    parent: int
    session: int
    command: str


def processes() -> list[Process]:
    """All that run, without those that have ended and are not missed yet."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,sess=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(maxsplit=4) for line in listed.splitlines()]
    return [
        Process(int(words[0]), int(words[1]), int(words[2]), words[4])
        for words in lines
        if len(words) == 5 and not words[3].startswith("Z")
    ]


def parent(pid: int) -> int:
    """The process that has started another one."""
    return next(process.parent for process in processes() if process.pid == pid)


def kill_all(chosen: Callable[[], list[Process]]) -> None:
    """``kill -9``, until there are none."""

    def gone() -> bool:
        running = chosen()
        for process in running:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(process.pid, signal.SIGKILL)
        return not running

    eventually(gone, "the end of Ray")


class RayCluster:
    """Its nodes, each in a session of its own."""

    def __init__(self, directory: Path) -> None:
        token = directory / "token"
        token.write_text(secrets.token_hex(32), encoding="utf-8")
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{asked.getsockname()[1]}"
        self._directory = directory
        self.environment: Mapping[str, str] = {
            "RAY_ADDRESS": self.address,
            "RAY_AUTH_MODE": "token",  # Ray listens on every address of the machine
            "RAY_AUTH_TOKEN_PATH": str(token),
        }
        """The variables by which a process reaches it."""
        self._sessions: list[int] = []

    def start(self, nodes: int) -> None:
        """Start the head, and then other nodes."""
        port = self.address.rpartition(":")[2]
        head = ["--head", f"--port={port}", "--include-dashboard=false", "--disable-usage-stats", "--num-cpus=2"]
        self._wait(self._node([*head, f"--temp-dir={self._directory}"]))
        for _ in range(nodes):  # two that begin at once on one machine get into each other's way
            self._wait(self._node([f"--address={self.address}", "--num-cpus=2"]))

    def _node(self, arguments: list[str]) -> "subprocess.Popen[bytes]":
        health = {f"RAY_health_check_{name}": str(value) for name, value in QUICK.items()}
        inherited = {name: value for name, value in os.environ.items() if name not in self.environment}
        with (self._directory / f"node-{len(self._sessions)}.log").open("wb") as log:
            node = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ray.scripts.scripts", "start", "--object-store-memory=80000000"),
                    *("--dashboard-agent-listen-port=0", *arguments),
                ],
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**inherited, **self.environment, **health, "RAY_gcs_rpc_server_reconnect_timeout_s": "3600"},
                start_new_session=True,
            )
        self._sessions.append(node.pid)
        return node

    def _wait(self, node: "subprocess.Popen[bytes]") -> None:
        if node.wait():
            pytest.fail((self._directory / f"node-{self._sessions.index(node.pid)}.log").read_text(encoding="utf-8"))

    def processes(self) -> list[Process]:
        """All of its processes, and what they have started."""
        return [process for process in processes() if process.session in self._sessions]

    def head(self, program: str) -> int:
        """The process of the head that runs a program: ``gcs_server``, ``raylet``."""
        return next(
            process.pid
            for process in self.processes()
            if process.session == self._sessions[0] and f"/{program} " in process.command
        )

    def kill(self) -> None:
        """``kill -9``, all of it."""
        kill_all(self.processes)


@contextmanager
def ray_cluster(nodes: int) -> Iterator[RayCluster]:
    """A cluster for the length of a block."""
    with ExitStack() as stack:
        directory = stack.enter_context(TemporaryDirectory(prefix="ray-"))  # the names of its sockets must be short
        cluster = RayCluster(Path(directory))
        stack.callback(cluster.kill)
        cluster.start(nodes)
        yield cluster
