"""The inbox: the questions that wait for a person, and their answers.

    for question in system.questions.pending():
        print(question.id, question.text, question.asks)
    system.questions.answer(question.id, "allow", by="anna")

A question is a call that waits for approval, or one by which a model asks a person for an answer (``ask_person``). Both
are committed, so they wait on after a crash. `Approvals` has those of the first kind alone.

The first answer counts, and later ones change nothing. An answer is valid for exactly the question that was shown: if a
call is asked about again, because its tool has changed, that is another question.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.agent.turn.calls import EXACT, TOOL, PendingCall
from ikigai_actors.arguments import check_choice, check_timeout, check_type, shown
from ikigai_actors.errors import BadInput, NotAllowed
from ikigai_actors.records.messages.question_terms import ALLOW, DENY, is_asked
from ikigai_actors.records.questions.asked import ASK
from ikigai_actors.records.questions.forms import check_answer
from ikigai_actors.records.questions.questions import QuestionRow, open_questions, question_called
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.store.base import Store
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.text import check_text


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that waits for a person."""

    row: QuestionRow
    call: PendingCall

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.row.id

    @property
    def agent(self) -> str:
        """The agent that asks, by uuid."""
        return self.row.agent

    @property
    def kind(self) -> str:
        """``approve``, ``ask`` or ``connect``."""
        return self.row.kind

    @property
    def text(self) -> str:
        """The text of the question: of a call, its tool and arguments."""
        if self.call.tool == ASK_PERSON:
            return str(self.call.input.get("question", ""))
        if (connect := self.call.connect) is not None:
            return f"connect the account of {connect['subject']} at {connect['server']}, for {self.call.tool}"
        return f"{self.call.tool} {json.dumps(dict(self.call.input), ensure_ascii=False)}"

    @property
    def form(self) -> dict[str, Any] | None:
        """The form of the answer as a flat JSON Schema; None if the answer is a text, allow or deny."""
        return self.row.form

    @property
    def digest(self) -> str:
        """The SHA-256 of the tool, the arguments and the tool's definition, as they are shown."""
        return self.row.digest

    @property
    def asks(self) -> tuple[str, ...]:
        """The addresses of the people who are asked."""
        return self.row.asks


def check_addressed(row: QuestionRow, by: str, roles: Collection[str]) -> None:
    """Raise `NotAllowed` unless a question is addressed to the principal ``by``, by id or by one of the roles."""
    if not is_asked(row.asks, by, roles):
        raise NotAllowed(f"Question {row.id} asks {', '.join(row.asks)}, and not {by or 'you'}.")


class OpenQuestions(OfOneProcess):
    """The questions of a system to people, and their answers. See `ActorSystem.questions`."""

    def __init__(self, store: Store, approvals: Approvals) -> None:
        """Use a store; ``approvals`` decides on calls."""
        self._store, self._approvals = store, approvals

    def pending(self) -> list[WaitingQuestion]:
        """The questions that wait, the oldest first."""
        rows = self._store.read(open_questions)
        calls = {(call.agent, call.asked_at): call for call in self._approvals._waiting({row.agent for row in rows})}
        return [WaitingQuestion(row, calls[key]) for row in rows if (key := (row.agent, row.position)) in calls]

    def calls(self) -> list[PendingCall]:
        """The calls that wait for a person. Those of one agent are in the order in which its model made them."""
        return self._approvals._waiting()

    def waiting(self, question: str) -> WaitingQuestion | None:
        """Return a question by its id; None if it no longer waits. Raises `BadInput` if there is no such question."""
        row = self.get(question)
        calls = [call for call in self._approvals._waiting({row.agent}) if call.asked_at == row.position]
        return WaitingQuestion(row, calls[0]) if calls and row.is_open else None

    def get(self, question: str) -> QuestionRow:
        """Return a question by its id, open or answered; it is known for 30 days after its end. Raises `BadInput`."""
        check_type(question, str, "question", "the id of a question")
        return self._store.read(lambda tx: question_called(tx, question))

    def answer(
        self,
        question: str,
        answer: Any,
        *,
        reason: str = "",
        by: str = "",
        roles: Collection[str] | None = None,
        digest: str = "",
        always: bool | str = False,
        timeout: float | None = None,
    ) -> bool:
        """Answer a question; return after the commit whether this was the first answer.

        Args:
            question: the id of the question.
            answer: ``"allow"`` or ``"deny"`` for a call that waits for approval. Otherwise a value of the form, a text
                where there is none, or None to decline.
            reason: the reason for a denial, which the model reads.
            by: the person who answers, for the log.
            roles: the roles of the person who answers; None for the operator of this machine, who may answer all.
            digest: the digest of the question as it was shown; an answer to a changed question is refused.
            always: which later calls run unasked, as `Approvals.approve` takes it.
            timeout: seconds to wait.

        Raises:
            BadInput: there is no such question, the question has changed since it was shown, or the answer does not
                fit.
            NotAllowed: the question is addressed to somebody else.
        """
        check_type(question, str, "question", "the id of a question")
        check_text(reason, "reason")
        check_text(by, "by")
        check_text(digest, "digest")
        listed = isinstance(roles, Collection) and not isinstance(roles, str | bytes)
        if roles is not None and not (listed and all(isinstance(role, str) for role in roles)):
            raise BadInput(f"Expected roles to be a list of words, or None; got {shown(roles)}.")
        if not isinstance(always, bool):
            check_choice(always, "always", (TOOL, EXACT))
        check_timeout(timeout)
        row = self.get(question)
        if roles is not None:
            check_addressed(row, by, roles)
        if digest and digest != row.digest:
            raise BadInput(f"Question {row.id} is not the one that was shown: look at it again.")
        if row.kind == ASK:
            value = None if answer is None else check_answer(row.form, answer)
            said = "" if value is None else json.dumps(value)
        else:
            said = ""
            answer = check_choice(answer, "answer", (ALLOW, DENY)) == ALLOW or None
        if not row.is_open:
            return False
        calls = [call for call in self._approvals._waiting({row.agent}) if call.asked_at == row.position]
        if not calls:
            return False
        return self._approvals._answer(calls[0], answer is not None, reason, always, by, row.id, said, timeout)
