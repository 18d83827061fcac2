"""Signals from another process: the time until the host that runs the agent has carried them out.

The other process sends KILL as ``ikigai kill`` does, to agents whose model is thinking; who waits for their replies
here hears that they are dead. Both processes read the same clock.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentDead, FunctionProvider, Request, Signal
from ikigai_actors.system.remote.client import Client

PATIENCE = 60.0


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Kill agents, one after the other."""
    count = 20 if quick else 100
    for place in places:
        for since, taken in zip(("call", "commit"), _measure(place, count), strict=True):
            late = sorted(max(0.0, seconds) for seconds in taken)
            for rank, at in (("p50", count // 2), ("p90", count * 9 // 10), ("max", -1)):
                yield Row(f"KILL since its {since}, {rank}", "ikigai", place.name, count, "kills", late[at], "s")


def _measure(place: Place, count: int) -> tuple[list[float], list[float]]:
    """Seconds from the call, and from the return of the commit, to the effect."""
    over = threading.Event()

    def think(request: Request) -> str:
        over.wait(PATIENCE)
        return "done"

    database = place.fresh()
    sender = subprocess.Popen(
        [sys.executable, "-m", __name__, database.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sender.stdin is not None
    assert sender.stdout is not None
    from_call, from_commit = [], []
    try:
        with ActorSystem.open(database.url, provider=FunctionProvider(think, "thinker")) as system:
            for _ in range(count):
                child = system.root.fork("think")
                reply = child.aio.reply()
                print(child.uuid, file=sender.stdin, flush=True)
                try:
                    reply.get(timeout=PATIENCE)
                except AgentDead:
                    heard = time.monotonic()
                begun, committed = map(float, sender.stdout.readline().split())
                from_call.append(heard - begun)
                from_commit.append(heard - committed)
            over.set()
    finally:
        sender.stdin.close()
        sender.wait(PATIENCE)
        database.drop()
    return from_call, from_commit


def _send(url: str) -> None:
    """Kill the agents whose uuids come as lines; say when each call began, and when it returned."""
    for agent in sys.stdin:
        begun = time.monotonic()
        with Client.open(url) as client:
            client.signal(client.find(agent.strip()).uuid, Signal.KILL, cascade=False, reason="", grace=0)
        print(begun, time.monotonic(), flush=True)


if __name__ == "__main__":
    _send(sys.argv[1])
