"""The built-in calls that only programs have (`ikigai_actors.programs`), and no model: fork, prompt, wait and others.

A question to a person is the same call that models have (`AskPersonCall`).

The child of a program inherits the history up to before the prompt of the turn. So its requests do not include the
turn's work.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ikigai_actors.agent.builtin_calls.asking import AskPersonCall
from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.builtin_calls.fork import ForkCall
from ikigai_actors.agent.builtin_calls.wait import WaitCall
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.fork import Childbed
from ikigai_actors.agent.turn.hooked import dropped_hooks
from ikigai_actors.agent.turn.kinds import budget_of_kind, messages_of_kind, restart_of_kind
from ikigai_actors.agent.turn.merging import begin_merge
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, messages_of
from ikigai_actors.agent.turn.tool_steps import asks_next
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.agents.rules import AddRule
from ikigai_actors.records.budgets.budget import UNITS, Budget
from ikigai_actors.records.budgets.grants import Grant, Served
from ikigai_actors.records.documents import WriteVersion
from ikigai_actors.records.lives.deaths import LifecycleChange
from ikigai_actors.records.lives.delivery import delivery
from ikigai_actors.records.lives.signals import SignalByAgent
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.mail.asked import Ask, AskedTurn, asked_by_others, join_asked, turn_named
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.records.mail.timers import Timer, reminder
from ikigai_actors.records.mail.words import KeepWord, KeptWord
from ikigai_actors.records.messages.forms import birth_form, problem_of
from ikigai_actors.records.messages.kinds import kind_named
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, TreeLock, Unit
from ikigai_actors.tools.policy import ToolTraits
from ikigai_actors.tools.rules.rule import Rule, new_rule
from supervisors.signals import Signal

NEVER = 253_402_300_799_000
"""The deadline of a wait without one: the last second of the year 9999, in milliseconds since 1970."""


class ProgramFork(ForkCall):
    """Fork a child that begins before the turn's prompt. The result is the child's uuid."""

    arguments: ClassVar = {
        "prompt": Argument("string", "What the child is to do."),
        "name": Argument("string", "A name for the child."),
        "model": Argument("string", "Its model."),
        "system": Argument("string", "Its system prompt."),
        "kind": Argument("string", "Its kind."),
    }

    def check(self, arguments: Given) -> None:
        super().check(_plain(arguments))
        check_settings(_settings(arguments))
        if arguments.get("kind") and arguments.get("system"):
            raise BadInput("Expected the kind of a child, or its system prompt; got both.")

    def _bed(self, state: State, call: Call, child: str, tools: Mapping[str, ToolTraits]) -> Childbed:
        self.check(call.input)
        name, prompt, settings = call.input.get("name"), text(call.input, "prompt"), _settings(call.input)
        own: list[PendingMessage] = [(Kind.CONFIGURE, "", settings)] if settings else []
        own += [(Kind.USER, prompt, _typed(call.input))] if prompt else []
        restart, budget = "transient", None
        if kind_name := text(call.input, "kind"):
            kind = kind_named(state.view.settings, kind_name)
            restart, budget = restart_of_kind(kind, restart), budget_of_kind(kind, None)
            own = messages_of_kind(kind, state.view.settings, tools, prompt or None, _typed(call.input), settings)
        result = (Kind.TOOL_RESULT, child, call.data)
        named, at = check_name(name) if name else None, state.turn - 1
        return Childbed(child, named, restart, own, (result,), opens=bool(prompt), at=at, budget=budget)


class ProgramPrompt(BuiltinCall):
    """Prompt an agent by mail. The result is the number of the mail."""

    name = "prompt"
    description = "Prompt an agent."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        "text": Argument("string", "The prompt.", required=True),
        "detached": Argument("boolean", "Whether it goes on where the turn of the program is ended."),
    }

    def check(self, arguments: Given) -> None:
        super().check(_plain(arguments))

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        if arguments["agent"] == agent:
            raise BadInput("That is you: your turn is open, so a prompt of yours waits for its end.")
        detached = bool(arguments.get("detached"))
        return Ask(agent, arguments["agent"], text(arguments, "text"), now, _typed(arguments), detached=detached)

    def to_model(self, answer: Mail) -> str:
        return str(answer.id)


class ProgramWait(WaitCall):
    """Wait until enough turns of other agents have ended. The result names those turns in the order of their ends."""

    arguments: ClassVar = {
        "turns": Argument("array", "The turns, as prompts give them.", required=True, may_be_empty=True),
        "need": Argument("integer", "How many of them are enough.", required=True),
        "timeout": Argument("number", "The most seconds to wait."),
    }

    def check(self, arguments: Given) -> None:
        BuiltinCall.check(self, arguments)
        if (arguments.get("timeout") or 0) < 0:
            raise BadInput(f"Expected a wait of 0 seconds or more, got {arguments['timeout']!r}.")
        if not 0 <= arguments["need"] <= len(arguments["turns"]):
            raise BadInput(f"Expected to need some of {len(arguments['turns'])} turns, got {arguments['need']!r}.")
        for name in arguments["turns"]:
            turn_named(name)

    def act(self, agent: str, arguments: Given, now: int) -> "BeginTurnsWait":
        seconds = arguments.get("timeout")
        deadline = NEVER if seconds is None else min(NEVER, now + int(seconds * 1000))
        return BeginTurnsWait(agent, tuple(map(turn_named, arguments["turns"])), arguments["need"], deadline)


class BeginTurnsWait(Addressed):
    """The unit that begins a wait for turns; answered with the data of the ``tool_call``.

    The end of a turn ends the wait even if another agent has asked for the turn.
    """

    __slots__ = ("_agent", "_deadline", "_need", "_others", "_turns")

    tree = TreeLock.SHARED

    def __init__(self, agent: str, turns: tuple[AskedTurn, ...], need: int, deadline: int) -> None:
        """Make the unit; ``deadline`` is in milliseconds since 1970."""
        self._agent, self._turns, self._need, self._deadline = agent, turns, need, deadline
        self._others: list[AskedTurn] = []

    def look_up(self, tx: Transaction) -> None:
        self._others = asked_by_others(tx, self._agent, self._turns)

    @property
    def touches(self) -> tuple[str, ...]:
        return tuple({turn.agent for turn in self._others})

    def write(self, tx: Transaction, locked: LockedRows) -> Mapping[str, Any]:
        join_asked(tx, self._agent, self._others, locked)
        turns = [[*turn] for turn in self._turns]
        return {"deadline": self._deadline, "agents": None, "turns": turns, "need": self._need}


_WHEN = {
    "at": Argument("string", "When, as for `remind`."),
    "after": Argument("number", "Seconds from now on."),
    "zone": Argument("string", "The time zone of it."),
}


class ProgramSend(BuiltinCall):
    """Send a mail as an agent. The result is the number of the mail."""

    name = "send"
    description = "Send a mail."
    arguments: ClassVar = {
        "sender": Argument("string", "The sender, by uuid.", required=True),
        "to": Argument("string", "The recipient, or a group.", required=True),
        "body": Argument("string", "What it says.", required=True),
        **_WHEN,
    }

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        to, body = text(arguments, "to"), text(arguments, "body")
        return _or_refused(lambda: delivery(arguments["sender"], to, body, now, **_when(arguments)))

    def to_model(self, answer: Any) -> str:
        return str(answer.id)


class ProgramRemind(BuiltinCall):
    """Set a timer of an agent. The result is the timer's number."""

    name = "remind"
    description = "Set a timer."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        "text": Argument("string", "Of what.", required=True),
        "every": Argument("string", "Again and again."),
        "prompt": Argument("boolean", "Whether it is a prompt."),
        **_WHEN,
    }

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        what, prompt = text(arguments, "text"), bool(arguments.get("prompt"))
        how = {**_when(arguments), "every": arguments.get("every")}
        return _or_refused(lambda: reminder(arguments["agent"], what, now, prompt=prompt, **how))

    def to_model(self, answer: Timer) -> str:
        return str(answer.id)


