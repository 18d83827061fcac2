"""Acts: typed functions for requests of programs. Each act is declared once.

    @act("kill", "End an agent", verb="kill", gives=list[str], hints=ENDS)
    def kill(reach: Access, agent: NamedAgent, cascade: bool = False, reason: str = "") -> list[str]:
        '''End an agent at once. Answers with the agents that died.

Args:
            cascade: Whether all below it die, too.
        '''

The MCP tool with its two schemas, and the request of the observer page, follow from this declaration; ACP and AG-UI
call the function. The docstring is for models. The text for people is the docstring of the `Verb` that the act names,
and the table of verbs has the right that it needs.

Acts do not handle keys: `Act.call` puts the key into the reach, whose `once` uses it. So an act commits at most one
unit.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.records.once import KeyedCall
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.table import TABLE

Schema = Mapping[str, Any]

ONLY_READS = {"readOnlyHint": True, "idempotentHint": True}
REPEATABLE = {"readOnlyHint": False, "idempotentHint": True, "destructiveHint": False}
ENDS = {"readOnlyHint": False, "idempotentHint": True, "destructiveHint": True}
"""Hints for clients about an act: it changes nothing, may be repeated, or ends something."""

FOR_MODELS = "for_models"
"""The key in an argument's schema that replaces its type for models. The rest is for people."""

_UNIONS = ("anyOf", "enum", "type")
_KEY: Schema = {
    "type": "string",
    "description": "A text of your own, new for each new call. The same call again under it does nothing and has the "
    "same answer.",
    "minLength": 1,
    "maxLength": 200,
}
_NAMES: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


