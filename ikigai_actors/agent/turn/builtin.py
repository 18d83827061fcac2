"""Built-in calls in a turn: whether a tool is one, and how to begin it.

The calls themselves are in `ikigai_actors.agent.builtin_calls`. The actor passes their traits to the machine together
with those of the other tools.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.tools.policy import ToolTraits


class Begin(Protocol):
    """Makes the step that begins a built-in call. Pure."""

    def __call__(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Begin a call; most calls are complete with this step.

        Args:
            state: the agent in a turn. No other call of the reply runs.
            call: the call that the agent's model has made.
            now: the time, in milliseconds since 1970.
            tools: the traits of the agent's tools, by name.

        Raises:
            BadInput: the arguments do not fit. The message of the error becomes the call's result.
        """


@dataclass(frozen=True, slots=True)
class BuiltinTraits(ToolTraits):
    """The traits of a built-in call, with the function that begins it."""

    builtin: ClassVar[bool] = True

    begin: Begin = field(kw_only=True)
