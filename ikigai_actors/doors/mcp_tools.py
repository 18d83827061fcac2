"""The tools of ``ikigai mcp``: what each takes and gives, and what it does.

A tool that opens a turn gives a handle, and so does each further call under the same key. Only ``wait`` waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import EXACT
from ikigai_actors.agent.turn.ways import WAYS
from ikigai_actors.doors.access import EVERY_PROMPT, QUICK, Access
from ikigai_actors.doors.turns import STATUSES, TurnHandle, TurnReader, first_turn, spent_by
from ikigai_actors.errors import BadInput, IkigaiError, NameTaken
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.budgets.budget import Budget, BudgetStatus
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.hosts.keyed import KeyedCall
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, RemoteCommandKey, answer_of
from ikigai_actors.records.log.diff import Tail
from ikigai_actors.records.log.heads import latest_times
from ikigai_actors.records.mail.mail import KeepPrompt, Mail, Send
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.system.lifecycle import GRACE, new_children, new_fork, prompt_text
from supervisors.signals import Signal

LONGEST_TURN_WAIT = 45.0
"""Seconds after which a wait answers with what it has: clients drop answers that take a minute."""

MOST_HANDLES, MOST_MESSAGES, MOST_AGENTS, CUT = 100, 200, 1_000, 4_000
"""The most handles that are waited for, messages and agents that are listed, and characters of a message."""

Schema = Mapping[str, Any]


class Begun(NamedTuple):
    """TurnReader that a call gives: as they are when they are over, or when the time is."""

    handles: Sequence[TurnHandle]
    give: Callable[[list[dict[str, Any]]], Any]
    """Makes the answer of the turns, in the order of the handles."""
    seconds: float = QUICK
    any: bool = False
    """Whether one that is over is enough."""
    is_task: bool = False
    """Whether it is one turn, which may be a task."""


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
            given = {name: value for name, value in given.items() if value is not None or name in self.needs}
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


class AgentTools:
    """Does what the tools are called for. Each method waits for the database, and for nothing that takes long."""

    def __init__(self, access: Access) -> None:
        self.access = access

    @cached_property
    def turns(self) -> TurnReader:
        """How turns are."""
        return TurnReader(self.access.system._store, self.access.system.approvals.pending)

    # TurnReader

    def fork(self, given: Mapping[str, Any]) -> Begun:
        """Fork, and prompt the child."""
        count, name, prompt = given.get("count"), given.get("name"), prompt_text(given["prompt"])

        def unit() -> AddRemoteCommand:
            parent = self.access.find(given.get("of"))
            random_bytes = self.access.system._random_bytes
            children = new_children(lambda: new_agent_uuid(random_bytes), prompt, name, count=count)
            model, system, at, budget = (given.get(one) for one in ("model", "system", "at", "budget"))
            kind, body = encode(new_fork(children, model=model, system=system, at=at, budget=budget)(None))
            return AddRemoteCommand(parent.uuid, kind, body, self.access.client.now_ms())

        asked = self._asked("fork", given, unit)
        handles = [TurnHandle(asked.agent, "r", asked.id, child) for child in range(count or 1)]

        def give(seen: list[dict[str, Any]]) -> Any:
            answer = self.access.client.read(lambda tx: answer_of(tx, asked))
            if answer is not None and isinstance(answer.value, IkigaiError):
                return {**self.turns.look_at(self._existing(asked.agent, answer.value, prompt)), "existed": True}
            known = [{**turn, "handle": str(self.turns.settled(one))} for turn, one in zip(seen, handles, strict=True)]
            return known[0] if count is None else known

        return Begun(handles, give, is_task=count is None)

    def _existing(self, parent: str, refusal: IkigaiError, prompt: str) -> TurnHandle:
        """The first turn of the living child that has the name already and began so. Raises why there was no fork."""
        if not isinstance(refusal, NameTaken) or parent not in refusal.above:
            raise refusal
        try:
            handle, said = self.access.client.read(lambda tx: first_turn(tx, refusal.holder))
        except IkigaiError:
            raise refusal from None
        if said != prompt:
            raise refusal
        return handle

    def prompt(self, given: Mapping[str, Any]) -> Begun:
        """Prompt an agent."""
        text = prompt_text(given["text"])

        def unit() -> KeepPrompt:
            to = self.access.find(given["agent"])
            return KeepPrompt(to.uuid, text, self.access.client.now_ms(), known=EVERY_PROMPT)

        kept = self.access.once(
            _call("prompt", given), unit, lambda unit, kept: {"agent": unit.recipient, "mail": kept.mail}
        )
        handle = TurnHandle(self.access.check(kept["agent"]), "m", kept["mail"])
        return Begun([handle], lambda seen: seen[0], is_task=True)

    def wait(self, given: Mapping[str, Any]) -> Begun:
        """Wait for turns."""
        handles = [TurnHandle.parse(text) for text in given["handles"]]
        for uuid in {handle.agent for handle in handles}:
            self.access.check(uuid)
        seconds = min(float(given.get("seconds", 30)), LONGEST_TURN_WAIT)
        return Begun(handles, lambda seen: seen, seconds, given.get("any", False))

    # Mail, documents

    def send(self, given: Mapping[str, Any]) -> Any:
        """Send a mail."""

        def unit() -> Send:
            return Send(self.access.find(given["agent"]).uuid, None, given["text"], self.access.client.now_ms())

        return self.access.once(
            _call("send", given), unit, lambda unit, mail: {"agent": mail.recipient, "mail": mail.id}
        )

    def read_mail(self, given: Mapping[str, Any]) -> Any:
        """Read the mail of an agent."""
        agent = self.access.ref(given["agent"])
        if given.get("take", False):
            found = agent.read_mail()
        else:
            found = [
                mail for mail in agent.mails(latest=MOST_MESSAGES) if mail.read_at is None and mail.kind != "prompt"
            ]
        return [_mail(mail) for mail in found]

    def documents(self, given: Mapping[str, Any]) -> Any:
        """List, read or write documents."""
        known, do, path = self.access.system.documents, given["do"], given.get("path")
        if do == "list":
            return [{"path": one.path, "version": one.version} for one in known.list(path or "")]
        if path is None:
            raise BadInput(f"Give the path of the document to {do}.")
        if do == "read":
            found = known.read(path, given.get("version"))
            return [{"path": found.path, "version": found.version, "text": found.body}]
        if (text := given.get("text")) is None:
            raise BadInput("Give the text to write.")
        return [{"path": path, "version": known.write(path, text, expect=given.get("version"))}]

    # Looking

    def agents(self, given: Mapping[str, Any]) -> Any:
        """List agents."""
        access = self.access
        records = access.below(given.get("under"))
        if not given.get("dead", False):
            records = [one for one in records if one.living]
        shown = records[:MOST_AGENTS]
        times = access.client.read(lambda tx: latest_times(tx, [one.uuid for one in shown]))
        return {
            "result": [
                {
                    "agent": one.uuid,
                    "name": one.name,
                    "state": access.system.state_of(one),
                    "parent": one.supervisor_uuid if one.uuid != access.top else None,
                    "spent": spent_by(one),
                    "last_activity": _time(times.get(one.uuid, one.created_at)),
                }
                for one in shown
            ],
            "more": len(records) - len(shown),
        }

    def history(self, given: Mapping[str, Any]) -> Any:
        """Show the latest messages of a history."""
        scrollback = self.access.client.scrollback(self.access.find(given["agent"]).uuid)
        most, before = given.get("last", 20), given.get("before")
        return [
            _message(one) for one in (scrollback.latest(most) if before is None else scrollback.before(before, most))
        ]

    def diff(self, given: Mapping[str, Any]) -> Any:
        """Show where two histories part."""
        found = self.access.ref(given["a"]).diff(self.access.ref(given["b"]))
        return {"common": found.common, "a": _tail(found.a), "b": _tail(found.b)}

    # Acting

    def merge(self, given: Mapping[str, Any]) -> Any:
        """Take in what a child has said."""
        how = given.get("how", WAYS[0])

        def unit() -> AddRemoteCommand:
            child = self.access.find(given["child"]).uuid
            kind, body = encode(on.Merge(child, how, tuple(given.get("positions", ())), None))
            return AddRemoteCommand(self.access.find(given["agent"]).uuid, kind, body, self.access.client.now_ms())

        asked = self._asked("merge", given, unit)
        told = {"agent": asked.agent, "request": asked.id}
        answer = self.access.answer(asked, QUICK)
        if answer is None:
            return {**told, "done": False}
        if isinstance(answer.value, IkigaiError):
            raise answer.value
        return {**told, "done": True, "position": answer.value["position"], "text": answer.value["text"][:CUT]}

    def signal(self, given: Mapping[str, Any]) -> Any:
        """Send a signal."""
        return self._signalled(given, Signal(given["signal"]))

    def kill(self, given: Mapping[str, Any]) -> Any:
        """End an agent."""
        return self._signalled(given, Signal.KILL)

    def _signalled(self, given: Mapping[str, Any], signal: Signal) -> list[str]:
        uuid = self.access.find(given["agent"]).uuid
        change = self.access.client.signal(
            uuid, signal, cascade=given.get("cascade", False), reason=given.get("reason", ""), grace=GRACE
        )
        return [*change.dead]

    def decide(self, given: Mapping[str, Any]) -> Any:
        """Decide on a call that waits."""
        uuid, approvals = self.access.find(given["agent"]).uuid, self.access.system.approvals
        found = [one for one in approvals.pending() if one.agent == uuid and one.id == given["call"]]
        if not found:
            return False
        self.access.check_hosted(QUICK)
        if given["allow"]:
            exact = EXACT if EXACT in found[0].always else True
            return approvals.approve(found[0], always=given.get("always", False) and exact, timeout=QUICK)
        return approvals.deny(found[0], given.get("reason", ""), timeout=QUICK)

    def grant(self, given: Mapping[str, Any]) -> Any:
        """Grant more of a budget."""

        def unit() -> Grant:
            more = Budget(tokens=given.get("tokens"), usd=given.get("usd")).limits()
            if not any(more.values()):
                raise BadInput("Say how much to grant: usd or tokens.")
            return Grant(self.access.find(given["agent"]).uuid, more)

        return self.access.once(_call("grant", given), unit, lambda unit, served: _budget(served.status))

    def _asked(self, name: str, given: Mapping[str, Any], unit: Callable[[], AddRemoteCommand]) -> RemoteCommandKey:
        """Ask an agent to do something itself, once under the key."""
        kept = self.access.once(
            _call(name, given), unit, lambda unit, number: {"agent": unit.agent, "request": number}, hosted=True
        )
        return RemoteCommandKey(self.access.check(kept["agent"]), kept["request"])


def _call(name: str, given: Mapping[str, Any]) -> KeyedCall | None:
    """The call as its key names it; None without a key."""
    key = given.get("key")
    return None if key is None else KeyedCall(key, name, {one: given[one] for one in given if one != "key"})


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _message(message: Message) -> dict[str, Any]:
    told = {"position": message.id, "kind": str(message.kind), "text": message.content[:CUT]}
    return told if len(message.content) <= CUT else {**told, "cut": True}


def _tail(tail: Tail) -> dict[str, Any]:
    """The latest messages that one of two agents has and the other has not."""
    shown = tail.messages[-MOST_MESSAGES:]
    return {"agent": tail.agent, "name": tail.name, "messages": [_message(one) for one in shown]}


def _mail(mail: Mail) -> dict[str, Any]:
    return {"mail": mail.id, "from": mail.sender, "kind": mail.kind, "text": mail.body, "at": _time(mail.created_at)}


def _budget(status: BudgetStatus) -> dict[str, Any]:
    return {"agent": status.owner, "granted": dict(status.granted), "spent": dict(status.spent)}


# What each takes and gives


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
        f"Show the latest messages of an agent's history, each cut at {CUT:,} characters.",
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
            "call": _text("The call, as asks names it."),
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
