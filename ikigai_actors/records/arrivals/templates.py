"""Templates and filters: the text that an agent gets of a delivery, and which deliveries count. Pure.

    filled("Issue {issue.number}: {issue.title}", value, body)
    matches({"action": ["opened", "reopened"]}, value)

``{a.b.0}`` is a field of the JSON, by keys and places; ``{@}`` is the whole body. Nothing else is replaced, and no code
runs, because the text is not trusted. ``{{`` and ``}}`` are braces.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.text import check_text, storable

MOST_OF_A_FIELD = 4_000
"""The most characters of a field. A longer one is cut, with a note."""

MOST_OF_A_BODY = 65_536
"""The most characters of a whole body in a text."""

WHOLE_BODY = "{@}"
"""The template that consists of the whole body."""

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_MISSING = object()


def check_template(template: str) -> str:
    """Return a template, or raise `BadInput` if it is blank, or has an unmatched brace."""
    if not check_text(template, "template").strip():
        raise BadInput("Expected a template with text, such as 'Issue {issue.number}: {issue.title}'.")
    for part in _PART.finditer(template):
        path = part.group(1)
        if part.group() in ("{", "}") or (path is not None and not path.strip()):
            raise BadInput(
                f"Expected {{field.of.the.json}} or {{@}} in the template, got {part.group()!r} at character "
                f"{part.start() + 1}. Write {{{{ for a brace."
            )
    return template


def needs_json(template: str) -> bool:
    """Return whether a template uses fields."""
    return any(part.group(1) not in (None, "@") for part in _PART.finditer(template))


def filled(template: str, value: Any, body: str) -> str:
    """Return the text of a template in which the fields of a delivery are filled in. Missing fields are empty."""

    def of(part: re.Match[str]) -> str:
        path = part.group(1)
        if path is None:
            return part.group()[0]
        if path == "@":
            return _cut(body, MOST_OF_A_BODY)
        return _cut(field_text(field(value, path)), MOST_OF_A_FIELD)

    return storable(_PART.sub(of, template))


def field(value: Any, path: str) -> Any:
    """Return the field of a JSON value at a path of keys and indexes; None if there is none."""
    for name in path.strip().split("."):
        if isinstance(value, Mapping):
            value = value.get(name, _MISSING)
        elif isinstance(value, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return None
        if value is _MISSING:
            return None
    return value


def field_text(value: Any) -> str:
    """Return a JSON value as text: a string as it is, null as an empty text, other values as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def matches(where: Mapping[str, Sequence[str]], value: Any) -> bool:
    """Return whether each named field of a delivery has one of the values listed for it."""
    return all(field_text(field(value, path)) in values for path, values in where.items())


def parsed_where(texts: Sequence[str]) -> dict[str, list[str]]:
    """Parse filters as a person writes them, ``path=value,value``. Raises `BadInput`."""
    values_by_path: dict[str, list[str]] = {}
    for text in texts:
        path, equals, values = text.partition("=")
        if not equals or not path.strip():
            raise BadInput(f"Expected a filter like action=opened,reopened; got {text!r}.")
        values_by_path.setdefault(path.strip(), []).extend(value.strip() for value in values.split(","))
    return values_by_path


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"
