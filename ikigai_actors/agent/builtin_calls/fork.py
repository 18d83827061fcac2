"""The built-in call fork, which is Unix fork: parent and child both return from the same call.

The parent's result is the child's uuid, the child's result is the news that it is the child. The turn goes on in both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.turn.calls import FORK, Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.fork import birth_of, give_birth
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import PendingMessage
from ikigai_actors.records.identity import check_name
from ikigai_actors.records.messages import NO_DATA, Kind
from ikigai_actors.tools.policy import SHELL, ToolTraits

LIVING_LIMIT = 1_000
"""How many agents may live when a model forks one more: it stops a fork bomb."""


class ForkCall(BuiltinCall):
    """Make a child that goes on with the turn of its parent."""

    name = FORK
    description = (
        "Make a copy of yourself that goes on beside you, like fork() in Unix. Both of you return from this call: you "
        "with the child's id, the child with the news that it is the child. It remembers all that you remember now. "
        "Give it a prompt that says what it is to do; without one it goes on with what you are doing."
    )
    arguments: ClassVar = {
        "prompt": Argument("string", "What the child is to do."),
        "name": Argument("string", "A name for the child, unique among living agents."),
    }

    def check(self, given: Given) -> None:
        super().check(given)
        if name := given.get("name"):
            check_name(name)

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        self.check(call.input)
        child, name, prompt = event.fresh, call.input.get("name"), text(call.input, "prompt")
        news = f"You are the child {child}, forked from {state.uuid}."
        if SHELL in tools:
            news += " Your shell is new; what the parent runs is not yours."
        messages: list[PendingMessage] = [(Kind.FORK, "", {"parent": state.uuid}), _result(call, news)]
        if prompt:
            messages.append((Kind.USER, prompt, NO_DATA))
        birth = birth_of(state, child, check_name(name) if name else None, "transient", messages, now)
        birth = replace(birth, turn=birth.messages[-1].id, limit=LIVING_LIMIT)
        after = replace(state, calls=progress(state.calls, (call.id,), Progress.DONE))
        told = _result(call, f"Forked: the child is {child}.")
        return replace(give_birth(after, birth, now, told), call=call.id)


CALLS = (ForkCall(),)


def _result(call: Call, content: str) -> PendingMessage:
    return (Kind.TOOL_RESULT, content, call.data)
