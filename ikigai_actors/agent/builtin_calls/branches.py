"""The built-in calls about branches of a conversation: diff, merge."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import WHICH_AGENT, Argument, BuiltinCall, Given, text
from ikigai_actors.agent.builtin_calls.naming import CalledAs
from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.merging import begin_merge
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.ways import RESULT, check_merge
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.diff import Tail, read_diff
from ikigai_actors.records.messages.messages import CONVERSATION, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.tools.function import cut
from ikigai_actors.tools.policy import ToolTraits

_SHOWN = 300
"""The number of characters of a message that are shown."""


class DiffCall(BuiltinCall):
    """The call ``diff``: compare the agent's history with that of another agent."""

    name = "diff"
    description = (
        "Show where your history and another agent's part, and what each has said since: each message cut, with its "
        "position. Of a child of yours, alive or dead, that is what it has done."
    )
    arguments: ClassVar = {
        "agent": Argument("string", f"The other agent. {WHICH_AGENT}", required=True),
    }

    def act(self, agent: str, arguments: Given, now: int) -> "ReadDiff":
        return ReadDiff(agent, text(arguments, "agent"))

    def to_model(self, answer: str) -> str:
        return cut(answer)


class MergeCall(BuiltinCall):
    """The call ``merge``: copy the results of another agent into the agent's own history."""

    name = "merge"
    description = (
        "Take in what an agent below you has said, when its turn is over: it follows as a quotation. Each of its "
        "states is merged once; merge it again when it has said more. Documents are only named, with conflicts."
    )
    arguments: ClassVar = {
        "agent": Argument(
            "string", f"A child of yours, or one further below, dead or alive. {WHICH_AGENT}", required=True
        ),
        "how": Argument(
            "string",
            "result (its result, or latest answer; the default), summary (its model writes what it has done), or pick.",
        ),
        "positions": Argument("string", "For pick: the positions of its messages, as 31, 35; diff shows them."),
    }

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        check_merge(arguments.get("how") or RESULT, _positions(arguments))

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        self.check(call.input)
        how = call.input.get("how") or RESULT
        return begin_merge(state, text(call.input, "agent"), how, _positions(call.input), call=call)


CALLS = (DiffCall(), MergeCall())


@dataclass(frozen=True, slots=True)
class ReadDiff(Unit):
    """The unit that compares two histories for the call ``diff``; answered with a text for the model.

    Raises `AgentNotFound`, `AmbiguousAgent`.
    """

    agent: str
    other: str
    """The other agent, by uuid, name or prefix."""

    def write(self, tx: Transaction, locked: LockedRows) -> str:
        other = registry.find(tx, self.other).uuid
        diff, names = read_diff(tx, self.agent, other), CalledAs(tx)
        common = f"In common: the messages up to {diff.common}." if diff.common else "Nothing is in common."
        return "\n\n".join([common, _told("You", diff.a), _told(names[other], diff.b)])


def _positions(arguments: Given) -> list[int]:
    """Return the positions in the argument ``positions``. Raises `BadInput`."""
    words = re.findall(r"[^\s,]+", text(arguments, "positions"))
    if not all(word.isdecimal() for word in words):
        raise BadInput(f"merge wants positions to be numbers with commas between them, got {arguments['positions']!r}.")
    return [int(word) for word in words]


def _told(who: str, tail: Tail) -> str:
    spoken = [message for message in tail.messages if message.kind in CONVERSATION]
    forgets = ", and some of what is in common was taken back" if tail.forgets else ""
    return "\n".join([f"{who}: {len(spoken) or 'nothing'} more{forgets}", *map(_line, spoken)])


def _line(message: Message) -> str:
    words = [message.content, *(f"[calls {call.name}]" for call in calls_in(message))]
    whole = " ".join(" ".join(words).split())
    return f"  {message.id} {message.kind}: {whole[:_SHOWN]}{' …' if len(whole) > _SHOWN else ''}"
