"""Verbs as tools of a protocol: a description with a JSON schema, and what a verb prints, kept.

    tool_of(load("kill"))                           # {"name": "kill", "description": …, "input_schema": …}
    call(system, load("kill"), {"agent": "buyer"})  # ToolAnswer(text="buyer is dead", value={"agent_uuid": …, …})

Nothing here knows a protocol. Arguments come as JSON, are checked by the verb's own click parameters, and what is wrong
with them is a `BadInput`.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.place import Place, Printer
from ikigai_actors.verbs.text.rows import as_value
from ikigai_actors.verbs.unattended import Unattended
from ikigai_actors.verbs.verb import ACTS, Verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef, System

_TYPES: Mapping[type[object], str] = {
    click.types.IntParamType: "integer",
    click.types.FloatParamType: "number",
    click.types.BoolParamType: "boolean",
}


class ToolAnswer(NamedTuple):
    """The outcome of a call."""

    text: str
    """The lines that the verb printed."""
    value: object
    """The value that it returned."""


class KeptLines(Printer):
    """Keeps the lines of a verb."""

    columns = 120

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        self.lines.append(text)

    def block(self, text: str) -> None:
        self.lines.append(text)

    def error(self, text: str) -> None:
        self.lines.append(text)

    def whole(self, text: str) -> None:
        self.lines.append(text)


def tool_of(verb: Verb) -> dict[str, Any]:
    """The description of a verb as a tool."""
    params = list(_parameters(verb))
    return {
        "name": verb.name.replace("-", "_"),
        "description": verb.help,
        "input_schema": {
            "type": "object",
            "properties": {name: _schema(param) for name, param in params},
            "required": [name for name, param in params if param.required],
            "additionalProperties": False,
        },
    }


def call(system: "System", verb: Verb, given: Mapping[str, object]) -> ToolAnswer:
    """Call a verb. Raises `BadInput` for arguments that cannot be used, and what the verb raises."""
    screen, known = KeptLines(), dict(_parameters(verb))
    place = Unattended(system, screen)
    if unknown := [name for name in given if name not in known]:
        raise BadInput(f"Tool {verb.name} has no argument {unknown[0]!r}; it takes {', '.join(known)}.")
    if missing := [name for name, param in known.items() if param.required and name not in given]:
        raise BadInput(f"Tool {verb.name} needs an argument {missing[0]!r}.")
    defaults = {known[name].name or "": _as_click_takes(known[name], name, value) for name, value in given.items()}
    command = click.Command(verb.name, params=[*known.values()], callback=lambda **values: values)
    try:
        with command.make_context(verb.name, [], default_map=defaults) as context:
            values: dict[str, Any] = command.invoke(context)
        value = verb.work(place, *_agents(place, verb, values), **values)
    except click.ClickException as error:
        raise BadInput(error.format_message()) from error
    return ToolAnswer("\n".join(screen.lines), as_value(value))


def _agents(place: Place, verb: Verb, values: dict[str, Any]) -> "list[AgentRef | None]":
    """The agent that the verb is about, if it is about one; its name is taken out of the values."""
    if not verb.needs_agent:
        return []
    name = values.pop("acted_on")
    return [None if name is None else place.system.agent(name)]


def _parameters(verb: Verb) -> Iterator[tuple[str, click.Parameter]]:
    """The parameters by the names that a tool gives them."""
    for param in verb.script.among(verb.params_of_script(), TEXT, ACTS):
        yield "agent" if param.name == "acted_on" else param.name or "", param


def _schema(param: click.Parameter) -> dict[str, Any]:
    kind = next((name for type_, name in _TYPES.items() if isinstance(param.type, type_)), "string")
    schema: dict[str, Any] = {"type": kind}
    if isinstance(param.type, click.Choice):
        schema["enum"] = [*param.type.choices]
    if _is_list(param):
        schema = {"type": "array", "items": schema}
    if isinstance(param, click.Option) and param.help:
        schema["description"] = param.help
    elif param.name == "acted_on":
        schema["description"] = "An agent: its name, its uuid, or the beginning of that."
    return schema


def _is_list(param: click.Parameter) -> bool:
    """Whether a parameter takes several values. The words of a text are one value here."""
    return param.multiple or (param.nargs == -1 and param.type is not TEXT)


def _as_click_takes(param: click.Parameter, name: str, value: object) -> object:
    """A value of JSON as click takes it. Raises `BadInput`."""
    if _is_list(param) and not isinstance(value, list):
        raise BadInput(f"Expected a list for {name!r}; got {shown(value)}.")
    return [value] if param.nargs == -1 and not _is_list(param) else value
