"""Prefect: a run is a flow, its requests and effects are tasks with kept results; approval is a variable."""

import asyncio
import threading
from typing import Any

from prefect import flow, get_client, task
from prefect.cache_policies import INPUTS
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow
from prefect.states import Pending, Scheduled
from prefect.variables import Variable

from benchmarks.durability import kit

loop = asyncio.new_event_loop()
asking: set[str] = set()


@task(persist_result=True, cache_policy=INPUTS)
async def ask(messages: list[kit.Message]) -> kit.Message:
    return await asyncio.to_thread(kit.ask, messages)


@task(persist_result=True, cache_policy=INPUTS)
async def charge(run: str, worker: str) -> str:
    return await asyncio.to_thread(kit.charge, run, worker, f"{run}-{worker}")


@task(persist_result=True, cache_policy=INPUTS)
async def pause(run: str, worker: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "over"


async def act(run: str, name: str, tool: str, arguments: dict[str, Any]) -> str:
    if tool == "pause":
        return await pause(run, name, arguments["seconds"])
    if tool == "charge_big":
        asking.add(run)
        while not await Variable.aget(variable(run)):
            await asyncio.sleep(0.2)
        asking.discard(run)
    return await charge(run, name)


async def work(run: str, name: str, text: str) -> str:
    messages: list[kit.Message] = [{"role": "user", "content": text}]
    while True:
        messages = [*messages, await ask(messages)]
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        for call_id, tool, arguments in calls:
            messages = [*messages, kit.result(call_id, await act(run, name, tool, arguments))]


@flow(persist_result=True)
async def lead(run: str) -> str:
    messages = [kit.prompt(run, "lead")]
    while True:
        messages = [*messages, await ask(messages)]
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        texts = await asyncio.gather(*(work(run, args["worker"], args["prompt"]) for _, _, args in calls))
        messages = messages + [kit.result(call_id, text) for (call_id, _, _), text in zip(calls, texts, strict=True)]


def variable(run: str) -> str:
    return f"approved_{run}".replace("-", "_").lower()


def go(flow_run: FlowRun) -> None:
    asyncio.run_coroutine_threadsafe(run_flow(lead, flow_run), loop)


def runs(**filters: Any) -> list[FlowRun]:
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(filters))


def start(run: str) -> None:
    with get_client(sync_client=True) as client:
        flow_run = client.create_flow_run(lead, parameters={"run": run}, name=run, state=Pending())
    go(flow_run)


def result(run: str) -> str | None:
    finished = runs(name={"any_": [run]}, state={"type": {"any_": ["COMPLETED"]}})
    return str(finished[0].state.result()) if finished and finished[0].state else None


def approve(run: str) -> bool:
    Variable.set(variable(run), True, overwrite=True)
    return True


threading.Thread(target=loop.run_forever, daemon=True).start()
for each in runs(state={"type": {"any_": ["PENDING", "SCHEDULED", "RUNNING"]}}):  # resume:
    with get_client(sync_client=True) as client:  # resume:
        client.set_flow_run_state(each.id, Scheduled(), force=True)  # resume:
        go(client.read_flow_run(each.id))  # resume:
kit.serve(start=start, result=result, waiting=lambda run: run in asking, approve=approve)
