"""Several hosts that share the agents of one PostgreSQL, under faults of every kind.

    python -m tests.torture.fleet --faults 100 [--minutes 5]

    kill       SIGKILL to a host
    stop       SIGSTOP, past the lease or not, then SIGCONT
    freeze     the same to all hosts at once
    drain      SIGTERM: it gives its agents away, and ends
    cut        every line between a host and the server ends
    hold       the network of a host swallows everything, past the lease or not
    restart    the server ends as in a crash, and starts again
    promote    the server ends as in a crash, and a standby that has each commit takes its address over
    older      the server becomes an older copy of itself: what came after is lost, hosts that knew of it end

Hands do all that agents can be asked for from an attached process meanwhile: see `tests.torture.fleet.hands`. At the
end all that was acknowledged is there once: prompts, each with one answer, which its hand has got; mails, versions of
documents, forks, deaths, timers, groups, merges and grants. Nobody was told that no host runs. No tool that must not
run twice did, no strict budget is exceeded, and nobody lives below one that was killed with its tree. No message is
older than the one before it, and each was written by the host that had the agent: a trigger has noted that
(`tests.torture.fleet.audit`). What the older copy does not know is not asked for.

Whoever ends is started again; every other life has the default lease, the rest a short one, and two of three have a
wall clock that is a minute wrong. A fault hits only when two
hosts run, so that nearly always one is left that can answer.
"""

import argparse
import contextlib
import json
import math
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from ikigai_actors import ActorSystem
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.store.hosts.rows import RETURNS
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.system.attached import AttachedSystem
from tests.torture.fleet.audit import audit, audited, second_writers
from tests.torture.fleet.facts import Fact
from tests.torture.fleet.hands import Work, attached
from tests.torture.fleet.hosts import LEASES, PATIENCE, Hosts, runs
from tests.torture.fleet.judge import blamed, find, violations
from tests.torture.fleet.server import Server, server_of_our_own

NAMES = ("a", "b", "c")
HANDS = 4
AGENTS = 12

WEIGHTS = {
    "kill": 1_000, "stop": 500, "freeze": 20, "cut": 200, "hold": 100, "drain": 200, "restart": 20, "promote": 20,
    "older": 3,
}  # fmt: skip
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
    seconds: float = 0.0


class Campaign:
    """One fleet, and the faults that hit it."""

    def __init__(self, server: Server, hosts: Hosts, seed: int, seconds: float, result: Result) -> None:
        """Begin with hosts that run; notes what comes of it in the result. No fault comes after so many seconds."""
        self._server, self._hosts, self._result = server, hosts, result
        self._until = time.monotonic() + seconds
        self._chance = random.Random(seed)
        self._facts: list[Fact] = []

    def run(self, faults: int, seed: int, weights: Mapping[str, int]) -> None:
        """Let so many faults hit it, and judge."""
        kinds = self._chance.choices([*weights], [*weights.values()], k=faults)
        for number, (part, goes_back) in enumerate(_parts(kinds)):
            if self._is_over:
                break
            with closing(attached(self._server.url)) as system:
                work = Work(system, f"{seed}.{number}")
                work.populate(AGENTS)
                self._under_faults(work, part)
                self._facts += work.facts  # what comes behind the copy is not asked for
                self._judge_history(work, f"{seed}-{number}")
                if goes_back and not self._is_over:
                    self._go_back(work)
            self._result.counts.update(work.counts)
            self._result.violations += work.complaints
            self._result.waits += work.waits
        self._result.violations += judge_at_last(self._server.url, self._facts, self._hosts.records)
        self._result.violations += self._hosts.failures
        self._result.counts.update(self._hosts.counts)
        self._result.counts.update(Counter(f"{type(fact).__name__} acknowledged" for fact in self._facts))

    def _judge_history(self, work: Work, name: str) -> None:
        """Blame what was read on the way, and keep it as lines of JSON."""
        self._result.counts["operations of histories"] += len(work.history)
        if blames := blamed(work.history):
            kept = Path(tempfile.gettempdir()) / f"history-{name}.jsonl"
            kept.write_text("".join(f"{json.dumps(operation)}\n" for operation in work.history), encoding="utf-8")
            self._result.violations += [*blames, f"history: kept as {kept}"]

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self._until

    def _under_faults(self, work: Work, kinds: Sequence[str]) -> None:
        with work.under_way(HANDS):
            for kind in kinds:
                if self._is_over:
                    break
                _wait_until_run(work.system, 2)
                self._hit(kind)
                self._result.counts[kind] += 1
                time.sleep(self._chance.uniform(*BETWEEN))

    def _go_back(self, work: Work) -> None:
        """Have the server become an older copy of itself, which knows less than the hosts do."""
        recorded: dict[Path, int] = {}
        self._server.keep(lambda: recorded.update(self._hosts.recorded()))
        with work.under_way(HANDS):
            _wait_until_renewed(self._server)  # so that each host knows more than the copy
            time.sleep(self._chance.uniform(0, 1))
        lives, known = dict(self._hosts.lives), self._server.beats().keys()
        self._server.go_back()
        self._wait_until_replaced(lives, known)
        self._hosts.forget_since(recorded)
        self._result.counts["older"] += 1

    def _wait_until_replaced(self, before: Mapping[str, object], known: Set[str]) -> None:
        """Wait until those have ended who know more than the server, and others have joined in their place."""
        until, lives = time.monotonic() + PATIENCE, self._hosts.lives
        while any(lives[name] is life for name, life in before.items()) or self._server.beats().keys() & known:
            assert time.monotonic() < until, "a host goes on that knows more than the server"
            time.sleep(POLL)

    def _hit(self, kind: str) -> None:
        name = self._chance.choice(NAMES)
        life, network = self._hosts.lives[name], self._hosts.networks[name]
        moment = self._chance.uniform(0.2, 3) * life.lease
        match kind:
            case "kill":
                life.process.kill()
                life.process.wait()
            case "stop":
                life.process.send_signal(signal.SIGSTOP)
                time.sleep(moment)
                life.process.send_signal(signal.SIGCONT)
            case "freeze":
                self._freeze(min(moment, life.lease + RETURNS / 2_000))
            case "drain":
                life.process.terminate()
                life.process.wait(PATIENCE)
            case "cut":
                network.cut()
            case "hold":
                network.hold()
                time.sleep(moment)
                network.release()
            case "restart":
                self._server.restart()
            case "promote":
                self._server.promote()

    def _freeze(self, seconds: float) -> None:
        """Stop all hosts: nobody runs the agents meanwhile, and nobody is to hear that nobody will."""
        for stopped in (signal.SIGSTOP, signal.SIGCONT):
            for life in self._hosts.lives.values():
                life.process.send_signal(stopped)
            time.sleep(seconds if stopped is signal.SIGSTOP else 0)


