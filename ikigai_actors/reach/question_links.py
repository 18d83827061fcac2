"""Signed links: each shows one question, and takes one answer.

    links = QuestionLinks(access, [referred_key("env:IKIGAI_KEY")])
    links.shown(link)               # to look at it changes nothing, since mail scanners follow links
    links.answered(link, fields)    # the answer of a form

    200    the page of the question, or the confirmation of the answer
    400    the answer is invalid: the page of the question again
    404    none of the keys has signed the link, or there is no such question
    409    the page showed an earlier question: the page of the present question
    410    the link has expired, or the question is closed: the page says who has answered

The link itself is the right to answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ikigai_actors.arguments import shown
from ikigai_actors.errors import AgentNotFound, BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.asked import AskedRequest
from ikigai_actors.reach.shown_questions import ShownQuestion
from ikigai_actors.records.questions.asked import APPROVE, ASK, CONNECT, EXPIRED, VOID
from ikigai_actors.records.questions.forms import parsed_fields
from ikigai_actors.records.questions.links import LinkedQuestion, opened_link
from ikigai_actors.records.questions.questions import QuestionRow
from ikigai_actors.store.asker import LOOKER, acting_for
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.system.secrets import key_references, referred_key
from ikigai_actors.text import iso_time

ALLOWS, DENIES, ANSWERS, CONNECTS = "allow", "deny", "answer", "connect"
"""The values of the buttons on a question's page."""

_AGREES = {APPROVE: ALLOWS, ASK: ANSWERS, CONNECT: CONNECTS}

FIELD = "field:"
"""The prefix of a form field's name, which distinguishes it from fields of the page."""


class LinkedForm(NamedTuple):
    """A question for a page of a signed link, and when the link expires."""

    shown: ShownQuestion
    expires: str
    """The time at which the link expires, in words."""


class LinkOutcome(NamedTuple):
    """The outcome of a request to a link: the HTTP status, a notice, and the question to show."""

    status: int
    notice: str = ""
    question: LinkedForm | None = None
    connects: Mapping[str, Any] | None = None
    """The account that a person wants to connect; None for any other request."""


class QuestionLinks:
    """The links to the questions of a system. Call its methods on a thread that may wait for the database."""

    def __init__(self, system: AttachedSystem, access: Access, keys: Sequence[bytes]) -> None:
        """Take the operator's keys. A link is valid if one of these keys has signed the link."""
        self._system, self._keys, self._now = system, tuple(keys), access.client.now_ms

    def shown(self, link: str) -> LinkOutcome:
        """Return the outcome of opening a link: the page with its question, or an error."""
        with acting_for(LOOKER):
            outcome = self._found(link)
            return outcome if isinstance(outcome, LinkOutcome) else LinkOutcome(200, "", self._form(*outcome))

    def answered(self, link: str, fields: Mapping[str, str]) -> LinkOutcome:
        """Take the answer that a form has sent; return the outcome."""
        outcome = self._found(link)
        if isinstance(outcome, LinkOutcome):
            return outcome
        linked, question = outcome
        decided = fields.get("decide")
        if fields.get("digest") != question.digest:
            return LinkOutcome(409, "This is not what you were shown: look at it again.", self._form(*outcome))
        if decided not in (_AGREES[question.kind], DENIES):
            return LinkOutcome(400, "Choose one of the buttons.", self._form(*outcome))
        if decided == CONNECTS:
            return LinkOutcome(200, "", self._form(*outcome), question.call.connect)
        try:
            answer = _answer_in(question, decided, fields)
            with acting_for(AskedRequest(None, self._now, linked.name)):
                first = self._system.questions.answer(
                    question.id, answer, reason=fields.get("reason", ""), by=linked.name, digest=question.digest
                )
        except BadInput as error:
            return LinkOutcome(400, str(error), self._form(*outcome))
        if not first:
            return _over(self._system.questions.get(question.id))
        return LinkOutcome(200, "Thank you. Your answer is there, and the agent goes on.")

    def _found(self, link: str) -> tuple[LinkedQuestion, WaitingQuestion] | LinkOutcome:
        """Return the question of a link that can be answered, or the outcome that says why none can."""
        linked = opened_link(self._keys, link)
        if linked is None:
            return LinkOutcome(404, "This link is not valid.")
        try:
            row = self._system.questions.get(linked.question)
        except BadInput:
            return LinkOutcome(404, "There is no such question any more.")
        if row.is_open and linked.expires_at <= self._now():
            return LinkOutcome(410, "This link has expired. The question still waits in the inbox.")
        question = self._system.questions.waiting(row.id) if row.is_open else None
        return _over(self._system.questions.get(row.id)) if question is None else (linked, question)

    def _form(self, linked: LinkedQuestion, question: WaitingQuestion) -> LinkedForm:
        try:
            agent = self._system.agent(question.agent).name or question.agent
        except AgentNotFound:
            agent = question.agent
        return LinkedForm(ShownQuestion(question, agent), iso_time(linked.expires_at))


def operator_keys(references: Sequence[str], system: AttachedSystem) -> list[bytes]:
    """Return the operator's keys that references name (see `referred_key`); without any, those of the environment.

    The system opens the sealed secrets of endpoints by the same keys.

    Raises `BadInput`.
    """
    if isinstance(references, str) or not isinstance(references, Sequence):
        raise BadInput(f"Expected keys to be a list of references, such as ['env:KEY']; got {shown(references)}.")
    if references:
        system._keys = tuple(references)
    return [referred_key(reference) for reference in references or key_references(None)]


def _over(row: QuestionRow) -> LinkOutcome:
    """Return the outcome for a question that no longer waits."""
    if row.how in (None, VOID):
        return LinkOutcome(410, "The agent does not wait for this any more.")
    if row.how == EXPIRED:
        return LinkOutcome(410, "Nobody has answered in time, and the default was taken.")
    return LinkOutcome(410, f"This question was {row.how} by {row.by or 'somebody'} already.")


def _answer_in(question: WaitingQuestion, decided: str, fields: Mapping[str, str]) -> object:
    """Return the answer that a form has sent. Raises `BadInput`."""
    if question.kind != ASK:
        return decided
    if decided == DENIES:
        return None
    sent = {name: text.replace("\r\n", "\n") for name, text in fields.items()}
    if question.form is None or question.form["type"] != "object":
        return parsed_fields(question.form, {"answer": sent.get(FIELD, "")})
    return parsed_fields(question.form, {name: sent.get(FIELD + name, "") for name in question.form["properties"]})
