"""The next steps of unanswered questions: reminders, escalations, and the default at a time limit.

The host that runs the agent commits a step, which changes only the row of the question. The default answer is a remote
command, written together with the row: the agent applies it once, unless a person was faster.
"""

import json
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.mail.mail import NOTICE, Mail, write_mail
from ikigai_actors.records.messages.question_terms import ABOVE, DEFAULT, ESCALATE, resolved
from ikigai_actors.records.questions.asked import APPROVE, ASK, CONNECT, RUNTIME
from ikigai_actors.records.questions.questions import QuestionRow, question_in
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit


class DueQuestion(NamedTuple):
    """A question with the time of its next step: a row of the query ``next_questions``."""

    agent: str
    id: str
    due_at: int
    supervisor: str | None


def next_questions(tx: Transaction, host: str, most: int) -> list[DueQuestion]:
    """Return the questions whose next steps come first, for the agents of a host."""
    return [DueQuestion(*row) for row in tx.run("next_questions", host=host, most=most)]


class SteppedQuestion(NamedTuple):
    """The result of a step of an unanswered question: the changed question, and the notices that were sent."""

    question: QuestionRow
    """The question after the step."""
    what: str
    mails: tuple[Mail, ...] = ()
    """The notices to supervisors."""


def waits_text(stepped: SteppedQuestion) -> str:
    """Return the text that a notice has about a step of an unanswered question."""
    row = stepped.question
    about = f"Question {row.id} of agent {row.agent}"
    match stepped.what:
        case "default":
            return f"{about} is decided by default, since nobody has answered it in time."
        case "escalate":
            return f"{about} waits for an answer, and asks {', '.join(row.asks)} now."
        case _:
            return f"{about} waits for an answer of {', '.join(row.asks)}."


@dataclass(frozen=True, slots=True)
class StepQuestion(Unit):
    """Carry out the next step of a question whose time has come: a reminder, an escalation or the default.

    Answered with `SteppedQuestion`, or None if the question has changed meanwhile.
    """

    seen: DueQuestion
    now: int

    concerns_others = True
    concerns_hosts = True

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.seen.agent,) if self.seen.supervisor is None else (self.seen.agent, self.seen.supervisor)

    def write(self, tx: Transaction, locked: LockedRows) -> SteppedQuestion | None:
        rows = tx.run("question", id=self.seen.id)
        if not rows:
            return None
        row = question_in(rows[0])
        if not row.is_open or row.next_at != self.seen.due_at or self.now < self.seen.due_at:
            return None  # it was answered, or stepped; or the clock was set back
        steps = row.terms.steps()
        step, behind = steps[row.level], steps[row.level + 1 :]
        asks = row.asks
        if step.what == ESCALATE:
            asks = tuple(dict.fromkeys((*asks, *resolved([step.address], {}))))
        following = next(iter(behind), None)
        next_at = None if following is None else row.asked_at + following.after
        what = None if following is None else following.what
        tx.run("step_question", id=row.id, level=row.level + 1, asks=json.dumps(asks), next_at=next_at, next=what)
        if step.what == DEFAULT:
            default_decision(row, self.now).write(tx, locked)
        mails = (self._notice(tx, locked, row),) if step.address == ABOVE and self.seen.supervisor is not None else ()
        after = row._replace(level=row.level + 1, asks=asks, next_at=next_at, next=what)
        return SteppedQuestion(after, step.what, tuple(mail for mail in mails if mail is not None))

    def _notice(self, tx: Transaction, locked: LockedRows, row: QuestionRow) -> Mail | None:
        supervisor = self.seen.supervisor
        if supervisor is None or (there := locked.get(supervisor)) is None or there.status == "dead":
            return None
        text = f"Agent {row.agent} waits for a person: nobody has answered question {row.id} of its call {row.call}."
        return write_mail(tx, locked, supervisor, row.agent, text, self.now, NOTICE)


def default_decision(row: QuestionRow, now: int) -> AddRemoteCommand:
    """Return the remote command that decides a question with its default."""
    default = row.terms.default
    approved = row.kind != CONNECT and (default == "allow" if row.kind == APPROVE else default != "deny")
    body = {
        "reply": row.reply,
        "call": row.call,
        "approved": approved,
        "reason": "" if approved else "nobody has answered in time",
        "always": "",
        "by": RUNTIME,
        "question": row.id,
    }
    if row.kind == ASK and approved:
        body["answer"] = json.dumps(default)
    return AddRemoteCommand(row.agent, "decide", json.dumps(body), now)
