"""Pooled actors: Pykka's rules without a thread for each. One suite for every dispatcher; then what only threads do."""

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pykka
import pytest
from pykka.messages import ProxyCall

from ikigai_actors.actors.actor import ActorGone, PooledActor
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import INBOX_CAPACITY, Envelope
from ikigai_actors.errors import AgentDead, InboxFull, WouldDeadlock
from tests.kit.blocking_provider import DEADLINE
from tests.kit.dispatchers import GROUNDS, Ground, Hold, Pause, Recorder


class Letter:
    """An envelope, as Pykka makes them."""

    def __init__(self, message: Any, reply_to: Any = None) -> None:
        self.message, self.reply_to = message, reply_to


@pytest.fixture(params=GROUNDS)
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    made = GROUNDS[request.param]()
    yield made
    made.dispatcher.close()


@pytest.fixture
def workers() -> Iterator[ThreadDispatcher]:
    running = ThreadDispatcher(2)
    yield running
    running.close()


def ask(ground: Ground, ref: "pykka.ActorRef[Any]", message: Any) -> Any:
    return ground.get(ref.ask(message, block=False))


def received(ground: Ground, ref: "pykka.ActorRef[Recorder]") -> list[Any]:
    answer: list[Any] = ask(ground, ref, "list")
    return answer


def test_messages_of_one_sender_arrive_in_order_one_at_a_time(ground: Ground) -> None:
    ref = Recorder.start(ground.dispatcher)
    for number in range(5_000):
        ref.tell(number)
    assert received(ground, ref) == list(range(5_000))


def test_ask_answers_and_a_failing_handler_answers_with_its_error_while_the_actor_lives(ground: Ground) -> None:
    ref = Recorder.start(ground.dispatcher)
    assert ask(ground, ref, "x") == "x"
    with pytest.raises(ValueError, match="planted"):
        ask(ground, ref, ValueError("planted"))
    assert ref.is_alive()


def test_pykkas_proxies_work(ground: Ground) -> None:
    ref = Recorder.start(ground.dispatcher)
    assert ask(ground, ref, ProxyCall(attr_path=("on_receive",), args=("x",), kwargs={})) == "x"
    assert received(ground, ref) == ["x"]


