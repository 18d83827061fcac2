"""The built-in call wait, which takes two units.

The first appends a ``tool_call``, which has the awaited agents and the deadline. The second appends the result. Between
them no thread waits (`ikigai_actors.agent.waits`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given
from ikigai_actors.agent.turn.calls import WAIT, Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.state import BeginWait, CallUnit, State, Step
from ikigai_actors.agent.turn.steps import advance
from ikigai_actors.errors import AgentNotFound, BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.mail import mail as mailbox
from ikigai_actors.records.mail.mail import EXIT
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import storable
from ikigai_actors.tools.policy import ToolTraits

WAIT_TIMEOUT = 600
"""The seconds of a ``wait`` without a time-out."""

MOST_SECONDS = 7 * 24 * 3600
"""The most seconds of a ``wait``."""


class WaitCall(BuiltinCall):
    """The call ``wait``: wait for other agents, or for mail."""

    name = WAIT
    description = (
        "Wait for other agents, or for mail. With agents or children: until each of them has sent you mail that you "
        "have not read, has nothing to do, or has ended. Without: until you have unread mail. Returns for each "
        "agent: mail, idle, stopped, budget (it waits for a grant), dead, unknown, or timeout. Calls after it in the "
        "same reply run when it is over, so fork, wait with children, and read_mail can be in one reply."
    )
    arguments: ClassVar = {
        "agents": Argument("array", "The agents to wait for: ids, beginnings of ids, or names."),
        "children": Argument("boolean", "Wait for all your children, those too that you forked earlier in this reply."),
        "timeout": Argument("number", f"The most seconds to wait; {WAIT_TIMEOUT} when left out, 0 looks once."),
    }

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        if not 0 <= _timeout(arguments) <= MOST_SECONDS:
            raise BadInput(f"wait wants timeout to be 0 to {MOST_SECONDS:,} seconds, got {arguments['timeout']!r}.")

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Return the step that writes the ``tool_call``; after a crash the wait goes on from this message."""
        self.check(call.input)
        unit = CallUnit(state.uuid, state.head + 1, call, now, Kind.TOOL_CALL)
        running = progress(state.calls, (call.id,), Progress.RUNNING)
        after = advance(state, (unit.message(),), calls=running)
        return Step(after, unit, (BeginWait(state.request, call.id),), call=call.id)

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        called = tuple(map(storable, arguments.get("agents") or ()))
        deadline = now + int(_timeout(arguments) * 1000)
        return NameAwaited(agent, called, bool(arguments.get("children")), deadline)

    def to_model(self, answer: Mapping[str, Any]) -> str:
        return self.name

    def noted(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return answer


CALLS = (WaitCall(),)


def waited_to_model(answers: Mapping[str, str], named: bool) -> str:
    """Return the text of a `wait` result: a JSON object from each agent to the reason why its wait ended.

    Args:
        answers: the reason for each agent, by the name that the model used; in a wait for mail, by sender.
        named: whether the wait was for agents or children, rather than for mail.
    """
    if answers:
        return json.dumps(answers, ensure_ascii=False)
    return "You have no children to wait for." if named else "No mail came in that time."


class Awaited(NamedTuple):
    """An agent that a ``wait`` call waits for, with the name that the model has used."""

    called: str
    """The name of the agent that the waiting model has used."""
    uuid: str | None
    """The uuid of the agent; None when no agent has this name."""


@dataclass(frozen=True, slots=True)
class NameAwaited(Unit):
    """The unit that looks up the agents which a ``wait`` names, when the call begins.

    Later, a name may belong to another agent. Answered with the data of the ``tool_call``. Raises `AmbiguousAgent`, and
    `BadInput` for the agent itself.
    """

    agent: str
    called: tuple[str, ...]
    children: bool
    """Whether to wait for all children of the agent too: the living ones, and the dead whose ``exit`` mail it has not
    read.
    """
    deadline: int
    """The end of the wait, in milliseconds since 1970."""

    def write(self, tx: Transaction, locked: LockedRows) -> Mapping[str, Any]:
        named = self.called or self.children
        return {"deadline": self.deadline, "agents": [[*awaited] for awaited in self._awaited(tx)] if named else None}

    def _awaited(self, tx: Transaction) -> Sequence[Awaited]:
        records = [await_one(tx, name) for name in dict.fromkeys(self.called)]
        if self.children:
            ended = {sender for sender, kind in mailbox.unread_kinds(tx, self.agent) if kind == EXIT}
            known = registry.children(tx, self.agent)
            records += [
                Awaited(registry.shown_name(tx, record), record.uuid)
                for record in known
                if record.living or record.uuid in ended
            ]
        if self.agent in {record.uuid for record in records}:
            raise BadInput("That is you: you would wait for the end of your own turn. Wait for others.")
        return tuple(dict.fromkeys(records))


def await_one(tx: Transaction, called: str) -> Awaited:
    """Look up an agent by the name that the waiting model has used. Raises `AmbiguousAgent`."""
    try:
        return Awaited(called, registry.find(tx, called).uuid)
    except AgentNotFound:
        return Awaited(called, None)


def _timeout(arguments: Given) -> float:
    seconds: float | None = arguments.get("timeout")
    return WAIT_TIMEOUT if seconds is None else seconds
