"""The tools of ``ikigai mcp`` as a client lists them: what each takes and gives."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ikigai_actors.agent.turn.ways import WAYS
from ikigai_actors.doors.mcp_tools import CUT, LONGEST_TURN_WAIT, MOST_HANDLES, MOST_MESSAGES, AgentTools
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.turns import STATUSES
from supervisors.signals import Signal

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class DoorTool:
    """A tool of the door."""

    name: str
    title: str
    description: str
    takes: Mapping[str, Schema]
    gives: Schema
    work: Callable[["AgentTools", Mapping[str, Any]], Any]
    needs: Sequence[str] = ()
    hints: Mapping[str, bool] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.hints.get("readOnlyHint", False)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of its arguments."""
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": [*self.needs],
            "additionalProperties": False,
        }

    def checked(self, given: object) -> Mapping[str, Any]:
        """The arguments of a call. Raises `BadInput`."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        if isinstance(given, dict):  # models give null for what they leave out
            given = {
                name: _meant(self.takes.get(name, {}), value)
                for name, value in given.items()
                if value is not None or name in self.needs
            }
        wrong = best_match(Draft202012Validator(self.schema).iter_errors(given))
        if wrong is not None:
            where = "".join(f"{place}: " for place in wrong.absolute_path)
            raise BadInput(f"{self.name}: {where}{wrong.message[:300]}.")
        assert isinstance(given, dict)
        return given

    def listed(self) -> dict[str, Any]:
        """The tool as a client lists it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema,
            "outputSchema": self.gives,
            "annotations": {"title": self.title, "openWorldHint": False, **self.hints},
        }


def _meant(schema: Schema, value: object) -> object:
    """The value of an argument; some clients give lists, numbers and flags as texts."""
    kinds = schema.get("type", "string")
    if not isinstance(value, str) or "string" in kinds:
        return value
    with suppress(ValueError, RecursionError):
        read = json.loads(value)
        if not isinstance(read, str):
            return read
    return value


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _number(description: str, least: int, most: int, **more: Any) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description, **more}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _object(required: Sequence[str] = (), **properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required]}


def _list(items: Schema, **more: Schema) -> Schema:
    """A list: the outermost value must be an object."""
    return _object(("result",), result={"type": "array", "items": items}, **more)


_AGENT = _text("An agent: its name, its two words, or its uuid or the beginning of that.")
_KEY = _text(
    "A text of your own, new for each new call. The same call again under it does nothing and has the same answer.",
    minLength=1,
    maxLength=200,
)
_NAME: Schema = {"type": ["string", "null"]}
_SPENT = _object(("tokens", "usd"), tokens={"type": "integer"}, usd={"type": "number"})
_ASKS = _object(("call", "tool", "arguments"), call={"type": "string"}, tool={"type": "string"}, arguments=_object())
_TURN = _object(
    ("handle", "agent", "name", "status", "spent"),
    handle={"type": "string"},
    agent={"type": "string"},
    name=_NAME,
    status={"type": "string", "enum": [*STATUSES]},
    text={"type": "string"},
    error={"type": "string"},
    asks={"type": "array", "items": _ASKS},
    spent=_SPENT,
    existed={"type": "boolean"},
)
_MESSAGE = _object(
    ("position", "kind", "text"),
    position={"type": "integer"},
    kind={"type": "string"},
    text={"type": "string"},
    calls={
        "type": "array",
        "items": _object(
            ("id", "tool", "arguments"),
            id={"type": "string"},
            tool={"type": "string"},
            arguments={"type": "string", "description": "As JSON."},
        ),
    },
    id={"type": "string", "description": "Of a result: the call that it answers."},
    tool={"type": "string"},
    is_error={"type": "boolean"},
    cut={"type": "boolean"},
)
_PART = _object(
    ("agent", "messages"), agent={"type": "string"}, name=_NAME, messages={"type": "array", "items": _MESSAGE}
)
_AMOUNTS = {"type": "object", "additionalProperties": {"type": "number"}}
_DIED = _list({"type": "string"})
_READS = {"readOnlyHint": True, "idempotentHint": True}
_REPEATABLE = {"readOnlyHint": False, "idempotentHint": True, "destructiveHint": False}
_ENDS = {"readOnlyHint": False, "idempotentHint": True, "destructiveHint": True}

