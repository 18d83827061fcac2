"""The built-in calls of programs (`ikigai_actors.programs`), which models do not have: a fork, and a prompt.

A program's child begins before the prompt of the turn, so it pays for nothing that its parent has done in it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.builtin_calls.fork import ForkCall
from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.fork import Childbed
from ikigai_actors.agent.turn.state import State
from ikigai_actors.agent.turn.steps import PendingMessage
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.mail.mail import PROMPT, Mail, Send
from ikigai_actors.records.messages.messages import NO_DATA, Kind
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.store.unit import Unit
from ikigai_actors.tools.policy import ToolTraits


class ProgramFork(ForkCall):
    """Make a child that goes on from before the turn's prompt; the result is its uuid."""

    arguments: ClassVar = {
        "prompt": Argument("string", "What the child is to do."),
        "name": Argument("string", "A name for the child."),
        "model": Argument("string", "Its model."),
        "system": Argument("string", "Its system prompt."),
    }

    def check(self, given: Given) -> None:
        super().check(given)
        check_settings(_settings(given))

    def _bed(self, state: State, call: Call, child: str, tools: Mapping[str, ToolTraits]) -> Childbed:
        self.check(call.input)
        name, prompt, settings = call.input.get("name"), text(call.input, "prompt"), _settings(call.input)
        own: list[PendingMessage] = [(Kind.CONFIGURE, "", settings)] if settings else []
        own += [(Kind.USER, prompt, NO_DATA)] if prompt else []
        result = (Kind.TOOL_RESULT, child, call.data)
        at = state.turn - 1
        return Childbed(
            child, check_name(name) if name else None, "transient", own, (result,), opens=bool(prompt), at=at
        )


class ProgramPrompt(BuiltinCall):
    """Prompt an agent, as mail; the result is its number."""

    name = "prompt"
    description = "Prompt an agent."
    arguments: ClassVar = {
        "agent": Argument("string", "The agent, by uuid.", required=True),
        "text": Argument("string", "The prompt.", required=True),
    }

    def act(self, agent: str, given: Given, now: int) -> Unit:
        return Send(given["agent"], None, text(given, "text"), now, PROMPT)

    def to_model(self, answer: Mail) -> str:
        return str(answer.id)


PROGRAM_CALLS: Mapping[str, BuiltinCall] = {call.name: call for call in (ProgramFork(), ProgramPrompt())}
"""The built-in calls of programs by name."""


def _settings(given: Given) -> dict[str, Any]:
    return {name: given[name] for name in ("model", "system") if given.get(name)}
