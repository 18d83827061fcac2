"""Verbs as tools of a protocol: the JSON schema of each, and its captured output.

    tool_of(load("kill"))                           # {"name": "kill", "description": …, "input_schema": …}
    place = CalledPlace(access, anna)
    call(place, load("kill"), {"agent": "buyer"})   # ToolAnswer(text="buyer is dead", value={"agent_uuid": …, …})

This module is independent of protocols. Arguments are JSON data, and the verb's own click parameters check them; faults
raise `BadInput`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ikigai_actors.arguments import shown
from ikigai_actors.errors import AgentNotFound, BadInput, NotAllowed
from ikigai_actors.records.agents import registry
from ikigai_actors.records.lives.membership import group_in
from ikigai_actors.store.asker import LOOKER, Asker, acting_for
from ikigai_actors.verbs.act import answer_schema
from ikigai_actors.verbs.arguments import TEXT, OfferingAgents
from ikigai_actors.verbs.place import Place, Printer
from ikigai_actors.verbs.principal import check_right
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.table import TABLE, load
from ikigai_actors.verbs.text.rows import as_value
from ikigai_actors.verbs.unattended import Unattended
from ikigai_actors.verbs.verb import ACTED_ON, ACTS, Verb

if TYPE_CHECKING:
    from ikigai_actors.reach.access import Access
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.principal import Principal

_TYPES: Mapping[type[object], str] = {
    click.types.IntParamType: "integer",
    click.types.FloatParamType: "number",
    click.types.BoolParamType: "boolean",
}


class ToolAnswer(NamedTuple):
    """The outcome of a verb that a program has called as a tool."""

    text: str
    """The lines that the verb printed."""
    value: object
    """The value that the verb returned."""


class KeptLines(Printer):
    """Collects the lines that a verb prints."""

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
    """Return the description of a verb as a tool: its name, its help and the schema of its arguments."""
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


@dataclass(frozen=True)
class VerbTool:
    """A verb as an MCP tool, which is listed and called as an `Act` is."""

    word: str
    """The word of the verb in the table."""

    @property
    def name(self) -> str:
        """Return the name of the tool."""
        return self.word.replace("-", "_")

    @property
    def needs(self) -> Right:
        """Return the right that a caller needs."""
        return TABLE[self.word].needs

    @property
    def reads(self) -> bool:
        """Return whether the verb changes nothing."""
        return self.needs is Right.LOOK

    def listed(self) -> dict[str, Any]:
        """Return the verb as an entry in the list of MCP tools."""
        verb, title = load(self.word), TABLE[self.word].line.rstrip(".")
        assert isinstance(verb, Verb)  # a group has its verbs as tools
        tool = tool_of(verb)
        return {
            "name": tool["name"],
            "title": title,
            "description": " ".join(tool["description"].split()),
            "inputSchema": tool["input_schema"],
            "outputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "value": answer_schema(verb.gives)},
                "required": ["text", "value"],
            },
            "annotations": {"title": title, "openWorldHint": False, "readOnlyHint": self.reads},
        }

    def call(self, reach: "Access", arguments: object, *, by_model: bool = True) -> dict[str, Any]:
        """Call the verb; return its printed lines and its value. Raises `BadInput`, and the errors of the verb."""
        verb = load(self.word)
        assert isinstance(verb, Verb)
        if not isinstance(arguments, Mapping):
            raise BadInput(f"Expected the arguments of {self.name} to be an object.")
        answer = call(CalledPlace(reach, looks=self.reads), verb, arguments, TABLE[self.word].needs)
        return answer._asdict()


def tools_for_models() -> dict[str, VerbTool]:
    """Return the verbs that are offered to models as they are, by the names of their tools."""
    tools = (VerbTool(word) for word, line in TABLE.items() if line.for_models)
    return {tool.name: tool for tool in tools}


class CalledPlace(Unattended):
    """The place of a verb that a protocol calls: output is captured, and agents out of reach do not exist."""

    def __init__(self, access: "Access", principal: "Principal | None" = None, *, looks: bool = False) -> None:
        """Make the place.

        Args:
            access: the agents in reach.
            principal: the caller; None for the user of this machine.
            looks: whether the verb may commit nothing, as for a principal that may only look.
        """
        self.kept = KeptLines()
        super().__init__(access.system, self.kept)
        self._access, self._principal = access, principal
        self.looks = looks or self.principal.only_looks
        """Whether the verb may commit nothing."""

    @property
    def principal(self) -> "Principal":
        return super().principal if self._principal is None else self._principal

    @property
    def top(self) -> "AgentRef":
        return self.system.handle(self._access.top)

    def reaches(self, uuid: str) -> bool:
        return self._access.reaches(uuid)

    def uuid_of(self, text: str) -> str:
        """Return the uuid of an agent in reach; an unknown name is returned unchanged, and the verb refuses it.

        Raises `AgentNotFound` for an agent out of reach, with the message for an unknown agent.
        """
        if (group := group_in(text)) is not None:
            members = self.system.groups().get(group, ())
            if not all(self.reaches(member.uuid) for member in members):
                raise registry.nobody_called(text)
            return text
        try:
            return self._access.find(text).uuid
        except AgentNotFound:
            if self._access.is_whole:
                return text
            raise


def call(
    place: CalledPlace,
    verb: Verb,
    arguments: Mapping[str, object],
    needs: Right = Right.OPERATE,
    asker: Asker | None = None,
) -> ToolAnswer:
    """Call a verb as a tool.

    If the verb may change something, the principal needs the right ``needs`` (`VerbLine.needs`).

    ``asker`` decides about what the verb commits.

    Raises `BadInput` for arguments that cannot be used, `AgentNotFound` for an agent out of reach, `NotAllowed` for a
    principal without the right or for a verb about all agents if some are out of reach, `LooksOnly` if the verb would
    commit something although it may only read, and the errors of the verb.
    """
    check_right(place.principal, Right.LOOK if place.looks else needs, verb.name)
    known = dict(_parameters(verb))
    if unknown := [name for name in arguments if name not in known]:
        raise BadInput(f"Tool {verb.name} has no argument {unknown[0]!r}; it takes {', '.join(known)}.")
    if missing := [name for name, param in known.items() if param.required and name not in arguments]:
        raise BadInput(f"Tool {verb.name} needs an argument {missing[0]!r}.")
    defaults = {known[name].name or "": _as_click_takes(known[name], name, value) for name, value in arguments.items()}
    command = click.Command(verb.name, params=[*known.values()], callback=lambda **values: values)
    try:
        with command.make_context(verb.name, [], default_map=defaults) as context:
            values: dict[str, Any] = command.invoke(context)
        with acting_for(LOOKER if place.looks else asker):
            _resolve(place, verb, known.values(), values)
            value = verb.work(place, *_agents(place, verb, values), **values)
    except click.ClickException as error:
        raise BadInput(error.format_message()) from error
    return ToolAnswer("\n".join(place.kept.lines), as_value(value))


def _resolve(place: CalledPlace, verb: Verb, params: Iterable[click.Parameter], values: dict[str, Any]) -> None:
    """Replace the names of agents in the arguments by uuids. Raises what `call` does."""
    if verb.everywhere and not place.reaches(place.system.root.uuid):
        raise NotAllowed(f"{verb.name} is about all agents, and only {place.top.record.short} and below are in reach.")
    for param in params:
        name = param.name or ""
        chosen = values.get(name)
        if chosen is None or not (name == ACTED_ON or isinstance(param.type, OfferingAgents)):
            continue
        values[name] = tuple(map(place.uuid_of, chosen)) if isinstance(chosen, tuple) else place.uuid_of(str(chosen))


def _agents(place: Place, verb: Verb, values: dict[str, Any]) -> "list[AgentRef | None]":
    """Return the agent that the verb is about, as a list of at most one; take its name out of the values."""
    if not verb.needs_agent:
        return []
    name = values.pop(ACTED_ON)
    return [None if name is None else place.system.agent(name)]


def _parameters(verb: Verb) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the parameters of a verb, each with its name in the tool."""
    for param in verb.script.among(verb.params_of_tool(), TEXT, ACTS):
        yield "agent" if param.name == ACTED_ON else param.name or "", param


