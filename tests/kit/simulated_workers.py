"""Simulations in which threads run the actors, as in a real process, and plain functions answer for models."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ikigai_actors import ActorSystem, FunctionProvider, Request
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.actors.threads import one_of
from ikigai_actors.testing import Simulation
from ikigai_actors.testing.simulation.hosts import SimulatedHost


def open_on_workers(world: Simulation, work: Callable[[Request], Any], workers: int = 2) -> ActorSystem:
    """Open the system of a world, with a `ThreadDispatcher` whose threads stand on the agenda."""

    def again(host: SimulatedHost, **more: Any) -> ActorSystem:
        process = world._begin(host)

        def answer(request: Request) -> Any:
            process.asked(request)
            return work(request)

        parts = replace(process.parts, dispatcher=lambda count: ThreadDispatcher(count, process.threads))
        with one_of(process.threads):
            host.opened = ActorSystem.open(None, FunctionProvider(answer, "code"), parts=parts, workers=workers, **more)
        return host.opened

    world._again = again
    return world._open_all()
