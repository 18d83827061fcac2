"""`simulate`: a plain function under many schedules, with Hypothesis, or under one that is replayed."""

from collections.abc import Callable

from ikigai_actors.testing.simulation.faults import NONE, Faults
from ikigai_actors.testing.simulation.process import ProcessCrashed
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.world import Simulation, simulated

Scenario = Callable[[Simulation], object]
"""A program under test: opens a system in the world that it is given, and uses it; what it raises is the failure."""


def simulate(
    scenario: Scenario,
    *,
    after: Scenario | None = None,
    faults: Faults = NONE,
    examples: int | None = None,
    replay: str | None = None,
    steps: int = 100_000,
) -> None:
    """Run a program under drawn schedules and faults; raise what it raises under the simplest that makes it fail.

    Args:
        scenario: the program. When its process crashes it ends there, and the system is opened again without it: every
            turn that was cut off goes on.
        after: what must hold in the end, crash or not, when all is at rest.
        faults: what may go wrong.
        examples: how many schedules are tried; None means what the profile of Hypothesis says.
        replay: the line that a failure printed: run this one schedule and no other.
        steps: how many steps a run may take.

    Raises:
        Broken: an invariant of the runtime did not hold.
        Stuck: somebody waits for what can never happen.
        Endless: it does not come to rest.
    """
    if replay is not None:
        _once(Schedule.parse(replay), scenario, after, faults, steps)
        return
    from hypothesis import HealthCheck, Phase, given, settings

    from ikigai_actors.testing.strategies import schedules

    wanted = settings.default.max_examples if examples is None and settings.default is not None else examples

    @settings(
        max_examples=wanted or 100,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],  # explaining traces every line, and takes longer than all the rest
        suppress_health_check=list(HealthCheck),
    )
    @given(schedules())
    def runs(schedule: Schedule) -> None:
        _once(schedule, scenario, after, faults, steps)

    runs()


def _once(schedule: Schedule, scenario: Scenario, after: Scenario | None, faults: Faults, steps: int) -> None:
    with simulated(schedule, faults=faults, steps=steps) as world:
        try:
            scenario(world)
            world.settle()
        except ProcessCrashed:
            world.recover()
        if after is not None:
            after(world)
