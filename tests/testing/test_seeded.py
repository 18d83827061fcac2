"""The dispatcher that chance decides: same seed, same order; and Hypothesis finds and shrinks what goes wrong."""

from collections.abc import Callable
from random import Random

import pykka
import pytest
from hypothesis import find, settings
from hypothesis import strategies as st
from hypothesis.errors import StopTest

from ikigai_actors.actors.actor import QUANTUM, PooledActor
from ikigai_actors.testing.dispatcher import Chance, SeededDispatcher
from tests.kit.dispatchers import InOrder, Recorder


class Script:
    """A source of chance that was written down; what comes after its end is 0. An exception is raised."""

    def __init__(self, *choices: int | BaseException) -> None:
        self._choices = list(choices)

    def randrange(self, stop: int, /) -> int:
        choice = self._choices.pop(0) if self._choices else 0
        if isinstance(choice, BaseException):
            raise choice
        assert choice < stop
        return choice


class Speaker(PooledActor):
    """Says its name for each message."""

    def __init__(self, dispatcher: SeededDispatcher, name: str, said: list[str]) -> None:
        super().__init__(dispatcher)
        self._name, self._said = name, said

    def on_receive(self, message: object) -> None:
        self._said.append(self._name)


def order(chance: Chance, names: str = "abc", each: int = 3) -> str:
    """Who speaks when, of actors with so many messages each."""
    dispatcher, said = SeededDispatcher(chance), list[str]()
    speakers = [Speaker(dispatcher, name, said) for name in names]
    for speaker in speakers:
        for number in range(each):
            speaker.actor_ref.tell(number)
    assert dispatcher.run_until_idle() == len(said) == len(names) * each
    return "".join(said)


def test_the_same_seed_gives_the_same_order_and_seeds_differ() -> None:
    orders = [order(Random(seed)) for seed in range(20)]
    assert orders == [order(Random(seed)) for seed in range(20)]
    assert len(set(orders)) > 10


def test_choice_0_goes_on_as_one_worker_would() -> None:
    assert order(InOrder()) == "aaabbbccc"
    rest = 10
    expected = "a" * QUANTUM + "b" * QUANTUM + "a" * rest + "b" * rest
    assert order(InOrder(), "ab", QUANTUM + rest) == expected


def test_when_the_choices_are_used_up_it_goes_on_in_order() -> None:
    def last(stop: int) -> int:
        return stop - 1

    dispatcher, said = SeededDispatcher(Choosing(last), choices=2), list[str]()
    for name in "abc":
        for number in range(2):
            Speaker(dispatcher, name, said).actor_ref.tell(number)
    dispatcher.run_until_idle()
    assert dispatcher.drawn == [5, 4]
    assert "".join(said) == "ccaabb"


class Choosing:
    """A source of chance that is a function."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def randrange(self, stop: int, /) -> int:
        return self._choose(stop)


def test_what_chance_raises_goes_to_the_caller_and_nobody_is_lost() -> None:
    dispatcher, said = SeededDispatcher(Script(StopTest(0))), list[str]()
    for name in "ab":
        Speaker(dispatcher, name, said).actor_ref.tell("x")
    with pytest.raises(StopTest):
        dispatcher.run_until_idle()
    assert dispatcher.run_until_idle() == 2
    assert said == ["a", "b"]


def test_a_base_exception_of_a_handler_goes_to_the_caller_and_ends_that_actor_alone() -> None:
    dispatcher = SeededDispatcher(InOrder())
    doomed, other = Recorder(dispatcher), Recorder(dispatcher)
    planted = StopTest(0)
    asked = doomed.actor_ref.ask(planted, block=False)
    other.actor_ref.tell("x")
    with pytest.raises(StopTest):
        dispatcher.run_until_idle()
    assert doomed.hooks == [("failure", planted), ("death", planted)]
    with pytest.raises(pykka.ActorDeadError):
        asked.get(timeout=0)
    assert dispatcher.run_until_idle() == 1
    assert other.received == ["x"]


class Counter(PooledActor):
    """Adds one to a cell, in two steps: reads it, and writes it when it next runs."""

    def __init__(self, dispatcher: SeededDispatcher, cell: list[int]) -> None:
        super().__init__(dispatcher)
        self._cell = cell

    def on_receive(self, message: int | None) -> None:
        if message is None:
            self.actor_ref.tell(self._cell[0])
        else:
            self._cell[0] = message + 1


def test_hypothesis_finds_a_lost_update_and_shrinks_it_to_one_preemption() -> None:
    shrunk: list[int] = []

    def loses_an_update(random: Random) -> bool:
        dispatcher, cell = SeededDispatcher(random), [0]
        counters = [Counter(dispatcher, cell) for _ in range(3)]
        for counter in counters:
            counter.actor_ref.tell(None)
        dispatcher.run_until_idle()
        lost = cell[0] < len(counters)
        if lost:
            shrunk[:] = dispatcher.drawn
        return lost

    find(st.randoms(use_true_random=False), loses_an_update, settings=settings(database=None, deadline=None))
    assert sum(choice != 0 for choice in shrunk) == 1
