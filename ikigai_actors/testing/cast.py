"""The cast of `AgentTreeMachine`: its tool, what models call, and the agents' own code."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ikigai_actors.calls import Facts
from ikigai_actors.providers.base import ToolCall
from ikigai_actors.providers.scripted import ScriptedProvider
from ikigai_actors.testing.process import Broken
from ikigai_actors.tools import Result

WORK = "work"
"""The tool of the machine, which is not idempotent."""

CALLS = (
    WORK,
    ToolCall("send", {"body": "news"}),  # to agent 0
    ToolCall("check_mail"),
    ToolCall("read_mail"),
    ToolCall("wait", {"timeout": 5}),
    ToolCall("wait", {"children": True, "timeout": 60}),
)
"""What models call."""


class Work:
    """A tool that must not run twice for a call."""

    name = WORK
    timeout = 10.0
    facts = Facts()
    is_async = False

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        """How often it ran, by the token of the call."""

    def describe(self) -> Mapping[str, Any]:
        """See `Tool.describe`."""
        return {
            "name": self.name,
            "description": "Do some work that must not be done twice.",
            "input_schema": {"type": "object", "properties": {"token": {"type": "string"}}},
        }

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """See `Tool.call`."""
        self.runs[str(arguments.get("token"))] += 1
        return Result("Done.")

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """See `Tool.call_async`."""
        return self.call(arguments)

    def check(self) -> None:
        """``once``: a tool that is not idempotent runs once for each call."""
        if twice := [token for token, runs in self.runs.items() if runs > 1]:
            raise Broken(f"once: {WORK} ran again for call {', '.join(twice)}")


class OwnCode(ScriptedProvider):
    """A script that is the agents' own code: what it raises, and is no `ProviderError`, is a crash."""

    own_code = True
