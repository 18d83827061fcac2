"""ikigai-actors: the lead is a Python function, ``@program``; its workers are agents with tools."""

import asyncio

from benchmarks.durability import kit
from benchmarks.durability.drivers.ikigai_base import DATABASE, answer, charge, charge_big, serve
from ikigai_actors import ActorSystem, FunctionProvider, current_agent, tool
from ikigai_actors.programs import gather, program, step


@tool(read_only=True)
async def pause(seconds: float) -> str:
    """Do nothing for a while."""
    await asyncio.sleep(seconds)
    return "over"


@program
def lead(run: str) -> str:
    me = current_agent()
    messages = [kit.prompt(run, "lead")]
    while True:
        messages.append(step(kit.ask, messages, idempotent=True))
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        workers = [me.fork(name=f"{each['worker']}-{run}", model="function") for _, _, each in calls]
        prompts = [each["prompt"] for _, _, each in calls]
        replies = gather(*(worker.prompt(text) for worker, text in zip(workers, prompts, strict=True)))
        messages += [kit.result(call_id, reply.text) for (call_id, _, _), reply in zip(calls, replies, strict=True)]


system = ActorSystem.open(
    DATABASE,
    FunctionProvider(answer),
    tools=[charge, charge_big, pause],
    programs=[lead],
    approvals="ask",
    config="",
    join=kit.SHARED,
    name=kit.HOST if kit.SHARED else None,
)


def start(run: str) -> None:
    boss = system.root.fork(name=f"lead-{run}", model=lead, key=f"lead {run}")
    boss.configure(tools=["charge", "charge_big", "pause"])  # its workers inherit them, and nothing that forks
    boss.prompt(run, key=run)


serve(system, start)
