"""A service that counts for itself: it bills all that has reached it, and does not always say how much that was."""

import json
from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request, Usage
from ikigai_actors.providers.scripted import ScriptedProvider

MOST_OUTPUT = 200
"""The most tokens of a reply, where the request does not say."""


class Meter:
    """What all services of a run have billed."""

    def __init__(self, quarters: int = 4) -> None:
        """Make one; ``quarters`` says how many quarters of a token a byte is."""
        self.quarters = quarters
        self.billed = 0
        self.requests = 0

    def tokens(self, text: str) -> int:
        """How many tokens a text has."""
        return len(text.encode(errors="replace")) * self.quarters // 4


class MeteredProvider(ScriptedProvider):
    """Gives the replies of a script, at a price: also of those that break off or are cancelled.

    Of each four requests one is not told of. It gives no more than ``max_tokens`` of a request.
    """

    counts = True
    max_tokens = MOST_OUTPUT

    def __init__(self, script: Any, meter: Meter) -> None:
        """Make one that bills by a meter."""
        super().__init__(script)
        self._meter = meter

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        meter = self._meter
        meter.requests += 1
        has_usage = meter.requests % 4 != 2
        taken = meter.tokens(_sent(request))
        meter.billed += taken
        left = int(request.settings.get("max_tokens", MOST_OUTPUT))
        sent = 0

        def bill(tokens: int) -> None:
            nonlocal sent
            more = min(tokens, left - sent)
            sent += more
            meter.billed += more

        def pass_on(delta: Delta) -> None:
            bill(1 + meter.tokens(delta.text))
            on_delta(delta)

        try:
            reply = await super().respond(request, pass_on)
        except ProviderError as error:
            if error.free:
                meter.billed -= taken + sent
            raise
        bill(10 * len(reply.tool_calls))
        third = taken // 3
        usage = Usage(taken - 2 * third, sent, third, third) if has_usage else None
        return Reply(reply.text, reply.tool_calls, reply.stop_reason, usage=usage, model="metered")


def _sent(request: Request) -> str:
    """What is sent of a request, as far as it is counted by its length."""
    blocks = [block for message in request.messages for block in message["content"]]
    tools = json.dumps(list(request.tools)) if request.tools else ""
    return "".join((tools, request.system, *map(_text, blocks)))


def _text(block: Mapping[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return json.dumps(block["input"])
        case "tool_result":
            content = block["content"]
            return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
    return ""
