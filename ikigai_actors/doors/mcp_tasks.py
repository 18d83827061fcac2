"""Turns as tasks of MCP: the extension ``io.modelcontextprotocol/tasks``, for clients that support it.

The id of a task is the handle of its turn. So an id is valid for every client and forever, and the door keeps no state.
A call that needs approval is a question to the client, which may leave it open.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import BadInput, TurnInterrupted
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.shown_questions import client_form
from ikigai_actors.reach.turns import ASKS, FAILED, WAITING_FOR_BUDGET, WORKING, TurnHandle
from ikigai_actors.reach.views import last_activity
from ikigai_actors.text import iso_time
from ikigai_actors.verbs.acts.changes import decide_named_call
from ikigai_actors.verbs.acts.turns import end_or_take_back
from ikigai_actors.verbs.question_forms import take_form_answer, waiting_question

POLL = 2_000
"""The milliseconds between two checks of a task that clients should keep."""


def task_of(reach: Access, handle: TurnHandle) -> dict[str, Any]:
    """Return the answer that makes a turn a task of MCP."""
    return {"resultType": "task", **_task(reach, handle, reach.turns.look_at(handle))}


def task_at(reach: Access, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a task; ``result`` has the answer of its turn. Raises `BadInput` for an unknown id."""
    handle = _handle(reach, params)
    turn = reach.turns.look_at(handle)
    task = _task(reach, handle, turn)
    match task["status"]:
        case "input_required":
            return {**task, "inputRequests": {call["call"]: _question(reach, turn, call) for call in turn["asks"]}}
        case "completed":
            return {**task, "result": turn}
    return task


def answer_task(reach: Access, params: Mapping[str, Any]) -> dict[str, Any]:
    """Decide on the calls of a task that need approval. A call on which the client does not decide stays open."""
    handle, answers = reach.turns.settled(_handle(reach, params)), params.get("inputResponses")
    questions = {asking["call"]: asking.get("question") for asking in reach.turns.look_at(handle).get("asks", ())}
    if not isinstance(answers, dict):
        raise BadInput("Expected inputResponses as an object.")
    for call, answer in answers.items():
        if (name := questions.get(call)) is not None:
            question, said = waiting_question(reach, name), answer if isinstance(answer, dict) else {}
            if question is not None:
                take_form_answer(reach, None, question, said.get("action"), said.get("content"))
            continue
        content = answer.get("content") if isinstance(answer, dict) and answer.get("action") == "accept" else None
        if isinstance(content, dict) and isinstance(content.get("allow"), bool):
            decide_named_call.work(reach, handle.agent, call, content["allow"])
    return {}


def cancel_task(reach: Access, params: Mapping[str, Any]) -> dict[str, Any]:
    """End the turn of a task. A prompt whose turn has not begun is withdrawn."""
    handle = reach.turns.settled(_handle(reach, params))
    reach.check_hosted(reach.quick)
    end_or_take_back(reach, handle)
    return {}


def _handle(reach: Access, params: Mapping[str, Any]) -> TurnHandle:
    handle = TurnHandle.parse(str(params.get("taskId")))
    reach.check(handle.agent)
    return handle


def _task(reach: Access, handle: TurnHandle, turn: Mapping[str, Any]) -> dict[str, Any]:
    record = reach.client.get(turn["agent"])
    latest = last_activity(reach.system, [record])[record.uuid]
    status = {WORKING: "working", WAITING_FOR_BUDGET: "working", ASKS: "input_required"}.get(
        turn["status"], "completed"
    )
    if turn["status"] == FAILED and isinstance(reach.turns.seen(handle).end, TurnInterrupted):
        status = "cancelled"
    waits = "It waits for a budget: grant more of it."
    return {
        "taskId": str(handle),
        "status": status,
        **({"statusMessage": waits} if turn["status"] == WAITING_FOR_BUDGET else {}),
        "createdAt": iso_time(record.created_at),
        "lastUpdatedAt": iso_time(latest),
        "ttlMs": None,
        "pollIntervalMs": POLL,
    }


def _question(reach: Access, turn: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question about a call, or to a person, as a form."""
    if (asked := waiting_question(reach, call.get("question", ""))) is not None:
        return _form(asked.whole, client_form(asked))
    schema = {"type": "object", "properties": {"allow": {"type": "boolean"}}, "required": ["allow"]}
    text = f"May {turn['name'] or turn['agent']} call {call['tool']} with {call['arguments']}?"
    return _form(text, schema)


def _form(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "form", "message": text, "requestedSchema": schema}}
