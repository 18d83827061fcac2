"""Finds which calls of an open turn wait for a person, from its messages.

Pure; checks of table ``questions`` use it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.question_terms import APPROVERS, QuestionTerms
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.records.questions.asked import APPROVE, ASK, CONNECT, NewQuestion, shown_digest

ASK_PERSON = "ask_person"
"""The call by which a model or a program asks a person. No rule decides it, and the answer is its result."""


class WaitingCall(NamedTuple):
    """A call that waits for a person."""

    message: Message
    """The message that asks."""
    reply: int
    """The position of the reply that makes the call."""
    input: Mapping[str, Any]
    """The arguments of the call."""


def waiting_calls(messages: Iterable[Message]) -> dict[int, WaitingCall]:
    """Return the calls of an agent's open turn that wait for a person, by the position of the message that asks.

    ``messages`` are the agent's own messages of the turn.
    """
    waits: dict[str, WaitingCall] = {}
    reply, inputs = 0, dict[str, Mapping[str, Any]]()
    for message in messages:
        call = str(message.data.get("tool_use_id"))
        match message.kind:
            case Kind.ASSISTANT:
                reply, waits = message.id, {}
                inputs = {waiting.id: waiting.input for waiting in calls_in(message)}
            case Kind.ERROR:
                waits = {}
            case Kind.APPROVAL if not message.data.get("approved"):
                waits[call] = WaitingCall(message, reply, inputs.get(call, {}))
            case Kind.APPROVAL | Kind.TOOL_CALL | Kind.TOOL_RESULT:
                waits.pop(call, None)
    return {wait.message.id: wait for wait in waits.values()}


def question_of(agent: str, waits: WaitingCall) -> NewQuestion:
    """Return a question with the default terms for a waiting call that has no row, as in an imported log."""
    data, form = waits.message.data, waits.input.get("form")
    return NewQuestion(
        agent=agent,
        position=waits.message.id,
        reply=waits.reply,
        call=str(data.get("tool_use_id")),
        kind=ASK if data.get("name") == ASK_PERSON else CONNECT if data.get("connect") else APPROVE,
        asks=(APPROVERS,),
        digest=shown_digest(str(data.get("call_sha256", "")), str(data.get("definition", ""))),
        form="" if form is None or data.get("name") != ASK_PERSON else json.dumps(form),
        terms=QuestionTerms(),
        asked_at=waits.message.created_at,
    )
