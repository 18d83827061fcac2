"""A host that forks when it is told to: `python -m benchmarks.forking NAME`, its database in `$IKIGAI_DATABASE_URL`.

It says ``done`` when it has agents of its own. A line ``fork N``: each of them makes N children, one after the other;
then it says ``done`` again.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.host_processes import TIMEOUT, app, until
from benchmarks.hosts import EACH
from ikigai_actors import ActorSystem, AgentRef


def main(name: str) -> None:
    """Be such a host until there are no more lines."""
    with ActorSystem.open(join=True, name=name, **app()) as system, ThreadPoolExecutor(EACH) as threads:
        until(lambda: next(host.shards for host in system.hosts() if host.name == name), "a share")
        leads = [system.root.fork(timeout=TIMEOUT) for _ in range(EACH)]
        here = next(host.id for host in system.hosts() if host.name == name)
        for lead in leads:
            if lead.record.owner != here:
                lead.move(name, timeout=TIMEOUT)
        print("done", flush=True)
        for line in sys.stdin:
            count = int(line.split()[1])

            def fork(lead: AgentRef, count: int = count) -> None:
                for _ in range(count):
                    lead.fork(timeout=TIMEOUT)

            list(threads.map(fork, leads))
            print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
