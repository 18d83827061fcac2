"""One process of a simulation: what ends with it. Its threads, its actors, its connection to the database.

At each commit it may crash: before it, or after it and before anybody was told; and the database is looked at. A fault
is drawn on the thread of the test, between two steps, whichever thread it happens to.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ikigai_actors import fsck, registry
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.parts import Parts
from ikigai_actors.pooled import Dispatcher, PooledActor
from ikigai_actors.providers.base import Request
from ikigai_actors.seeded import SeededDispatcher
from ikigai_actors.store.base import Store
from ikigai_actors.testing.agenda import Abandoned, Entry
from ikigai_actors.testing.faults import RARITY
from ikigai_actors.testing.store import Change, SimulatedStore
from ikigai_actors.testing.strict import violations
from ikigai_actors.testing.threads import SimulatedThreads

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation import Simulation


class ProcessCrashed(BaseException):
    """The simulated process has ended, as with ``kill -9``: nothing of it goes on, its handles are of no use.

    No `Exception`, since no code of a process survives its end. Call `Simulation.reopen`.
    """


class Broken(AssertionError):
    """An invariant of the runtime does not hold; the message begins with its name."""


class Process:
    """One process of a simulation: its threads, its database while it runs."""

    def __init__(self, world: "Simulation", image: bytes) -> None:
        self.world = world
        self.agenda = world.agenda
        self.threads = SimulatedThreads(self.agenda)
        self.store = SimulatedStore(world.clock.now_ms, image, _Commits(self), self.threads)
        self.parts = Parts(
            threads=self.threads,
            clock=world.clock,
            random_bytes=world.random_bytes,
            open_store=self._open_store,
            dispatcher=self._dispatcher,
        )

    def end(self) -> bytes:
        """Let nothing of it go on; return what it has committed."""
        self.threads.abandon()
        self.agenda.clear()
        self.store.close()
        return self.store.final

    def note(self, kind: str, text: str) -> None:
        """Something happened."""
        if not self.threads.abandoned:
            self.world.note(kind, text)

    def asked(self, request: Request) -> None:
        """A request leaves; it must be valid."""
        self.world.requests.append(request)
        last = request.messages[-1]["content"][-1] if request.messages else {}
        self.note("ask", f"{request.agent}: {len(request.messages)} messages, {str(last.get('text', last))!r}")
        if not self.world.checks:
            return
        record = self.store.read(lambda tx: registry.get(tx, request.agent))
        if record.living and not record.turn:
            self.broken(f"commit-before-effect: agent {request.agent} asks a model, and its turn is not committed")
        body = {"model": request.model or "simulated", "max_tokens": 1, "system": request.system}
        wrong = violations({**body, "messages": list(request.messages), "tools": list(request.tools)})
        if wrong:
            self.broken(f"requests-valid: agent {request.agent}: {'; '.join(wrong)}")

    def broken(self, what: str) -> None:
        """An invariant does not hold: the test hears of it when the step is over."""

        def end() -> None:
            raise Broken(what)

        self.agenda.halt(end)

    def misfortune(self, *faults: str) -> str:
        """Draw one of these faults, as far as there is one left, or nothing. On the thread of the test."""
        if not (possible := self.world.luck.possible(*faults)):
            return ""
        drawn = self.agenda.randrange(1 + RARITY * len(possible)) - 1
        if not 0 <= drawn < len(possible):
            return ""
        self.world.luck.spend(possible[drawn])
        self.note("fault", possible[drawn])
        return possible[drawn]

    def _open_store(self, database: str | os.PathLike[str] | None) -> Store:
        return self.store

    def _dispatcher(self, workers: int) -> Dispatcher:
        return AgendaDispatcher(self)


class _Commits:
    """Faults at commits, and a look at the database after each."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def before(self) -> None:
        """See `Commits.before`."""
        process = self._process
        if process.threads.abandoned:
            raise Abandoned
        if process.world.is_to_crash(committed=False):
            self._crash("before the commit")
        fault = self._drawn("crashes", "busy")
        if fault == "crashes":
            self._crash("before the commit")
        if fault == "busy":
            raise StoreUnavailable("The database is locked, as the simulation will have it.")

    def after(self, changes: Sequence[Change]) -> None:
        """See `Commits.after`."""
        process = self._process
        process.world.commits += 1
        for change in changes:
            process.note("commit", str(change))
        for watcher in process.world.watchers:
            watcher(changes)
        if process.world.checks and changes and (wrong := fsck.check(process.store)):
            process.broken(f"fsck: {'; '.join(f'{one.invariant}: {one.agent}: {one.text}' for one in wrong)}")
        if process.world.is_to_crash(committed=True) or self._drawn("crashes"):
            self._crash("after the commit, and nobody was told")

    def _drawn(self, *faults: str) -> str:
        process = self._process
        if process.world.runs and process.world.luck.possible(*faults):
            return process.threads.on_test(lambda: process.misfortune(*faults))
        return ""

    def _crash(self, where: str) -> None:
        process = self._process
        process.note("crash", where)

        def end() -> None:
            process.world.ended()
            raise ProcessCrashed(f"The process has ended {where}. Open it again: reopen().")

        if process.threads.current() is None:
            end()
        process.agenda.halt(end)
        process.threads.abandoned = True
        raise Abandoned


class AgendaDispatcher:
    """The seeded dispatcher, as one entry of an agenda: one message of one actor is a step."""

    def __init__(self, process: Process) -> None:
        self._process, self._listed = process, False
        self._inner = SeededDispatcher(process.agenda, choices=2**62, on_run=self._runs)

    def schedule(self, actor: PooledActor) -> None:
        """See `Dispatcher.schedule`."""
        self._inner.schedule(actor)
        self._list()

    @property
    def ready(self) -> int:
        """See `Dispatcher.ready`."""
        return self._inner.ready

    def close(self) -> None:
        """See `Dispatcher.close`."""
        self._inner.close()

    def _list(self) -> None:
        if not self._listed and self._inner.ready:
            self._listed = True
            self._process.agenda.add(Entry("actors", self._run))

    def _run(self) -> None:
        self._listed = False
        try:
            self._inner.run_one()
        finally:
            self._list()

    def _runs(self, actor: PooledActor) -> None:
        self._process.note("run", str(actor))
