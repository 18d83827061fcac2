"""A question, in the form in which a unit asks or closes it. Pure."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.messages.question_terms import QuestionTerms

APPROVE, ASK, CONNECT = "approve", "ask", "connect"
"""The kinds of questions: whether a call may run, a request for an answer, or for an account at a server."""

APPROVED, DENIED, ANSWERED, DECLINED, EXPIRED, VOID = "approved", "denied", "answered", "declined", "expired", "void"
"""The ways in which a question can end."""

RUNTIME = "runtime"
"""The name, in the log, of the one who decided when the default was taken."""


def question_id(agent: str, position: int) -> str:
    """Return the id of a question, from its agent and the position of its message."""
    return hashlib.sha256(f"{agent} {position}".encode()).hexdigest()[:24]


def shown_digest(call_sha256: str, definition: str) -> str:
    """Return the digest of everything that a person is shown: the tool, its arguments, and its definition."""
    return hashlib.sha256(f"{call_sha256}\n{definition}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to a person that a unit writes together with its ``approval`` message."""

    agent: str
    position: int
    """The position of its ``approval`` message."""
    reply: int
    """The position of the reply that makes the call."""
    call: str
    """The id of the call in that reply."""
    kind: str
    asks: tuple[str, ...]
    """The addresses that are asked."""
    digest: str
    """The `shown_digest` of the call."""
    form: str
    """The form of its answer, as JSON; empty for a text, and for a call that waits for approval."""
    terms: QuestionTerms
    asked_at: int

    @property
    def id(self) -> str:
        """Return the id of the question."""
        return question_id(self.agent, self.position)

    @property
    def next_at(self) -> int | None:
        """Return when the first step of the question is due, in milliseconds since 1970; None for never."""
        return next((self.asked_at + step.after for step in self.terms.steps()), None)


class SettledQuestion(NamedTuple):
    """A question that a unit closes, with its outcome."""

    agent: str
    position: int
    how: str
    by: str
    """The name of the one who has decided; empty for nobody."""
