"""The terms of a subscription to one task of A2A, and which turn is that task. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.outbox.events import AGENT_DIED, QUESTION_ASKED, TURN_DONE, TURN_FAILED, TURN_INTERRUPTED

A2A_ORIGIN = "a2a"
"""In the data ``origin`` of a message: the id that a client of A2A gave it."""

TASK_EVENTS = (TURN_DONE, TURN_FAILED, TURN_INTERRUPTED, QUESTION_ASKED, AGENT_DIED)
"""The kinds of events that change a task for its client."""


@dataclass(frozen=True, slots=True)
class PushedTask:
    """The terms of a subscription to one task of A2A."""

    task: str
    """The id of the task: its context, and the mail or message that opens its turn."""
    config: str
    """The id that the client gave the subscription."""
    principal: str
    """The id of the principal to which the task is shown."""
    roles: tuple[str, ...]
    """The roles of that principal, including the lower rights of each right."""
    scheme: str = ""
    """The scheme of the header ``Authorization``, whose credentials are the last secret; empty for no such header."""

    @property
    def context(self) -> str:
        """Return the uuid of the task's agent."""
        return self.task.partition(".")[0]

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> "PushedTask":
        """Return the terms from the JSON object in the database."""
        return cls(**{**stored, "roles": tuple(stored["roles"])})


def task_opened_by(message: Message) -> str:
    """Return the part of a task's id that names its turn, given the message that has opened the turn.

    ``m0`` is the turn with which a context was born.
    """
    mail, origin = message.data.get("mail"), message.data.get("origin") or {}
    if isinstance(mail, int):
        return f"m{mail}"
    return "m0" if A2A_ORIGIN in origin else f"t{message.id}"


def is_turn_of(task: PushedTask, opening: Message) -> bool:
    """Return whether the turn that a message has opened is the turn of a task."""
    return opening.kind == Kind.USER and f"{opening.agent_uuid}.{task_opened_by(opening)}" == task.task
