"""The body of a push notification: the task of A2A as it is after an event, made of rows when it is sent.

{"task": {"id": "4Kd0….m7", "contextId": "4Kd0…", "status": {"state": "TASK_STATE_COMPLETED", "timestamp": …},
          "artifacts": [{"artifactId": "reply", "name": "reply", "parts": [{"text": "Done."}]}]}}
"""

import json
from typing import Any, NamedTuple

from ikigai_actors.errors import IkigaiError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.heads import section, turn_messages
from ikigai_actors.records.messages.question_terms import is_asked
from ikigai_actors.records.messages.replies import outcome_of
from ikigai_actors.records.outbox.deliveries import DueDelivery
from ikigai_actors.records.outbox.events import AGENT_DIED, QUESTION_ASKED
from ikigai_actors.records.outbox.pushed_tasks import PushedTask, is_turn_of
from ikigai_actors.records.questions.asked import CONNECT
from ikigai_actors.records.questions.questions import question_with
from ikigai_actors.store.base import Transaction
from ikigai_actors.text import iso_time

LARGEST_PUSHED = 20_000
"""The most bytes of a body. A larger body is sent without its artifact, which the client can request."""


class TaskBody(NamedTuple):
    """The body of a push notification about a task."""

    body: bytes
    is_last: bool
    """Whether the task is over."""


def task_body(tx: Transaction, due: DueDelivery, task: PushedTask) -> TaskBody | None:
    """Return the body of a delivery; None if the event is of another task, or its question is answered already."""
    record, key = registry.get(tx, due.key.agent), due.key
    if key.kind == QUESTION_ASKED:
        question = question_with(tx, key.about)
        asks = question is not None and question.is_open and is_asked(question.asks, task.principal, task.roles)
        if question is None or not asks or not _is_turn(tx, record.uuid, record.turn, task):
            return None
        return TaskBody(_task(due, task, "AUTH_REQUIRED" if question.kind == CONNECT else "INPUT_REQUIRED"), False)
    if key.kind == AGENT_DIED:
        return TaskBody(_task(due, task, "FAILED", f"The agent is dead: {record.exit_reason or 'no reason'}."), True)
    opening = int(key.about[1:])
    if not _is_turn(tx, record.uuid, opening, task):
        return None
    end = outcome_of(reversed(turn_messages(tx, record.uuid, opening)))
    return TaskBody(_ended(due, task, end), True)


def _is_turn(tx: Transaction, agent: str, opening: int, task: PushedTask) -> bool:
    return any(is_turn_of(task, message) for message in section(tx, agent, opening - 1, opening))


def _ended(due: DueDelivery, task: PushedTask, end: Reply | IkigaiError | None) -> bytes:
    """Return the body of a task whose turn has this end; ``end`` is None if it was interrupted before it began."""
    if not isinstance(end, Reply):
        is_canceled = end is None or isinstance(end, TurnInterrupted)
        return _task(due, task, "CANCELED" if is_canceled else "FAILED", str(end or "The turn was interrupted."))
    artifact = {"artifactId": "reply", "name": "reply", "parts": [{"text": end.text}]}
    body = _task(due, task, "COMPLETED", artifacts=[artifact])
    return body if len(body) <= LARGEST_PUSHED else _task(due, task, "COMPLETED")


def _task(due: DueDelivery, task: PushedTask, state: str, text: str = "", **more: Any) -> bytes:
    names = {"contextId": task.context, "taskId": task.task}
    status: dict[str, Any] = {"state": f"TASK_STATE_{state}", "timestamp": iso_time(due.at)}
    if text:
        message = {"messageId": f"{task.task}.TASK_STATE_{state}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
        status["message"] = {**names, **message}
    shown = {"id": task.task, "contextId": task.context, "status": status, **more}
    return json.dumps({"task": shown}, separators=(",", ":")).encode()
