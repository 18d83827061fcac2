"""`simulate`: runs a function under many schedules, with Hypothesis, or replays one schedule."""

from collections.abc import Callable

from ikigai_actors.arguments import check_callable, check_count, check_type
from ikigai_actors.testing.simulation.faults import NONE, Faults
from ikigai_actors.testing.simulation.process import ProcessCrashed
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.world import Simulation, simulated

Scenario = Callable[[Simulation], object]
"""A program to test: it opens a system in a world, and uses the system. An exception is the failure."""


def simulate(
    scenario: Scenario,
    *,
    after: Scenario | None = None,
    faults: Faults = NONE,
    examples: int | None = None,
    replay: str | None = None,
    steps: int = 100_000,
    hosts: int = 1,
) -> None:
    """Run a program under drawn schedules and faults; report the simplest that make it fail.

    Args:
        scenario: the program. When its process crashes, the program ends; the system is opened again without the
            program, and resumes the turns that were cut off.
        after: checks the world at the end, when all is at rest, with or without a crash.
        faults: the faults that may occur, and how many.
        examples: the number of schedules to try; None takes the number of the Hypothesis profile.
        replay: the line that a failure has printed. Only this schedule is run.
        steps: the most steps of a run.
        hosts: how many hosts share the agents, as in `Simulation`.

    Raises:
        BadInput: an argument cannot be used.
        Broken: an invariant of the runtime did not hold.
        Stuck: a thread waits for an event that can never happen.
        Endless: the run does not come to rest.
        Exception: what the program or ``after`` raised, under the simplest schedule.
    """
    check_callable(scenario, "scenario", "a function of a Simulation")
    if after is not None:
        check_callable(after, "after", "a function of a Simulation")
    if examples is not None:
        check_count(examples, "examples", least=1)
    Simulation(faults=faults, steps=steps, hosts=hosts)  # it checks them
    if replay is not None:
        check_type(replay, str, "replay", "the line that a failure printed")
        _once(Schedule.parse(replay), scenario, after, faults, steps, hosts)
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
        _once(schedule, scenario, after, faults, steps, hosts)

    runs()


def _once(
    schedule: Schedule, scenario: Scenario, after: Scenario | None, faults: Faults, steps: int, hosts: int
) -> None:
    with simulated(schedule, faults=faults, steps=steps, hosts=hosts) as world:
        try:
            scenario(world)
            world.settle()
        except ProcessCrashed:
            world.recover()
        if after is not None:
            after(world)
