"""Pooled actors: Pykka's rules on a few threads."""

import threading
from collections.abc import Iterator
from typing import Any

import pykka
import pytest

from ikigai_actors.dispatch import CAPACITY, ActorGone, InboxFull, PooledActor, Workers
from ikigai_actors.errors import AgentDead
from tests.gate import DEADLINE


class Pause:
    """A message that keeps its actor busy until the test lets it go on."""

    def __init__(self) -> None:
        self._taken, self._over = threading.Event(), threading.Event()

    def take(self) -> None:
        self._taken.set()
        assert self._over.wait(DEADLINE)

    def wait_until_taken(self) -> None:
        assert self._taken.wait(DEADLINE)

    def end(self) -> None:
        self._over.set()


class Recorder(PooledActor):
    """Keeps what it receives; does what some messages say."""

    def __init__(self, dispatcher: Workers) -> None:
        super().__init__(dispatcher)
        self.received: list[Any] = []
        self.started = self.stopped = False
        self.failures: list[BaseException] = []

    def on_start(self) -> None:
        self.started = True

    def on_stop(self) -> None:
        self.stopped = True

    def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        self.failures.append(exception_value)

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, Pause):
            message.take()
        if message == "hold":
            self.actor_inbox.held = True
        if message == "list":
            return list(self.received)
        self.received.append(message)
        return message


@pytest.fixture
def workers() -> Iterator[Workers]:
    running = Workers(2)
    yield running
    running.close()


def received(ref: "pykka.ActorRef[Recorder]") -> list[Any]:
    answer: list[Any] = ref.ask("list", block=True, timeout=DEADLINE)
    return answer


def test_messages_of_one_sender_arrive_in_order_one_at_a_time(workers: Workers) -> None:
    ref = Recorder.start(workers)
    for number in range(5_000):
        ref.tell(number)
    assert received(ref) == list(range(5_000))


def test_many_senders_lose_nothing_and_each_keeps_its_order(workers: Workers) -> None:
    ref = Recorder.start(workers)

    def send(sender: int) -> None:
        for number in range(500):
            ref.tell((sender, number))

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    got = received(ref)
    assert len(got) == 2_000
    for sender in range(4):
        assert [number for who, number in got if who == sender] == list(range(500))


def test_ask_answers_and_a_failing_handler_answers_with_its_error_while_the_actor_lives(workers: Workers) -> None:
    ref = Recorder.start(workers)
    assert ref.ask("x", timeout=DEADLINE) == "x"
    with pytest.raises(ValueError, match="planted"):
        ref.ask(ValueError("planted"), timeout=DEADLINE)
    assert ref.is_alive()


