"""Turns as tasks of MCP: the extension ``io.modelcontextprotocol/tasks``, for clients that say that they know it.

The id of a task is the handle of its turn. So it is there before it is given, and means the same to every client
forever; nothing is remembered. A call that asks is a question to the client, which may leave it open.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.doors.mcp_tools import AgentTools
from ikigai_actors.errors import BadInput, TurnInterrupted
from ikigai_actors.reach.turns import ASKS, FAILED, MAIL, WAITING_FOR_BUDGET, WORKING, TurnHandle
from ikigai_actors.records.log.heads import latest_times
from ikigai_actors.records.mail.prompts import WithdrawPrompt
from ikigai_actors.text import iso_time

POLL = 2_000
"""Milliseconds from one look of a client at a task to the next."""


def task_of(agents: AgentTools, handle: TurnHandle) -> dict[str, Any]:
    """The task that a call gives in place of its turn."""
    return {"resultType": "task", **_task(agents, handle, agents.turns.look_at(handle))}


def task_at(agents: AgentTools, params: Mapping[str, Any]) -> dict[str, Any]:
    """A task as it is; ``result`` is what its turn has given. Raises `BadInput` for an id that nobody gave."""
    handle = _handle(agents, params)
    turn = agents.turns.look_at(handle)
    told = _task(agents, handle, turn)
    match told["status"]:
        case "input_required":
            return {**told, "inputRequests": {call["call"]: _question(turn, call) for call in turn["asks"]}}
        case "completed":
            return {**told, "result": turn}
    return told


def answer_task(agents: AgentTools, params: Mapping[str, Any]) -> dict[str, Any]:
    """Decide on the calls of a task that ask; one that the client declines to decide on stays open."""
    handle, answers = agents.turns.settled(_handle(agents, params)), params.get("inputResponses")
    if not isinstance(answers, dict):
        raise BadInput("Expected inputResponses as an object.")
    for call, answer in answers.items():
        given = answer.get("content") if isinstance(answer, dict) and answer.get("action") == "accept" else None
        if isinstance(given, dict) and isinstance(given.get("allow"), bool):
            agents.decide({"agent": handle.agent, "call": call, "allow": given["allow"]})
    return {}


def cancel_task(agents: AgentTools, params: Mapping[str, Any]) -> dict[str, Any]:
    """End the turn of a task; one that has not begun is taken back."""
    handle = agents.turns.settled(_handle(agents, params))
    client = agents.access.client
    agents.access.check_hosted(agents.access.quick)
    withdrawn = handle.kind == MAIL and client.write(WithdrawPrompt(handle.agent, handle.number))
    if not withdrawn and (seen := agents.turns.seen(handle)).is_open:
        client.interrupt(handle.agent, seen.record.turn)
    return {}


def _handle(agents: AgentTools, params: Mapping[str, Any]) -> TurnHandle:
    handle = TurnHandle.parse(str(params.get("taskId")))
    agents.access.check(handle.agent)
    return handle


def _task(agents: AgentTools, handle: TurnHandle, turn: Mapping[str, Any]) -> dict[str, Any]:
    """A task, by the turn as it is."""
    record = agents.access.client.get(turn["agent"])
    latest = agents.access.client.read(lambda tx: latest_times(tx, [record.uuid])).get(record.uuid, record.created_at)
    status = {WORKING: "working", WAITING_FOR_BUDGET: "working", ASKS: "input_required"}.get(
        turn["status"], "completed"
    )
    if turn["status"] == FAILED and isinstance(agents.turns.seen(handle).end, TurnInterrupted):
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


def _question(turn: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    """The question about a call, as a form."""
    schema = {"type": "object", "properties": {"allow": {"type": "boolean"}}, "required": ["allow"]}
    text = f"May {turn['name'] or turn['agent']} call {call['tool']} with {call['arguments']}?"
    return {"method": "elicitation/create", "params": {"mode": "form", "message": text, "requestedSchema": schema}}
