"""A kill: a victim is started, and ended with SIGKILL at a moment that chance has chosen.

The victims are forked by a process that has imported everything and has no thread (multiprocessing's fork server), so
each is there within milliseconds, a process with connections and files of its own all the same.
"""

import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import NamedTuple

from tests.torture.victim import PATIENCE, Complaint, Heard, Report, Stage, live

WARM = (
    "tests.torture.victim",
    "anthropic.lib.tools",
    "ikigai_actors.store.postgres.store",
    "ikigai_actors.store.sqlite.store",
)
"""What the fork server imports."""

SECONDS = {"boot": 0.12, "resume": 0.25, "work": 0.8}
"""The longest that a victim may live after its first message in a stage."""
REPORTS = {"boot": 1, "resume": 60, "work": 200}
"""The most that it may report from there on."""


class Aim(NamedTuple):
    """When a victim is killed: some reports after it has come to a stage, or some time after its first message there.

    A boot has no message: its time begins with the stage.
    """

    stage: str
    seconds: float | None
    reports: int


def aim(chance: random.Random, resumes: bool) -> Aim:
    """Choose a moment; a victim that has nothing to resume is hit at boot or at work."""
    [stage] = chance.choices(("boot", "resume", "work"), (1, 3 if resumes else 0, 3))
    if chance.random() < 0.4:
        return Aim(stage, None, chance.randint(1, REPORTS[stage]))
    return Aim(stage, chance.uniform(0, SECONDS[stage]), 0)


def fork_server() -> ForkServerContext:
    """Where victims come from."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(WARM))
    return context


def kill(victims: ForkServerContext, url: str, world: Path, seed: str, resumes: bool, moment: Aim) -> list[Report]:
    """Start a victim and kill it; returns all that it reported."""
    reader, writer = victims.Pipe(duplex=False)
    process = victims.Process(target=live, args=(url, world, seed, resumes, writer), daemon=True)
    process.start()
    writer.close()
    with closing(reader):
        reports = list(_until(reader, moment))
        process.kill()
        reports += _rest(reader)
    process.join()
    if process.exitcode != -signal.SIGKILL:
        reports.append(Complaint(f"the victim ended by itself, with {process.exitcode}"))
    return reports


def _until(reader: "Connection[None, Report]", moment: Aim) -> Iterator[Report]:
    """What a victim reports until its moment has come, or it has been silent for too long."""
    deadline, left, aimed, timed = time.monotonic() + PATIENCE, moment.reports, False, False
    while reader.poll(max(0.0, deadline - time.monotonic())):
        try:
            report = reader.recv()
        except EOFError:
            return
        yield report
        if not timed:
            deadline = time.monotonic() + PATIENCE
        if isinstance(report, Stage) and report.name == moment.stage:
            aimed = True
        if aimed and moment.seconds is None:
            left -= 1
        elif aimed and moment.seconds is not None and not timed:
            timed = moment.stage == "boot" or isinstance(report, Heard)
            deadline = time.monotonic() + moment.seconds if timed else deadline
        if aimed and (left <= 0 if moment.seconds is None else timed and time.monotonic() >= deadline):
            return
    if not timed:
        yield Complaint(f"the victim reported nothing for {PATIENCE} s")


def _rest(reader: "Connection[None, Report]") -> Iterator[Report]:
    """What was in the pipe; the last report may be cut off."""
    while True:
        try:
            yield reader.recv()
        except (EOFError, OSError):
            return
