"""A host whose agents take turns when it is told to: `python -m benchmarks.spending NAME BUDGETS`.

Its database is in `$IKIGAI_DATABASE_URL`. The first host makes so many budgets, one below the other; the agents of all
hosts are below them. It says ``done`` when it has agents of its own. A line ``turns N``: each of them is prompted N
times, one turn after the other; then it says ``done`` again.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.budgets import Billing, below
from benchmarks.host_processes import TIMEOUT, until
from benchmarks.hosts import EACH
from ikigai_actors import ActorSystem, AgentNotFound, AgentRef

TOP = "top"
"""The name of the agent below the budgets."""


def main(name: str, budgets: int) -> None:
    """Be such a host until there are no more lines."""
    options = {"provider": Billing(), "balance": None}
    with ActorSystem.open(join=True, name=name, **options) as system, ThreadPoolExecutor(EACH) as threads:
        until(lambda: next(one.shards for one in system.hosts() if one.name == name), "a share")
        try:
            top = system.agent(TOP)
        except AgentNotFound:
            top = below(system.root, budgets).fork(name=TOP, timeout=TIMEOUT)
        here = next(one.id for one in system.hosts() if one.name == name)
        mine = [top.fork(timeout=TIMEOUT) for _ in range(EACH)]
        for agent in mine:
            system.root.adopt(agent, timeout=TIMEOUT)
            if agent.record.owner != here:
                agent.move(name, timeout=TIMEOUT)
        print("done", flush=True)
        for line in sys.stdin:
            count = int(line.split()[1])

            def turns(agent: AgentRef, count: int = count) -> None:
                for _ in range(count):
                    agent.prompt("go on").get(timeout=TIMEOUT)

            list(threads.map(turns, mine))
            print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
