"""Two programs on one PostgreSQL under load: that of an earlier commit beside today's, in both orders of joining.

python -m tests.torture.versions [--commit HEAD^] [--rounds 1]

The newer program is killed by SIGKILL before each statement of its migration, before COMMIT and after it, while the
older one works. Then each host is killed and comes back, the older one to tables that the newer one has changed; a
round is that for both. Every prompt must be answered and stand in its log once, and fsck of both programs must find
nothing. Where the tables of the two differ by more than a step, as between commits before the first release, today's
program plays the older one, and the newer one knows a step more.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ikigai_actors import ActorSystem, AgentRef
from ikigai_actors.store.migrations import newest
from tests.kit.databases import eventually, own_server

ROOT = Path(__file__).parents[2]

STEP = (
    "ALTER TABLE agents ADD COLUMN world TEXT; "
    "ALTER TABLE hosts ADD COLUMN zone TEXT NOT NULL DEFAULT ''; "
    "CREATE TABLE worlds (id TEXT PRIMARY KEY)"
)
"""What the newer program adds."""

DEATHS = STEP.count(";") + 4
"""Before each statement of the step, before the version is written, before COMMIT, and after it."""

HOST = f"""
import os, signal, sys, threading
from dataclasses import replace
from ikigai_actors import ActorSystem
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.migrations import MIGRATIONS, Migration, newest
from ikigai_actors.system.platform import SYSTEM_PLATFORM
url, name, steps, death = sys.argv[1:]
now = newest()
step = Migration(now + 1, {STEP!r}, now)
deadly = int(death)


class Seen:
    # A transaction, or what it does to whole tables: counts the statements from the first one of the step on.
    def __init__(self, inner, counted):
        self.inner, self.counted = inner, counted

    def __getattr__(self, name):
        return getattr(self.inner, name)

    @property
    def schema(self):
        return Seen(self.inner.schema, self.counted)

    def execute_all(self, statements):
        for statement in statements:
            self.counted()
            self.inner.execute(statement)

    def run(self, query, **parameters):
        if query == "set_schema_version":
            self.counted()
        return self.inner.run(query, **parameters)


class Deadly(ForwardingStore):
    # A store whose process is killed at one of these statements.
    seen = 0

    def counted(self):
        Deadly.seen += 1
        if Deadly.seen == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, work):
        def migrating(tx):
            before = Deadly.seen
            done = work(Seen(tx, self.counted))
            if Deadly.seen > before:
                self.counted()
            return done

        before = Deadly.seen
        done = super().write(migrating)
        if Deadly.seen > before:
            self.counted()
        return done

    def separate(self):
        return Deadly(super().separate())


parts = replace(SYSTEM_PLATFORM, migrations=(*MIGRATIONS, step) if steps == "1" else MIGRATIONS)
if deadly:
    parts = replace(parts, open_store=lambda place: Deadly(SYSTEM_PLATFORM.open_store(place)))
with ActorSystem.open(url, provider="offline", join=True, name=name, lease=5.0, balance=1.0, parts=parts):
    print("runs", flush=True)
    threading.Event().wait()
"""


class Program(NamedTuple):
    """What a host runs."""

    source: Path
    steps: int
    """How many steps it knows beyond those of its commit."""


@contextmanager
def exported(commit: str) -> Iterator[Path]:
    """The files of a commit."""
    with tempfile.TemporaryDirectory(prefix="ikigai-") as place:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
        yield Path(place)


def first_version(source: Path) -> int:
    """The version of the tables that a program makes without any step."""
    text = (source / "ikigai_actors/store/migrations.py").read_text(encoding="utf-8")
    [first] = re.findall(r"^FIRST = (\d+)$", text, re.M)
    return int(first)


class Hosts:
    """The hosts of a run, by name."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._running: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, program: Program) -> None:
        """Start a host, and wait until it runs."""
        process = self._running[name] = self._begin(name, program)
        assert process.stdout is not None
        if process.stdout.readline() != "runs\n":
            raise SystemExit(f"Host {name} did not start.")

    def die(self, name: str, program: Program, death: int) -> None:
        """Start a host that is killed at a statement of its migration."""
        process = self._begin(name, program, death)
        if process.wait(120) != -signal.SIGKILL:
            raise SystemExit(f"Host {name} was not killed at statement {death}: it ended with {process.returncode}.")

    def _begin(self, name: str, program: Program, death: int = 0) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", HOST, self._url, name, str(program.steps), str(death)],
            env={**os.environ, "PYTHONPATH": str(program.source)},
            cwd=program.source,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self, name: str) -> None:
        """End a host as ``kill -9`` does."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Kill those that are left."""
        for name in [*self._running]:
            self.kill(name)


