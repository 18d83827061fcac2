"""Workers that run aside what may block: nobody waits for it, order stays, no place is lost. Under many schedules."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from ikigai_actors.actors.actor import Dispatcher, PooledActor
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.actors.futures import Future, may_block
from ikigai_actors.actors.threads import one_of
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.scheduler import Agenda
from ikigai_actors.testing.simulation.threads import SimulatedThreads

SEEDS = range(25)


class Desk:
    """Threads that stand on an agenda, workers of them, and how many of these are at work at once."""

    def __init__(self, seed: int, places: int) -> None:
        self.threads = SimulatedThreads(Agenda(random.Random(seed), ManualClock(0.0)))
        self.workers = ThreadDispatcher(places, self.threads)
        self.at_work = self.most_at_work = 0
        self.began = list[PooledActor]()

    def settle(self) -> None:
        """Let everything happen that can happen without time passing."""
        while not self.threads.agenda.quiet:
            self.threads.agenda.step()

    @contextmanager
    def slice(self, actor: PooledActor) -> Iterator[None]:
        """A piece of work at a place, during which others may go on."""
        self.began.append(actor)
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        self.threads.pause("works")
        yield
        self.at_work -= 1


@contextmanager
def desk(seed: int, places: int = 2) -> Iterator[Desk]:
    """A desk, closed in the end: every worker ends."""
    made = Desk(seed, places)
    with one_of(made.threads):
        yield made
        made.workers.close()


class Aside:
    """A message: run this aside, and then tell the actor what it gave."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call


class Clerk(PooledActor):
    """Keeps what it receives, in order, and has calls run aside."""

    def __init__(self, dispatcher: Dispatcher, at: Desk) -> None:
        super().__init__(dispatcher)
        self.at, self.got = at, list[Any]()
        self.taken = list[bool]()
        self.left = 0

    def on_receive(self, message: Any) -> Any:
        with self.at.slice(self):
            if isinstance(message, Aside):
                self.taken.append(self.dispatcher.step_aside(lambda: self._called(message.call), "aside"))
            else:
                self.got.append(message)
            return list(self.got)

    def _called(self, call: Callable[[], object]) -> Callable[[], object]:
        value = call()

        def then() -> None:
            self.actor_inbox.put_urgent(value)
            self.left += self.dispatcher.ready

        return then


def clerk(at: Desk) -> Clerk:
    made = Clerk(at.workers, at)
    made._start_actor_loop()
    return made


@pytest.mark.parametrize("places", [1, 2])
def test_what_blocks_aside_holds_up_no_actor_and_order_stays(places: int) -> None:
    for seed in SEEDS:
        with desk(seed, places) as at:
            over = Future[str]()
            blocked = [clerk(at) for _ in range(3)]
            for recorder in blocked:
                recorder.actor_ref.tell(Aside(over.get))
                recorder.actor_ref.tell("behind")
            other = clerk(at)
            for number in range(10):
                other.actor_ref.tell(number)
            at.settle()
            assert other.got == list(range(10)), seed
            assert [recorder.got for recorder in blocked] == [["behind"]] * 3, seed
            over.set("it")
            at.settle()
            assert [recorder.got for recorder in blocked] == [["behind", "it"]] * 3, seed
            assert at.most_at_work <= places, seed


def test_a_call_that_asks_an_actor_is_answered_though_all_workers_are_aside() -> None:
    for seed in SEEDS:
        with desk(seed, places=1) as at:
            asked, askers = clerk(at), [clerk(at) for _ in range(4)]
            for asker in askers:
                asker.actor_ref.tell(Aside(partial(asked.actor_ref.ask, "x")))
            at.settle()
            assert sorted(asker.got[0] for asker in askers) == [["x"] * times for times in (1, 2, 3, 4)], seed


def test_what_a_call_wakes_waits_behind_those_that_wait_already() -> None:
    for seed in SEEDS:
        with desk(seed) as at:
            done = Future[None]()
            first, others = clerk(at), [clerk(at) for _ in range(4)]
            first.actor_ref.tell(Aside(done.get))
            at.settle()
            for other in others:
                other.actor_ref.tell("x")
            done.set()
            at.settle()
            assert at.began == [first, *others, first], seed


def test_who_comes_back_goes_on_with_what_its_call_has_woken_and_wakes_nobody() -> None:
    with desk(0) as at:
        woken = clerk(at)
        woken.actor_ref.tell(Aside(lambda: "it"))
        at.settle()
        assert woken.got == ["it"]
        assert woken.left == 0


@pytest.mark.parametrize("at_once", [True, False])
def test_the_place_of_who_is_aside_is_taken_when_two_actors_have_something_to_do(at_once: bool) -> None:
    most = 0
    for seed in SEEDS:
        with desk(seed) as at:
            over = Future[None]()
            clerk(at).actor_ref.tell(Aside(over.get))
            at.settle()
            at.most_at_work = 0
            clerk(at).actor_ref.tell("x")
            while not (at_once or at.at_work):
                at.threads.agenda.step()
            clerk(at).actor_ref.tell("x")
            at.settle()
            most = max(most, at.most_at_work)
            over.set()
    assert most == 2


def test_only_a_worker_in_its_slice_steps_aside_and_once() -> None:
    class Twice(Clerk):
        def on_receive(self, message: Any) -> Any:
            self.taken += [self.dispatcher.step_aside(message, "aside") for _ in range(2)]

    with desk(0) as at:
        ran, twice = list[bool](), Twice(at.workers, at)

        def call() -> None:
            ran.append(may_block())
            ran.append(at.workers.step_aside(lambda: None, "aside"))

        twice.actor_ref.tell(call)
        at.settle()
        assert twice.taken == [True, False]
        assert ran == [True, False]
        assert not at.workers.step_aside(call, "aside")


def test_workers_close_though_a_call_aside_never_returns() -> None:
    for seed in SEEDS:
        at = Desk(seed, places=2)
        with one_of(at.threads):
            first, other = clerk(at), clerk(at)
            first.actor_ref.tell(Aside(Future[None]().get))
            at.settle()
            other.actor_ref.tell("x")
            at.workers.close()
            other.actor_ref.tell("late")
            at.settle()
            assert other.got == ["x"], seed
        at.threads.abandon()
