"""A question as any door shows it: the asking agent, the text, the form for a client, and the answer. Pure.

    shown = shown_question(question, "ann")
    client_form(shown)                      # {"type": "object", "properties": {"seats": …}, "required": ["seats"]}
    answer_in(shown, {"seats": 2})          # as `OpenQuestions.answer` takes it

A client of a protocol asks its user for an object of texts, numbers and booleans. So an answer of one value is the
field ``answer`` of the object, a choice among numbers is shown as a choice among texts, and a call that waits for
approval has the field ``allow``.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.question_terms import ALLOW, DENY
from ikigai_actors.records.questions.asked import ASK
from ikigai_actors.records.questions.forms import check_answer, parsed_answer

if TYPE_CHECKING:
    from ikigai_actors.agent.turn.calls import PendingCall
    from ikigai_actors.system.questions import WaitingQuestion

ANSWER, ALLOWS = "answer", "allow"
"""The names of the form fields for an answer that is not an object."""


class QuestionSeen(TypedDict):
    """A question in the form for a program."""

    question: str
    """The id of the question."""
    agent: str
    name: str
    kind: str
    """``approve``, ``ask`` or ``connect``."""
    text: str
    tool: str
    input: Mapping[str, Any]
    call: str
    """The full name of the call that waits."""
    always: NotRequired[list[str]]
    """The kinds of later calls that an approval can let run without a question."""
    form: Mapping[str, Any] | None
    digest: str
    asks: list[str]
    asked_at: int
    next_at: int | None
    next: str | None
    change: str | None


class ShownQuestion(NamedTuple):
    """A question that waits, with the name of the agent that asks."""

    waiting: "WaitingQuestion"
    who: str
    """The name of the agent that asks."""

    @property
    def id(self) -> str:
        """Return the id of the question."""
        return self.waiting.id

    @property
    def agent(self) -> str:
        """Return the uuid of the agent that asks."""
        return self.waiting.agent

    @property
    def call(self) -> "PendingCall":
        """Return the call that waits for approval or for an account."""
        return self.waiting.call

    @property
    def is_call(self) -> bool:
        """Return whether a call waits for approval or an account; False if a model asks for an answer."""
        return self.waiting.kind != ASK

    @property
    def title(self) -> str:
        """Return the question as one sentence."""
        if (connect := self.call.connect) is not None:
            return f"{self.who} wants to call {self.call.tool}: {connect['subject']} at {connect['server']}?"
        return f"May {self.who} call {self.call.tool}?" if self.is_call else self.waiting.text

    @property
    def form(self) -> Mapping[str, Any] | None:
        """Return the JSON schema of the answer; None for a call that waits for approval.

        Without a form, the answer is a text.
        """
        return None if self.is_call else self.waiting.form or {"type": "string"}

    @property
    def arguments(self) -> str:
        """Return the exact arguments of the call that waits for approval, as JSON."""
        return json.dumps(dict(self.call.input), indent=2, ensure_ascii=False)

    @property
    def whole(self) -> str:
        """Return the question with everything that an approval covers: the arguments, and the changes of the tool."""
        call = [self.title, self.arguments, self.call.change]
        parts = call if self.is_call else [f"{self.who} asks:", self.title]
        return "\n\n".join(part for part in parts if part)

    @property
    def elsewhere(self) -> str:
        """Return the text for a client that cannot ask its user."""
        return waits_in_inbox(self.id)

    def seen(self) -> QuestionSeen:
        """Return the question in the form for a program."""
        row, call = self.waiting.row, self.call
        return {
            "question": row.id,
            "agent": row.agent,
            "name": self.who,
            "kind": row.kind,
            "text": self.waiting.text,
            "tool": call.tool,
            "input": dict(call.input),
            "call": call.full_name,
            "always": list(call.always),
            "form": row.form,
            "digest": row.digest,
            "asks": list(row.asks),
            "asked_at": row.asked_at,
            "next_at": row.next_at,
            "next": row.next,
            "change": call.change or None,
        }


def waits_in_inbox(question: str) -> str:
    """Return the text for a client that cannot ask its user the question with this id."""
    return (
        f"The question waits in the inbox. A person answers it by `ikigai questions answer {question[:12]} …`, "
        "a program by POST /v1/questions/answer."
    )


def client_form(question: ShownQuestion) -> dict[str, Any]:
    """Return the form that a client shows to its user, as a flat JSON Schema of an object."""
    form = question.form
    if form is None:
        return _object({ALLOWS: {"type": "boolean", "title": "Allow"}}, [ALLOWS])
    if form["type"] != "object":
        return _object({ANSWER: _client_field({"title": "Answer", **form})}, [ANSWER])
    fields = {name: _client_field(field) for name, field in form["properties"].items()}
    return _object(fields, list(form.get("required", ())))


def answer_in(question: ShownQuestion, content: object) -> Any:
    """Return the answer that a user gave in a client's form. Raises `BadInput`, which says what does not fit."""
    form = question.form
    wants = ALLOWS if form is None else ANSWER if form["type"] != "object" else ", ".join(form["properties"])
    if not isinstance(content, Mapping):
        raise BadInput(f"Expected the answer to be an object with {wants}; got {shown(content)}.")
    if form is None:
        if not isinstance(content.get(ALLOWS), bool):
            raise BadInput(f"Expected {ALLOWS} to be true or false; got {shown(content.get(ALLOWS))}.")
        return ALLOW if content[ALLOWS] else DENY
    if form["type"] != "object":
        return check_answer(form, _typed(form, content.get(ANSWER)))
    fields = form["properties"]
    return check_answer(form, {name: _typed(fields.get(name), value) for name, value in content.items()})


def _object(fields: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": required}


def _client_field(field: Mapping[str, Any]) -> dict[str, Any]:
    if field.get("enum") is None or field["type"] == "string":
        return dict(field)
    texts = {name: field[name] for name in ("title", "description") if name in field}
    return {"type": "string", **texts, "enum": [json.dumps(choice) for choice in field["enum"]]}


def _typed(field: Mapping[str, Any] | None, value: object) -> Any:
    """Return the value of a form field; if the field is a choice among numbers, parse the text."""
    if field is None or field["type"] == "string" or not isinstance(value, str):
        return value
    return parsed_answer(field, value)
