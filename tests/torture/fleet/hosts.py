"""The hosts of a fleet, as processes, each with a network of its own to the server."""

import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ikigai_actors import FunctionProvider, Request
from ikigai_actors.shell.cli.host import START_AGAIN
from tests.kit.proxy import Proxy

LEASE = 2.0
MEANT = (-signal.SIGKILL, -signal.SIGTERM, 0, START_AGAIN)
"""How hosts may end: killed, told to end before or while they ran, or since another one has taken their agents."""

NO_SERVER = ("it does not answer", "it starts or stops")
"""What a host says that ends at its start, since the server is down at that moment."""

PATIENCE = 60.0
"""Seconds after which what has not come is a defect."""


def app() -> Mapping[str, Any]:
    """The options of every host. See ``ikigai host --app``."""

    def answer(request: Request) -> str:
        time.sleep(random.uniform(0, 0.05))  # as a model does
        return f"answer to {request.messages[-1]['content'][-1]['text']}"

    return {"provider": FunctionProvider(answer, "code"), "lease": LEASE, "balance": 1.0}


class Hosts:
    """Processes by name. One that ends is started again, as systemd does, by a thread of this."""

    def __init__(self, url: str, names: tuple[str, ...]) -> None:
        """Start them."""
        self.networks = {name: Proxy(url) for name in names}
        self.ends = Counter[int]()
        """How often they ended, by their exit status."""
        self.failures: list[str] = []
        """What those have said that ended in no way that is meant to happen."""
        self._directory = tempfile.TemporaryDirectory(prefix="ikigai-hosts-")
        self.processes = {name: self._started(name) for name in names}
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper")
        self._keeper.start()

    def close(self) -> None:
        """End all of them."""
        self._over.set()
        self._keeper.join()
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            process.wait(PATIENCE)
        for network in self.networks.values():
            network.close()
        self._directory.cleanup()

    def _words(self, name: str) -> Path:
        """Where the latest host of this name says something."""
        return Path(self._directory.name, name)

    def _started(self, name: str) -> "subprocess.Popen[bytes]":
        with self._words(name).open("wb") as words:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "ikigai_actors", "--database", self.networks[name].url),
                    *("host", "--name", name, "--app", "tests.torture.fleet.hosts:app"),
                ],
                stderr=words,
            )

    def _keep(self) -> None:
        while not self._over.wait(0.05):
            for name, process in self.processes.items():
                if (status := process.poll()) is not None:
                    self.ends[status] += 1
                    words = self._words(name).read_text(encoding="utf-8", errors="replace")[-500:]
                    if status not in MEANT and not any(one in words for one in NO_SERVER):
                        self.failures.append(f"host {name} ended with {status}: {words}")
                    self.processes[name] = self._started(name)
