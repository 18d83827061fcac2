"""Table ``questions``: the calls that wait for a person, the people that they ask, and the time limits.

The table is an index of the log. The unit that writes the ``approval`` message writes the row. The row is closed by the
unit that writes the decision, begins the call without one, ends the turn, or records the agent's death. If a person is
asked about a call again, because its tool has changed, the new question has its own row: a decision holds for exactly
the question that was shown.

    open       the call waits
    answered   a person has decided: a call is ``approved`` or ``denied``, other questions ``answered`` or ``declined``
    expired    nobody has decided in time, and the runtime has taken the default
    void       the call waits no longer, and nobody has decided

A crash leaves both the message and the row, or neither. A reminder, an escalation and the time limit change only the
row. The default is a remote command of the agent, written together with the row at the time limit, so it is applied
once, unless a person was faster.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.question_terms import QuestionTerms
from ikigai_actors.records.questions.asked import NewQuestion, SettledQuestion, question_id
from ikigai_actors.store.base import Row, Transaction

ANSWERED_KEPT_MS = 30 * 24 * 3600 * 1000
"""The milliseconds after which a prune deletes a closed row."""


class QuestionRow(NamedTuple):
    """A row of table ``questions``: a call that waits for a person, or has waited."""

    id: str
    agent: str
    position: int
    reply: int
    call: str
    kind: str
    asks: tuple[str, ...]
    level: int
    """The number of steps of its terms that were taken."""
    digest: str
    form: dict[str, Any] | None
    terms: QuestionTerms
    asked_at: int
    """The time when it was asked, in milliseconds since 1970 (UTC)."""
    next_at: int | None
    """The time of the next step, in milliseconds since 1970; None for never."""
    next: str | None
    """The next step: ``remind``, ``escalate`` or ``default``."""
    answered_at: int | None
    by: str | None
    how: str | None

    @property
    def is_open(self) -> bool:
        """Return whether the question waits for an answer."""
        return self.answered_at is None


def write_questions(
    tx: Transaction, asked: Iterable[NewQuestion], settled: Iterable[SettledQuestion], now: int
) -> None:
    """Write the questions that a unit of an agent asks, and close those that it settles."""
    for settling in settled:
        tx.run(
            "settle_question",
            id=question_id(settling.agent, settling.position),
            now=now,
            how=settling.how,
            by=settling.by or None,
        )
    for new in asked:
        step = next(iter(new.terms.steps()), None)
        tx.run(
            "add_question",
            id=new.id,
            agent=new.agent,
            position=new.position,
            reply=new.reply,
            call=new.call,
            kind=new.kind,
            asks=json.dumps(new.asks),
            digest=new.digest,
            form=new.form or None,
            terms=new.terms.encoded(),
            now=new.asked_at,
            next_at=None if step is None else new.asked_at + step.after,
            next=None if step is None else step.what,
        )


def bury_questions(tx: Transaction, agents: Collection[str], now: int) -> None:
    """Close the questions of agents that die."""
    tx.run("bury_questions", agents=list(agents), now=now)


def open_questions(tx: Transaction) -> list[QuestionRow]:
    """Return the open questions, oldest first."""
    return [question_in(row) for row in tx.run("open_questions")]


def question_called(tx: Transaction, name: str) -> QuestionRow:
    """Return a question by its id, or by at least eight characters of its beginning. Raises `BadInput`."""
    rows = tx.run("question", id=name) or (tx.run("questions_beginning", id=name) if len(name) >= 8 else [])
    if len(rows) != 1:
        raise BadInput(f"There is no question {name!r}. ikigai questions list shows those that wait.")
    return question_in(rows[0])


def question_with(tx: Transaction, name: str) -> QuestionRow | None:
    """Return a question by its whole id; None when there is none."""
    rows = tx.run("question", id=name)
    return question_in(rows[0]) if rows else None


def every_question(tx: Transaction) -> Iterator[Row]:
    """Iterate over all rows of table ``questions``, unconverted."""
    yield from tx.run("every_question")


def prune_questions(tx: Transaction, now: int) -> None:
    """Delete the rows of questions that were closed more than 30 days ago."""
    tx.run("prune_questions", before=now - ANSWERED_KEPT_MS)


def question_in(row: Row) -> QuestionRow:
    """Return the question from a row."""
    question = QuestionRow._make(row)
    terms = QuestionTerms.decoded(str(row[10]))
    form = json.loads(str(row[9])) if row[9] else None
    return question._replace(asks=tuple(json.loads(str(row[6]))), form=form, terms=terms)
