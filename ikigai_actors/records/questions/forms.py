"""Forms: the structure of an answer to a question, as a flat JSON Schema. Pure.

    form = check_form({"type": "object", "properties": {"city": {"type": "string"}, "seats": {"type": "integer"}}})
    check_answer(form, {"city": "Rome", "seats": 2})

A form is one field, or an object of fields. A field is a text, a number, a whole number or a boolean; ``enum`` lists
what it may be. So a page, a chat and a terminal can all ask for it. Without a form the answer is a text.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.text import check_text

MOST_FIELDS = 20

LARGEST_ANSWER = 64 * 1024
"""The most bytes of an answer, as JSON."""

_TYPES = ("string", "number", "integer", "boolean")
_WORDS = {
    "string": {"minLength", "maxLength"},
    "number": {"minimum", "maximum"},
    "integer": {"minimum", "maximum"},
    "boolean": set[str](),
}
_IN_ANY = {"type", "title", "description", "enum", "default"}

_YES_AND_NO = {"yes": True, "true": True, "no": False, "false": False}

AnswerForm = Mapping[str, Any]


def check_form(value: object) -> AnswerForm:
    """Return a value as the form of an answer, or raise `BadInput` for an invalid form."""
    if not isinstance(value, Mapping):
        raise BadInput(f"Expected form to be a flat JSON Schema, an object; got {shown(value)}.")
    if value.get("type") != "object":
        _check_field("the form", value)
        return value
    if unknown := sorted(value.keys() - {"type", "properties", "required", "title", "description"}):
        raise BadInput(f"A form has type, properties and required; got {', '.join(map(str, unknown))}.")
    fields = value.get("properties")
    if not isinstance(fields, Mapping) or not 0 < len(fields) <= MOST_FIELDS:
        raise BadInput(f"Expected a form to have properties, 1 to {MOST_FIELDS} fields; got {shown(fields)}.")
    for name, field in fields.items():
        _check_field(f"field {name!r}", field)
    required = value.get("required", [])
    if not isinstance(required, list) or not all(isinstance(needed, str) and needed in fields for needed in required):
        raise BadInput(f"Expected required to be a list of fields of the form; got {shown(required)}.")
    return value


def _check_field(what: str, field: object) -> None:
    kind = field.get("type") if isinstance(field, Mapping) else None
    if not isinstance(field, Mapping) or kind not in _TYPES:
        raise BadInput(f"Expected {what} to have a type, one of {', '.join(_TYPES)}; got {shown(field)}.")
    if unknown := sorted(map(str, field.keys() - _IN_ANY - _WORDS[str(kind)])):
        raise BadInput(f"A field of type {kind} takes no {', '.join(unknown)}; a form is flat.")
    for name in _WORDS[str(kind)] & field.keys():
        if isinstance(field[name], bool) or not isinstance(field[name], int | float):
            raise BadInput(f"Expected {name} of {what} to be a number; got {shown(field[name])}.")
    choices = field.get("enum")
    if choices is None:
        return
    bare = {name: part for name, part in field.items() if name != "enum"}
    if not isinstance(choices, list) or not choices or any(_misfit(bare, choice) for choice in choices):
        raise BadInput(f"Expected enum of {what} to be a list of values of type {kind}; got {shown(choices)}.")


def check_answer(form: AnswerForm | None, value: object) -> Any:
    """Return an answer that fits its form, or raise `BadInput` with the requirements of the form."""
    if form is None:
        if not isinstance(value, str) or not value.strip():
            raise BadInput(f"Expected the answer to be a text; got {shown(value)}.")
        check_text(value, "answer")
    elif form.get("type") == "object":
        _check_object(form, value)
    elif wrong := _misfit(form, value):
        raise BadInput(f"Expected the answer to be {wrong}; got {shown(value)}.")
    if len(json.dumps(value)) > LARGEST_ANSWER:
        raise BadInput(f"Expected an answer of at most {LARGEST_ANSWER:,} bytes.")
    return value


def _check_object(form: AnswerForm, value: object) -> None:
    fields = form["properties"]
    if not isinstance(value, Mapping):
        raise BadInput(f"Expected the answer to be an object with {', '.join(fields)}; got {shown(value)}.")
    if missing := [name for name in form.get("required", []) if name not in value]:
        raise BadInput(f"The answer lacks {', '.join(missing)}.")
    for name, field_value in value.items():
        if name not in fields:
            raise BadInput(f"The answer has no field {name!r}; expected {', '.join(fields)}.")
        if wrong := _misfit(fields[name], field_value):
            raise BadInput(f"Expected {name} to be {wrong}; got {shown(field_value)}.")


def _misfit(field: Mapping[str, Any], value: object) -> str:
    """Return the requirement of a field that a value violates; empty if the value fits."""
    match field["type"]:
        case "string":
            least, most = field.get("minLength", 0), field.get("maxLength", LARGEST_ANSWER)
            fits = isinstance(value, str) and least <= len(value) <= most and storable_text(value)
            wanted = "a text" + (
                f" of {least} to {most} characters" if {"minLength", "maxLength"} & field.keys() else ""
            )
        case "boolean":
            fits, wanted = isinstance(value, bool), "true or false"
        case kind:
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            whole = kind == "integer"
            least, most = field.get("minimum", -math.inf), field.get("maximum", math.inf)
            fits = number and (not whole or value == int(value)) and least <= value <= most  # type: ignore[call-overload]
            wanted = "a whole number" if whole else "a number"
            wanted += f" from {least:g} to {most:g}" if {"minimum", "maximum"} & field.keys() else ""
    if fits and field.get("enum") is not None:
        fits, wanted = value in field["enum"], f"one of {', '.join(map(str, field['enum']))}"
    return "" if fits else wanted


def storable_text(text: str) -> bool:
    """Return whether the database can store a text."""
    try:
        check_text(text, "answer")
    except BadInput:
        return False
    return True


def parsed_answer(form: AnswerForm | None, text: str) -> Any:
    """Parse an answer as a person writes it: a text as it is, numbers and yes or no as words, an object as JSON.

    Raises `BadInput`.
    """
    kind = "string" if form is None else form["type"]
    if kind == "string":
        return check_answer(form, text)
    if kind == "boolean" and text.strip().lower() in _YES_AND_NO:
        return _YES_AND_NO[text.strip().lower()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        wanted = f"JSON with {', '.join(form['properties'])}" if form and kind == "object" else f"a {kind}"
        raise BadInput(f"Expected the answer to be {wanted}; got {shown(text)}.") from None
    return check_answer(form, value)


def parsed_fields(form: AnswerForm | None, fields: Mapping[str, str]) -> Any:
    """Parse the answer from the text fields of a web page. Empty fields that are not required are left out.

    Raises `BadInput`.
    """
    if form is None or form.get("type") != "object":
        return parsed_answer(form, fields.get("answer", ""))
    known, needed = form["properties"], form.get("required", [])
    texts = {name: text for name, text in fields.items() if name in known and (text or name in needed)}
    return check_answer(form, {name: parsed_answer(known[name], text) for name, text in texts.items()})


def answer_text(value: Any) -> str:
    """Return an answer as its model reads it: a text as it is, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