def test_a_handler_that_fails_under_tell_ends_the_actor_and_reports_it_once(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    actor = Recorder(workers)
    ref = actor.actor_ref
    release = Pause()
    ref.tell(release)
    planted = ValueError("planted")
    ref.tell(planted)
    pending = ref.ask("never", block=False)
    release.end()
    with pytest.raises(ActorGone):
        pending.get(timeout=DEADLINE)
    assert not ref.is_alive()
    assert actor.failures == [planted]
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("late")
    assert "planted" in caplog.text


def test_a_base_exception_ends_its_actor_and_not_the_workers(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    doomed, other = Recorder.start(workers), Recorder.start(workers)
    doomed.tell(SystemExit(3))
    with pytest.raises(pykka.ActorDeadError):
        doomed.ask("never", timeout=DEADLINE)
    assert other.ask("x", timeout=DEADLINE) == "x"
    assert "SystemExit" in caplog.text


def test_stop_handles_earlier_messages_first_and_answers_later_ones_with_actor_gone(workers: Workers) -> None:
    actor = Recorder(workers)
    ref = actor.actor_ref
    release = Pause()
    ref.tell(release)
    ref.tell("before")
    stopped = ref.stop(block=False)
    after = ref.ask("after", block=False)
    release.end()
    assert stopped.get(timeout=DEADLINE)
    assert actor.received == [release, "before"]
    with pytest.raises(AgentDead):
        after.get(timeout=DEADLINE)
    assert actor.stopped
    assert not ref.stop(timeout=DEADLINE)


def test_on_start_runs_before_the_first_message(workers: Workers) -> None:
    actor = Recorder(workers)
    actor._start_actor_loop()
    assert actor.actor_ref.ask("x", timeout=DEADLINE) == "x"
    assert actor.started


def test_urgent_messages_overtake_ordinary_ones(workers: Workers) -> None:
    actor = Recorder(workers)
    release = Pause()
    actor.actor_ref.tell(release)
    release.wait_until_taken()
    for number in range(3):
        actor.actor_ref.tell(number)
    actor.actor_inbox.put_urgent("urgent")
    actor.actor_inbox.put_urgent("first", first=True)
    release.end()
    assert received(actor.actor_ref) == [release, "first", "urgent", 0, 1, 2]


def test_a_held_actor_gets_nothing_until_it_is_released_and_then_that_message_first(workers: Workers) -> None:
    actor = Recorder(workers)
    ref = actor.actor_ref
    ref.ask("hold", timeout=DEADLINE)
    ref.tell("ordinary")
    actor.actor_inbox.put_urgent("urgent")
    pending = ref.ask("list", block=False)
    with pytest.raises(pykka.Timeout):
        pending.get(timeout=0)
    assert actor.received == ["hold"]
    actor.actor_inbox.release("released")
    assert pending.get(timeout=DEADLINE) == ["hold", "released", "urgent", "ordinary"]


def test_a_release_that_races_the_end_of_the_slice_is_never_lost(workers: Workers) -> None:
    actor = Recorder(workers)
    ref = actor.actor_ref
    for number in range(1_000):
        held = Pause()
        held.end()
        ref.tell("hold")
        actor.actor_inbox.release(held)
        ref.tell(number)
        held.wait_until_taken()
        actor.actor_inbox.release("released")
    assert [message for message in received(ref) if isinstance(message, int)] == list(range(1_000))


def test_a_full_inbox_refuses_ordinary_messages_and_never_urgent_ones(workers: Workers) -> None:
    actor = Recorder(workers)
    ref = actor.actor_ref
    ref.ask("hold", timeout=DEADLINE)
    last = Pause()
    last.end()
    for _ in range(CAPACITY - 1):
        ref.tell("x")
    ref.tell(last)
    with pytest.raises(InboxFull, match="10000 messages waiting"):
        ref.tell("too many")
    actor.actor_inbox.put_urgent("urgent")
    actor.actor_inbox.release("released")
    last.wait_until_taken()
    assert received(ref)[:4] == ["hold", "released", "urgent", "x"]


def test_a_busy_actor_does_not_starve_the_others(workers: Workers) -> None:
    busy, other = Recorder(workers), Recorder.start(workers)
    for number in range(9_000):
        busy.actor_ref.tell(number)
    assert other.ask("x", timeout=DEADLINE) == "x"


def test_twenty_thousand_actors_stop_and_none_was_ever_in_pykkas_registry(workers: Workers) -> None:
    before = len(pykka.ActorRegistry.get_all())
    actors = [Recorder(workers) for _ in range(20_000)]
    futures = [actor.actor_ref.stop(block=False) for actor in actors]
    assert all(future.get(timeout=60) for future in futures)
    assert len(pykka.ActorRegistry.get_all()) == before


def test_asks_that_race_a_stop_are_each_answered_once(workers: Workers) -> None:
    for _ in range(200):
        actor = Recorder(workers)
        ref = actor.actor_ref
        asked: list[pykka.Future[Any]] = []

        def ask(ref: "pykka.ActorRef[Recorder]" = ref, asked: "list[pykka.Future[Any]]" = asked) -> None:
            asked.extend(ref.ask(number, block=False) for number in range(20))

        thread = threading.Thread(target=ask)
        thread.start()
        stopped = ref.stop(block=False)
        thread.join(DEADLINE)
        assert stopped.get(timeout=DEADLINE)
        for number, future in enumerate(asked):
            try:
                assert future.get(timeout=DEADLINE) == number
            except pykka.ActorDeadError:
                continue
