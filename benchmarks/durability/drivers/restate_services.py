"""Restate: an agent is a workflow, each request and effect a `run`; workers are calls of it, approval a promise."""

import asyncio
import json
import os
import threading
import time
from datetime import timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import restate
from hypercorn.asyncio import serve as listen
from hypercorn.config import Config

from benchmarks.durability import kit

INGRESS, ADMIN = kit.SERVER.split()
PORT = int(os.environ["DURABILITY_PORT"])
agent = restate.Workflow("Agent")


def in_thread(call: Any, *arguments: Any) -> Any:
    async def act() -> Any:
        return await asyncio.to_thread(call, *arguments)

    return act


@agent.main()
async def run(ctx: restate.WorkflowContext, task: dict[str, str]) -> str:
    messages: list[Any] = [{"role": "user", "content": task["text"]}]
    while True:
        messages.append(await ctx.run_typed("ask", in_thread(kit.ask, list(messages))))
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        if calls[0][1] == "delegate":
            futures = [
                ctx.workflow_call(run, f"{task['run']}-{each['worker']}", part(task, each)) for _, _, each in calls
            ]
            await restate.gather(*futures)
            messages += [kit.result(call[0], await future) for call, future in zip(calls, futures, strict=True)]
            continue
        [(call_id, tool, arguments)] = calls
        messages.append(kit.result(call_id, await act(ctx, task, call_id, tool, arguments)))


def part(task: dict[str, str], arguments: dict[str, str]) -> dict[str, str]:
    return {"run": task["run"], "name": arguments["worker"], "text": arguments["prompt"]}


async def act(ctx: restate.WorkflowContext, task: dict[str, str], call_id: str, tool: str, arguments: Any) -> str:
    if tool == "pause":
        await ctx.sleep(timedelta(seconds=arguments["seconds"]))
        return "over"
    if tool == "charge_big":
        ctx.set("waiting", True)
        await ctx.promise("approval", type_hint=bool).value()
        ctx.clear("waiting")
    key = f"{ctx.request().id!r}-{call_id}"
    return str(await ctx.run_typed("charge", in_thread(kit.charge, task["run"], task["name"], key)))


@agent.handler()
async def approve(ctx: restate.WorkflowSharedContext, _: bool) -> None:
    await ctx.promise("approval", type_hint=bool).resolve(True)


@agent.handler()
async def waits(ctx: restate.WorkflowSharedContext, _: bool) -> bool:
    return bool(await ctx.get("waiting", type_hint=bool))


invocations: dict[str, str] = {}


def start(name: str) -> None:
    task = {"run": name, "name": "lead", "text": kit.prompt(name, "lead")["content"]}
    invocations[name] = kit.post(f"/Agent/{name}/run/send", task, INGRESS)["invocationId"]


def result(name: str) -> str | None:
    try:
        with urlopen(f"{INGRESS}/restate/workflow/Agent/{name}/output") as answer:
            return str(json.loads(answer.read()))
    except HTTPError as error:
        if error.code == 470:
            return None  # it has not ended
        raise


def waiting(name: str) -> bool:
    return bool(kit.post(f"/Agent/{name}-b/waits", True, INGRESS))


def resolve(name: str) -> bool:
    kit.post(f"/Agent/{name}-b/approve", True, INGRESS)
    return True


def cancel(name: str) -> None:
    urlopen(Request(f"{ADMIN}/invocations/{invocations[name]}/cancel", method="PATCH")).close()


def register() -> None:
    time.sleep(0.5)  # until the port below listens
    kit.post("/deployments", {"uri": f"http://127.0.0.1:{PORT}", "force": True}, ADMIN)
    kit.serve(start=start, result=result, waiting=waiting, approve=resolve, cancel=cancel)


config = Config()
config.bind = [f"127.0.0.1:{PORT}"]
config.accesslog = None
threading.Thread(target=register, daemon=True).start()
asyncio.run(listen(restate.app([agent]), config))