class ProgramWrite(BuiltinCall):
    """Write a document. The result is the number of its new version."""

    name = "document_write"
    description = "Write a document."
    arguments: ClassVar = {
        "path": Argument("string", "Its path.", required=True),
        "body": Argument("string", "The whole text.", required=True, may_be_empty=True),
        "expect": Argument("integer", "The version that the text is based on."),
        "author": Argument("string", "The author; the agent itself if left out."),
    }

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        path, body, expect = text(arguments, "path"), text(arguments, "body"), arguments.get("expect")
        author = arguments.get("author") or agent
        return about(author, WriteVersion, lambda uuid: WriteVersion(path, body, uuid, expect, now))


class ProgramGrant(BuiltinCall):
    """Raise the limits of an agent's nearest budget. The result holds the new limits."""

    name = "grant"
    description = "Raise a budget."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        **{name: Argument("number", "How many more.") for name in UNITS},
    }

    def act(self, agent: str, arguments: Given, now: int) -> Grant:
        return Grant(
            arguments["agent"], Budget(**{name: arguments[name] for name in UNITS if arguments.get(name)}).limits()
        )

    def to_model(self, answer: Served) -> str:
        assert answer.status is not None  # of a grant
        return json.dumps(asdict(answer.status))


class ProgramKill(BuiltinCall):
    """Kill another agent. The result names the agents that have died, leaves first."""

    name = "kill"
    description = "End another agent."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        "reason": Argument("string", "Why."),
        "cascade": Argument("boolean", "End all its descendants too."),
    }

    def act(self, agent: str, arguments: Given, now: int) -> SignalByAgent:
        return SignalByAgent(arguments["agent"], agent, now, text(arguments, "reason"), bool(arguments.get("cascade")))

    def to_model(self, answer: LifecycleChange) -> str:
        return json.dumps(list(answer.dead))


