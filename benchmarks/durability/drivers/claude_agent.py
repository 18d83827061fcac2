"""Claude Agent SDK: a session for each agent; a run that was cut off is begun again on the sessions that it has."""

import asyncio
import threading
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)
from mcp.types import ToolAnnotations

from benchmarks.durability import kit, messages

RUNS = Path(kit.STORE) / "runs"
loop = asyncio.new_event_loop()
answered: dict[str, asyncio.Event] = {}
asking: set[str] = set()


def tools(run: str) -> list[Any]:
    async def pay(arguments: dict[str, Any]) -> dict[str, Any]:
        worker = arguments["worker"]
        return said(await asyncio.to_thread(kit.charge, run, worker, f"{run}-{worker}"))

    async def rest(arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(arguments["seconds"])
        return said("over")

    async def delegate(arguments: dict[str, Any]) -> dict[str, Any]:
        return said(await converse(run, arguments["worker"], arguments["prompt"]))

    who = {"run": str, "worker": str}
    parallel = ToolAnnotations.model_validate({"readOnlyHint": True})
    return [
        tool("charge", "Charge.", who)(pay),
        tool("charge_big", "Charge a lot.", who)(pay),
        tool("pause", "Sleep.", {"seconds": float})(rest),
        tool(
            "delegate",
            "Ask a worker.",
            {"worker": str, "prompt": str},
            parallel,
        )(delegate),
    ]


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


async def converse(run: str, name: str, prompt: str) -> str:
    async def permit(tool_name: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
        if not (RUNS / run / "approved").exists():  # resume:
            asking.add(run)
            await answered.setdefault(run, asyncio.Event()).wait()
            asking.discard(run)
        return PermissionResultAllow()

    session = str(uuid5(NAMESPACE_URL, f"{run}-{name}"))
    begun = any(Path(kit.STORE).glob(f"projects/*/{session}.jsonl"))  # resume:
    options = ClaudeAgentOptions(
        tools=[],
        mcp_servers={"kit": create_sdk_mcp_server("kit", tools=tools(run))},
        allowed_tools=[f"mcp__kit__{each}" for each in ("charge", "pause", "delegate")],
        system_prompt="Do your part.",
        can_use_tool=permit,
        setting_sources=[],
        resume=session if begun else None,  # resume:
        session_id=None if begun else session,  # resume:
        cwd=kit.STORE,
        env=ENVIRONMENT,
    )
    async with ClaudeSDKClient(options) as client:
        await client.query("Continue." if begun else prompt)  # resume:
        words = [m.result async for m in client.receive_response() if isinstance(m, ResultMessage)]
    return str(words[-1])


async def lead(run: str) -> None:
    keep(run, "result", await converse(run, "lead", kit.prompt(run, "lead")["content"]))


def keep(run: str, name: str, text: str) -> None:
    draft = RUNS / run / f"{name}.draft"
    draft.write_text(text)  # resume:
    draft.replace(draft.with_suffix(""))  # resume:


def start(run: str) -> None:
    (RUNS / run).mkdir(parents=True)  # resume:
    asyncio.run_coroutine_threadsafe(lead(run), loop)


def result(run: str) -> str | None:
    file = RUNS / run / "result"
    return file.read_text() if file.exists() else None


def approve(run: str) -> bool:
    keep(run, "approved", "")
    loop.call_soon_threadsafe(answered.setdefault(run, asyncio.Event()).set)
    return True


ENVIRONMENT = {
    "ANTHROPIC_BASE_URL": messages.serve("mcp__kit__"),
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CONFIG_DIR": kit.STORE,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "IS_SANDBOX": "1",
}
threading.Thread(target=loop.run_forever, daemon=True).start()
for each in RUNS.glob("*"):  # resume:
    if not (each / "result").exists():  # resume:
        asyncio.run_coroutine_threadsafe(lead(each.name), loop)  # resume:
kit.serve(start=start, result=result, waiting=lambda run: run in asking, approve=approve)
