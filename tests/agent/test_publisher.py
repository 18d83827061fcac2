"""The publisher: what a subscriber hears that does not keep up, or has heard enough."""

import threading
from typing import get_args

from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.subscriptions import Event, Publisher, Streamed, ToolTrouble
from ikigai_actors.records.messages.messages import Kind, Message
from tests.kit.blocking_provider import DEADLINE


def test_every_event_has_a_kind_and_no_two_classes_the_same() -> None:
    kinds = [kind.kind for kind in get_args(Event) if kind not in (Message, Streamed)]  # these have one of their own
    assert len({*kinds, *Kind}) == len(kinds) + len(Kind)


def test_a_subscriber_that_is_too_slow_hears_all_but_some_deltas_and_may_close_itself() -> None:
    publisher, entered, leave = Publisher(SYSTEM_THREADS), threading.Event(), threading.Event()
    heard: list[Event] = []

    def hear(event: Event) -> None:
        entered.set()
        assert leave.wait(DEADLINE)
        heard.append(event)
        if isinstance(event, ToolTrouble):
            subscription.close()

    subscription = publisher.subscribe(hear, capacity=1)
    pieces: list[Event] = [Streamed("a", str(number), "text") for number in range(4)]
    last = ToolTrouble("t", "the last one")
    publisher.publish(pieces[0])
    assert entered.wait(DEADLINE)
    for event in (*pieces[1:], last):
        publisher.publish(event)
    assert subscription.dropped == 2
    leave.set()
    publisher.close()
    assert heard == [pieces[0], pieces[1], last]