class ProgramSignal(BuiltinCall):
    """Send a signal to another agent. The result says whether the signal had an effect."""

    name = "signal"
    description = "Send a signal to another agent."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        "signal": Argument("string", "Which one.", required=True),
        "reason": Argument("string", "Why."),
        "cascade": Argument("boolean", "Whether it hits all its descendants too."),
        "grace": Argument("integer", "Milliseconds after which TERM becomes KILL."),
    }

    def act(self, agent: str, asked: Given, now: int) -> SignalByAgent:
        how = bool(asked.get("cascade")), Signal(asked["signal"]), asked.get("grace") or 0
        return SignalByAgent(asked["agent"], agent, now, text(asked, "reason"), *how)

    def to_model(self, answer: LifecycleChange) -> str:
        return json.dumps(not answer.ignored)


class ProgramSteer(BuiltinCall):
    """Send a steering message to an agent. The result is the number of the message in its mailbox."""

    name = "steer"
    description = "Send a steering message to another agent within its turn."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        "text": Argument("string", "The word.", required=True),
        "now": Argument("boolean", "Whether it cuts off the step in progress."),
    }

    def act(self, agent: str, asked: Given, now: int) -> Unit:
        if asked["agent"] == agent:
            return RefusedCall(BadInput("That is you: nobody steers a program but from outside."))
        word = text(asked, "text")
        return _or_refused(lambda: KeepWord(asked["agent"], word, now, at_once=bool(asked.get("now")), sender=agent))

    def to_model(self, answer: KeptWord) -> str:
        return str(answer.mail.id)


class ProgramRule(BuiltinCall):
    """Set a rule of an agent; the result is its number."""

    name = "set_rule"
    description = "Set a rule of an agent."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        **{name: Argument("string", "As for a person.", required=True) for name in ("decision", "tool", "scope")},
        "pattern": Argument("string", "Which calls it fits."),
    }

    def act(self, agent: str, asked: Given, now: int) -> AddRule:
        new = new_rule(asked["decision"], text(asked, "tool"), text(asked, "pattern"), asked["scope"])
        return AddRule(asked["agent"], new, now)

    def to_model(self, answer: Rule) -> str:
        return str(answer.id)


