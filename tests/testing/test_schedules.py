"""Schedules: what a line of choices means, and what a choice does to the run."""

from functools import partial

import pytest
from hypothesis import given, settings

from ikigai_actors import BadInput, ScriptedProvider
from ikigai_actors.testing import ManualClock, Schedule, schedules, simulated
from ikigai_actors.testing.simulation.scheduler import Agenda, Entry
from tests.kit.echo import echo


@settings(max_examples=30, database=None)
@given(schedule=schedules())
def test_what_a_schedule_prints_is_the_schedule_again(schedule: Schedule) -> None:
    assert Schedule.parse(str(schedule)) == schedule
    assert eval(repr(schedule)) == schedule


@pytest.mark.parametrize("text", ["7", "1:2:3", "x:1", "1:"])
def test_a_line_that_is_no_schedule_says_what_was_expected(text: str) -> None:
    with pytest.raises(BadInput, match="Expected a schedule as a failure prints it"):
        Schedule.parse(text)


def test_a_choice_beyond_what_there_is_to_choose_from_is_never_the_plain_one() -> None:
    chance = Schedule({0: 5, 1: 2, 2: 1}).begin()
    assert [chance.randrange(3), chance.randrange(2), chance.randrange(1), chance.randrange(3)] == [1, 1, 0, 0]


def order(schedule: Schedule, *names: str) -> list[str]:
    """In which order entries come, each of which stands there again as long as its name has letters."""
    happened: list[str] = []
    agenda = Agenda(schedule.begin(), ManualClock())

    def add(name: str) -> None:
        def run() -> None:
            happened.append(name)
            if name[1:]:
                add(name[1:])

        agenda.add(Entry(name, run))

    for name in names:
        add(name)
    while agenda.step():
        pass
    return happened


def test_one_choice_holds_up_what_it_passes_over_until_nothing_else_can_happen() -> None:
    assert order(Schedule({}), "a", "bbb", "ccc") == ["a", "bbb", "ccc", "bb", "cc", "b", "c"]
    assert order(Schedule({0: 1}), "a", "bbb", "ccc") == ["bbb", "ccc", "bb", "cc", "b", "c", "a"]
    assert order(Schedule({0: 2}), "a", "bb", "ccc") == ["ccc", "cc", "c", "a", "bb", "b"]


@pytest.mark.slow("takes a tenth of a second")
def test_one_choice_lets_an_agent_overtake_another() -> None:
    def first(schedule: Schedule) -> str | None:
        with simulated(schedule) as world:
            system = world.open(ScriptedProvider(echo))
            agents = [system.root.fork(name=name) for name in ("anna", "bert")]
            for reply in [agent.prompt("hello") for agent in agents]:
                reply.get()
            return world.requests[0].name

    orders = {first(Schedule({}))}
    numbers = iter(range(5, 20))  # earlier ones are of the start
    while len(orders) < 2:
        orders.add(first(Schedule({next(numbers): 1})))
    assert orders == {"anna", "bert"}


def test_what_a_stopped_process_was_to_do_waits_for_it_while_time_passes() -> None:
    agenda, happened = Agenda(Schedule({}).begin(), ManualClock(0.0)), list[str]()
    for name in ("a", "b"):
        agenda.add(Entry(f"{name} goes on", partial(happened.append, f"{name} goes on"), name))
        agenda.at(5.0, partial(happened.append, f"{name} is woken"), name)
    agenda.hold("a")
    agenda.add(Entry("a is told", partial(happened.append, "a is told"), "a"))
    while agenda.step():
        pass
    assert (happened, agenda.clock.monotonic()) == (["b goes on", "b is woken"], 5.0)
    agenda.release("a")
    while agenda.step():
        pass
    assert happened[2:] == ["a is woken", "a goes on", "a is told"]


def test_what_an_ended_process_was_to_do_is_forgotten_and_that_of_others_is_not() -> None:
    agenda, happened = Agenda(Schedule({0: 1}).begin(), ManualClock(0.0)), list[str]()
    for name in ("a", "b", "a", "b"):
        agenda.add(Entry(name, partial(happened.append, name), name))
        agenda.at(1.0, partial(happened.append, name), name)
    agenda.step()
    agenda.clear("a")
    while agenda.step():
        pass
    assert happened == ["b"] * 4
