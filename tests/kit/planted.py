"""The machine of the kit with something wrong in its world, which a test has planted and an invariant is to find."""

from collections.abc import Iterator
from contextlib import contextmanager

from ikigai_actors.testing import AgentTreeMachine, Faults, Schedule
from ikigai_actors.testing.simulation.faults import NONE
from ikigai_actors.testing.simulation.schedule import PLAIN


@contextmanager
def begun(
    kind: type[AgentTreeMachine] = AgentTreeMachine, schedule: Schedule = PLAIN, misfortunes: Faults = NONE
) -> Iterator[AgentTreeMachine]:
    """One with agent 0 and two children, to take rules by hand. It is not brought to rest at the end, nor looked at."""
    made = kind()
    made.begin(schedule=schedule, misfortunes=misfortunes)
    try:
        made.fork(who=0, prompt=None, reply="ok")
        made.fork(who=0, prompt=None, reply="ok")
        made.world.settle()
        yield made
    finally:
        made._context.__exit__(None, None, None)
