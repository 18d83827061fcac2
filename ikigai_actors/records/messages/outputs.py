"""The type of a typed turn's value: how it is stored, and how values are checked.

    wanted = expected(Invoice)                     # in the process that asks
    problems(wanted, {"total": "a lot"})           # ["total: 'a lot' is not of type 'number'"], in any process
    as_output(Invoice, {"total": 12.5})            # Invoice(total=12.5)

The JSON schema of the type is stored with the prompt, so that a turn goes on after a crash, and on another host, whose
program may not know the type. So a value is checked twice: by the schema on the host of the agent, and by the type with
its validators in the process that asked, which knows the type. If the host is the same process, it checks the type,
too. A value that fails a check is never returned.

Objects of a schema that name their properties accept no other properties, unless the type allows them.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ikigai_actors.arguments import check_type, shown
from ikigai_actors.errors import BadInput, OutputError
from ikigai_actors.text import described, unambiguous
from ikigai_actors.tools.plain_schema import Unsuitable, plain

MOST_SHOWN = 20
"""The most errors of a value that are listed."""

_LONGEST_SCHEMA = 256 * 1024
_DEFINITIONS = ("$defs", "definitions")
_OF_A_DOCUMENT = ("$schema", "$id")
"""Keywords that only a whole schema document may have. Inside another schema, ``$id`` would misdirect references."""
_VALUE = "result"
"""The property that contains a model's value: a tool's input must be an object, and not every value is one."""

_known: dict[tuple[str, str], Any] = {}  # the types that this process has asked for, by name and schema: their adapters
_MOST_KNOWN = 256


@dataclass(frozen=True, slots=True)
class Expected:
    """The type of a typed turn's value, as it is stored."""

    schema: Mapping[str, Any]
    """The JSON schema."""
    type: str = ""
    """The name of the type in the program that asked, ``module:Name``; empty for a schema."""

    def stored(self) -> dict[str, Any]:
        """Return the type as it is stored in the data of a prompt."""
        return {"schema": self.schema, "type": self.type} if self.type else {"schema": self.schema}

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Return the schema of an object that has the value as its only property, as the arguments of a call."""
        try:
            return plain(self._whole(), checked=True).schema
        except Unsuitable:  # an older version has stored it
            return self._whole()

    def check_form(self) -> None:
        """Check that services accept the schema. Raises `BadInput`."""
        try:
            plain(self._whole())
        except Unsuitable as error:
            raise BadInput(f"Expected output to have a schema that services of models take, but {error}.") from error

    def _whole(self) -> dict[str, Any]:
        within = {key: part for key, part in self.schema.items() if key not in (*_DEFINITIONS, *_OF_A_DOCUMENT)}
        hoisted = {key: self.schema[key] for key in _DEFINITIONS if key in self.schema}
        closed = {"type": "object", "properties": {_VALUE: within}, "required": [_VALUE], "additionalProperties": False}
        return {**closed, **hoisted}


def expected(output: object) -> Expected:
    """Return the type that a typed turn's value must have, with its JSON schema.

    Args:
        output: a type that pydantic knows (a model, a dataclass, ``list[int]``), or a JSON schema as a dict.

    Raises:
        BadInput: there is no such type, or no schema of it.
    """
    if isinstance(output, Mapping):
        return _checked(Expected(json.loads(_as_json(output, "output"))))
    if isinstance(output, str) or inspect.isroutine(output):
        raise BadInput(f"Expected output to be a type, or a JSON schema as a dict; got {shown(output)}.")
    adapter = _adapter(output)
    try:
        schema = adapter.json_schema()
    except Exception as error:  # pydantic's, or of the type's own hooks
        raise BadInput(f"Expected output to be a type with a JSON schema; got {shown(output)}: {error}") from error
    name = getattr(output, "__qualname__", None) or str(output)
    wanted = _checked(Expected(_closed(schema), f"{getattr(output, '__module__', '')}:{name}"))
    if len(_known) >= _MOST_KNOWN:
        _known.pop(next(iter(_known)), None)
    _known[_key(wanted)] = adapter
    return wanted


def expected_in(data: Mapping[str, Any]) -> Expected | None:
    """Return the type of the value that a prompt with this data asks for; None for any answer."""
    stored = data.get("output")
    if not isinstance(stored, Mapping) or not isinstance(stored.get("schema"), Mapping):
        return None
    return Expected(stored["schema"], str(stored.get("type") or ""))


def problems(wanted: Expected, value: object) -> list[str]:
    """Return the errors of a value, a line each, at most 20; empty when it fits.

    Args:
        wanted: the type.
        value: the value, as JSON data.
    """
    try:
        text = _as_json(value, "the result")
    except BadInput as error:
        return [str(error)]
    adapter = _known.get(_key(wanted))
    wrong = _against_schema(wanted.schema, json.loads(text)) or (_against_type(adapter, text) if adapter else [])
    more = len(wrong) - MOST_SHOWN
    return [*wrong[:MOST_SHOWN], f"and {more} more"] if more > 0 else wrong


def given_in(arguments: object, wanted: Expected) -> tuple[Any, list[str]]:
    """Return the value in the arguments of a call, and the errors of the value."""
    if not isinstance(arguments, Mapping) or arguments.keys() != {_VALUE}:
        return None, [f"expected an object with the property {_VALUE!r}, and no other"]
    return arguments[_VALUE], problems(wanted, arguments[_VALUE])


def given_as_text(text: str, wanted: Expected) -> tuple[Any, list[str]]:
    """Return the value in a JSON text that has the form of a call's arguments, and the errors of the value."""
    try:
        arguments = json.loads(text, object_pairs_hook=unambiguous, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return None, [f"the answer is no JSON ({error})"]
    return given_in(arguments, wanted)


def as_output(output: object, value: object) -> Any:
    """Convert a turn's value to the requested type.

    Args:
        output: the type, as for `expected`.
        value: the value, as JSON data.

    Raises:
        BadInput: there is no such type.
        OutputError: the value does not fit this type.
    """
    wanted = expected(output)
    if wrong := problems(wanted, value):
        raise OutputError(f"The result is no {wanted.type or 'value of this schema'}: {'; '.join(wrong)}.")
    if isinstance(output, Mapping):
        return value
    return _known[_key(wanted)].validate_json(json.dumps(value), strict=True)


def read_output(text: str, output: object) -> Any:
    """Read a value of a type from a text: the result of a typed ``exit``, which its supervisor gets by mail.

    Args:
        text: the value as JSON.
        output: the type, as in ``prompt(..., output=...)``.

    Raises:
        BadInput: there is no such type.
        OutputError: the text is no JSON, or has a value that does not fit.
    """
    check_type(text, str, "text", "text")
    expected(output)
    try:
        value = json.loads(text, object_pairs_hook=unambiguous, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"Expected the result as JSON, got {shown(text)}: {error}") from error
    return as_output(output, value)


def as_text(value: object) -> str:
    """Return a value as JSON text, as it is stored and shown."""
    return json.dumps(value, ensure_ascii=False)


def _adapter(output: Any) -> Any:
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(output)
    except Exception as error:  # pydantic's, or of an annotation that does not resolve
        raise BadInput(
            f"Expected output to be a type that pydantic knows, or a JSON schema; got {shown(output)}: {error}"
        ) from error


def _key(wanted: Expected) -> tuple[str, str]:
    return wanted.type, json.dumps(wanted.schema, sort_keys=True)


def _as_json(value: object, what: str) -> str:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()  # half a character is none
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"Expected {what} as JSON; {error}") from error
    return text


