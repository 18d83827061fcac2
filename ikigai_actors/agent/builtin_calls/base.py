"""The interface of a built-in call: a tool that the runtime carries out, as one unit of its act and its result.

A call is a class. `name`, `description` and `arguments` describe it to the model; `act` makes the unit of writes;
`to_model` makes the text of its result. The arguments are checked by their descriptions; `check` adds checks that types
cannot express. A call that changes the course of the turn overrides `begin`.

A crash leaves both effect and result or neither, so on resume a call without a result is simply carried out. A refusal
of the store (the agent to be killed is dead already) is the call's result, as an error.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from ikigai_actors.agent.turn.calls import LOOKS, Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.state import CallUnit, State, Step
from ikigai_actors.agent.turn.steps import advance
from ikigai_actors.errors import BadInput
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.store.unit import Unit
from ikigai_actors.text import storable
from ikigai_actors.tools.policy import ToolTraits

WHICH_AGENT = "Its name, its two words as brave-otter, its id, or the beginning of the id."
"""The description, for a model, of an argument that names an agent."""

_WORDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "array": (list, "a list of texts"),
}
"""For each type of a JSON schema the Python type, and the words for it."""

Given = Mapping[str, Any]
"""The arguments of a call, as the model has passed them. None counts as left out."""


class Argument(NamedTuple):
    """An argument of a built-in call."""

    type: str
    """The JSON type. The items of an ``array`` are strings."""
    description: str
    """The description of the argument, for the model."""
    required: bool = False
    may_be_empty: bool = False
    """Whether a required text may be empty."""

    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of the argument."""
        items = {"items": {"type": "string"}} if self.type == "array" else {}
        return {"type": self.type, **items, "description": self.description}


class BuiltinCall:
    """A tool that the runtime itself carries out."""

    name: ClassVar[str]
    """The name of the call, for the model."""
    description: ClassVar[str]
    """The description of the call, for the model."""
    arguments: ClassVar[Mapping[str, Argument]] = {}

    def __init__(self) -> None:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: argument.schema() for key, argument in self.arguments.items()},
            "additionalProperties": False,
        }
        if needed := [key for key, argument in self.arguments.items() if argument.required]:
            schema["required"] = needed
        self.described: Mapping[str, Any] = {
            "name": self.name,
            "description": self.description,
            "input_schema": schema,
        }
        """The call as a Messages-API dict."""

    def check(self, arguments: Given) -> None:
        """Check the arguments. Raises `BadInput` with a message that helps the model."""
        for key, value in arguments.items():
            if key not in self.arguments:
                takes = ", ".join(self.arguments) or "no arguments"
                raise BadInput(f"{self.name} takes {takes}; it does not know {key!r}.")
            wanted = self.arguments[key].type
            if value is not None and not _fits(value, wanted):
                raise BadInput(f"{self.name} wants {key} to be {_WORDS[wanted][1]}, got {value!r}.")
        for key, argument in self.arguments.items():
            value = arguments.get(key)
            if argument.required and (value is None or (value in ("", []) and not argument.may_be_empty)):
                raise BadInput(f"{self.name} needs {key}.")

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Return the step that carries the call out; see `ikigai_actors.agent.turn.builtin.Begin`."""
        self.check(call.input)
        unit = CallUnit(state.uuid, state.head + 1, call, now)
        done = progress(state.calls, (call.id,), Progress.DONE)
        notice = 0 if self.name in LOOKS else state.notice
        return Step(advance(state, (unit.message(),), calls=done, notice=notice), unit, call=call.id)

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        """Return the unit of writes that carries the call out.

        Args:
            agent: the uuid of the agent whose model calls.
            arguments: the checked arguments.
            now: the time, in milliseconds since 1970.
        """
        raise NotImplementedError(f"{self.name} is no unit of its own")

    def to_model(self, answer: Any) -> str:
        """Return the text of the result, from the answer of the unit that `act` made."""
        return str(answer)

    def noted(self, answer: Any) -> Mapping[str, Any]:
        """Return the entries to add to the data of the result message.

        ``answer``: the answer of the unit that `act` made.
        """
        return NO_DATA


def text(arguments: Given, key: str) -> str:
    """Return a text argument in a form that can be stored; empty when it was left out."""
    return storable(arguments.get(key) or "")


def _fits(value: object, kind: str) -> bool:
    expected = _WORDS[kind][0]
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, expected) and (
        not isinstance(value, list) or all(isinstance(element, str) and element for element in value)
    )
