"""The hosts of a fleet, as processes, each with a network of its own to the server."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors import FunctionProvider, Reply, Request, ToolCall, Usage
from ikigai_actors.shell.cli.host import REPLACED, START_AGAIN
from ikigai_actors.store.hosts.host import LEASE as DEFAULT_LEASE
from tests.kit.proxy import Proxy
from tests.torture.script import World, place, tools_of

SHORT_LEASE = 2.0

LEASES = (SHORT_LEASE, DEFAULT_LEASE)
"""Seconds for which hosts are believed, one life after the other."""

LEASE = "IKIGAI_TORTURE_LEASE"
"""The variable that has the lease of a host, in seconds."""

CLOCKS = (0, 60, -60)
"""Seconds by which the clocks of hosts are wrong, one life after the other."""

CLOCK = "IKIGAI_TORTURE_CLOCK"
"""The variable that says by how many seconds the clock of a host is wrong."""

RECORDS = "IKIGAI_TORTURE_RECORDS"
"""The variable that names the directory in which the tools of hosts record what they did."""

CALLS = ("once", "again", "later", "alone")
"""The tools that a model calls, those that must not run twice among them."""

MEANT = (-signal.SIGKILL, -signal.SIGTERM, 0, START_AGAIN, REPLACED)
"""How hosts may end: killed, told to end before or while they ran, or since another one has taken their agents."""

NO_SERVER = ("it does not answer", "it starts or stops")
"""What a host says that ends at its start, since the server is down at that moment."""

PRICE = Usage(input_tokens=10, output_tokens=100)
"""What an answer costs that is paid for."""

PATIENCE = 60.0
"""Seconds after which what has not come is a defect."""


def app() -> Mapping[str, Any]:
    """The options of a host. See ``ikigai host --app``."""
    _set_clock(int(os.environ[CLOCK]))
    world = World(Path(os.environ[RECORDS], str(os.getpid())))
    provider, lease = FunctionProvider(_answer, "code"), float(os.environ[LEASE])
    return {"provider": provider, "tools": tools_of(world), "lease": lease, "balance": 1.0}


def _set_clock(wrong: int) -> None:
    """Make the wall clock of this process wrong by so many seconds; the one that leases go by stays as it is."""
    right, ahead = time.time_ns, wrong * 1_000_000_000
    time.time_ns = lambda: right() + ahead


def runs(records: Path) -> Counter[str]:
    """How often each call ran, by the name of its tool and its key, as the tools of all hosts have recorded it."""
    return Counter(line for path in records.iterdir() for line in path.read_text().splitlines())


def task(token: str) -> str:
    """A prompt that is answered after calls of tools."""
    return f"use tools: {token}"


def payment(token: str) -> str:
    """A prompt whose answer costs something."""
    return f"pay: {token}"


def _answer(request: Request) -> Reply | str:
    time.sleep(random.uniform(0, 0.05))  # as a model does
    opening, replies = place(request)
    if opening.startswith(payment("")):
        return Reply(f"answer to {opening}", usage=PRICE)
    if opening != task(opening.removeprefix(task(""))) or replies:
        return f"answer to {opening}"
    keys = {name: hashlib.sha256(f"{request.agent} {opening} {name}".encode()).hexdigest()[:16] for name in CALLS}
    calls = [ToolCall(name, {"key": key}, key) for name, key in keys.items()]
    return Reply("Let me see.", (*calls, ToolCall("read_mail")), stop_reason="tool_use")


class Life(NamedTuple):
    """A process of a host."""

    process: "subprocess.Popen[bytes]"
    lease: float
    """Seconds."""


class Hosts:
    """Processes by name. One that ends is started again, as systemd does, by a thread of this."""

    def __init__(self, url: str, names: Sequence[str], leases: Sequence[float] = LEASES) -> None:
        """Start them, each life with the next of these leases, which begin again after the last one."""
        self.networks = {name: Proxy(url) for name in names}
        self.counts = Counter[str]()
        """Their lives by the length of their lease, and their ends by exit status."""
        self.failures: list[str] = []
        """What those have said that ended in no way that is meant to happen."""
        self._directory = tempfile.TemporaryDirectory(prefix="ikigai-hosts-")
        self.records = Path(self._directory.name, "records")
        """Where their tools record what they did."""
        self.records.mkdir()
        self._leases, self._clocks = cycle(leases), cycle(CLOCKS)
        self.lives = {name: self._started(name) for name in names}
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper")
        self._keeper.start()

    def close(self) -> None:
        """End all of them."""
        self._over.set()
        self._keeper.join()
        for life in self.lives.values():
            life.process.send_signal(signal.SIGCONT)
            life.process.terminate()
        for life in self.lives.values():
            life.process.wait(PATIENCE)
        for network in self.networks.values():
            network.close()
        self._directory.cleanup()

    def recorded(self) -> dict[Path, int]:
        """How much the tools have recorded by now, by process."""
        return {path: path.stat().st_size for path in self.records.iterdir()}

    def forget_since(self, recorded: Mapping[Path, int]) -> None:
        """Forget what the tools of processes that have ended have done since: the database has gone back as far."""
        living = {str(life.process.pid) for life in self.lives.values()}
        for path in self.records.iterdir():
            if path.name not in living:
                os.truncate(path, recorded.get(path, 0))

    def _words(self, name: str) -> Path:
        """Where the latest host of this name says something."""
        return Path(self._directory.name, name)

    def _started(self, name: str) -> Life:
        lease, wrong = next(self._leases), next(self._clocks)
        command = [sys.executable, "-m", "ikigai_actors", "--database", self.networks[name].url, "host"]
        command += ["--name", name, "--app", f"{__name__}:app"]
        with self._words(name).open("wb") as words:
            known = {**os.environ, RECORDS: str(self.records), LEASE: str(lease), CLOCK: str(wrong)}
            process = subprocess.Popen(command, stderr=words, env=known)
        self.counts[f"lives with a lease of {lease:g} s"] += 1
        self.counts[f"lives with a clock that is {wrong:+d} s wrong"] += 1
        return Life(process, lease)

    def _keep(self) -> None:
        while not self._over.wait(0.05):
            for name, life in self.lives.items():
                if (status := life.process.poll()) is not None:
                    self.counts[f"ended with {status}"] += 1
                    words = self._words(name).read_text(encoding="utf-8", errors="replace")[-500:]
                    if status not in MEANT and not any(sign in words for sign in NO_SERVER):
                        self.failures.append(f"host {name} ended with {status}: {words}")
                    self.lives[name] = self._started(name)
