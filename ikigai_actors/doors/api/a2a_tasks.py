"""Tasks, cards and messages as A2A 1.0 has them. Pure: data read from rows to JSON, and JSON to a prompt.

unread mail, or a context that is not born      SUBMITTED
a turn in progress                              WORKING; also while it asks somebody else, or waits for its budget
a question that this principal may answer       INPUT_REQUIRED, or AUTH_REQUIRED for an account
a reply, an INT, a refusal by a budget, an error    COMPLETED, CANCELED, REJECTED, FAILED
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.attachments import Attachment, attachment
from ikigai_actors.doors.api.a2a_problems import CONTENT_TYPE_NOT_SUPPORTED, A2aRefused
from ikigai_actors.errors import BadInput, BudgetExceeded, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.contexts import A2A_ORIGIN, CardedAgent, ContextTask, SentMessage
from ikigai_actors.text import iso_time
from ikigai_actors.verbs.acts.contexts import question_for
from ikigai_actors.verbs.principal import Principal

A2A_VERSION = "1.0"

A2A_SUBMITTED, A2A_WORKING = "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"
A2A_COMPLETED, A2A_FAILED = "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"
A2A_CANCELED, A2A_REJECTED = "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"
A2A_INPUT_REQUIRED, A2A_AUTH_REQUIRED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"

OVER_STATES = frozenset({A2A_COMPLETED, A2A_FAILED, A2A_CANCELED, A2A_REJECTED})
"""The states in which a task stays forever."""

RESTING_STATES = OVER_STATES | {A2A_INPUT_REQUIRED, A2A_AUTH_REQUIRED}
"""The states in which a task changes only after a person or a client has acted."""

REPLY = "reply"
"""The id of the artifact of a task, which is the answer of the model."""

CONNECT = "connect"
"""The kind of a question that is answered by connecting an account."""


def agent_card(carded: CardedAgent, url: str) -> dict[str, Any]:
    """Return the card of an agent, as clients of A2A read it."""
    card = carded.card
    return {
        "name": card["name"],
        "description": card["description"],
        "version": card.get("version", "1"),
        "supportedInterfaces": [{"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": A2A_VERSION}],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": True},
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [_skill(skill) for skill in card.get("skills") or [{**card, "id": "ask"}]],
    }


def _skill(skill: Mapping[str, Any]) -> dict[str, Any]:
    """Return a skill of a card as JSON; if it names no tags, its id is the tag."""
    named = {name: skill[name] for name in ("id", "name", "description")}
    return {**named, "tags": skill.get("tags") or [skill["id"]], "examples": skill.get("examples", [])}


def sent_message(body: Mapping[str, Any]) -> SentMessage:
    """Return the message in the body of a request. Raises `BadInput` and `A2aRefused`."""
    message = body.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list) or not message["parts"]:
        raise BadInput("Expected a message with messageId, role and parts.")
    if message.get("role") != "ROLE_USER":
        raise BadInput(f"Expected the role ROLE_USER; got {str(message.get('role'))[:40]!r}.")
    name, context, task = (message.get(name) or "" for name in ("messageId", "contextId", "taskId"))
    if not (isinstance(name, str) and isinstance(context, str) and isinstance(task, str) and name):
        raise BadInput("Expected messageId, and perhaps contextId and taskId, as texts.")
    texts, blobs, values = list[str](), list[Attachment](), list[Any]()
    for part in message["parts"]:
        match part:
            case {"text": str(text)}:
                texts.append(text)
            case {"data": value}:
                values.append(value)
            case {"raw": str(raw)}:
                blobs.append(_attachment(raw, part.get("filename")))
            case {"url": _}:
                raise A2aRefused(CONTENT_TYPE_NOT_SUPPORTED, "Send a file as raw: this agent follows no links.")
            case _:
                raise BadInput("Expected each part to have text, data or raw.")
    said = "\n\n".join([*texts, *(json.dumps(value, ensure_ascii=False) for value in values)])
    answer = values[0] if values and not texts else said
    return SentMessage(name, context, task, said, tuple(blobs), answer)


def _attachment(raw: str, name: object) -> Attachment:
    try:
        return attachment(base64.b64decode(raw, validate=True), name if isinstance(name, str) else "")
    except binascii.Error:
        raise BadInput("Expected raw to be base64.") from None
    except BadInput as error:
        raise A2aRefused(CONTENT_TYPE_NOT_SUPPORTED, str(error)) from None


def state_of(task: ContextTask, principal: Principal) -> str:
    """Return the A2A state of a task, as a principal sees it."""
    question = question_for(task, principal)
    match task.end:
        case None if question is not None:
            return A2A_AUTH_REQUIRED if question.kind == CONNECT else A2A_INPUT_REQUIRED
        case None:
            return A2A_SUBMITTED if task.prompt is None else A2A_WORKING
        case Reply():
            return A2A_COMPLETED
        case TurnInterrupted():
            return A2A_CANCELED
        case BudgetExceeded():
            return A2A_REJECTED
        case _:
            return A2A_FAILED


def task_json(task: ContextTask, principal: Principal, history: int | None = None) -> dict[str, Any]:
    """Return a task as A2A's JSON, as a principal sees it, with at most ``history`` messages; None for all."""
    shown: dict[str, Any] = {
        "id": str(task.name),
        "contextId": task.name.context,
        "status": task_status(task, principal),
    }
    if isinstance(task.end, Reply):
        shown["artifacts"] = [reply_artifact(task.end)]
    if task.prompt is not None and history != 0:
        origin = task.prompt.data.get("origin") or {}
        asked = str(origin.get(A2A_ORIGIN) or f"{task.name.context}.{task.prompt.id}")
        shown["history"] = [{**_message(task, asked, [{"text": task.prompt.content}]), "role": "ROLE_USER"}]
    return shown


