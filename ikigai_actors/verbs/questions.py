"""Verbs about questions, which wait for a person, and their answers."""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import VerbGroup, verb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ikigai_actors.reach.shown_questions import QuestionSeen
    from ikigai_actors.records.questions.questions import QuestionRow
    from ikigai_actors.system.handles.ref import System
    from ikigai_actors.system.questions import WaitingQuestion
    from ikigai_actors.verbs.place import Place


@verb("list", script="")
def list_questions(place: "Place") -> object:
    """List the questions that wait for a person: calls that wait for approval, and questions of models."""
    label = words.shown_name_in(place.system)
    questions = [question for question in place.system.questions.pending() if place.reaches(question.agent)]
    for question in questions:
        place.screen.line(_described(question, label))
    if not questions:
        place.screen.line("Nothing waits for a person.")
    return [_seen(question, label) for question in questions]


@verb("show", script="")
@click.argument("question", metavar="QUESTION", type=TEXT)
def show_question(place: "Place", question: str) -> object:
    """Show a question with its form and the digest of the shown text, or the person who has answered it."""
    label = words.shown_name_in(place.system)
    row = _reached(place, question)
    for pending in place.system.questions.pending():
        if pending.id == row.id:
            place.screen.line(_described(pending, label))
            place.screen.line(f"digest {pending.digest}")
            return _seen(pending, label)
    place.screen.line(f"{row.id}  {row.how or 'it waits no more'}{f' by {row.by}' if row.by else ''}")
    return {"question": row.id, "agent": row.agent, "how": row.how, "by": row.by, "answered_at": row.answered_at}


@verb("answer", script="")
@click.argument("question", metavar="QUESTION", type=TEXT)
@click.argument("answer", metavar="[ANSWER]...", type=TEXT, nargs=-1)
@click.option("--deny", is_flag=True, help="Do not let the call run, or decline to answer; ANSWER says why.")
@click.option("--digest", metavar="SHA256", type=TEXT, help="Only if this is what was shown, as list and show say it.")
@click.option("--always", "always", flag_value="tool", help="The agent need not ask for this tool again.")
@click.option("--exact", "always", flag_value="exact", help="The agent need not ask for this command of bash again.")
def answer_question(
    place: "Place", question: str, answer: tuple[str, ...], deny: bool, digest: str | None, always: str | None
) -> object:
    """Answer a question, by its id or the beginning of its id.

    A call that waits for approval runs without an ANSWER, or with allow. What a model asks takes the ANSWER, as its
    form says: a text, a number, yes or no, or an object as JSON.
    """
    from ikigai_actors.verbs.principal import words_of_roles

    row = _reached(place, question)
    text = " ".join(answer)
    said = _answer_typed(row, text, deny=deny)
    principal = place.principal
    in_time = place.wait_for(
        lambda: place.system.questions.answer(
            row.id,
            said,
            reason=text if deny else "",
            by=principal.id,
            roles=words_of_roles(principal),
            digest=digest or "",
            always=always or False,
        )
    )
    after = place.system.questions.get(row.id)
    done = after.how or "answered"
    place.screen.line(f"{row.id}  {done}" if in_time else f"{row.id}  was {done} before by {after.by or 'nobody'}")
    return {"question": row.id, "agent": row.agent, "answered": in_time, "how": after.how, "by": after.by}


def _reached(place: "Place", question: str) -> "QuestionRow":
    from ikigai_actors.errors import BadInput

    row = place.system.questions.get(question)
    if not place.reaches(row.agent):
        raise BadInput(f"There is no question {question!r}. questions list shows those that wait.")
    return row


questions = VerbGroup(
    "questions",
    "List what waits for a person, and answer it.",
    (list_questions, show_question, answer_question),
    list_questions,
    needs=Right.PROMPT,
)


class InboxLine(NamedTuple):
    """A question in the list of the inbox."""

    id: str
    who: str
    """The name of the agent that asks."""
    first: str
    """The beginning of the question, on one line."""
    whole: str
    """The whole question: for a call, with its arguments; else with its form."""
    takes_text: bool
    """Whether the answer is a text, rather than yes or no."""
    digest: str


def inbox_lines(system: "System") -> list[InboxLine]:
    """Return the waiting questions, the oldest first."""
    label = words.shown_name_in(system)
    lines = []
    for question in system.questions.pending():
        is_call = question.kind != "ask"
        first = words.one_line(words.described_call(question.call) if question.kind == "approve" else question.text)
        arguments = json.dumps(dict(question.call.input), indent=2, ensure_ascii=False)
        form = "" if question.row.form is None else f"\n\nThe answer: {_form_words(question.row.form)}"
        whole = f"{question.call.tool}\n{arguments}" if is_call else f"{question.text}{form}"
        lines.append(
            InboxLine(question.id, label(question.agent) or question.agent, first, whole, not is_call, question.digest)
        )
    return lines


def answer_line_of(system: "System", line: InboxLine, text: str, *, deny: bool) -> str:
    """Answer a question of the inbox, and return the result as a line. Raises `BadInput`."""
    answer = _answer_typed(system.questions.get(line.id), text, deny=deny)
    first = system.questions.answer(line.id, answer, by="local", digest=line.digest)
    after = system.questions.get(line.id)
    return f"{after.how}." if first else f"It was {after.how or 'answered'} before by {after.by or 'nobody'}."


def _answer_typed(row: "QuestionRow", text: str, *, deny: bool) -> object:
    """Return the value of a typed answer. Raises `BadInput` if the text does not fit the question."""
    from ikigai_actors.errors import BadInput
    from ikigai_actors.records.questions.asked import ASK
    from ikigai_actors.records.questions.forms import parsed_answer

    if row.kind == ASK:
        return None if deny else parsed_answer(row.form, text)
    if not deny and text not in ("", "allow", "deny"):
        raise BadInput(f"This call is allowed or denied; got {text!r}. --deny takes a reason.")
    return "deny" if deny or text == "deny" else "allow"


def _seen(question: "WaitingQuestion", label: "Callable[[str], str | None]") -> "QuestionSeen":
    """Return a question in the form for a client."""
    from ikigai_actors.reach.shown_questions import ShownQuestion

    return ShownQuestion(question, label(question.agent) or question.agent).seen()


def _described(question: "WaitingQuestion", label: "Callable[[str], str | None]") -> str:
    row = question.row
    what = words.described_call(question.call) if row.kind == "approve" else question.text
    form = "" if row.form is None else f"  ({_form_words(row.form)})"
    return f"{row.id[:12]}  {label(row.agent)}: {what}{form}"


def _form_words(form: "Mapping[str, Any]") -> str:
    """Return a form on one line: its fields, each with its type or its choices."""
    fields = form["properties"] if form["type"] == "object" else {"": form}
    texts = (f"{name}: {_field_words(field)}" if name else _field_words(field) for name, field in fields.items())
    return words.one_line(", ".join(texts))


def _field_words(field: "Mapping[str, Any]") -> str:
    if field.get("enum"):
        return " or ".join(map(str, field["enum"]))
    return "yes or no" if field["type"] == "boolean" else "text" if field["type"] == "string" else str(field["type"])