def torture(
    faults: int,
    seed: int,
    weights: Mapping[str, int] = WEIGHTS,
    leases: Sequence[float] = LEASES,
    seconds: float = math.inf,
) -> Result:
    """Let so many faults hit a fleet of its own, or as many as there is time for."""
    began, result = time.monotonic(), Result()
    with ExitStack() as stack:
        server = stack.enter_context(server_of_our_own())
        prepare(server.url)
        hosts = stack.enter_context(closing(Hosts(server.url, NAMES, leases)))
        Campaign(server, hosts, seed, seconds, result).run(faults, seed, weights)
    result.seconds = time.monotonic() - began
    return result


def prepare(url: str) -> None:
    """Make the tables of a database, and have who writes messages audited."""
    with closing(open_store(url)) as store, psycopg.connect(url) as connection:
        ensure_schema(store)
        audit(connection)


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


def _wait_until_renewed(server: Server) -> None:
    until, before = time.monotonic() + PATIENCE, server.beats()
    while any(beat <= before.get(host, beat - 1) for host, beat in server.beats().items()):
        assert time.monotonic() < until, "a host does not renew its lease"
        time.sleep(POLL)


def _wait_until_run(system: ActorSystem | AttachedSystem, least: int) -> None:
    until = time.monotonic() + PATIENCE
    running: set[str | None] = set()
    while len(running) < least:
        assert time.monotonic() < until, f"{len(running)} hosts run"
        time.sleep(POLL)
        with contextlib.suppress(StoreUnavailable):  # the server restarts
            running = {host.name for host in system.hosts() if host.state == "runs" and host.shards}


def judge_at_last(url: str, facts: Sequence[Fact], records: Path) -> list[str]:
    """What is wrong when all is answered: what died beside an open call has not been waited for."""
    until = time.monotonic() + PATIENCE
    while (faults := [*_judge(url, facts, records)]) and time.monotonic() < until:
        time.sleep(1)
    return faults


def _judge(url: str, facts: Sequence[Fact], records: Path) -> Iterator[str]:
    with closing(open_store(url)) as store:
        for violation in check(store):
            yield f"fsck: {violation.invariant}: {violation.agent}: {violation.text}"
        yield from second_writers(store.read(audited))
        now = find(store)
    yield from violations(facts, now, runs(records))


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=math.inf, help="no fault comes after so many")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    result = torture(options.faults, options.seed, seconds=options.minutes * 60)
    waits = sorted(result.waits)
    shares = [f"p{part}: {waits[len(waits) * part // 100]:.2f} s" for part in (50, 90, 99)]
    print(f"{result.seconds:.0f} s, seed {options.seed}")
    print(*(f"  {what}: {count:,}" for what, count in sorted(result.counts.items())), sep="\n")
    print(f"  answers: {', '.join(shares)}, longest {waits[-1]:.1f} s")
    print(f"{len(result.violations)} violations", *result.violations[:SHOWN], sep="\n")
    sys.exit(1 if result.violations else 0)
