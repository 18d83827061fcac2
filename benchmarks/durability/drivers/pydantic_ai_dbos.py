"""Pydantic AI on DBOS: an agent's run is a workflow, a request a step; tools are steps, or wait as workflows do."""

import asyncio
import threading
from typing import Any

from dbos import DBOS, DBOSConfig, SetWorkflowID
from pydantic_ai import Agent, ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.durability import kit

URL = (
    kit.STORE.replace("postgresql://", "postgresql+psycopg://")
    if kit.STORE.startswith("postgresql")
    else f"sqlite:///{kit.STORE}/dbos.db"
)
config: DBOSConfig = {
    "name": "durability",
    "system_database_url": URL,
    "log_level": "ERROR",
    "run_admin_server": False,
    "application_version": "1",
    "executor_id": kit.HOST,
}
DBOS(config=config)


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    sent = [each for message in messages for each in chat(message)]
    reply = await asyncio.to_thread(kit.ask, sent)
    calls = [ToolCallPart(name, arguments, call_id) for call_id, name, arguments in kit.calls(reply)]
    return ModelResponse(parts=calls or [TextPart(reply["content"])])


def chat(message: ModelMessage) -> list[kit.Message]:
    if isinstance(message, ModelRequest):
        users = [{"role": "user", "content": p.content} for p in message.parts if isinstance(p, UserPromptPart)]
        returns = [p for p in message.parts if isinstance(p, ToolReturnPart)]
        return users + [kit.result(part.tool_call_id, str(part.content)) for part in returns]
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    made: list[dict[str, Any]] = [
        {"id": c.tool_call_id, "type": "function", "function": {"name": c.tool_name, "arguments": c.args_as_json_str()}}
        for c in calls
    ]
    return [{"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})]


model = FunctionModel(answer, model_name="scripted")
lead_agent = Agent(model, name="lead", capabilities=[DBOSDurability()])
worker_agent = Agent(model, name="worker", capabilities=[DBOSDurability()])


@DBOS.step()
async def pay(run: str, worker: str) -> str:
    return await asyncio.to_thread(kit.charge, run, worker, f"{DBOS.workflow_id}-{DBOS.step_id}")


@worker_agent.tool_plain
async def charge(run: str, worker: str) -> str:
    return await pay(run, worker)


@worker_agent.tool_plain
async def charge_big(run: str, worker: str) -> str:
    await DBOS.set_event_async("waiting", True)
    await DBOS.recv_async("approval", timeout_seconds=3_600)
    await DBOS.set_event_async("waiting", False)
    return await pay(run, worker)


@worker_agent.tool_plain
async def pause(seconds: float) -> str:
    await DBOS.sleep_async(seconds)
    return "over"


@DBOS.workflow()
async def work(prompt: str) -> str:
    return (await worker_agent.run(prompt)).output


@lead_agent.tool_plain
async def delegate(worker: str, prompt: str) -> str:
    with SetWorkflowID(f"{DBOS.workflow_id}-{worker}"):
        handle = await DBOS.start_workflow_async(work, prompt)
    return await handle.get_result()


@DBOS.workflow()
async def lead(run: str) -> str:
    return (await lead_agent.run(kit.prompt(run, "lead")["content"])).output


async def begin(run: str) -> None:
    with SetWorkflowID(run):
        await DBOS.start_workflow_async(lead, run)


loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def start(run: str) -> None:
    asyncio.run_coroutine_threadsafe(begin(run), loop).result()


def result(run: str) -> str | None:
    handle = DBOS.retrieve_workflow(run)
    return str(handle.get_result()) if handle.get_status().status == "SUCCESS" else None


def waiting(run: str) -> bool:
    return bool(DBOS.get_event(f"{run}-b", "waiting", timeout_seconds=0))


def approve(run: str) -> bool:
    DBOS.send(f"{run}-b", True, "approval", idempotency_key=f"{run}-b")
    return True


def cancel(run: str) -> None:
    DBOS.cancel_workflow(run, cancel_children=True)


DBOS.launch()
kit.serve(start=start, result=result, waiting=waiting, approve=approve, cancel=cancel)
