"""Others that run on several processes and keep what they do in PostgreSQL.

Each is measured in a process of its own, and imported there, so that one that is not installed is merely named. Its
module has ``failover(url, times)``, which gives the seconds from each kill to the answer by when it was asked
(``before`` the kill, ``after`` it), and ``forks(url, processes, each)``, which gives how many in a second for each
number of processes.
"""

from importlib import import_module
from typing import Any, NamedTuple

from benchmarks.machine import installed
from benchmarks.measure import in_new_process


class Peer(NamedTuple):
    """One of them."""

    name: str
    package: str
    module: str

    @property
    def who(self) -> str:
        """Its name with its version, if there is one."""
        return f"{self.name} {installed(self.package) or ''}".strip()

    def measured(self, what: str, *arguments: Any) -> Any:
        """What a function of its module gives; a text that says why, when the package is missing."""
        if installed(self.package) is None:
            return "not installed"
        return in_new_process(_call, self.module, what, *arguments)


def _call(module: str, what: str, *arguments: Any) -> Any:
    return getattr(import_module(module), what)(*arguments)


PEERS = (
    Peer("DBOS", "dbos", "benchmarks.peers.dbos_workers"),
    Peer("Ray", "ray", "benchmarks.peers.ray_actors"),
)
