"""The act that answers a question of the inbox."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypedDict

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.verbs.act import act
from ikigai_actors.verbs.acts.changes import Always

if TYPE_CHECKING:
    from ikigai_actors.records.questions.questions import QuestionRow


class QuestionAnswered(TypedDict):
    """The answer to `answer`: the state of the question, and whether this was its first answer."""

    question: str
    agent: str
    answered: bool
    """Whether this was the first answer."""
    how: str | None
    by: str | None


@act("answer", "Answer a question", verb="questions", gives=QuestionAnswered)
def answer_waiting_question(
    reach: Access, question: str, answer: Any = None, reason: str = "", digest: str = "", always: Always = False
) -> QuestionAnswered:
    """Answer a question that waits for a person. Says whether it was the first answer.

    Args:
        question: The id of the question.
        answer: allow or deny for a call; else a value of the form. None declines.
        reason: Why it is denied or declined.
        digest: Of what was shown; an answer to something else is refused.
        always: Which later calls run unasked.
    """
    return answer_for(reach, question, answer, reach.roles, reason=reason, digest=digest, always=always)


def answer_for(
    reach: Access,
    question: str,
    answer: Any,
    roles: Collection[str] | None,
    *,
    reason: str = "",
    digest: str = "",
    always: bool | str = False,
) -> QuestionAnswered:
    """Answer a question for a principal of a door. Raises what `OpenQuestions.answer` does.

    ``roles``: the roles of the answering principal, each right with the lower ones; None for this machine's operator.
    """
    questions = reach.system.questions
    row = question_in_reach(reach, question)
    first = questions.answer(
        row.id, answer, reason=reason, by=reach.by, roles=roles, digest=digest, always=always, timeout=reach.quick
    )
    after = questions.get(row.id)
    return {"question": row.id, "agent": row.agent, "answered": first, "how": after.how, "by": after.by}


def question_in_reach(reach: Access, question: str) -> "QuestionRow":
    """Return a question by its id. Raises the same `BadInput` for a question out of reach and for an unknown id."""
    row = reach.system.questions.get(question)
    if not reach.reaches(row.agent):
        raise BadInput(f"There is no question {question!r}. questions list shows those that wait.")
    return row
