"""Ours: actors with Pykka's interface and without threads, on a few workers."""

from collections.abc import Callable

from benchmarks.measure import grown
from benchmarks.peers.actors import Figures, Work
from benchmarks.peers.pykka_actors import rates
from ikigai_actors.actors.actor import PooledActor
from ikigai_actors.actors.dispatcher import ThreadDispatcher


class OnWorkers(PooledActor):
    """An actor that does what a message says, if anything."""

    def on_receive(self, message: Callable[[], object] | None) -> None:
        """Handle one message."""
        if message is not None:
            message()


def measure(work: Work) -> Figures:
    """See `benchmarks.peers.actors.Peer`."""
    workers = ThreadDispatcher()
    try:
        return rates(lambda: OnWorkers.start(workers), work)
    finally:
        workers.close()


def idle(number: int) -> float:
    """See `benchmarks.peers.actors.Peer`."""
    workers = ThreadDispatcher()
    try:
        return grown(lambda: [OnWorkers.start(workers) for _ in range(number)]) / number
    finally:
        workers.close()
