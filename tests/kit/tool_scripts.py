"""Models that call tools, and what they read of the results."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ikigai_actors import Reply, Request, ScriptedProvider, ToolCall
from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn.skills import LOAD_SKILL
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.providers.scripted import Script
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.testing.simulation.messages_api import violations
from tests.agent.turn.test_assembly import wire

OWN = sorted({"agents", *BUILTIN_CALLS} - {FIND_TOOLS, LOAD_SKILL, ASK_PERSON})
"""The tools of every agent, where it has all of them before it, and nobody can be asked."""


class Seen(NamedTuple):
    """A result as a model reads it."""

    id: str
    content: str
    is_error: bool


def calling(*calls: tuple[str, Mapping[str, Any]] | str) -> Reply:
    """A reply that asks for calls, with the ids 1, 2, …; one is a tool's name, or a name and arguments."""
    pairs = [(call, {}) if isinstance(call, str) else call for call in calls]
    made = tuple(ToolCall(name, arguments, str(number)) for number, (name, arguments) in enumerate(pairs, 1))
    return Reply(tool_calls=made, stop_reason="tool_use")


def scripted(root: Script = (), **others: Script) -> ScriptedProvider:
    """A script for each agent, agent 0 and those that it names."""
    scripts: dict[str | None, Script] = {None: root}
    scripts.update(others)
    return ScriptedProvider(scripts)


def results(request: Request) -> list[Seen]:
    """The results that a request ends with, in order. It must be one that the API accepts."""
    assert faults(request) == []
    return [
        Seen(block["tool_use_id"], block["content"], block.get("is_error", False))
        for block in request.messages[-1]["content"]
        if block["type"] == "tool_result"
    ]


def faults(request: Request) -> list[str]:
    """What the API would not accept in a request, whoever answers it."""
    return violations({**wire(request), "model": "any"})


def prompts(request: Request) -> list[str]:
    """The texts after the results that a request ends with."""
    return [block["text"] for block in request.messages[-1]["content"] if block["type"] == "text"]


def requests_of(provider: ScriptedProvider, name: str | None) -> list[Request]:
    """What an agent asked, in order."""
    return [request for request in provider.requests if request.name == name]


def trail(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Kind and call of each message."""
    return [(message.kind, str(message.data.get("tool_use_id", ""))) for message in messages]
