"""What the conductor does to a worker and its database; after each, what is there is judged.

Each takes the stage, whose worker runs, and leaves it with a worker that runs.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping

from ikigai_actors import ActorSystem, StoreInUse
from tests.soak import judge
from tests.soak.ledger import Figures, Opened, Stopped, Trouble
from tests.soak.places import Place
from tests.soak.stage import DEADLINE, Stage
from tests.soak.worker import ENDED, STOPPED

Disturbance = Callable[[Stage], None]

KILL, END, FREEZE, CUT, RESTART, FILL, DROWN = (
    "kill -9",
    "orderly end",
    "stopped past its lease",
    "connections cut",
    "server restarted",
    "disk full for a while",
    "disk full for too long",
)


def disturbances(place: Place, slow: bool) -> Mapping[str, Disturbance]:
    """What can be done to a worker on this database, by name; ``slow``: what takes long as well."""
    known: dict[str, Disturbance] = {KILL: kill, END: end}
    known[FREEZE] = freeze_refusing if place.kind == "sqlite" else freeze_taking_over
    if place.cut is not None:
        known[CUT] = cut
    if place.restart is not None:
        known[RESTART] = restart
    if place.disk is not None:
        known[FILL] = fill
        if slow:
            known[DROWN] = drown
    return known


def kill(stage: Stage) -> None:
    """``kill -9`` of the host, wherever it is, and a new one."""
    stage.worker.kill()
    stage.worker.join()
    stage.judge(KILL)
    stage.begin()


def end(stage: Stage) -> None:
    """An orderly end after some equal rounds; whether all that it used was given back."""

    def enough(_: object) -> bool:
        # and the start
        return sum(isinstance(entry, Figures) for entry in stage.worker.ledger.entries) > stage.plan.rounds

    if stage.until(enough, END):
        stage.worker.tell_to_end()
        stage.ended(END, ENDED)
    stage.judge(END)
    stage.begin()


def freeze_refusing(stage: Stage) -> None:
    """SQLite: the host is stopped; another one is refused, in one line; continued, the first goes on."""
    if not stage.opened():
        return _begin_again(stage, FREEZE)
    os.kill(stage.worker.pid, signal.SIGSTOP)
    try:
        ActorSystem.open(stage.place.url, "offline").close()
        stage.complain(["a second host was not refused"], FREEZE)
    except StoreInUse as refusal:
        if "\n" in str(refusal) or str(stage.worker.pid) not in str(refusal):
            stage.complain([f"the refusal of the second host is not one line that names the first: {refusal}"], FREEZE)
    _wait(stage.plan.lease)
    os.kill(stage.worker.pid, signal.SIGCONT)
    return _go_on(stage, FREEZE)


def freeze_taking_over(stage: Stage) -> None:
    """PostgreSQL: the host is stopped past its lease, another one takes over; continued, the first writes nothing and
    ends.
    """
    if not stage.opened():
        return _begin_again(stage, FREEZE)
    first = stage.worker
    os.kill(first.pid, signal.SIGSTOP)
    second = stage.begin()
    taken = stage.until(lambda entry: isinstance(entry, Opened), FREEZE)
    before = stage.look()
    os.kill(first.pid, signal.SIGCONT)
    stage.worker = first
    stage.ended(FREEZE, STOPPED)
    why = [entry.reason for entry in first.ledger.entries if isinstance(entry, Stopped)]
    if not any("taken" in reason or "owner" in reason for reason in why):
        stage.complain([f"the first host does not say that another one has taken over: {why}"], FREEZE)
    stage.worker = second
    if taken:
        _go_on(stage, FREEZE)
    else:
        _begin_again(stage, FREEZE)
    stage.complain(judge.wrote_after(first.life, before, stage.known), FREEZE)
    return None


def cut(stage: Stage) -> None:
    """Every connection of the host is cut; it goes on."""
    if not stage.opened():
        return _begin_again(stage, CUT)
    assert stage.place.cut is not None
    stage.place.cut()
    return _go_on(stage, CUT)


def restart(stage: Stage) -> None:
    """The database server crashes and comes back; the host goes on."""
    if not stage.opened():
        return _begin_again(stage, RESTART)
    assert stage.place.restart is not None
    stage.place.restart()
    return _go_on(stage, RESTART)


def fill(stage: Stage) -> None:
    """The disk is full until the host says so, and a little longer; then it goes on."""
    if not stage.opened():
        return _begin_again(stage, FILL)
    disk, worker = stage.place.disk, stage.worker
    assert disk is not None
    worker.ledger.read()
    since, pid = len(worker.ledger.entries), worker.pid
    disk.fill(pid)
    try:
        if stage.until(lambda entry: isinstance(entry, Trouble) and entry.reason is not None, FILL, since):
            _wait(min(1.0, stage.plan.patience / 4))
    finally:
        disk.free(pid)
    return _go_on(stage, FILL)


def drown(stage: Stage) -> None:
    """The disk is full for longer than the host is patient: it stops, with one error; nothing acknowledged is lost."""
    if not stage.opened():
        return _begin_again(stage, DROWN)
    disk, pid = stage.place.disk, stage.worker.pid
    assert disk is not None
    disk.fill(pid)
    try:
        stage.ended(DROWN, STOPPED)
    finally:
        disk.free(pid)
    return _begin_again(stage, DROWN)


def _go_on(stage: Stage, after: str) -> None:
    """The worker is to have survived."""
    if stage.goes_on(after):
        stage.judge(after)
    else:
        _begin_again(stage, after)


def _begin_again(stage: Stage, after: str) -> None:
    """The worker has ended, or is of no use."""
    stage.worker.kill()
    stage.worker.join(DEADLINE)
    stage.judge(after)
    stage.begin()


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)