def test_a_handler_that_fails_under_tell_ends_the_actor_and_reports_it_once(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    actor = Recorder(ground.dispatcher)
    ref = actor.actor_ref
    planted = ValueError("planted")
    with ground.busy(ref):
        ref.tell(planted)
        pending = ref.ask("never", block=False)
    with pytest.raises(ActorGone):
        ground.get(pending)
    assert not ref.is_alive()
    assert actor.hooks == [("failure", planted), ("death", planted)]
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("late")
    assert caplog.text.count("ValueError: planted") == 1


def test_a_failing_on_start_ends_the_actor_and_reports_it_once(ground: Ground) -> None:
    planted, asked = ValueError("planted"), threading.Event()

    class Stillborn(Recorder):
        def on_start(self) -> None:
            assert asked.wait(DEADLINE)
            raise planted

    actor = Stillborn(ground.dispatcher)
    actor._start_actor_loop()
    pending = actor.actor_ref.ask("never", block=False)
    asked.set()
    with pytest.raises(ActorGone):
        ground.get(pending)
    assert actor.hooks == [("failure", planted), ("death", planted)]


def test_a_death_is_reported_once_when_a_handler_stops_its_actor_and_then_fails(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    actor = Recorder(ground.dispatcher)
    with ground.busy(actor.actor_ref):
        actor.actor_ref.tell(("stop and raise", ValueError("planted")))
        pending = actor.actor_ref.ask("never", block=False)
    with pytest.raises(ActorGone):
        ground.get(pending)
    other = Recorder.start(ground.dispatcher)
    with pytest.raises(ValueError, match="planted"):
        ask(ground, other, ("stop and raise", ValueError("planted")))
    assert actor.hooks == ["stop", ("death", None)]


def test_a_death_is_reported_also_when_the_hook_before_fails(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    class Careless(Recorder):
        def on_stop(self) -> None:
            raise ValueError("planted")

    actor = Careless(ground.dispatcher)
    assert ground.get(actor.actor_ref.stop(block=False))
    assert actor.hooks == [("death", None)]
    assert "on_stop of Careless" in caplog.text


def test_stop_handles_earlier_messages_first_and_answers_later_ones_with_actor_gone(ground: Ground) -> None:
    actor = Recorder(ground.dispatcher)
    ref = actor.actor_ref
    with ground.busy(ref):
        ref.tell("before")
        stopped = ref.stop(block=False)
        again = ref.stop(block=False)
        after = ref.ask("after", block=False)
    assert ground.get(stopped)
    assert actor.received == ["before"]
    assert actor.hooks == ["stop", ("death", None)]
    with pytest.raises(AgentDead):
        ground.get(after)
    assert ground.get(again)
    assert not ground.get(ref.stop(block=False))


def test_a_message_that_passes_the_death_of_its_actor_is_answered_and_not_handled(ground: Ground) -> None:
    actor = Recorder(ground.dispatcher)
    ground.get(actor.actor_ref.stop(block=False))
    answer: Future[Any] = Future()
    late: Envelope = Letter("late", answer)
    actor.actor_inbox.put(late)
    actor.actor_inbox.put_urgent("urgent")
    actor.actor_inbox.release("released")
    with pytest.raises(ActorGone):
        ground.get(answer)
    assert actor.received == []
    assert actor.actor_inbox.empty()


def test_a_future_that_somebody_else_has_set_harms_nobody(ground: Ground, caplog: pytest.LogCaptureFixture) -> None:
    ref = Recorder.start(ground.dispatcher)
    with ground.busy(ref):
        future = ref.ask("x", block=False)
        future.set("mine")
    assert received(ground, ref) == ["x"]
    assert ground.get(future) == "mine"
    assert "An answer was dropped" in caplog.text


def test_on_start_runs_before_the_first_message(ground: Ground) -> None:
    actor = Recorder(ground.dispatcher)
    actor.actor_ref.tell("x")
    actor._start_actor_loop()
    received(ground, actor.actor_ref)
    assert actor.hooks == ["start"]


def test_urgent_messages_overtake_ordinary_ones(ground: Ground) -> None:
    actor = Recorder(ground.dispatcher)
    with ground.busy(actor.actor_ref):
        for number in range(3):
            actor.actor_ref.tell(number)
        actor.actor_inbox.put_urgent("urgent")
        actor.actor_inbox.put_urgent("first", first=True)
    assert received(ground, actor.actor_ref) == ["first", "urgent", 0, 1, 2]


def test_a_held_actor_gets_nothing_until_it_is_released_and_then_that_message_first(ground: Ground) -> None:
    actor = Recorder(ground.dispatcher)
    ref = actor.actor_ref
    ask(ground, ref, "hold")
    ref.tell("ordinary")
    actor.actor_inbox.put_urgent("urgent")
    pending = ref.ask("list", block=False)
    with pytest.raises(pykka.Timeout):
        ground.get(pending, timeout=0)
    assert actor.received == ["hold"]
    actor.actor_inbox.release("released")
    assert ground.get(pending) == ["hold", "released", "urgent", "ordinary"]


def test_a_full_inbox_refuses_ordinary_messages_and_never_urgent_ones_or_a_stop(ground: Ground) -> None:
    actor = Recorder(ground.dispatcher)
    ref = actor.actor_ref
    ask(ground, ref, "hold")
    for _ in range(INBOX_CAPACITY - 1):
        ref.tell("x")
    last = ref.ask("list", block=False)
    with pytest.raises(InboxFull, match="10000 messages waiting"):
        ref.tell("too many")
    with pytest.raises(InboxFull):
        ref.ask("too many", block=False)
    stopped = ref.stop(block=False)
    actor.actor_inbox.put_urgent("urgent")
    actor.actor_inbox.release("released")
    assert ground.get(last) == ["hold", "released", "urgent"] + ["x"] * (INBOX_CAPACITY - 1)
    assert ground.get(stopped)


def test_a_busy_actor_does_not_starve_the_others(ground: Ground) -> None:
    busy = Recorder(ground.dispatcher)
    busy.actor_ref.tell("again")
    others = [Recorder.start(ground.dispatcher) for _ in range(3)]
    assert [ask(ground, other, "x") for other in others] == ["x", "x", "x"]
    assert busy.actor_ref.is_alive()
    busy.endless = False


def test_a_blocking_ask_in_a_handler_is_refused(ground: Ground) -> None:
    ref, other = Recorder.start(ground.dispatcher), Recorder.start(ground.dispatcher)
    with pytest.raises(WouldDeadlock):
        ask(ground, ref, ("ask", other))


@pytest.mark.sample(2, "thousands of actors each")
def test_thousands_of_actors_stop_and_none_was_ever_in_pykkas_registry(ground: Ground) -> None:
    before = len(pykka.ActorRegistry.get_all())
    actors = [Recorder(ground.dispatcher) for _ in range(2_000)]
    futures = [actor.actor_ref.stop(block=False) for actor in actors]
    assert all(ground.get(future, timeout=60) for future in futures)
    assert len(pykka.ActorRegistry.get_all()) == before


def test_a_dispatcher_says_how_many_actors_are_ready(ground: Ground) -> None:
    actors = [Recorder(ground.dispatcher) for _ in range(3)]
    for actor in actors:
        ask(ground, actor.actor_ref, "x")
    assert ground.dispatcher.ready == 0


def test_many_senders_lose_nothing_and_each_keeps_its_order(workers: ThreadDispatcher) -> None:
    ref = Recorder.start(workers)

    def send(sender: int) -> None:
        for number in range(500):
            ref.tell((sender, number))

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    got = ref.ask("list", block=True, timeout=DEADLINE)
    assert len(got) == 2_000
    for sender in range(4):
        assert [number for who, number in got if who == sender] == list(range(500))


def test_a_base_exception_ends_its_actor_and_not_the_workers(
    workers: ThreadDispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    teller, asked, other = Recorder(workers), Recorder(workers), Recorder.start(workers)
    planted, pause = SystemExit(3), Pause()
    teller.actor_ref.tell(pause)
    teller.actor_ref.tell(planted)
    pending = teller.actor_ref.ask("never", block=False)
    pause.end()
    with pytest.raises(ActorGone):
        pending.get(timeout=DEADLINE)
    with pytest.raises(ActorGone):
        asked.actor_ref.ask(planted, timeout=DEADLINE)
    for doomed in (teller, asked):
        assert doomed.hooks == [("failure", planted), ("death", planted)]
    for _ in range(3):  # more than there are workers
        assert other.ask("x", timeout=DEADLINE) == "x"
    assert "SystemExit" in caplog.text


def test_a_release_that_races_the_end_of_the_slice_is_never_lost(workers: ThreadDispatcher) -> None:
    actor = Recorder(workers)
    ref = actor.actor_ref
    for number in range(1_000):
        hold = Hold(actor.actor_inbox)
        ref.tell(hold)
        hold.wait_until_taken()
        hold.end()
        actor.actor_inbox.release("released")
        ref.tell(number)
    got = ref.ask("list", block=True, timeout=DEADLINE)
    assert [message for message in got if isinstance(message, int)] == list(range(1_000))


def test_asks_that_race_a_stop_are_each_answered_once(workers: ThreadDispatcher) -> None:
    for _ in range(200):
        actor = Recorder(workers)
        ref = actor.actor_ref
        asked: list[pykka.Future[Any]] = []

        def send(ref: "pykka.ActorRef[Recorder]" = ref, asked: "list[pykka.Future[Any]]" = asked) -> None:
            asked.extend(ref.ask(number, block=False) for number in range(20))

        thread = threading.Thread(target=send)
        thread.start()
        stopped = ref.stop(block=False)
        thread.join(DEADLINE)
        assert stopped.get(timeout=DEADLINE)
        for number, future in enumerate(asked):
            try:
                assert future.get(timeout=DEADLINE) == number
            except pykka.ActorDeadError:
                assert number not in actor.received


@pytest.mark.slow("takes a tenth of a second")
def test_an_actor_that_nobody_refers_to_is_freed(workers: ThreadDispatcher) -> None:
    class Silent(PooledActor):
        """Has handled nothing."""

    gone = weakref.ref(Silent(workers))
    gc.collect(1)  # what was made lately: to look through all that is there takes a quarter of a second
    assert gone() is None