def _checked(wanted: Expected) -> Expected:
    """Return the type unchanged if its schema can be used to check values. Raises `BadInput` if not."""
    from jsonschema import SchemaError
    from jsonschema.validators import validator_for

    if len(_as_json(wanted.schema, "output")) > _LONGEST_SCHEMA:
        raise BadInput(f"Expected an output whose schema has {_LONGEST_SCHEMA // 1024} KiB at most.")
    try:
        validator_for(wanted.schema, _newest()).check_schema(wanted.schema)
    except SchemaError as error:
        raise BadInput(f"Expected output to be a JSON schema; {error.message} (at {error.json_path}).") from error
    _each(wanted.schema, _check_part)
    problems(wanted, None)  # a reference that leads nowhere shows
    wanted.check_form()
    return wanted


def _check_part(part: Mapping[str, Any]) -> None:
    reference, pattern = part.get("$ref"), part.get("pattern")
    if isinstance(reference, str) and not reference.startswith(tuple(f"#/{name}/" for name in _DEFINITIONS)):
        raise BadInput(f"Expected references of output's schema to begin with '#/$defs/', got {reference!r}.")
    if isinstance(pattern, str):
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadInput(
                f"Expected patterns of output's schema that Python knows, got {pattern!r}: {error}."
            ) from error


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with objects that allow no other keys.

    Keys that the type does not know would be dropped silently.
    """
    copy: dict[str, Any] = json.loads(json.dumps(schema))

    def close(part: dict[str, Any]) -> None:
        if part.get("type") == "object" and isinstance(part.get("properties"), dict):
            part.setdefault("additionalProperties", False)

    _each(copy, close)
    return copy


def _each(schema: Any, act: Callable[[Any], None]) -> None:
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            act(part)
            parts += part.values()
        elif isinstance(part, list):
            parts += part


def _newest() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator


def _against_schema(schema: Mapping[str, Any], value: Any) -> list[str]:
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    texts: list[str] = []
    validator = validator_for(schema, _newest())(schema, registry=Registry())
    try:
        for error in validator.iter_errors(value):
            closest = best_match([error]) or error
            where = ".".join(map(str, closest.absolute_path))
            texts.append(f"{where}: {closest.message}" if where else closest.message)
    except Unresolvable as error:
        raise BadInput(f"A reference of output's schema leads nowhere: {error}.") from error
    except RecursionError:
        return ["it is nested too deep"]
    except Exception as error:  # the schema was changed by hand since it was stored
        return [f"its schema cannot be used: {described(error)}"]
    return texts


def _against_type(adapter: Any, text: str) -> list[str]:
    from pydantic import ValidationError

    try:
        adapter.validate_json(text, strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False, include_context=False)
        return [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".removeprefix(": ") for problem in errors]
    except Exception as error:  # of the type's own validators
        return [f"its validator failed: {described(error)}"]
    return []


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
