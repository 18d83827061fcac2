"""The checks of fsck for questions: a row is open exactly while its call waits."""

import json
from collections.abc import Iterator, Mapping

from ikigai_actors.errors import BadInput, HistoryError
from ikigai_actors.records.agents.registry import AgentRecord, turns_that_asked
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.messages.question_terms import QuestionTerms
from ikigai_actors.records.questions.asked import question_id
from ikigai_actors.records.questions.forms import check_form
from ikigai_actors.records.questions.questions import every_question
from ikigai_actors.records.questions.waiting import waiting_calls
from ikigai_actors.store.base import Row, Transaction


def check_questions(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of questions; ``records`` are all agents, by uuid."""
    opened: dict[str, set[int]] = {}
    for row in every_question(tx):
        agent, position, is_open = str(row[1]), int(row[2]), row[14] is None
        for wrong in _wrong(row):
            yield Violation(Invariant.QUESTION, agent, f"expected the question at {position} {wrong}")
        if is_open:
            opened.setdefault(agent, set()).add(position)
    turns = turns_that_asked(tx)
    for agent in sorted({*opened, *turns}):
        waits = _waiting(tx, agent, turns.get(agent, 0), records)
        if waits is None:
            continue  # its log is damaged, which is reported
        for position in sorted(opened.get(agent, set()) - waits):
            yield Violation(Invariant.QUESTION, agent, f"expected no open question at {position}: no call waits there")
        for position in sorted(waits - opened.get(agent, set())):
            yield Violation(Invariant.QUESTION, agent, f"expected an open question at {position}, where a call waits")


def _waiting(tx: Transaction, agent: str, turn: int, records: Mapping[str, AgentRecord]) -> set[int] | None:
    """Return the positions of an agent's messages whose calls wait for a person; None if they cannot be read."""
    record = records.get(agent)
    if record is None or not record.living or not turn:
        return set()
    try:
        return set(waiting_calls(section(tx, agent, turn - 1)))
    except HistoryError:
        return None


def _wrong(row: Row) -> Iterator[str]:
    (name, agent, position), asks, (form, terms), next_at, closed = row[:3], row[6], row[9:11], row[12], row[14]
    if name != question_id(str(agent), int(position)):
        yield "to have the id of its agent and position"
    try:
        listed = json.loads(str(asks))
        sound = isinstance(listed, list) and all(isinstance(entry, str) for entry in listed)
        QuestionTerms.decoded(str(terms)).steps()
        if form is not None:
            check_form(json.loads(str(form)))
    except (BadInput, ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        yield "to have addresses, terms and a form that can be read"
    if closed is not None and next_at is not None:
        yield "to take no further step, since it is closed"