def fsck(url: str, program: Program) -> str:
    """What fsck of a program finds, as text."""
    look = "import sys; from contextlib import closing; from ikigai_actors.store import open_store\n"
    look += "from ikigai_actors.records.fsck.check import check\n"
    look += "with closing(open_store(sys.argv[1])) as store: print(check(store)[:3])"
    return subprocess.run(
        [sys.executable, "-c", look, url],
        env={**os.environ, "PYTHONPATH": str(program.source)},
        cwd=program.source,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def play(url: str, first: Program, second: Program, rounds: int) -> str:
    """One order of joining: the second program joins the first, each is killed and comes back; return what was seen."""
    hosts = Hosts(url)
    try:
        hosts.start("a", first)
        with ActorSystem.attach(url) as system, ThreadPoolExecutor(4) as threads:
            agents = [system.root.fork(name=f"n{place}") for place in range(4)]

            enough = threading.Event()

            def ask(agent: AgentRef) -> int:
                answered = 0
                while not enough.is_set():
                    agent.prompt(f"prompt {answered}").get(timeout=120)
                    answered += 1
                return answered

            asked = [threads.submit(ask, agent) for agent in agents]
            if second.steps:
                for death in range(1, DEATHS + 1):
                    hosts.die("b", second, death)
            hosts.start("b", second)
            eventually(lambda: len({host.name for host in system.hosts() if host.state == "runs"}) == 2, "two hosts")
            for _ in range(rounds):
                hosts.kill("a")
                hosts.start("a", first)  # an older program comes back to the newer tables
                hosts.kill("b")
                hosts.start("b", second)
            enough.set()
            answered = [future.result(600) for future in asked]
            for agent, count in zip(agents, answered, strict=True):
                said = [message.content for message in agent.history() if message.kind == "user"]
                if sorted(said) != sorted(f"prompt {number}" for number in range(count)):
                    raise SystemExit(f"Prompts of {agent.record.name} are lost or there twice: {len(said)} of {count}")
        hosts.close()
        for program in (first, second):
            if (faults := fsck(url, program)) != "[]":
                raise SystemExit(f"fsck of {program.source}: {faults}")
        deaths = f"{DEATHS} deaths in the migration, " if second.steps else ""
        return f"{deaths}{sum(answered)} prompts, each answered once; fsck of both clean"
    finally:
        hosts.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Play both orders, each on a server of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.versions")
    parser.add_argument("--commit", default="HEAD^", help="the earlier program")
    parser.add_argument("--rounds", type=int, default=1, help="how often each host is killed and comes back")
    options = parser.parse_args(arguments)
    with exported(options.commit) as source:
        same = first_version(source) == first_version(ROOT)
        old = Program(source if same else ROOT, 0)
        new = Program(ROOT, 1)
        if not same:
            print(f"{options.commit} has other tables; today's program, with version {newest()}, plays the older one")
        for title, first, second in (("newer joins older", old, new), ("older joins newer", new, old)):
            with own_server() as server:
                print(f"{title}: {play(server.get_uri(), first, second, options.rounds)}", flush=True)


if __name__ == "__main__":
    main()
