"""Works on a database until it is killed, and prints what was acknowledged: ``crash_driver.py URL SEED``."""

import random
import sys
from collections.abc import Callable

from ikigai_actors import ActorSystem, AgentRef, OfflineProvider, StoreInUse

LEASE = 0.5


def say(*words: object) -> None:
    """One line that the kernel has before the next step is taken."""
    print(*words, flush=True)


def open_when_free(url: str) -> ActorSystem:
    """Open the database, as soon as the lease of a killed owner has run out."""
    while True:
        try:
            return ActorSystem.open(url, provider=OfflineProvider(), lease=LEASE)
        except StoreInUse:
            continue


def work(system: ActorSystem, choose: Callable[[list[AgentRef]], AgentRef]) -> None:
    """Prompt, fork, mark and clear for ever."""
    number = 0
    while True:
        living = [system.agent(record.uuid) for record in system.agents() if record.living]
        agent = choose(living)
        for _ in range(5):
            number += 1
            text = f"{agent.uuid} {number}"
            reply = agent.prompt(text).get(timeout=60)
            say("prompt", agent.uuid, agent.history()[-1].id, reply.text)
        say("mark", agent.uuid, agent.mark(str(number)))
        say("fork", agent.uuid, agent.fork(name=f"n{number}-{len(living)}").uuid)


if __name__ == "__main__":
    system = open_when_free(sys.argv[1])
    say("open")
    work(system, random.Random(int(sys.argv[2])).choice)
