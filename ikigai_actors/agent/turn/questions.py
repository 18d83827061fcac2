"""The questions of a turn: which rows of ``questions`` a step opens and closes. Pure.

`Call.asked_at` has the position of the message that asks about the call, until the call is decided, begins without a
decision, or its turn ends. Each change of this field in a step opens or closes a row. So a row is open exactly while
its call waits.
"""

import json
from collections.abc import Mapping
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call, Calls, Progress, digest_of
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import replace
from ikigai_actors.records.agents.labels import labels_in
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.question_terms import (
    DENY,
    QuestionTerms,
    check_addresses,
    resolved,
    span_in,
    terms_in,
)
from ikigai_actors.records.questions.asked import (
    ANSWERED,
    APPROVE,
    APPROVED,
    ASK,
    CONNECT,
    DECLINED,
    DENIED,
    EXPIRED,
    RUNTIME,
    VOID,
    NewQuestion,
    SettledQuestion,
    shown_digest,
)
from ikigai_actors.records.questions.forms import check_answer, check_form
from ikigai_actors.records.questions.waiting import ASK_PERSON


def with_questions(before: State, event: on.TurnEvent, step: Step) -> Step:
    """Add to a step the questions that it opens and closes."""
    was, now = _open(before.calls), _open(step.state.calls)
    if was.keys() == now.keys() or not isinstance(step.unit, LogUnit):
        return step
    unit = step.unit
    asked = tuple(_new(before, now[at], unit.messages[0].created_at) for at in now if at not in was)
    settled = tuple(_settled(before.uuid, was[at], event) for at in was if at not in now)
    return replace(step, unit=replace(unit, questions=asked, settled=settled))


def _open(calls: Calls) -> dict[int, Call]:
    return {call.asked_at: call for call in calls if call.asked_at}


def _settled(agent: str, call: Call, event: on.TurnEvent) -> SettledQuestion:
    if not isinstance(event, on.Decide) or (event.reply, event.call) != (call.reply, call.id):
        return SettledQuestion(agent, call.asked_at, VOID, "")
    if event.by == RUNTIME:
        how = EXPIRED
    elif call.name == ASK_PERSON or call.connect is not None:
        how = ANSWERED if event.approved else DECLINED
    else:
        how = APPROVED if event.approved else DENIED
    return SettledQuestion(agent, call.asked_at, how, event.by)


def _new(state: State, call: Call, now: int) -> NewQuestion:
    terms, form = terms_of(state, call), call.input.get("form") if call.name == ASK_PERSON else None
    return NewQuestion(
        agent=state.uuid,
        position=call.asked_at,
        reply=call.reply,
        call=call.id,
        kind=ASK if call.name == ASK_PERSON else APPROVE if call.connect is None else CONNECT,
        asks=resolved(terms.to, labels_in(state.labels)),
        digest=shown_digest(digest_of(call.name, call.input), call.definition),
        form="" if form is None else json.dumps(form),
        terms=terms,
        asked_at=now,
    )


def terms_of(state: State, call: Call) -> QuestionTerms:
    """Return which people a call asks, and what happens while nobody answers.

    Settings that cannot be read are ignored.
    """
    try:
        usual = terms_in(state.view.settings.get("questions"))
    except BadInput:
        usual = QuestionTerms()
    if call.connect is not None:
        return replace(usual, to=(f"label:{call.connect['label']}", *usual.to), default=DENY)
    if call.name != ASK_PERSON:
        return usual
    arguments = call.input
    to = usual.to if arguments.get("to") is None else tuple(arguments["to"])
    within = usual.within if arguments.get("within") is None else span_in(arguments["within"], "within")
    return replace(usual, to=to, within=within, default=arguments.get("default", DENY))


def complaint_about(call: Call) -> str:
    """Return the reason why the question of a call can be put to no person; empty if it can, and for other calls."""
    if call.name != ASK_PERSON or call.progress is not Progress.WAITING:
        return ""
    try:
        check_question(call.input)
    except BadInput as error:
        return str(error)
    return ""


def check_question(arguments: Mapping[str, Any]) -> None:
    """Raise `BadInput` for the arguments of a question that no person could answer."""
    text = arguments.get("question")
    if not isinstance(text, str) or not text.strip():
        raise BadInput("Expected question to be a text.")
    form = None if arguments.get("form") is None else check_form(arguments["form"])
    if arguments.get("to") is not None:
        check_addresses(arguments["to"], "to", above=False)
    span_in(arguments.get("within"), "within")
    if arguments.get("default") is not None:
        check_answer(form, arguments["default"])
    if unknown := sorted(arguments.keys() - {"question", "form", "to", "within", "default"}):
        raise BadInput(f"ask_person takes question, form, to, within and default; got {', '.join(unknown)}.")
