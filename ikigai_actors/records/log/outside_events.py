"""The events for outside receivers that follow from a unit of a log. Pure.

turn.done, turn.failed, turn.interrupted    the unit closes the turn: its last message says how
question.asked                              one for each call about which a person is asked
question.answered, question.expired         the unit decides a question: a person has, or the runtime by default
budget.waits                                the request that follows waits for a budget
"""

from collections.abc import Iterator

from ikigai_actors.records.budgets.amounts import Paused
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import ENDINGS, Kind, Message
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.records.outbox.events import (
    BUDGET_WAITS,
    QUESTION_ANSWERED,
    QUESTION_ASKED,
    QUESTION_EXPIRED,
    TURN_DONE,
    TURN_FAILED,
    TURN_INTERRUPTED,
    PostedEvent,
)
from ikigai_actors.records.questions.asked import EXPIRED, VOID, question_id


def events_of(unit: LogUnit, turn: int, paused: Paused | None) -> Iterator[PostedEvent]:
    """Return the events for outside receivers that follow from a unit.

    Args:
        unit: the unit.
        turn: the message that had opened the turn in progress before it; 0 when no turn was open.
        paused: why the next request waits; None if it does not.
    """
    if not unit.messages:
        return
    last = unit.messages[-1]
    for message in unit.messages:
        if message.kind == Kind.APPROVAL and "approved" not in message.data:
            question = question_id(unit.agent, message.id)
            yield PostedEvent(QUESTION_ASKED, unit.agent, message.id, question, message.created_at)
    for call in unit.settled:
        if call.how != VOID:
            kind = QUESTION_EXPIRED if call.how == EXPIRED else QUESTION_ANSWERED
            first, question = unit.messages[0], question_id(call.agent, call.position)
            yield PostedEvent(kind, unit.agent, first.id, question, first.created_at)
    if paused is not None:
        yield PostedEvent(BUDGET_WAITS, unit.agent, last.id, paused.budget, last.created_at)
    if unit.turn == 0 and (last.kind in ENDINGS or last.data.get("ends")):
        opened = next((message.id for message in unit.messages if message.kind == Kind.USER), turn)
        yield PostedEvent(kind_of_end(last), unit.agent, last.id, f"t{opened}", last.created_at)


def kind_of_end(last: Message) -> str:
    """Return the kind of event with which a turn ends, by the last message of the turn."""
    if last.kind == Kind.ERROR:
        return TURN_FAILED
    if last.kind == Kind.INTERRUPTED:
        return TURN_DONE if "exit" in last.data else TURN_INTERRUPTED
    return TURN_INTERRUPTED if last.data.get("stop_reason") == INTERRUPTED else TURN_DONE