@dataclass(frozen=True)
class Act:
    """A request that a program can make, as `act` declares it: an MCP tool, or a request of another protocol."""

    name: str
    title: str
    work: Callable[..., Any]
    verb: str
    """The verb by which people make the same request."""
    gives: object
    """The type of the answer."""
    keyed: bool
    """Whether a call may have a key, so that a repeated call with this key changes nothing more."""
    hints: Mapping[str, bool] = field(default_factory=dict)
    required: Sequence[str] = ()
    """The arguments that a model must pass, in addition to those without a default."""

    @property
    def needs(self) -> Right:
        """Return the right that a caller needs for the act."""
        return TABLE[self.verb].needs

    @property
    def reads(self) -> bool:
        """Return whether the act changes nothing."""
        return self.hints.get("readOnlyHint", False)

    @cached_property
    def schema(self) -> Schema:
        """Return the JSON schema of the act's arguments."""
        import docstring_parser
        from pydantic import create_model

        hints = get_type_hints(self.work, include_extras=True)
        params = [*inspect.signature(self.work).parameters.values()][1:]
        fields: dict[str, Any] = {
            param.name: (hints[param.name], ... if param.default is param.empty else param.default) for param in params
        }
        model = create_model(self.name, **fields)
        words = {param.arg_name: param.description for param in docstring_parser.parse(self.work.__doc__ or "").params}
        made = model.model_json_schema()
        properties: dict[str, Schema] = {
            name: {"description": words[name], **_given(schema)} if name in words else _given(schema)
            for name, schema in made["properties"].items()
        }
        if self.keyed:
            properties["key"] = _KEY
        required = [name for name in properties if name in made.get("required", ())]
        return {**_object(properties, required), "additionalProperties": False}

    @cached_property
    def schema_for_models(self) -> Schema:
        """Return the schema for models, without parts that are for people."""
        properties = {
            name: {key: value for key, value in schema.items() if key not in _UNIONS} | schema[FOR_MODELS]
            if FOR_MODELS in schema
            else schema
            for name, schema in self.schema["properties"].items()
        }
        properties = {
            name: {key: schema[key] for key in schema if key != FOR_MODELS} for name, schema in properties.items()
        }
        required = {*self.schema["required"], *self.required}
        return {**self.schema, "properties": properties, "required": [name for name in properties if name in required]}

    def listed(self) -> dict[str, Any]:
        """Return the act as an entry in the list of MCP tools."""
        return {
            "name": self.name,
            "title": self.title,
            "description": " ".join(inspect.cleandoc(self.work.__doc__ or "").partition("\n\nArgs:")[0].split()),
            "inputSchema": dict(self.schema_for_models),
            "outputSchema": answer_schema(self.gives),
            "annotations": {"title": self.title, "openWorldHint": False, **self.hints},
        }

    def _checked(self, arguments: object, schema: Schema) -> dict[str, Any]:
        """Return the arguments of a call, checked against the schema. Raises `BadInput`."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        if isinstance(arguments, dict):  # models give null for what they leave out
            known, needs = schema["properties"], schema["required"]
            arguments = {
                name: _meant(known.get(name, {}), value)
                for name, value in arguments.items()
                if value is not None or name in needs
            }
        wrong = best_match(Draft202012Validator(schema).iter_errors(arguments))
        if wrong is not None:
            where = "".join(f"{place}: " for place in wrong.absolute_path)
            raise BadInput(f"{self.name}: {where}{wrong.message[:300]}.")
        assert isinstance(arguments, dict)
        return arguments

    def call(self, reach: Access, supplied: object, *, by_model: bool = False) -> Any:
        """Carry out the act, once if there is a key among the arguments.

        Raises `BadInput`, and the errors of the act.
        """
        arguments = self._checked(supplied, self.schema_for_models if by_model else self.schema)
        key = arguments.pop("key", None)
        return self.work(reach if key is None else reach.under(KeyedCall(key, self.name, arguments)), **arguments)


def act(
    name: str,
    title: str,
    *,
    verb: str,
    gives: object,
    keyed: bool = False,
    hints: Mapping[str, bool] = REPEATABLE,
    required: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Act]:
    """Declare an act by a function, whose first parameter is the reach; see `Act`."""
    return lambda work: Act(name, title, work, verb, gives, keyed, hints, required)


def _meant(schema: Schema, value: object) -> object:
    """Return the value of an argument; parse lists, numbers and flags, which some clients send as texts."""
    kinds = schema.get("type", "string")
    if not isinstance(value, str) or "string" in kinds:
        return value
    with suppress(ValueError, RecursionError):
        read = json.loads(value)
        if not isinstance(read, str):
            return read
    return value


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional argument without null, because a missing argument means None."""
    kinds = [part for part in schema.pop("anyOf", ()) if part != {"type": "null"}]
    return {**schema, **kinds[0]} if len(kinds) == 1 else {**schema, **({"anyOf": kinds} if kinds else {})}


def answer_schema(kind: object) -> dict[str, Any]:
    """Return the schema of an answer, always an object: a list or a flag is its field ``result``."""
    if get_origin(kind) in (UnionType, Union):  # one, or a list of such
        first, listed = get_args(kind)
        made = schema_of(first)
        return {**made, "required": [], "properties": {**made["properties"], "result": schema_of(listed)}}
    made = schema_of(kind)
    return made if made["type"] == "object" else _object({"result": made}, ["result"])


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type that answers of acts contain."""
    if get_origin(kind) is Annotated:
        described, words = get_args(kind)
        return {**schema_of(described), "description": words}
    if is_typeddict(kind):
        fields = get_type_hints(kind, include_extras=True)
        properties = {name: schema_of(field) for name, field in fields.items()}
        return _object(properties, [name for name in fields if name in kind.__required_keys__])
    parts = get_args(kind)
    match get_origin(kind):
        case origin if origin is NotRequired:
            return schema_of(parts[0])
        case origin if origin is list:
            return {"type": "array", "items": schema_of(parts[0])}
        case origin if origin is Literal:
            return {"type": "string", "enum": [*parts]}
        case origin if origin in (UnionType, Union):
            return {"type": [_NAMES[part] for part in parts]}
        case origin if origin is Mapping:
            values = parts[1]
            return _object({}, []) if values is Any else {"type": "object", "additionalProperties": schema_of(values)}
    return {"type": _NAMES[kind]}


def _object(properties: Mapping[str, Schema], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": [*required]}
