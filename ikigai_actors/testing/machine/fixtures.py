"""The tool, the model replies and the agents' own code that `AgentTreeMachine` uses."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import REPORT, SUMMARISE, OnDelta, Reply, Request, ToolCall
from ikigai_actors.providers.scripted import ScriptedProvider, ScriptedReply, Stream
from ikigai_actors.testing.machine.memory_check import facts_in
from ikigai_actors.testing.simulation.process import Broken
from ikigai_actors.testing.simulation.remote import LATE
from ikigai_actors.tools.function import Result, Tool, tool
from ikigai_actors.tools.policy import ToolTraits

WORK = "work"
"""The name of the machine's tool, which is not idempotent."""

TOKEN = "_token"
"""The name under which models see the property ``$token`` of `Work`, because services refuse names with ``$``."""

TOOL_CALLS = (
    WORK,
    ToolCall("send", {"body": "news"}),  # to agent 0
    ToolCall("check_mail"),
    ToolCall("read_mail"),
    ToolCall("wait", {"timeout": 5}),
    ToolCall("wait", {"children": True, "timeout": 60}),
)
"""The calls that the scripted models make."""

STREAM = Stream(("bit ", "by ") * 6, delay=0.1)
"""A streamed answer that subscribers can see arrive, even if they get events late."""

SLOW = Stream(("at ", "last"), delay=1.0)
"""An answer that takes some time."""


class Work(Tool):
    """A tool that must not run twice for one call."""

    name = WORK
    timeout = 10.0
    traits = ToolTraits()
    is_async = False

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        """How often the tool ran, by the token of the call."""

    def describe(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "description": "Do some work that must not be done twice.",
            "input_schema": {"type": "object", "properties": {"$token": {"type": "string"}}},
        }

    def call(self, arguments: Mapping[str, Any]) -> Result:
        self.runs[str(arguments.get("$token"))] += 1
        return Result("Done.")

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        return self.call(arguments)

    def check(self) -> None:
        """Check the invariant ``once``: the tool, which is not idempotent, has run once at most for each call."""
        if twice := [token for token, runs in self.runs.items() if runs > 1]:
            raise Broken(f"once: {WORK} ran again for call {', '.join(twice)}")


NOTES = "notes"
"""The name of the provider that writes summaries; its models are the keys of `SUMMARIES`."""

GIVEN = "given"
"""The value that means a person instead of a model: the person writes the summary."""

SUMMARIES: Mapping[str, ScriptedReply] = {
    "short": "what was said",
    "facts": "",
    "blank": " ",
    "calls": Reply("", (ToolCall("check_mail", {}, "c"),)),
    "fails": ProviderError("no summary today"),
    "late": Stream(("what ", "was said"), delay=3.0),
}
"""The reply to a request for a summary, by model. The model ``facts`` replies with the facts in the request."""


def notes_of(request: Request) -> ScriptedReply:
    """Return the reply to a request for a summary."""
    if request.model != "facts":
        return SUMMARIES[request.model]
    texts = [block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"]
    said = " ".join(text for text in texts if not text.startswith((SUMMARISE, REPORT)))
    return " ".join(dict.fromkeys(facts_in(said))) or "no fact"


class Notes(ScriptedProvider):
    """A scripted provider that ignores cancellation: it replies a little later, when nobody waits any more."""

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        try:
            return await super().respond(request, on_delta)
        except asyncio.CancelledError:
            await asyncio.sleep(SLOW.delay / 2)
            return Reply(LATE)


SEEING = "look_around"
"""The name of the tool whose results are long."""


@tool(name=SEEING, idempotent=True)
def look_around(place: str) -> str:
    """Return a long text about a place."""
    return f"At {place}: {'a tree and a stone, ' * 120}"


class OwnCode(Notes):
    """A scripted provider that counts as the agents' own code: its errors, except `ProviderError`, are crashes."""

    own_code = True
