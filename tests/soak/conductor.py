"""The run on one database: workers, disturbances by a seeded plan, judgements, and the end."""

import multiprocessing
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from multiprocessing.context import ForkServerContext
from pathlib import Path

from supervisors.signals import Signal
from tests.kit import outside
from tests.soak.crowd import NAME
from tests.soak.disturbances import KILL, Disturbance, disturbances, end
from tests.soak.model import serve
from tests.soak.places import PLACES
from tests.soak.report import Report
from tests.soak.stage import Plan, Stage

SHORT = Plan(
    seconds=600.0, cycles=1, crowd=50, hands=3, round=0.3, rounds=1,
    calm=0.2, patience=60.0, lease=2.0, mounts=False, slow=False,
)  # fmt: skip
"""Some seconds: one disturbance of each kind that is quick."""


WARM = ["tests.soak.worker", "tests.soak.model", "anthropic", "psycopg"]
"""What that process imports that the others are forked from."""


def long(minutes: float, crowd: int) -> Plan:
    """A soak of so many minutes, with so many agents that wait in the end."""
    return Plan(
        seconds=minutes * 60, cycles=1_000_000, crowd=crowd, hands=4, round=8.0, rounds=6,
        calm=15.0, patience=15.0, lease=3.0, mounts=True, slow=True,
    )  # fmt: skip


def workshop() -> ForkServerContext:
    """Where workers and the model's server come from: a process that has imported everything and has no thread."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM)
    return context


def schedule(chance: random.Random, known: Mapping[str, Disturbance]) -> Iterator[str]:
    """Names of disturbances for ever: each of them in every cycle, in an order of its own."""
    while True:
        names = list(known)
        chance.shuffle(names)
        yield from names


def soak(kind: str, plan: Plan, seed: int, directory: Path) -> Report:
    """Soak an empty database of a kind; returns what was seen.

    Args:
        kind: ``sqlite`` or ``postgres``.
        plan: how long, and with what.
        seed: chooses disturbances, commands and the model's moods. How far a worker gets is the machine's doing.
        directory: an empty one, for the ledgers and the database.
    """
    report, context = Report(kind, seed), workshop()
    with (
        PLACES[kind](directory, plan.mounts) as place,
        _model(context, f"{seed}") as model,
        closing(Stage(place, plan, directory, model, context, report)) as stage,
    ):
        report.note(place.note)
        known = disturbances(place, plan.slow)
        stage.begin()
        for name in islice(schedule(stage.chance, known), plan.cycles * len(known)):
            stage.calm(stage.chance.uniform(0, plan.calm))
            if time.monotonic() - stage.began > plan.seconds:
                break
            known[name](stage)
            report.disturbances[name] += 1
        _end(stage)
    return report


def _end(stage: Stage) -> None:
    """The last worker ends; the crowd dies in one cascade; all is judged and counted."""
    if stage.plan.slow:
        end(stage)
    stage.worker.kill()
    stage.worker.join()
    stage.judge(KILL)
    if any(record.living and record.name == NAME for record in stage.known.records.values()):
        began = time.monotonic()
        outside.signal(stage.place.url, NAME, Signal.KILL, cascade=True, reason="the end", grace=0.0)
        stage.report.note(f"the crowd's end: {NAME} is killed, in {time.monotonic() - began:.1f} s")
    stage.judge("the crowd's end")
    stage.report.conclude(stage.entries(), stage.known, stage.world.runs(), time.monotonic() - stage.began)


@contextmanager
def _model(context: ForkServerContext, seed: str) -> Iterator[str]:
    """The model's server in a process of its own; gives its URL."""
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(seed, theirs), daemon=True)
    process.start()
    theirs.close()
    with closing(ours):
        yield ours.recv()
    process.join(10.0)
    process.kill()
