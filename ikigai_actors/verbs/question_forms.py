"""Questions for clients that show forms: which of them a client may answer, and the answer that it sends.

A client shows `client_form` to its user, and sends the filled form, a refusal, or a cancellation. A question that the
user does not decide continues to wait, and can be answered in the inbox.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.shown_questions import ShownQuestion, answer_in
from ikigai_actors.records.messages.question_terms import is_asked
from ikigai_actors.records.questions.asked import ASK
from ikigai_actors.verbs.acts.questions import answer_for
from ikigai_actors.verbs.principal import Principal, acting_as, has_right, words_of_roles
from ikigai_actors.verbs.rights import Right

if TYPE_CHECKING:
    from ikigai_actors.system.questions import WaitingQuestion

ACCEPT, DECLINE = "accept", "decline"
"""The two actions of a user that settle a question; any other leaves it open."""

MOST_TRIES = 3
"""The number of times that a client shows the same form again because the answer does not fit."""


def named_question(reach: Access, question: "WaitingQuestion") -> ShownQuestion:
    """Return a question with the name of its agent."""
    return ShownQuestion(question, reach.system.handle(question.agent).record.short)


def questions_that_wait(reach: Access) -> list[ShownQuestion]:
    """Return all questions that wait for a person, the oldest first."""
    return [named_question(reach, question) for question in reach.system.questions.pending()]


def questions_for(reach: Access, principal: Principal | None, agents: Collection[str]) -> list[ShownQuestion]:
    """Return the questions of these agents that a principal may answer; None is the operator."""
    waiting = [question for question in reach.system.questions.pending() if question.agent in agents]
    return [
        named_question(reach, question)
        for question in waiting
        if question.kind == ASK and may_answer(principal, question)
    ]


def may_answer(principal: Principal | None, question: "WaitingQuestion") -> bool:
    """Return whether a principal may answer a question; None is the operator, who always may."""
    if principal is None:
        return True
    return has_right(principal, Right.PROMPT) and is_asked(question.asks, principal.id, words_of_roles(principal))


def take_form_answer(
    reach: Access, principal: Principal | None, question: ShownQuestion, action: object, content: object
) -> bool:
    """Take a client's answer to a question; return whether it has settled the question.

    Raises `BadInput` for an answer that does not fit the form, and `NotAllowed` for a principal that is not asked.
    """
    if action not in (ACCEPT, DECLINE):
        return False
    answer: Any = answer_in(question, content) if action == ACCEPT else None
    roles = None if principal is None else words_of_roles(principal)
    with acting_as(principal, reach):
        answer_for(reach, question.id, answer, roles, digest=question.waiting.digest)
    return True


def waiting_question(reach: Access, question: str) -> ShownQuestion | None:
    """Return the question with an id, if it still waits for an answer; else None."""
    try:
        waiting = reach.system.questions.waiting(question)
    except BadInput:
        return None
    if waiting is None or waiting.kind != ASK or not reach.reaches(waiting.agent):
        return None
    return named_question(reach, waiting)
