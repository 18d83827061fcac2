"""Which agents are polled when others may have committed."""

from ikigai_actors.store.base import Hint, Watch
from ikigai_actors.store.poll_schedule import HEARTBEAT, NOBODY, REST, PollSchedule
from ikigai_actors.testing.simulation.clock import ManualClock


class Told(Watch):
    """A watch that is told what to say; it waits for nothing."""

    def __init__(self, *said: frozenset[str] | Hint | None) -> None:
        self._said = [hint if isinstance(hint, Hint) else Hint(hint, NOBODY) for hint in said]
        self._heard = Hint(NOBODY, NOBODY)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._said:
            return False
        self._heard = self._said.pop(0)
        return True

    def heard(self) -> Hint:
        return self._heard

    def close(self) -> None:
        """Nothing waits."""


A, B = frozenset({"a"}), frozenset({"b"})


def looks(polls: PollSchedule, count: int) -> list[frozenset[str] | None]:
    agents = []
    for _ in range(count):
        agents.append(polls.wait().agents)
        polls.done(agents[-1])
    return agents


def test_the_first_look_is_at_all_and_the_next_ones_at_those_that_are_named() -> None:
    assert looks(PollSchedule(Told(A, B, None, A), ManualClock()), 5) == [None, B, None, A, NOBODY]


def test_all_are_looked_at_every_few_seconds_however_often_hints_come() -> None:
    clock = ManualClock()
    polls = PollSchedule(Told(A, A, A, A, A), clock)
    assert looks(polls, 2) == [None, A]
    clock.advance(HEARTBEAT)
    assert looks(polls, 2) == [None, A]


def test_a_look_at_all_that_takes_long_is_seldom() -> None:
    clock = ManualClock()
    polls = PollSchedule(Told(A, A, A), clock)
    assert polls.wait().agents is None
    clock.advance(1)
    polls.done(None)
    clock.advance(REST - 1)
    assert polls.wait().agents == A
    clock.advance(1)
    assert polls.wait().agents is None


def test_all_are_looked_at_after_a_look_that_failed() -> None:
    polls = PollSchedule(Told(A, A, A), ManualClock())
    assert looks(polls, 1) == [None]
    assert polls.wait().agents == A
    polls.failed()
    assert polls.wait().agents is None


def test_what_a_hint_names_is_looked_at_at_once_behind_a_look_at_all_and_all_for_whom_it_names_nobody_later() -> None:
    clock = ManualClock()
    polls = PollSchedule(Told(None, None, A, B, B), clock)
    assert polls.wait().agents is None
    clock.advance(1)
    polls.done(None)
    assert looks(polls, 2) == [NOBODY, A]
    clock.advance(2.9)
    assert looks(polls, 1) == [B]
    clock.advance(0.1)
    assert polls.wait().agents is None


def test_whom_hints_name_while_a_look_at_all_is_under_way_is_told_and_whom_they_do_not_name_comes_next() -> None:
    polls = PollSchedule(Told(None, A, None), ManualClock())
    assert polls.wait().agents is None
    assert [polls.meanwhile().agents for _ in range(3)] == [A, NOBODY, NOBODY]
    polls.done(None)
    assert polls.wait().agents is None


def test_a_host_is_asked_for_those_whom_it_concerns_and_every_few_seconds_for_all_also_behind_long_looks() -> None:
    clock = ManualClock()
    polls = PollSchedule(Told(A, Hint(A | B, B), None, Hint(A, None), B, B), clock)
    assert polls.wait() == (None, None)
    clock.advance(1)
    polls.done(None)
    assert [polls.wait().for_hosts for _ in range(2)] == [B, NOBODY]
    assert polls.wait() == (A, None)
    assert polls.meanwhile() == (B, NOBODY)
    clock.advance(HEARTBEAT)
    assert polls.meanwhile() == (B, None)
