"""Several hosts that share the agents of one PostgreSQL, ended with SIGKILL, stopped with SIGSTOP, and drained.

    python -m tests.torture.fleet postgresql://… --faults 100

Hands prompt and fork agents from an attached process all the while, and wait for the answers. At the end every prompt
that was acknowledged stands once in the log of its agent, with one answer, which its hand has got.
"""

import argparse
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ikigai_actors import ActorSystem, AgentRef, FunctionProvider, IkigaiError, Message, Request
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages import Kind
from ikigai_actors.store import open_store
from ikigai_actors.system.attached.system import AttachedSystem
from tests.torture.snapshot import take

LEASE = 2.0
HOSTS = ("a", "b", "c")
HANDS = 4
AGENTS = 12
PATIENCE = 60.0
"""Seconds after which an answer that has not come is a defect."""

FAULTS = ("kill", "kill", "stop", "drain")


def app() -> Mapping[str, Any]:
    """The options of every host. See ``ikigai host --app``."""

    def answer(request: Request) -> str:
        time.sleep(random.uniform(0, 0.05))
        return f"answer to {request.messages[-1]['content'][-1]['text']}"

    return {"provider": FunctionProvider(answer, "code"), "lease": LEASE, "balance": 1.0}


@dataclass
class Fleet:
    """The hosts, as processes."""

    url: str
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a host, in the place of one that has ended."""
        self.processes[name] = subprocess.Popen(
            [
                *(sys.executable, "-m", "ikigai_actors", "--database", self.url),
                *("host", "--name", name, "--app", "tests.torture.fleet:app"),
            ],
            stderr=subprocess.DEVNULL,
        )

    def revive(self) -> None:
        """Start again whoever has ended: what systemd does."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                self.start(name)

    def close(self) -> None:
        """End all of them."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            process.wait(PATIENCE)


@dataclass
class Work:
    """What the hands do."""

    system: AttachedSystem
    agents: list[AgentRef]
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Every prompt that was acknowledged: the agent's uuid, and the text."""
    complaints: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def hand(self, seed: str) -> None:
        """Prompt and fork until it is over."""
        chance = random.Random(seed)
        for number in range(1_000_000):
            if self.over.is_set():
                return
            agent, token = chance.choice(self.agents), f"{seed}.{number}"
            try:
                if chance.random() < 0.05:
                    child = agent.fork(name=f"kid-{seed}-{number}".replace(".", "-"), timeout=PATIENCE)
                    self.agents.append(child)
                    continue
                began = time.monotonic()
                waiting = agent.prompt(token)
                self.asked.append((agent.uuid, token))
                if (got := waiting.get(timeout=PATIENCE).text) != f"answer to {token}":
                    self.complaints.append(f"{token} was answered with {got!r}")
                self.slowest = max(self.slowest, time.monotonic() - began)
            except IkigaiError as error:
                self.complaints.append(f"{token}: {type(error).__name__}: {error}")


def torture(url: str, faults: int, seed: int) -> tuple[list[str], Counter[str], float]:
    """Do it. Returns the violations, what was counted, and the longest wait for an answer in seconds."""
    chance, counts, fleet = random.Random(seed), Counter[str](), Fleet(url)
    for name in HOSTS:
        fleet.start(name)
    try:
        with _attached(url) as system:
            work = Work(system, [system.root.fork(name=f"agent-{n}", timeout=PATIENCE) for n in range(AGENTS)])
            hands = [threading.Thread(target=work.hand, args=(f"{seed}.{n}",)) for n in range(HANDS)]
            for hand in hands:
                hand.start()
            for _ in range(faults):
                _wait_until_all_run(system)  # else nobody may be left to answer
                counts[_fault(fleet, chance)] += 1
                time.sleep(chance.uniform(0.2, 1.5))
                fleet.revive()
            work.over.set()
            for hand in hands:
                hand.join()
    finally:
        fleet.close()
    counts["prompts"] = len(work.asked)
    counts["agents"] = len(work.agents)
    return [*work.complaints, *_judge(url, work.asked)], counts, work.slowest


def _attached(url: str) -> AttachedSystem:
    """Attach as soon as there is a host with agent 0."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            system = ActorSystem.attach(url)
            if system.host is not None and system.agents():
                return system
            system.close()
        except IkigaiError:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)


def _wait_until_all_run(system: AttachedSystem) -> None:
    until = time.monotonic() + PATIENCE
    while {one.name for one in system.hosts() if one.state == "runs" and one.shards} != set(HOSTS):
        assert time.monotonic() < until, f"these run: {system.hosts()}"
        time.sleep(0.05)


def _fault(fleet: Fleet, chance: random.Random) -> str:
    kind, name = chance.choice(FAULTS), chance.choice(HOSTS)
    process = fleet.processes[name]
    if kind == "kill":
        process.kill()
        process.wait()
    elif kind == "stop":
        process.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.2, 3) * LEASE)
        process.send_signal(signal.SIGCONT)
    else:
        process.terminate()  # it gives its agents away, and ends
        process.wait(PATIENCE)
    return kind


def _judge(url: str, asked: list[tuple[str, str]]) -> Iterator[str]:
    with closing(open_store(url)) as store:
        for violation in check(store):
            yield f"fsck: {violation.invariant}: {violation.agent}: {violation.text}"
        now = take(store)
    for agent, token in asked:
        log = now.logs.get(agent, {})
        said = [one for one in log.values() if one.kind == Kind.USER and one.content == token]
        answers = [one for one in log.values() if _is_answer(one, token)]
        if len(said) != 1 or len(answers) != 1:
            yield f"{token} stands {len(said)} times in the log of {agent}, with {len(answers)} answers"


def _is_answer(message: Message, token: str) -> bool:
    return message.kind == Kind.ASSISTANT and message.content == f"answer to {token}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="an empty database of PostgreSQL")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    violations, counted, longest = torture(given.url, given.faults, given.seed)
    print(dict(counted), f"longest wait {longest:.1f} s", *violations, sep="\n")
    sys.exit(1 if violations else 0)
