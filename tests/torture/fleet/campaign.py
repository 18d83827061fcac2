"""Several hosts that share the agents of one PostgreSQL, under faults of every kind.

    python -m tests.torture.fleet --faults 100

    kill       SIGKILL to a host
    stop       SIGSTOP, past the lease or not, then SIGCONT
    drain      SIGTERM: it gives its agents away, and ends
    cut        every line between a host and the server ends
    hold       the network of a host swallows everything, past the lease or not
    restart    the server ends as in a crash, and starts again
    older      the server becomes an older copy of itself: what came after is lost, hosts that knew of it end

Hands prompt and fork agents from an attached process all the while, and wait for the answers. At the end every prompt
that was acknowledged stands once in the log of its agent, with one answer, which its hand has got, unless it was told
that no host runs; those that the older copy does not know are not asked for. Whoever ends is started again. A fault
hits only when two hosts run, so that nearly always one is left that can answer.
"""

import argparse
import contextlib
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from ikigai_actors import AgentRef, Message
from ikigai_actors.errors import NoHost, StoreUnavailable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages import Kind
from ikigai_actors.store import open_store
from ikigai_actors.system.attached.system import AttachedSystem
from tests.torture.fleet.hands import Work, attached
from tests.torture.fleet.hosts import LEASE, PATIENCE, Hosts
from tests.torture.fleet.server import Server, server_of_our_own
from tests.torture.snapshot import take

NAMES = ("a", "b", "c")
HANDS = 4
AGENTS = 12

WEIGHTS = {"kill": 1_000, "stop": 500, "cut": 200, "hold": 100, "drain": 200, "restart": 20, "older": 3}
"""How often a fault of each kind is drawn."""

SHOWN = 20
"""Violations that are printed."""

BETWEEN = (0.1, 0.8)
"""Seconds between two faults."""

POLL = 0.05
"""Seconds between two looks at processes that tell of nothing themselves."""


@dataclass
class Result:
    """What came of it."""

    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)
    """Seconds that each answer took."""


def torture(faults: int, seed: int, weights: dict[str, int] = WEIGHTS) -> Result:
    """Let so many faults hit a fleet of its own."""
    chance, result = random.Random(seed), Result()
    kinds = chance.choices([*weights], [*weights.values()], k=faults)
    asked: list[tuple[str, str]] = []
    with server_of_our_own() as server, closing(Hosts(server.url, NAMES)) as hosts:
        for number, (part, goes_back) in enumerate(_parts(kinds)):
            _under_faults(server, hosts, part, f"{seed}.{number}", goes_back, chance, result, asked)
        result.violations += [*judge_at_last(server.url, asked), *hosts.failures]
        result.counts.update({f"ended with {status}": count for status, count in hosts.ends.items()})
    return result


def _parts(kinds: list[str]) -> Iterator[tuple[list[str], bool]]:
    """The faults up to each return to an older copy, and whether the part ends with one."""
    part: list[str] = []
    for kind in kinds:
        if kind == "older":
            yield part, True
            part = []
        else:
            part.append(kind)
    yield part, False


def _under_faults(
    server: Server,
    hosts: Hosts,
    kinds: list[str],
    seed: str,
    goes_back: bool,
    chance: random.Random,
    result: Result,
    asked: list[tuple[str, str]],
) -> None:
    """Let the hands work under these faults. Notes what they were promised, as far as the server knows of it later."""
    with ExitStack() as stack:
        system = stack.enter_context(attached(server.url))
        children = [_forked(system, f"agent-{seed}-{n}".replace(".", "-")) for n in range(AGENTS)]
        work = Work(system, children, seed)
        with work.under_way(HANDS):
            for kind in kinds:
                _wait_until_run(system, 2)
                _hit(kind, server, hosts, chance)
                result.counts[kind] += 1
                time.sleep(chance.uniform(*BETWEEN))
        asked += work.asked
        if goes_back:
            server.keep()
            with work.under_way(HANDS):
                _wait_until_renewed(server)  # so that each host knows more than the copy
                time.sleep(chance.uniform(0, 1))
            processes, known = dict(hosts.processes), server.beats().keys()
            server.go_back()
            _wait_until_replaced(hosts, processes, server, known)
            result.counts["older"] += 1
        result.counts["prompts"] += len(work.asked)
        result.counts["agents"] += len(work.agents)
        result.counts["no host"] += work.alone
        result.violations += work.complaints
        result.waits += work.waits


def _wait_until_renewed(server: Server) -> None:
    until, before = time.monotonic() + PATIENCE, server.beats()
    while any(beat <= before.get(host, beat - 1) for host, beat in server.beats().items()):
        assert time.monotonic() < until, "a host does not renew its lease"
        time.sleep(POLL)


def _wait_until_replaced(hosts: Hosts, before: Mapping[str, object], server: Server, known: Set[str]) -> None:
    """Wait until those have ended who know more than the server, and others have joined in their place."""
    until = time.monotonic() + PATIENCE
    while any(hosts.processes[name] is process for name, process in before.items()) or server.beats().keys() & known:
        assert time.monotonic() < until, "a host goes on that knows more than the server"
        time.sleep(POLL)


def _forked(system: AttachedSystem, name: str) -> AgentRef:
    """An agent. All hosts may end at once when they know more than the server: then this waits for the next."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return system.root.fork(name=name, timeout=PATIENCE)
        except (NoHost, StoreUnavailable):
            assert time.monotonic() < until, "no host runs"
            time.sleep(POLL)


def _wait_until_run(system: AttachedSystem, least: int) -> None:
    until = time.monotonic() + PATIENCE
    running: set[str | None] = set()
    while len(running) < least:
        assert time.monotonic() < until, f"{len(running)} hosts run"
        time.sleep(POLL)
        with contextlib.suppress(StoreUnavailable):  # the server restarts
            running = {one.name for one in system.hosts() if one.state == "runs" and one.shards}


def judge_at_last(url: str, asked: list[tuple[str, str]]) -> list[str]:
    """What is wrong when all is answered: who was told that no host runs has not waited for that."""
    until = time.monotonic() + PATIENCE
    while (found := [*judge(url, asked)]) and time.monotonic() < until:
        time.sleep(1)
    return found


def _hit(kind: str, server: Server, hosts: Hosts, chance: random.Random) -> None:
    name = chance.choice(NAMES)
    process, network = hosts.processes[name], hosts.networks[name]
    match kind:
        case "kill":
            process.kill()
            process.wait()
        case "stop":
            process.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0.2, 3) * LEASE)
            process.send_signal(signal.SIGCONT)
        case "drain":
            process.terminate()
            process.wait(PATIENCE)
        case "cut":
            network.cut()
        case "hold":
            network.hold()
            time.sleep(chance.uniform(0.2, 3) * LEASE)
            network.release()
        case "restart":
            server.restart()


def judge(url: str, asked: list[tuple[str, str]]) -> Iterator[str]:
    """What is wrong: by fsck, and with the prompts that were acknowledged."""
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


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    result = torture(given.faults, given.seed)
    waits = sorted(result.waits)
    told = [f"p{part}: {waits[len(waits) * part // 100]:.2f} s" for part in (50, 90, 99)]
    print(dict(result.counts), f"answers: {', '.join(told)}, longest {waits[-1]:.1f} s", sep="\n")
    print(f"{len(result.violations)} violations", *result.violations[:SHOWN], sep="\n")
    sys.exit(1 if result.violations else 0)