class _OwnMessage(BuiltinCall):
    """Append a message to the program's own log, in one unit with the result, which is the message's position."""

    kind: ClassVar[Kind]
    arguments: ClassVar = {"data": Argument("string", "What it holds, as JSON.", required=True)}

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        self.check(call.input)
        result: PendingMessage = (Kind.TOOL_RESULT, str(state.head + 2), call.data)
        messages = messages_of(state.uuid, state.head, now, (result, (self.kind, "", json.loads(call.input["data"]))))
        calls = progress(state.calls, (call.id,), Progress.DONE)
        after = advance(state, messages, calls=calls)
        return Step(after, LogUnit(state.uuid, messages, asks=asks_next(after)))


class ProgramNote(_OwnMessage):
    """Append a ``note`` message to the program's own log. The result is its position."""

    name = "note"
    description = "Write a note."
    kind = Kind.NOTE


class ProgramConfigure(_OwnMessage):
    """Change settings of the program's own agent. The result is the position of the change."""

    name = "configure"
    description = "Change settings."
    kind = Kind.CONFIGURE

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        self.check(call.input)
        if lost := dropped_hooks(state.view.settings, json.loads(call.input["data"])):
            raise BadInput(
                f"A program can only add hooks to its own agent: {', '.join(lost)} must be asked. Somebody else takes "
                "it away, by configure."
            )
        return super().begin(state, call, event, now, tools)


class ProgramMerge(BuiltinCall):
    """Merge another agent's work into the program's history. The result lists what was merged, as JSON."""

    name = "merge"
    description = "Take in what another agent has said."
    arguments: ClassVar = {
        "agent": Argument("string", "The other agent.", required=True),
        "how": Argument("string", "How: result, summary or pick.", required=True),
        "positions": Argument("string", "The positions of its messages, for pick, as JSON."),
    }

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        self.check(call.input)
        positions = json.loads(call.input.get("positions") or "[]")
        return begin_merge(state, text(call.input, "agent"), call.input["how"], positions, call=call, for_code=True)


@dataclass(frozen=True, slots=True)
class RefusedCall(Unit):
    """A unit that raises `BadInput` in place of a call whose arguments are wrong."""

    error: BadInput

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        raise self.error


PROGRAM_CALLS: Mapping[str, BuiltinCall] = {
    call.name: call
    for call in (
        ProgramFork(),
        ProgramPrompt(),
        ProgramWait(),
        AskPersonCall(),
        ProgramSend(),
        ProgramRemind(),
        ProgramWrite(),
        ProgramGrant(),
        ProgramKill(),
        ProgramSignal(),
        ProgramSteer(),
        ProgramRule(),
        ProgramNote(),
        ProgramConfigure(),
        ProgramMerge(),
    )
}
"""The built-in calls of programs by name."""


def _or_refused(make: Callable[[], Unit]) -> Unit:
    try:
        return make()
    except BadInput as error:
        return RefusedCall(error)


def _when(arguments: Given) -> dict[str, Any]:
    return {name: arguments.get(name) for name in _WHEN}


def _settings(arguments: Given) -> dict[str, Any]:
    return {name: arguments[name] for name in ("model", "system") if arguments.get(name)}


def _plain(arguments: Given) -> Given:
    """Return the arguments without ``output``, the type of a value. Raises `BadInput` if the type is not valid."""
    if (wrong := problem_of(birth_form, arguments)) is not None:
        raise BadInput(f"A program {wrong}.")
    return {name: value for name, value in arguments.items() if name != "output"}


def _typed(arguments: Given) -> Mapping[str, Any]:
    """Return the message data that make a prompt ask for a value of the type in ``output``; empty without one."""
    return {"output": arguments["output"]} if arguments.get("output") else NO_DATA
