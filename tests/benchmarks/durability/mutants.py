"""Ways to damage a history. Each gives the damaged play, or nothing where the history has nothing to damage."""

import copy
from collections.abc import Callable
from typing import Any

from benchmarks.durability.history import Event, Play

Damage = Callable[[Play], Play | None]


def _change_request(play: Play, change: Callable[[Event, list[Any]], bool]) -> Play | None:
    """Damage the messages of the first request that can be damaged."""
    events = list(play.events)
    for place, event in enumerate(events):
        if event.kind == "asked" and event.run == play.runs[0]:
            messages = copy.deepcopy(event.detail)
            if change(event, messages):
                events[place] = event._replace(detail=messages)
                return play.with_events(events)
    return None


def drop_result(play: Play) -> Play | None:
    """The history lacks the result of a call."""

    def change(event: Event, messages: list[Any]) -> bool:
        results = [message for message in messages if message["role"] == "tool"]
        if results:
            messages.remove(results[0])
        return bool(results)

    return _change_request(play, change)


def repeat_result(play: Play) -> Play | None:
    """The history has the result of a call twice."""

    def change(event: Event, messages: list[Any]) -> bool:
        results = [message for message in messages if message["role"] == "tool"]
        messages.extend(results[:1])
        return bool(results)

    return _change_request(play, change)


def lose_id(play: Play) -> Play | None:
    """A result belongs to no call."""

    def change(event: Event, messages: list[Any]) -> bool:
        results = [message for message in messages if message["role"] == "tool"]
        for message in results[:1]:
            message["tool_call_id"] = ""
        return bool(results)

    return _change_request(play, change)


def invent_answer(play: Play) -> Play | None:
    """The history holds an answer that the model never gave."""
    return _change_request(play, lambda event, messages: _renumber(messages, 999_999))


def take_answer_of_another(play: Play) -> Play | None:
    """The history holds the answer of another agent."""
    asked = play.of("asked", run=play.runs[0])

    def change(event: Event, messages: list[Any]) -> bool:
        others = [each.number for each in asked if each.agent != event.agent]
        return bool(others) and _renumber(messages, others[0])

    return _change_request(play, change)


def _renumber(messages: list[Any], number: int) -> bool:
    """Say that the first answer with calls was that of another number."""
    reply = next(
        (message for message in messages if message["role"] == "assistant" and message.get("tool_calls")), None
    )
    if reply is None:
        return False
    names = {call["id"]: f"call_{number}_{place}" for place, call in enumerate(reply["tool_calls"])}
    for call in reply["tool_calls"]:
        call["id"] = names[call["id"]]
    for message in messages:
        if message.get("tool_call_id") in names:
            message["tool_call_id"] = names[message["tool_call_id"]]
    return True


def approve_later(play: Play) -> Play | None:
    """What needs an approval came before it."""
    effects = [event for event in play.of("effect", run=play.runs[0]) if event.agent == "b"]
    sent = play.of("approve-sent", run=play.runs[0])
    if not effects or not sent:
        return None
    late = effects[0].at + 0.01
    return play.with_events(
        event._replace(at=max(late, event.at)) if event.kind == "approve-sent" else event for event in play.events
    )


def stray(play: Play) -> Play | None:
    """The approval of one run lets another one charge."""
    if len(play.runs) == 1:
        return None
    return play.with_events((*play.events, Event(play.events[-1].at, "effect", play.runs[1], "b")))


def wake_early(play: Play) -> Play | None:
    """The timer ends before its time."""
    answered = [e for e in play.of("answered", run=play.runs[0]) if (e.agent, e.step) == ("c", 0)]
    woke = [e for e in play.of("asked", run=play.runs[0]) if (e.agent, e.step) == ("c", 1)]
    if not answered or not woke:
        return None
    return play.with_events(
        event._replace(at=answered[0].at + 0.5) if event in woke else event for event in play.events
    )


def lose_end(play: Play) -> Play | None:
    """The run never ends."""
    if play.task == "cancel":
        return None
    return play.with_events(event for event in play.events if event.kind != "result")


def wake_dead(play: Play) -> Play | None:
    """A worker that was killed asks again."""
    strikes = play.of("struck")
    if not strikes or play.fault != "kill":
        return None
    act = Event(play.events[-1].at, "effect-received", play.runs[0], "a", owner=strikes[0].owner)
    return play.with_events((*play.events, act))


CONVICTS: tuple[Damage, ...] = (
    drop_result,
    repeat_result,
    lose_id,
    invent_answer,
    take_answer_of_another,
    approve_later,
    stray,
    wake_early,
    lose_end,
    wake_dead,
)
"""Each has to turn the verdict into a conviction."""


def act_twice(play: Play) -> Play | None:
    """An effect happened twice."""
    effects = play.of("effect", run=play.runs[0])
    return play.with_events((*play.events, effects[0])) if effects else None


def act_after_cancel(play: Play) -> Play | None:
    """Something goes on after an acknowledged cancel."""
    if not play.of("cancel-acknowledged"):
        return None
    return play.with_events((*play.events, Event(play.events[-1].at + 1, "asked", play.runs[0], "a", 1, detail=[])))


def pay_again(play: Play) -> Play | None:
    """A request is made once more."""
    asked = play.of("asked", run=play.runs[0])
    return play.with_events((*play.events, asked[-1])) if asked else None


COUNTS: tuple[tuple[Damage, str], ...] = (
    (act_twice, "twice"),
    (act_after_cancel, "after_cancel"),
    (pay_again, "paid_again"),
)
"""Each has to raise this number of the verdict."""
