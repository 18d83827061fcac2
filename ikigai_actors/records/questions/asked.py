"""A question, as the unit that asks it, and the one that closes it, name it. Pure."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.messages.question_terms import QuestionTerms

APPROVE, ASK = "approve", "ask"
"""The kinds of questions: whether a call may run, and what an answer is."""

APPROVED, DENIED, ANSWERED, DECLINED, EXPIRED, VOID = "approved", "denied", "answered", "declined", "expired", "void"
"""How a question ended."""

RUNTIME = "runtime"
"""The name in the log where the default was decided."""


def question_id(agent: str, position: int) -> str:
    """The id of a question, by its agent and the position of its message."""
    return hashlib.sha256(f"{agent} {position}".encode()).hexdigest()[:24]


def shown_digest(call_sha256: str, definition: str) -> str:
    """The digest of what a person is shown: the tool and its arguments, and the tool's definition."""
    return hashlib.sha256(f"{call_sha256}\n{definition}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question that a unit asks."""

    agent: str
    position: int
    """Position of its ``approval`` message."""
    reply: int
    """Position of the reply that makes the call."""
    call: str
    """The call's id within that reply."""
    kind: str
    asks: tuple[str, ...]
    """The addresses that are asked."""
    digest: str
    """`shown_digest` of the call."""
    form: str
    """The form of its answer, as JSON; empty for a text, and of a call that waits for approval."""
    terms: QuestionTerms
    asked_at: int

    @property
    def id(self) -> str:
        """The id of the question."""
        return question_id(self.agent, self.position)

    @property
    def next_at(self) -> int | None:
        """When its first step is taken; None for never."""
        return next((self.asked_at + step.after for step in self.terms.steps()), None)


class SettledQuestion(NamedTuple):
    """A question that a unit closes."""

    agent: str
    position: int
    how: str
    by: str
    """The one who has decided; empty for nobody."""