def _schema(param: click.Parameter) -> dict[str, Any]:
    kind = next((name for type_, name in _TYPES.items() if isinstance(param.type, type_)), "string")
    schema: dict[str, Any] = {"type": kind}
    if isinstance(param.type, click.Choice):
        schema["enum"] = [*param.type.choices]
    if _is_list(param):
        schema = {"type": "array", "items": schema}
    if isinstance(param, click.Option) and param.help:
        schema["description"] = param.help
    elif param.name == ACTED_ON:
        schema["description"] = "An agent: its name, its uuid, or the beginning of that."
    return schema


def _is_list(param: click.Parameter) -> bool:
    """Return whether a parameter takes a list of values. A text of several words counts as one value."""
    return param.multiple or (param.nargs == -1 and param.type is not TEXT)


def _as_click_takes(param: click.Parameter, name: str, value: object) -> object:
    """Convert a JSON value to the form that click takes. Raises `BadInput`."""
    if _is_list(param) and not isinstance(value, list):
        raise BadInput(f"Expected a list for {name!r}; got {shown(value)}.")
    if isinstance(value, list) and None in value:
        raise BadInput(f"Expected no null in the list for {name!r}; got {shown(value)}.")
    for item in value if _is_list(param) and isinstance(value, list) else [value]:
        _check_scalar(param, name, item)
    if param.nargs == -1 and not _is_list(param):
        return [] if value is None else [value]
    return value


def _check_scalar(param: click.Parameter, name: str, value: object) -> None:
    """Raise `BadInput` for a value at which click's types fail."""
    if isinstance(value, dict | list) or (isinstance(value, float) and not isfinite(value)):
        raise BadInput(f"Expected a text, a number or a flag for {name!r}; got {shown(value)}.")
    if isinstance(param.type, click.types.BoolParamType) and not isinstance(value, bool | str | None):
        raise BadInput(f"Expected true or false for {name!r}; got {shown(value)}.")
