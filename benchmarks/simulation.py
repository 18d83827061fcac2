"""The simulation kit: steps per second, with every check that a user's test has, `fsck` after each commit included."""

import time
from collections.abc import Iterator

from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import Request, ScriptedProvider
from ikigai_actors.testing import Simulation, simulated


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Measure eight agents with three prompts each, under seeded schedules."""
    runs = 10 if quick else 100
    began, steps = time.process_time(), 0
    for seed in range(runs):
        with simulated(seed) as world:
            _team(world)
            steps += world.agenda.steps
    taken = time.process_time() - began
    yield Row("steps of a simulation, CPU time", "ikigai", "", steps, "steps", steps / taken, "/s")


def _team(world: Simulation) -> None:
    system = world.open(ScriptedProvider(_answer))
    children = [system.root.fork() for _ in range(8)]
    for prompt in ("one", "two", "three"):
        for reply in [child.prompt(prompt) for child in children]:
            reply.get()


def _answer(request: Request) -> str:
    return f"Heard {len(request.messages)} messages."
