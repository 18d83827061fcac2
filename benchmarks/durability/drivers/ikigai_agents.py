"""ikigai-actors: the model forks the workers, waits, and reads what they sent at their end."""

from benchmarks.durability import kit
from benchmarks.durability.drivers.ikigai_base import DATABASE, answer, charge, charge_big, serve
from ikigai_actors import ActorSystem, FunctionProvider

system = ActorSystem.open(
    DATABASE,
    FunctionProvider(answer),
    tools=[charge, charge_big],
    approvals="ask",
    config="",
    join=kit.SHARED,
    name=kit.HOST if kit.SHARED else None,
)


def start(run: str) -> None:
    system.root.fork(kit.prompt(run, "lead")["content"], name=f"lead-{run}", exist_ok=True)


serve(system, start)
