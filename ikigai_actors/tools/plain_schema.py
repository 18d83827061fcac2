"""Converts schemas of tools to a form that every service takes. Pure.

    plain({"type": "object", "properties": {"$top": {"type": "integer"}}}).names    # {"_top": "$top"}

A service refuses a whole request if the schema of one tool breaks its rules, and then no agent gets an answer. These
are the rules of Anthropic's and OpenAI's services together, as their refusals state them:

    at the top       an object with ``properties``, and none of allOf, anyOf, oneOf, enum, not
    its properties   names of 1 to 64 letters, digits, ``_``, ``.`` and ``-``; the names in nested objects are free
    arrays           have ``items``
    everywhere       JSON Schema 2020-12, and references lead to a place within the schema

Parts that are dropped at the top are described in the schema's description. A ``pattern`` that Python does not know is
moved to the description of its part. The tool itself still checks its arguments.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any
from urllib.parse import unquote

from ikigai_actors.text import unused

_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_LONGEST = 64
_ANY = ("anyOf", "oneOf")
_COMBINING = ("allOf", *_ANY)
_NOT_AT_THE_TOP = (*_COMBINING, "enum", "not")
_OF_THE_SAME = ("not", "if", "then", "else")
"""Keywords whose inner schema describes the same object as the outer one, as with those in `_COMBINING`."""
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_WITHIN = (
    *_COMBINING, *_OF_THE_SAME, "prefixItems", "items", "additionalItems", "additionalProperties", "unevaluatedItems",
    "unevaluatedProperties", "contains", "propertyNames", "contentSchema",
)  # fmt: skip
_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
_MOST_COMBINED = 1_000
"""The most schemas that may be combined at the top, since references can multiply them without end."""


class Unsuitable(Exception):
    """Raised if no service takes a tool. The text is the reason, as the end of a sentence about the tool."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A schema that every service takes, and the original names of its properties."""

    schema: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    """The original names of renamed properties, by their new names."""

    def own(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call under the tool's original names."""
        return {self.names.get(name, name): value for name, value in arguments.items()} if self.names else arguments


def plain(schema: object, *, checked: bool = False) -> Plain:
    """Convert the schema of a tool's arguments to the plain form. A plain schema stays as it is.

    Args:
        checked: whether the schema is known to be valid JSON Schema. The check imports a package, which takes a tenth
            of a second; a tool without arguments does not need it.

    Raises:
        Unsuitable: the schema cannot be converted.
    """
    if not isinstance(schema, Mapping):
        raise Unsuitable(f"its schema is no JSON object, but of type {type(schema).__name__}")
    try:
        made = json.loads(json.dumps(schema, allow_nan=False, ensure_ascii=False, default=dict).encode())
        for part in _parts(made):
            _modernise(part)
        if not checked and made != _NO_ARGUMENTS and (trouble := _draft_trouble(json.dumps(made))):
            raise Unsuitable(trouble)
        flat = _flat(made)
    except (TypeError, ValueError) as error:
        raise Unsuitable(f"its schema is no JSON: {error}") from error
    except RecursionError as error:
        raise Unsuitable("its schema is nested too deep") from error
    for part in _parts(flat.schema):
        if isinstance(reference := part.get("$ref"), str):
            _referred(reference, flat.schema)
    return flat


@lru_cache(maxsize=100)  # a program opens one system after another with the same tools
def _draft_trouble(schema: str) -> str | None:
    """Return the reason why a JSON text is no valid JSON Schema; None if it is valid."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(schema))
    except SchemaError as error:
        return f"its schema is no JSON schema: {error.message} (at {error.json_path})"
    return None


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema and each schema within it. Data (``enum``, ``default``) are not schemas."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            yield part
            for word in _BY_NAME:
                waiting += part[word].values() if isinstance(part.get(word), dict) else ()
            waiting += [part[word] for word in _WITHIN if word in part]


def _modernise(part: dict[str, Any]) -> None:
    """Replace keywords of older drafts in a schema by those of JSON Schema 2020-12, and give arrays ``items``."""
    if isinstance(items := part.get("items"), list):
        part["prefixItems"], part["items"] = items, part.pop("additionalItems", {})
    for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if part.get(strict) is False:
            del part[strict]
        elif part.get(strict) is True and bound in part:
            part[strict] = part.pop(bound)
    if "array" in _types(part):
        part.setdefault("items", {})
    if isinstance(pattern := part.get("pattern"), str) and not _is_regex(pattern):
        del part["pattern"]
        part.update(_noted(part, f"It must match the regular expression {pattern}"))


def _is_regex(pattern: str) -> bool:
    """Return whether Python accepts a pattern. JSON Schema uses JavaScript's syntax, which Python partly lacks."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _types(part: Mapping[str, Any], usual: str = "") -> Iterable[Any]:
    kind = part.get("type", usual)
    return kind if isinstance(kind, list) else (kind,)


def _flat(schema: dict[str, Any]) -> Plain:
    """Return the schema with all properties at the top, under accepted names, and without combinations there."""
    root = _inlined(schema, schema, count())
    if "object" not in _types(root, usual="object"):
        raise Unsuitable(f"its schema is of type {root['type']!r}, and arguments are an object")
    own = _own_names(_offered(root))
    root = _renamed(root, {name: new for new, name in own.items()})
    dropped = {word: root.pop(word) for word in _NOT_AT_THE_TOP if word in root}
    offered = _offered({**root, **dropped})
    for new, name in own.items():
        offered[new] = [_noted(offer, f"The name of this parameter is {name!r}.") for offer in offered[new]]
    root["type"] = "object"
    root["properties"] = {name: parts[0] if len(parts) == 1 else {"anyOf": parts} for name, parts in offered.items()}
    if required := _required({**root, **dropped}):
        root["required"] = required
    if dropped:
        root = _noted(root, f"The arguments must also fit this schema: {json.dumps(dropped, ensure_ascii=False)}")
    return Plain(root, own)


def _inlined(part: Any, schema: Mapping[str, Any], combined: Iterator[int]) -> Any:
    """Return a schema whose references that describe the same object are replaced by the schemas they refer to."""
    if not isinstance(part, dict):
        return part
    if next(combined) > _MOST_COMBINED:
        raise Unsuitable("its schema combines too many others at its top")
    if isinstance(reference := part.get("$ref"), str):
        referred = _referred(reference, schema)
        beside = {word: value for word, value in part.items() if word != "$ref"}
        return _inlined({**referred, **beside} if isinstance(referred, dict) else beside, schema, combined)
    made = dict(part)
    for word in _OF_THE_SAME:
        if word in made:
            made[word] = _inlined(made[word], schema, combined)
    for word in _COMBINING:
        if word in made:
            made[word] = [_inlined(inner, schema, combined) for inner in made[word]]
    return made


def _referred(reference: str, schema: Mapping[str, Any]) -> Any:
    """Return the schema that a reference leads to. Raises `Unsuitable` if the schema lies elsewhere."""
    place: Any = schema
    try:
        if not reference.startswith("#"):
            raise KeyError(reference)
        for step in unquote(reference).split("/")[1:] if reference != "#" else ():
            step = step.replace("~1", "/").replace("~0", "~")
            place = place[int(step)] if isinstance(place, list) else place[step]
    except (LookupError, TypeError, ValueError) as error:
        raise Unsuitable(f"its schema refers to {reference!r}, which is not in it") from error
    return place


def _offered(part: Any) -> dict[str, list[Any]]:
    """Return the schemas of each property in a schema and those combined in it. Own properties hide combined ones."""
    if not isinstance(part, dict):
        return {}
    offers: dict[str, list[Any]] = {}
    for word in _COMBINING:
        for branch in part.get(word, ()):
            for name, schemas in _offered(branch).items():
                known = offers.setdefault(name, [])
                known += [schema for schema in schemas if schema not in known]
    own = {name: [offer] for name, offer in part.get("properties", {}).items()}
    return {**own, **{name: schemas for name, schemas in offers.items() if name not in own}}


def _required(part: Any) -> list[str]:
    if not isinstance(part, dict):
        return []
    names = [*part.get("required", ()), *(name for branch in part.get("allOf", ()) for name in _required(branch))]
    for word in _ANY:
        first, *others = [_required(branch) for branch in part.get(word, ())] or [[]]
        names += [name for name in first if all(name in other for other in others)]
    return list(dict.fromkeys(names))


def _own_names(properties: Iterable[str]) -> dict[str, str]:
    """Return the names of properties that no service accepts, by new and unique names that replace them."""
    taken = {name for name in properties if _PROPERTY.fullmatch(name)}
    own: dict[str, str] = {}
    for name in properties:
        if name not in taken:
            new = unused(re.sub(r"[^a-zA-Z0-9_.-]+", "_", name) or "_", taken, _LONGEST)
            taken.add(new)
            own[new] = name
    return own


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    """Return a schema whose properties are renamed: ``names`` has the new names by the old ones."""
    if not names or not isinstance(part, dict):
        return part
    made = dict(part)
    for word in ("properties", "dependentSchemas", "dependentRequired", "dependencies"):
        if word in made:
            made[word] = {names.get(name, name): inner for name, inner in made[word].items()}
    for word in ("dependentRequired", "dependencies"):
        if word in made:
            made[word] = {name: _all_renamed(inner, names) for name, inner in made[word].items()}
    if "required" in made:
        made["required"] = _all_renamed(made["required"], names)
    for word in _OF_THE_SAME:
        if word in made:
            made[word] = _renamed(made[word], names)
    for word in _COMBINING:
        if word in made:
            made[word] = [_renamed(inner, names) for inner in made[word]]
    return made


def _all_renamed(value: Any, names: Mapping[str, str]) -> Any:
    return [names.get(name, name) for name in value] if isinstance(value, list) else _renamed(value, names)


def _noted(part: Any, words: str) -> Any:
    if part is True:
        part = {}
    if not isinstance(part, dict):
        return part
    description = part.get("description")
    return {**part, "description": f"{description}\n\n{words}" if description else words}
