"""Temporal: an agent is a workflow, each request and effect an activity with heartbeats; workers are children."""

import asyncio
import threading
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError
from temporalio.service import RPCError
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from benchmarks.durability import kit

LIMITS: Any = {"start_to_close_timeout": timedelta(seconds=60), "heartbeat_timeout": timedelta(seconds=2)}
ONCE: Any = {} if kit.KEYS else {"retry_policy": RetryPolicy(maximum_attempts=1)}


async def beating(call: Any, *arguments: Any) -> Any:
    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.5)

    beats = asyncio.create_task(beat())
    try:
        return await asyncio.to_thread(call, *arguments)
    finally:
        beats.cancel()


@activity.defn
async def ask(messages: list[Any]) -> Any:
    return await beating(kit.ask, messages)


@activity.defn
async def charge(run: str, worker: str) -> str:
    info = activity.info()
    return str(await beating(kit.charge, run, worker, f"{info.workflow_run_id}-{info.activity_id}"))


@workflow.defn
class Agent:
    def __init__(self) -> None:
        self.approved = self.waiting = False

    @workflow.run
    async def run(self, run: str, name: str, text: str) -> str:
        messages: list[Any] = [{"role": "user", "content": text}]
        while True:
            messages.append(await workflow.execute_activity(ask, messages, **LIMITS))
            if not (calls := kit.calls(messages[-1])):
                return str(messages[-1]["content"])
            texts = await asyncio.gather(*(self.call(run, name, tool, arguments) for _, tool, arguments in calls))
            messages += [kit.result(call[0], text) for call, text in zip(calls, texts, strict=True)]

    async def call(self, run: str, name: str, tool: str, arguments: Any) -> str:
        if tool == "delegate":
            child = [run, arguments["worker"], arguments["prompt"]]
            return str(await workflow.execute_child_workflow(Agent.run, args=child, id=f"{run}-{arguments['worker']}"))
        if tool == "pause":
            await asyncio.sleep(arguments["seconds"])
            return "over"
        if tool == "charge_big":
            self.waiting = True
            await workflow.wait_condition(lambda: self.approved)
            self.waiting = False
        try:
            return str(await workflow.execute_activity(charge, args=[run, name], **LIMITS, **ONCE))
        except ActivityError:
            return "cut off: it may have run"

    @workflow.signal
    def approve(self) -> None:
        self.approved = True

    @workflow.query
    def waits(self) -> bool:
        return self.waiting


async def main() -> None:
    client, loop = await Client.connect(kit.SERVER), asyncio.get_running_loop()

    def wait(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    def start(run: str) -> None:
        arguments = [run, "lead", kit.prompt(run, "lead")["content"]]
        wait(client.start_workflow(Agent.run, args=arguments, id=run, task_queue="durability"))

    def result(run: str) -> str | None:
        handle = client.get_workflow_handle(run)
        done = wait(handle.describe()).status == WorkflowExecutionStatus.COMPLETED
        return str(wait(handle.result())) if done else None

    def waiting(run: str) -> bool:
        try:
            return bool(wait(client.get_workflow_handle(f"{run}-b").query(Agent.waits)))
        except RPCError:  # the child is not there yet
            return False

    def approve(run: str) -> bool:
        wait(client.get_workflow_handle(f"{run}-b").signal(Agent.approve))
        return True

    def cancel(run: str) -> None:
        wait(client.get_workflow_handle(run).cancel())

    commands = {"start": start, "result": result, "waiting": waiting, "approve": approve, "cancel": cancel}
    async with Worker(client, task_queue="durability", workflows=[Agent], activities=[ask, charge]):
        threading.Thread(target=lambda: kit.serve(**commands), daemon=True).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