TOOLS = (
    DoorTool(
        "fork",
        "Fork an agent",
        "Make a child that inherits the history of an agent, and prompt it. Answers at once with the handle of its "
        "turn; wait for it. A living child of the same name and prompt is returned instead, with existed: true.",
        {
            "prompt": _text("What the child is to do."),
            "name": _text("A name for the child, unique among the living."),
            "of": {**_AGENT, "description": "The agent to fork. Default: the topmost one."},
            "at": _number("The child inherits the history up to this position. Default: all of it.", 0, 2**53),
            "model": _text("Its model, as provider:model. Default: its parent's."),
            "system": _text("Its system prompt. Default: its parent's."),
            "budget": {
                "type": "object",
                "description": "The most that the child and all below it may spend.",
                "properties": {
                    "usd": {"type": "number", "minimum": 0},
                    "tokens": {"type": "integer", "minimum": 0},
                    "agents": {"type": "integer", "minimum": 0},
                },
                "additionalProperties": False,
            },
            "count": _number("How many such children to make; then the answer is a list.", 1, MOST_HANDLES),
            "key": _KEY,
        },
        {**_TURN, "required": [], "properties": {**_TURN["properties"], "result": {"type": "array", "items": _TURN}}},
        AgentTools.fork,
        ("prompt",),
        _REPEATABLE,
    ),
    DoorTool(
        "prompt",
        "Prompt an agent",
        "Open a turn of an agent; a busy one takes the prompt up after its turn. Answers at once with a handle.",
        {"agent": _AGENT, "text": _text("The prompt."), "key": _KEY},
        _TURN,
        AgentTools.prompt,
        ("agent", "text"),
        _REPEATABLE,
    ),
    DoorTool(
        "wait",
        "Wait for turns",
        "Wait until turns are over, or ask something, or the time is over; working means: wait again. A wait of 0 "
        "seconds shows how they are. Handles are valid forever, also after a restart.",
        {
            "handles": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MOST_HANDLES,
                "description": "What fork and prompt gave.",
            },
            "seconds": {
                "type": "number",
                "minimum": 0,
                "maximum": LONGEST_TURN_WAIT,
                "description": "Seconds to wait. Default: 30.",
            },
            "any": _flag("True: return when one turn is over. Default: wait for all."),
        },
        _list(_TURN),
        AgentTools.wait,
        ("handles",),
        _READS,
    ),
    DoorTool(
        "send",
        "Send a mail",
        "Send a mail to an agent, which reads it when it chooses to.",
        {"agent": _AGENT, "text": _text("The mail, at most 64 KiB."), "key": _KEY},
        _object(("agent", "mail"), agent={"type": "string"}, mail={"type": "integer"}),
        AgentTools.send,
        ("agent", "text"),
        _REPEATABLE,
    ),
    DoorTool(
        "read_mail",
        "Read an agent's mail",
        "Show the unread mail of an agent.",
        {"agent": _AGENT, "take": _flag("Whether it counts as read from then on, so that the agent does not get it.")},
        _list(
            _object(
                ("mail", "kind", "text", "at"),
                **{"from": _NAME},
                mail={"type": "integer"},
                kind={"type": "string"},
                text={"type": "string"},
                at={"type": "string"},
            )
        ),
        AgentTools.read_mail,
        ("agent",),
        {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True},
    ),
    DoorTool(
        "agents",
        "List agents",
        "List the agents as a tree: each after the one that supervises it.",
        {
            "under": {**_AGENT, "description": "Only this one and those below it."},
            "dead": _flag("Whether the dead are listed, too."),
        },
        _list(
            _object(
                ("agent", "name", "state", "parent", "spent", "last_activity"),
                agent={"type": "string"},
                name=_NAME,
                state={"type": "string"},
                parent=_NAME,
                spent=_SPENT,
                last_activity={"type": "string"},
            ),
            more={"type": "integer", "description": "How many more there are."},
        ),
        AgentTools.agents,
        (),
        _READS,
    ),
    DoorTool(
        "history",
        "Show a history",
        f"Show the latest messages of an agent's history, with calls and their results, each text cut at {CUT:,} "
        "characters.",
        {
            "agent": _AGENT,
            "before": _number("Only messages before this position.", 1, 2**53),
            "last": _number("How many messages. Default: 20.", 1, MOST_MESSAGES),
        },
        _list(_MESSAGE),
        AgentTools.history,
        ("agent",),
        _READS,
    ),
    DoorTool(
        "diff",
        "Compare two histories",
        "Show up to which position two agents have the same history, and what each has said since.",
        {"a": _AGENT, "b": _AGENT},
        _object(("common", "a", "b"), common={"type": "integer"}, a=_PART, b=_PART),
        AgentTools.diff,
        ("a", "b"),
        _READS,
    ),
    DoorTool(
        "merge",
        "Merge a child",
        "Let an agent take in what one below it has said, as a quotation. A busy agent does it after its turn: call "
        "again with the same key until done is true.",
        {
            "agent": _AGENT,
            "child": _AGENT,
            "how": _text("Its result, a summary by its model, or some of its messages.", enum=[*WAYS]),
            "positions": {"type": "array", "items": {"type": "integer"}, "description": "For pick: the messages."},
            "key": _KEY,
        },
        _object(
            ("agent", "request", "done"),
            agent={"type": "string"},
            request={"type": "integer"},
            done={"type": "boolean"},
            position={"type": "integer"},
            text={"type": "string"},
        ),
        AgentTools.merge,
        ("agent", "child"),
        _REPEATABLE,
    ),
    DoorTool(
        "documents",
        "Shared documents",
        "List, read or write the documents that all agents share. Each write makes a version.",
        {
            "do": _text("What to do.", enum=["list", "read", "write"]),
            "path": _text("The document; for list, the beginning of paths."),
            "text": _text("For write: the whole text."),
            "version": _number("For read: an earlier version. For write: the one the text is based on.", 0, 2**53),
        },
        _list(
            _object(("path", "version"), path={"type": "string"}, version={"type": "integer"}, text={"type": "string"})
        ),
        AgentTools.documents,
        ("do",),
        {"readOnlyHint": False, "idempotentHint": False, "destructiveHint": False},
    ),
    DoorTool(
        "signal",
        "Send a signal",
        "INT ends the turn of an agent. STOP pauses it after its step, CONT lets it go on. TERM lets it finish its "
        "turn and die. KILL ends it at once. Answers with the agents that died.",
        {
            "agent": _AGENT,
            "signal": _text("The signal.", enum=[*Signal]),
            "cascade": _flag("Whether all below it get it, too."),
            "reason": _text("Why, for the registry."),
        },
        _DIED,
        AgentTools.signal,
        ("agent", "signal"),
        _ENDS,
    ),
    DoorTool(
        "kill",
        "End an agent",
        "End an agent at once. Answers with the agents that died.",
        {"agent": _AGENT, "cascade": _flag("Whether all below it die, too."), "reason": _text("Why.")},
        _DIED,
        AgentTools.kill,
        ("agent",),
        _ENDS,
    ),
    DoorTool(
        "decide",
        "Decide on a call",
        "Let a call of a tool run that waits for a decision (asks), or refuse it. Answers whether it was open.",
        {
            "agent": _AGENT,
            "call": _text("The call, by the text that asks has for it: its reply, id and digest."),
            "allow": _flag("Whether it runs."),
            "reason": _text("Why not, for the agent's model."),
            "always": _flag("Whether such calls run from now on, for this agent and all below it."),
        },
        _object(("result",), result={"type": "boolean"}),
        AgentTools.decide,
        ("agent", "call", "allow"),
        _REPEATABLE,
    ),
    DoorTool(
        "grant",
        "Grant a budget",
        "Grant more of what the nearest budget of an agent limits; those who wait for it go on.",
        {
            "agent": _AGENT,
            "usd": {"type": "number", "minimum": 0, "description": "How many more dollars."},
            "tokens": _number("How many more tokens.", 0, 2**53),
            "key": _KEY,
        },
        _object(("agent", "granted", "spent"), agent={"type": "string"}, granted=_AMOUNTS, spent=_AMOUNTS),
        AgentTools.grant,
        ("agent",),
        _REPEATABLE,
    ),
)
"""Every tool."""