def task_status(task: ContextTask, principal: Principal) -> dict[str, Any]:
    """Return the status of a task as A2A's JSON, as a principal sees it."""
    question = question_for(task, principal)
    status: dict[str, Any] = {"state": state_of(task, principal), "timestamp": iso_time(task.at)}
    if question is not None:
        asked: list[dict[str, Any]] = [{"text": question.text}]
        if question.form is not None:
            asked.append({"data": question.form, "mediaType": "application/schema+json"})
        status["message"] = _message(task, question.id, asked)
    elif said := _said(task):
        status["message"] = _message(task, f"{task.name}.{status['state']}", [{"text": said}])
    return status


def _said(task: ContextTask) -> str:
    if isinstance(task.end, Reply):
        return ""
    if task.end is not None:
        return str(task.end)
    if task.questions:
        return "The agent waits for an answer of somebody else."
    return "The agent waits for its budget." if task.is_paused else ""


def reply_artifact(reply: Reply) -> dict[str, Any]:
    """Return the artifact of A2A that contains a reply."""
    return {"artifactId": REPLY, "name": REPLY, "parts": [{"text": reply.text}]}


def _message(task: ContextTask, name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {**_ids(task), "messageId": name, "role": "ROLE_AGENT", "parts": parts}


class TaskStream:
    """The events of a task for one client: the task, then each change of its status, and its reply in pieces.

    The first piece of a reply replaces the artifact of the task, and each later piece adds to it. At the end the whole
    reply replaces the artifact, so a client that has missed pieces has the whole reply, too.
    """

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self._status: dict[str, Any] | None = None
        self._adds = False

    def events(self, task: ContextTask, history: int | None = None) -> list[dict[str, Any]]:
        """Return the events for the changes of a task since the last call.

        The next piece of a reply replaces the artifact.
        """
        status = task_status(task, self._principal)
        before, self._status, self._adds = self._status, status, False
        if before is None:
            return [{"task": task_json(task, self._principal, history)}]
        if status == before:
            return []
        events: list[dict[str, Any]] = []
        if isinstance(task.end, Reply):
            events.append(_artifact_event(task, reply_artifact(task.end), last=True))
        return [*events, {"statusUpdate": {**_ids(task), "status": status}}]

    def pieces(self, task: ContextTask, pieces: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Return the events for new pieces of the reply of an open turn."""
        events: list[dict[str, Any]] = []
        for kind, piece in pieces if task.prompt is not None else ():
            if kind == "cut":
                self._adds = False
            elif piece.get("kind") == "text":
                part = {"artifactId": REPLY, "name": REPLY, "parts": [{"text": piece["text"]}]}
                events.append(_artifact_event(task, part, adds=self._adds))
                self._adds = True
        return events


def _artifact_event(
    task: ContextTask, artifact: Mapping[str, Any], *, adds: bool = False, last: bool = False
) -> dict[str, Any]:
    return {"artifactUpdate": {**_ids(task), "artifact": artifact, "append": adds, "lastChunk": last}}


def _ids(task: ContextTask) -> dict[str, str]:
    return {"taskId": str(task.name), "contextId": task.name.context}
