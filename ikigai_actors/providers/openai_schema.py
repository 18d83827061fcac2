"""Typed values that OpenAI's service writes itself, if its strict mode accepts their JSON schema unchanged. Pure.

The strict mode knows a part of JSON Schema, as documented under "Structured outputs", and refuses a request with
anything else: each object must name all its properties, require them and allow no others; defaults, tuples, free dicts,
lengths of text, ``oneOf`` and ``allOf`` are not allowed. A type may refer to itself. If the mode does not accept a
schema, the model gives the value by a tool.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ikigai_actors.providers.base import Request
from ikigai_actors.providers.openai_parts import sent_name

_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_WORDS = {"title", "description"}
_KEYWORDS: Mapping[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"pattern", "format"},
    "number": _BOUNDS,
    "integer": _BOUNDS,
    "boolean": set(),
    "null": set(),
}
"""The keywords that strict mode accepts in a schema, by its type, besides those that it accepts in any schema."""
_FORMATS = {None, "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_REFERENCE = "#/$defs/"
_MOST_LEVELS = 10
_MOST_PROPERTIES = 5_000
_MOST_VALUES = 1_000
_MOST_LETTERS = 120_000
"""The most characters of all names and values of a schema together."""


def offered(request: Request, json_output: bool) -> tuple[Sequence[Mapping[str, Any]], dict[str, Any] | None]:
    """Return the tools to send with a request, and the JSON form of the value if the service writes it.

    Args:
        json_output: whether the service may write the value; else the model has a tool for that.

    Returns:
        The tools; and ``name``, ``strict`` and ``schema``, None where the service writes no value.
    """
    output = request.output
    if output is None or not json_output or not is_taken(output["input_schema"]):
        return request.tools, None
    form = {"name": sent_name(output["name"]), "strict": True, "schema": output["input_schema"]}
    return [tool for tool in request.tools if tool != output], form


def is_taken(schema: Mapping[str, Any]) -> bool:
    """Return whether strict mode accepts a JSON schema unchanged."""
    definitions = schema.get("$defs", {})
    root = {name: part for name, part in schema.items() if name != "$defs"}
    if root.get("type") != "object" or not isinstance(definitions, Mapping):
        return False
    names, values = list(definitions), list[Any]()
    waiting: list[tuple[Any, int]] = [(root, 1), *((part, 1) for part in definitions.values())]
    while waiting:
        part, level = waiting.pop()
        if not _is_part_taken(part, definitions):
            return False
        names += part.get("properties", ())
        values += [*part.get("enum", ()), *([part["const"]] if "const" in part else ())]
        within = [(inner, level + 1) for inner in _parts(part)]
        if within and level > _MOST_LEVELS:  # plain values are no level
            return False
        waiting += within
    letters = sum(len(str(name)) for name in [*names, *values])
    return len(names) <= _MOST_PROPERTIES and len(values) <= _MOST_VALUES and letters <= _MOST_LETTERS


def _is_part_taken(part: Any, definitions: Mapping[str, Any]) -> bool:
    if not isinstance(part, Mapping):
        return False
    if "$ref" in part:
        name = str(part["$ref"])
        return len(part) == 1 and name.startswith(_REFERENCE) and name.removeprefix(_REFERENCE) in definitions
    if "anyOf" in part:
        return part.keys() <= {"anyOf", *_WORDS}
    types = [part["type"]] if isinstance(part.get("type"), str) else part.get("type")
    if not types or part.keys() - {"type", "enum", "const", *_WORDS}.union(*(_KEYWORDS[kind] for kind in types)):
        return False
    if "object" in types:
        named, required = part.get("properties"), part.get("required")
        if named is None or required is None or part.get("additionalProperties") is not False:
            return False
        if set(named) != set(required):
            return False
    if "array" in types and "items" not in part:
        return False
    return part.get("format") in _FORMATS and "(?" not in part.get("pattern", "")


def _parts(part: Mapping[str, Any]) -> Iterator[Any]:
    yield from part.get("properties", {}).values()
    yield from part.get("anyOf", ())
    if "items" in part:
        yield part["items"]
