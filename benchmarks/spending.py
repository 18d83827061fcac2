"""A host whose agents take turns on command: `python -m benchmarks.spending NAME`.

Its database is in `$IKIGAI_DATABASE_URL`. The first host makes an agent below no budget, one below one budget, and one
below three; the agents of all hosts are below these. It prints ``done`` when it has agents of its own. On a line
``turns BUDGETS N`` each of its agents below that number of budgets takes N turns. Then it prints the processor seconds.
"""

import sys

from benchmarks.budgets import CHAINS, EACH, Billing, below, spent
from benchmarks.host_processes import TIMEOUT, until
from ikigai_actors import ActorSystem, AgentNotFound, AgentRef


def main(name: str) -> None:
    """Be such a host until there are no more lines."""
    with ActorSystem.open(provider=Billing(), join=True, name=name, balance=None) as system:
        until(lambda: next(host.shards for host in system.hosts() if host.name == name), "a share")
        here = next(host.id for host in system.hosts() if host.name == name)
        teams = {chain: [_here(system, top, name, here) for _ in range(EACH)] for chain, top in _tops(system).items()}
        print("done", flush=True)
        for line in sys.stdin:
            _, chain, turns = line.split()
            print(spent(teams[int(chain)], int(turns)), flush=True)


def _tops(system: ActorSystem) -> dict[int, AgentRef]:
    """The agent at the top of each team, by the number of budgets."""
    tops = {}
    for chain in CHAINS:
        try:
            tops[chain] = system.agent(f"below-{chain}")
        except AgentNotFound:
            tops[chain] = below(system.root, chain).fork(name=f"below-{chain}", timeout=TIMEOUT)
    return tops


def _here(system: ActorSystem, top: AgentRef, name: str, here: str) -> AgentRef:
    """A child that lives on this host. Its budgets stay those of its parent."""
    agent = top.fork(timeout=TIMEOUT)
    system.root.adopt(agent, timeout=TIMEOUT)
    if agent.record.owner != here:
        agent.move(name, timeout=TIMEOUT)
    return agent


if __name__ == "__main__":
    main(sys.argv[1])
