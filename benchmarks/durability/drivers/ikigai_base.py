"""Parts that the drivers of ikigai-actors share: the model, the tools that charge, and the commands of the judge."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from benchmarks.durability import kit
from ikigai_actors import ActorSystem, Reply, Request, ToolCall, tool
from ikigai_actors.errors import AgentNotFound
from ikigai_actors.tools import current_call

DATABASE = kit.STORE if kit.STORE.startswith("postgresql") else f"{kit.STORE}/ikigai.db"


@tool(idempotent="by_key" if kit.KEYS else False)
def charge(run: str, worker: str) -> str:
    """Charge somebody."""
    return kit.charge(run, worker, current_call().key)


@tool(idempotent="by_key" if kit.KEYS else False, policy="ask")
def charge_big(run: str, worker: str) -> str:
    """Charge somebody a lot."""
    return kit.charge(run, worker, current_call().key)


async def answer(request: Request) -> Reply:
    """Ask the scripted model."""
    messages = [part for message in request.messages for part in chat(message)]
    reply = await asyncio.to_thread(kit.ask, messages, [each["name"] for each in request.tools])
    calls = tuple(ToolCall(name, arguments, call_id) for call_id, name, arguments in kit.calls(reply))
    return Reply(reply["content"] or "", calls)


def chat(message: Any) -> list[kit.Message]:
    """A message of the log, as chat completions have it."""
    blocks = message["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    results = [
        kit.result(each["tool_use_id"], str(each["content"])) for each in blocks if each["type"] == "tool_result"
    ]
    calls = [
        {
            "id": each["id"],
            "type": "function",
            "function": {"name": each["name"], "arguments": json.dumps(each["input"])},
        }
        for each in blocks
        if each["type"] == "tool_use"
    ]
    words = {"role": message["role"], "content": text} | ({"tool_calls": calls} if calls else {})
    return results + ([words] if text or calls else [])


def serve(system: ActorSystem, start: Callable[[str], Any]) -> None:
    """Take the commands of the judge."""

    def result(run: str) -> str | None:
        lead = system.agent(f"lead-{run}")
        replies = [each.content for each in lead.history() if each.kind == "assistant" and "All in all" in each.content]
        return replies[-1] if replies and str(lead.state) == "idle" else None

    def waiting(run: str) -> bool:
        return any(call.input["run"] == run for call in system.approvals.pending())

    def approve(run: str) -> bool:
        calls = [call for call in system.approvals.pending() if call.input["run"] == run]
        return bool(sum(system.approvals.approve(call) for call in calls))

    def cancel(run: str) -> int:
        try:
            return len(system.agent(f"lead-{run}").kill(cascade=True))
        except AgentNotFound:
            return 0

    kit.serve(start=start, result=result, waiting=waiting, approve=approve, cancel=cancel)
