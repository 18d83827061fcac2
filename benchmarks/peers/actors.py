"""Others that run actors in one process: what an idle one, a start, a message and an answer cost them.

Each is measured in processes of its own. A peer is imported there, so that one that is not installed is merely named.
"""

from importlib import import_module
from typing import Any, NamedTuple

Figures = dict[tuple[str, int], float]
"""How many in a second, by what is done (``start``, ``stop``, ``tell``, ``fan-out``, ``ask``) and its size."""


class Work(NamedTuple):
    """How much is done; sizes are ten times apart."""

    made: tuple[int, ...]
    """Actors that are started, and stopped."""
    bursts: tuple[int, ...]
    """Messages that are told to one actor before it is asked whether it has handled them."""
    fans: tuple[int, ...]
    """Actors that are told something in turn."""
    asks: tuple[int, ...]
    """Questions to one actor, each after the answer to the one before."""
    messages: int
    """That are told in all, for one figure."""

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """By what is done with them."""
        sizes = {"start": self.made, "stop": self.made, "tell": self.bursts, "fan-out": self.fans}
        return sizes | {"ask": self.asks, "ask of a thread": self.asks}

    def rounds(self, size: int) -> int:
        """How many times over so many messages are told."""
        return max(1, self.messages // size)


class Peer(NamedTuple):
    """One kind of actors. Its module has ``measure(work) -> Figures`` and ``idle(number) -> bytes of each``."""

    name: str
    package: str
    """By which its version is known; empty for Erlang, which is none."""
    module: str
    made: tuple[int, ...]
    """See `Work.made`: a thread each for 100,000 would not fit."""
    messages: int
    """See `Work.messages`: slow ones have less to do."""

    def measure(self, work: Work) -> Figures:
        """How many in a second."""
        figures: Figures = self._import().measure(work)
        return figures

    def idle(self, number: int) -> float:
        """Resident bytes of each of so many idle actors; in a process that has done nothing before."""
        grown: float = self._import().idle(number)
        return grown

    def _import(self) -> Any:
        return import_module(self.module)


OURS = Peer("ikigai", "", "benchmarks.peers.pooled_actors", (1_000, 10_000, 100_000), 200_000)

PEERS = (
    Peer("Pykka ThreadingActor", "pykka", "benchmarks.peers.pykka_actors", (100, 1_000), 50_000),
    Peer("xoscar Actor", "xoscar", "benchmarks.peers.xoscar_actors", (1_000, 10_000), 20_000),
    Peer("Agent Framework", "agent-framework-core", "benchmarks.peers.agent_framework_actors", (100, 1_000), 5_000),
    Peer("Erlang", "", "benchmarks.peers.erlang", (1_000, 10_000, 100_000), 200_000),
)
