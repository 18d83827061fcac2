"""Agent Framework: a run is a functional workflow with checkpoints in files; requests and effects are its steps."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from agent_framework import FileCheckpointStorage, RunContext, step, workflow

from benchmarks.durability import kit

RUNS = Path(kit.STORE) / "runs"
loop = asyncio.new_event_loop()
answered: dict[str, asyncio.Event] = {}
asking: set[str] = set()


@step
async def ask(messages: list[kit.Message]) -> kit.Message:
    return await asyncio.to_thread(kit.ask, messages)


@step
async def charge(run: str, worker: str) -> str:
    return await asyncio.to_thread(kit.charge, run, worker, f"{run}-{worker}")


@step
async def pause(run: str, worker: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "over"


async def act(run: str, name: str, tool: str, arguments: dict[str, Any], ctx: RunContext) -> str:
    if tool == "pause":
        return await pause(run, name, arguments["seconds"])
    if tool == "charge_big":
        await ctx.request_info({"run": run, "worker": name}, response_type=bool, request_id=f"{run}-{name}")
    return await charge(run, name)


async def work(run: str, name: str, text: str, ctx: RunContext) -> str:
    messages: list[kit.Message] = [{"role": "user", "content": text}]
    while True:
        messages = [*messages, await ask(messages)]
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        for call_id, tool, arguments in calls:
            messages = [*messages, kit.result(call_id, await act(run, name, tool, arguments, ctx))]


async def lead(run: str, ctx: RunContext) -> str:
    messages = [kit.prompt(run, "lead")]
    while True:
        messages = [*messages, await ask(messages)]
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        texts = await asyncio.gather(*(work(run, args["worker"], args["prompt"], ctx) for _, _, args in calls))
        messages = messages + [kit.result(call_id, text) for (call_id, _, _), text in zip(calls, texts, strict=True)]


async def go(run: str) -> None:
    storage = FileCheckpointStorage(RUNS / run / "checkpoints")
    flow = workflow(name=run)(lead).build(checkpoint_storage=storage)
    latest = await storage.get_latest(workflow_name=run)  # resume:
    outcome = await (flow.run(checkpoint_id=latest.checkpoint_id) if latest else flow.run(run))  # resume:
    while requests := outcome.get_request_info_events():
        event = answered.setdefault(run, asyncio.Event())
        if not (RUNS / run / "approved").exists():  # resume:
            asking.add(run)
            await event.wait()
            asking.discard(run)
        outcome = await flow.run(responses={request.request_id: True for request in requests})
    keep(run, "result", outcome.get_outputs()[0])


def keep(run: str, name: str, text: str) -> None:
    draft = RUNS / run / f"{name}.draft"
    draft.write_text(text)  # resume:
    draft.replace(draft.with_suffix(""))  # resume:


def start(run: str) -> None:
    (RUNS / run).mkdir(parents=True)  # resume:
    asyncio.run_coroutine_threadsafe(go(run), loop)


def result(run: str) -> str | None:
    file = RUNS / run / "result"
    return file.read_text() if file.exists() else None


def approve(run: str) -> bool:
    keep(run, "approved", "")
    loop.call_soon_threadsafe(answered.setdefault(run, asyncio.Event()).set)
    return True


threading.Thread(target=loop.run_forever, daemon=True).start()
for each in RUNS.glob("*"):  # resume:
    if not (each / "result").exists():  # resume:
        asyncio.run_coroutine_threadsafe(go(each.name), loop)  # resume:
kit.serve(start=start, result=result, waiting=lambda run: run in asking, approve=approve)
