"""Kill real processes whose agents wait for batches, and count what the service was asked to do.

    python -m tests.torture.batches [--database postgres] [--kills 6] [--agents 40]

Forty agents have two turns each. Their requests wait for batches of a service over HTTP, which takes no key and keeps
no name of ours, as Anthropic's does. It loses its answer to every third order, though it has taken it, and lets the
first request expire. Processes are killed with ``kill -9`` meanwhile, each at another moment: one host on SQLite, two
on PostgreSQL. The minutes of a batch are seconds here.

At the end each turn has its reply, and each request was taken once: 80, and the one that had expired once more.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ikigai_actors import ActorSystem, AgentRef, AnthropicProvider
from ikigai_actors.records import batches as records
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.system.host import batches as host
from tests.kit.http_servers import LocalServer
from tests.torture.__main__ import databases

TURNS = 2
WORKS_FOR = 3.0
"""Seconds from an order to its results."""


class BatchServer(LocalServer):
    """Batches of the Messages API."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.orders: list[tuple[float, list[str]]] = []
        """When each batch was taken, and the ids of its requests."""
        self.lock = threading.Lock()

    def take(self, ids: list[str]) -> int:
        """Take a batch; return its number."""
        with self.lock:
            self.orders.append((time.monotonic(), ids))
            return len(self.orders) - 1

    def form(self, number: int) -> dict[str, Any]:
        """A batch as the service shows it."""
        taken, ids = self.orders[number]
        ended = time.monotonic() - taken > WORKS_FOR
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if ended else "processing"] = len(ids)
        return {
            "id": f"msgbatch_{number}", "type": "message_batch", "request_counts": counts, "archived_at": None,
            "processing_status": "ended" if ended else "in_progress", "created_at": "2026-11-29T10:00:00Z",
            "expires_at": "2026-11-30T10:00:00Z", "ended_at": "2026-11-29T11:00:00Z" if ended else None,
            "results_url": f"{self.url}/v1/messages/batches/msgbatch_{number}/results", "cancel_initiated_at": None,
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    server: BatchServer

    def log_message(self, *words: object) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/batches"):
            self.send_error(500, "only batches here")
            return
        number = self.server.take([request["custom_id"] for request in body["requests"]])
        if number % 3 == 2:
            self.close_connection = True  # taken, and nobody hears of it
            return
        self._send(json.dumps(self.server.form(number)))

    def do_GET(self) -> None:
        *_, last = self.path.split("?")[0].split("/")
        if last == "batches":
            listed = [self.server.form(number) for number in reversed(range(len(self.server.orders)))]
            self._send(json.dumps({"data": listed, "has_more": False, "first_id": None, "last_id": None}))
        elif last == "results":
            number = int(self.path.split("/")[-2].partition("_")[2])
            self._send("".join(f"{json.dumps(line)}\n" for line in self._results(number)))
        else:
            self._send(json.dumps(self.server.form(int(last.partition("_")[2]))))

    def _results(self, number: int) -> list[dict[str, Any]]:
        message = {
            "id": "m", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 3},
            "content": [{"type": "text", "text": "Noted."}],
        }  # fmt: skip
        names = self.server.orders[number][1]
        results = [{"type": "succeeded", "message": message} for _ in names]
        if number == 0:
            results[0] = {"type": "expired"}
        return [
            {"custom_id": name, "result": result}
            for name, result in zip(self.server.orders[number][1], results, strict=True)
        ]

    def _send(self, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def victim(database: str, service: str, agents: int) -> None:
    """Run a host until every agent has had its turns."""
    records.BATCH_SECONDS, host.POLL_SECONDS, host.LOST_SECONDS, host.OTHER_HOST_SECONDS = 1.0, 1.0, 10.0, 1.0
    provider = AnthropicProvider("m", base_url=service, api_key="key", batches=True)
    with ActorSystem.open(database, provider, resume=True, join=not database.startswith("sqlite")) as system:
        if system.root.context().settings.get("urgency") != "24h":
            system.root.configure(urgency="24h")
        team = [system.root.fork(name=f"agent-{number}", key=f"agent-{number}") for number in range(agents)]
        while any(replies(agent) < TURNS for agent in team):
            for agent in team:
                if (turn := replies(agent)) < TURNS and agent.state == "idle":
                    agent.prompt(f"Turn {turn}.", key=f"{agent.uuid} {turn}")
            time.sleep(0.5)


def replies(agent: AgentRef) -> int:
    """How many replies an agent has."""
    return sum(message.kind == "assistant" for message in agent.history())


def torture(database: str, hosts: int, kills: int, agents: int, seed: int) -> bool:
    """Kill processes until all is done; print what was seen, and return whether all is as it must be."""
    source, server, begun, killed = random.Random(seed), BatchServer(), time.monotonic(), 0

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen([
            sys.executable, "-m", "tests.torture.batches", "--victim", database, "--service", server.url,
            "--agents", str(agents),
        ])  # fmt: skip

    running = [start() for _ in range(hosts)]
    while killed < kills:
        time.sleep(source.uniform(2, 9))
        place = killed % hosts
        if running[place].poll() is None:
            running[place].send_signal(signal.SIGKILL)
            running[place].wait()
            killed += 1
        running[place] = start()
    codes = [process.wait(timeout=240) for process in running]
    taken = Counter(name.partition("-")[0] for _, ids in server.orders for name in ids)
    store = open_store(database)
    try:
        faults = check(store)
    finally:
        store.close()
    twice = sum(count - 1 for count in taken.values())
    print(
        f"{database.partition(':')[0]}: {hosts} hosts, {killed} kills, {time.monotonic() - begun:.0f} s; "
        f"{len(server.orders)} batches, {sum(taken.values())} requests taken, {len(taken)} distinct, {twice} twice; "
        f"expected {agents * TURNS + 1}; exit codes {codes}; fsck: {faults or 'clean'}"
    )
    return sum(taken.values()) == len(taken) == agents * TURNS + 1 and not any(codes) and not faults


def main() -> int:
    """Read the arguments, and torture or be the victim."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.batches", description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), help="this one only")
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victim", metavar="URL", help="be a process that may be killed")
    parser.add_argument("--service", metavar="URL", default="")
    options = parser.parse_args()
    if options.victim:
        victim(options.victim, options.service, options.agents)
        return 0
    is_right = True
    for kind in (options.database,) if options.database else ("sqlite", "postgres"):
        with TemporaryDirectory() as directory, databases(kind, Path(directory)) as new_database:
            hosts = 1 if kind == "sqlite" else 2
            is_right &= torture(new_database(), hosts, options.kills, options.agents, options.seed)
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
