"""What a turn knows of built-in calls: that a tool is one, and how to begin it.

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
    """The step that a built-in call makes of the state. Pure."""

    def __call__(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Begin a call; most are done with this step.

        Args:
            state: the agent, in a turn; its other calls of the reply do not run.
            call: one of its model's.
            event: what brought it about.
            now: milliseconds since 1970.
            tools: the traits of the agent's tools, by name.

        Raises `BadInput` for arguments that do not fit: that is the call's result.
        """


@dataclass(frozen=True, slots=True)
class BuiltinTraits(ToolTraits):
    """Traits of a built-in call."""

    builtin: ClassVar[bool] = True

    begin: Begin = field(kw_only=True)
