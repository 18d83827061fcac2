"""One process of a simulation, with everything that ends with it: threads, actors, its connection to the database.

At each commit the process may crash: before the commit, or after the commit and before any caller is answered. After
each commit the database is checked. Faults are drawn on the thread of the test, between two steps, for any thread.
Faults of reading also begin at a commit, because a thread that reads may hold a lock.

When another host takes over, the process of the former host goes on: replies and results still arrive there, but none
of its writes may change an agent. Each of several hosts is a process, and the end of one process leaves the others
running.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from ikigai_actors.actors.actor import Dispatcher, PooledActor
from ikigai_actors.errors import CommitUnknown, StoreUnavailable
from ikigai_actors.providers.base import REPORT, SUMMARISE, Request
from ikigai_actors.records.agents import registry
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.store.base import Store
from ikigai_actors.store.memory import empty_image
from ikigai_actors.system.platform import Platform
from ikigai_actors.testing.dispatcher import SeededDispatcher
from ikigai_actors.testing.simulation.changes import SHARED_TREE, RanStatement, StoredChange, is_of_owner
from ikigai_actors.testing.simulation.clock import ManualClock, WallClock
from ikigai_actors.testing.simulation.faults import RARITY, Luck
from ikigai_actors.testing.simulation.messages_api import violations
from ikigai_actors.testing.simulation.ownership import Ownership
from ikigai_actors.testing.simulation.receiver import SimulatedLink, SimulatedReceiver
from ikigai_actors.testing.simulation.scheduler import Abandoned, Agenda, Entry
from ikigai_actors.testing.simulation.store import Commits, CommitTrouble, SimulatedStore, Undisturbed
from ikigai_actors.testing.simulation.threads import SimulatedThreads
from ikigai_actors.testing.simulation.trace import Traced

OUTAGE = 2.0
"""The seconds for which the store cannot be read."""

LEAP = 3_600.0
"""The seconds by which the wall clock is set ahead or back."""

TYPES_EVERY = 16
"""The types of all values are checked after this many commits; the rest of fsck runs after each commit."""

SIGNS_OF_LIFE = frozenset({"renew_lease", "count_agents", "publish_waits", "publish_signs"})
"""SQL statements after which the database need not be checked again."""

OF_ONE_HOST = ("takeovers",)
"""The faults of a host that does not share the database."""

OF_SEVERAL_HOSTS = ("freezes", "partitions")
"""The faults of one of several hosts."""

AT_COMMIT = (
    *("crashes", "busy", "full", "lost", "unheard", "unanswered", "unreadable"),
    *(*OF_ONE_HOST, "ahead", "back", *OF_SEVERAL_HOSTS),
)
"""The faults that may occur at the beginning of a transaction. Saved schedules depend on their order."""

LEASES_AWAY = (0.25, 0.75, 1.5, 4.0)
"""The numbers of leases for which a host is stopped or cut off: less than one, or enough that it must end."""

TROUBLES = {
    "full": CommitTrouble(StoreUnavailable("The disk is full, as the simulation will have it.")),
    "lost": CommitTrouble(StoreUnavailable("The connection is lost, as the simulation will have it.")),
    "unheard": CommitTrouble(CommitUnknown("The connection is lost during COMMIT, as the simulation will have it.")),
    "unanswered": CommitTrouble(
        CommitUnknown("The connection is lost during COMMIT, as the simulation will have it."), committed=True
    ),
}
"""The errors at the end of a transaction, by fault."""


class ProcessCrashed(BaseException):
    """The simulated process has ended, as by ``kill -9``: its threads stop, and its handles cannot be used.

    The class is no `Exception`, because no code of a process survives its end. Call `Simulation.reopen`.
    """


class TakenOver(ProcessCrashed):
    """Another host has taken the database over.

    The old process goes on, fenced; call `Simulation.reopen` to use the new one.
    """


class Broken(AssertionError):
    """An invariant of the runtime does not hold; the message begins with its name."""


class World(Protocol):
    """The part of the simulation that a process uses."""

    clock: ManualClock
    agenda: Agenda
    luck: Luck
    checks: bool
    """Whether the database is checked after every commit, and every request before it is sent."""
    commits: int
    """The number of committed transactions."""
    requests: list[Request]
    """Every request that was sent to a provider."""
    watchers: list[Callable[[Sequence[StoredChange]], None]]
    """Functions that are called with the changes of each commit."""
    askers: list[Callable[[Request], None]]
    """Functions that are called with each request before it is sent, unless its process is fenced."""

    receiver: SimulatedReceiver
    """The receiver of the events that are sent."""

    ownership: Ownership | None
    """The checks of the owners of agents among several hosts; None for one host."""

    @property
    def former(self) -> Sequence[object]:
        """Return the processes that another host has replaced."""

    @property
    def process(self) -> "Process":
        """Return the process that runs now."""

    @property
    def runs(self) -> bool:
        """Return whether a system is open."""

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` random bytes, the same in every run."""

    def note(self, kind: str, text: str) -> None:
        """Add a line to the trace of the run."""

    def is_to_crash(self, *, committed: bool) -> bool:
        """Return whether the process crashes at this commit."""

    def handed_over(self) -> None:
        """Let another host take the database over. The process of this host goes on beside the new one."""

    def crashed(self, process: "Process") -> bool:
        """End a process. Return whether the test gets the exception, because the test waits for that process."""

    def freeze(self, process: "Process", seconds: float) -> None:
        """Stop the process of one of several hosts for a time."""

    def partition(self, process: "Process", seconds: float, *, silent: bool) -> None:
        """Cut the process of one of several hosts off from the database for a time."""


def asks_for_summary(request: Request) -> bool:
    """Return whether a request belongs to no turn, because it asks for a summary."""
    texts = (block.get("text", "") for message in request.messages for block in message["content"])
    return any(text.startswith((SUMMARISE, REPORT)) for text in texts)


class Process:
    """One process of a simulation: its threads, and its database while it runs."""

    def __init__(self, world: World, beside: "Process | None" = None, name: str = "") -> None:
        """Start a process with an empty database; or ``beside`` a process, with that process's database."""
        self.world = world
        self.agenda = world.agenda
        self.threads = SimulatedThreads(self.agenda)
        self.name = name
        self.host_id = ""
        """The id of the process's host, once its row is in the database; only with several hosts."""
        self.joined = not name
        """Whether faults may occur: not before one of several hosts has joined the others."""
        self.clock = WallClock(world.clock) if name else world.clock
        self.store: SimulatedStore = SimulatedStore(
            world.clock.now_ms,
            empty_image(),
            _Commits(self),
            self.threads,
            None if beside is None else beside.store,
            leases=bool(name),
        )
        self.looked_at = Undisturbed(self.store)
        """The store that checks read, without faults."""
        self.unreadable_until = 0.0
        """The monotonic time, in seconds, from which the store can be read again."""
        self.late = 0.0
        """The seconds after a commit of any host at which this process gets the hint."""
        self.parts = Platform(
            threads=self.threads,
            clock=self.clock,
            random_bytes=world.random_bytes,
            open_store=self._open_store,
            dispatcher=self._dispatcher,
            instruments=(Traced(self.note),),
            link=lambda allowed, threads: SimulatedLink(self, world.receiver),
        )

    def stop(self) -> None:
        """Stop all threads of the process."""
        self.threads.abandon()
        self.agenda.clear(self.threads)
        self.store.close()

    @property
    def fenced(self) -> bool:
        """Return whether another host has taken over, so that writes of this process change no agent."""
        if self.world.ownership is not None:
            return self.host_id in self.world.ownership.ended
        return self in self.world.former

    def note(self, kind: str, text: str) -> None:
        """Add a line to the trace, with the name of the process. A crashed process adds none."""
        if not self.threads.abandoned:
            by = f"{self.name}: " if self.name else ""
            self.world.note(kind, f"{by}(fenced host) {text}" if self.fenced else f"{by}{text}")

    def asked(self, request: Request) -> None:
        """Check a request that is sent, and record it. A crashed process that unwinds sends none."""
        if self.threads.abandoned:
            raise Abandoned
        self.world.requests.append(request)
        if not self.world.checks:
            return
        record = self.looked_at.read(lambda tx: registry.get(tx, request.agent))
        if record.living and not record.turn and not self.fenced and not asks_for_summary(request):
            self.broken(f"commit-before-effect: agent {request.agent} asks a model, and its turn is not committed")
        body = {"model": request.model or "simulated", "max_tokens": 1, "system": request.system}
        wrong = violations({**body, "messages": list(request.messages), "tools": list(request.tools)})
        if wrong:
            self.broken(f"requests-valid: agent {request.agent}: {'; '.join(wrong)}")
        for asked in () if self.fenced else self.world.askers:
            asked(request)

    def arrived(self, request: Request) -> None:
        """Check, when a request reaches its model, that the sending host may still run the agent."""
        judge = self.world.ownership
        if judge is not None and (wrong := judge.asks(self.host_id, request.agent, self.looked_at)):
            self.broken(wrong)

    def broken(self, what: str) -> None:
        """Report a violated invariant. The test gets it after the current step."""

        def end() -> None:
            raise Broken(what)

        self.agenda.halt(end)

    def misfortune(self, *faults: str) -> str:
        """Draw one of these faults that may still occur, and return its name; empty for no fault.

        Call it on the thread of the test.
        """
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


def _raise(error: Exception) -> None:
    raise error


class _Commits(Commits):
    """Draws faults at commits, and checks the database after each."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def reads(self) -> None:
        process = self._process
        if process.threads.current() is None:  # the test itself, and actors, who never read
            return
        if process.agenda.clock.monotonic() < process.unreadable_until:
            raise StoreUnavailable("The database cannot be read, as the simulation will have it.")

    def rings(self) -> bool:
        return not self._drawn("unrung")

    def hears(self, hint: Callable[[], object]) -> None:
        process = self._process
        if process.late:
            process.agenda.at(process.agenda.clock.monotonic() + process.late, hint, process.threads)
        else:
            hint()

    def before(self) -> CommitTrouble | None:
        process, world = self._process, self._process.world
        if process.threads.abandoned:  # on the thread of the test a process ends while it opens
            raise Abandoned if process.threads.current() else ProcessCrashed("The process has ended. Open it again.")
        if not process.fenced and world.is_to_crash(committed=False):
            self._crash("before the commit")
        match self._drawn(*self._at_commit()):
            case "crashes":
                self._crash("before the commit")
            case "busy":
                raise StoreUnavailable("The database is locked, as the simulation will have it.")
            case "unreadable":
                process.unreadable_until = world.clock.monotonic() + OUTAGE
            case "takeovers":
                self._hand_over()
            case "freezes":
                self._freeze()
            case "partitions":
                silent = bool(process.threads.on_test(lambda: process.agenda.randrange(2)))
                world.partition(process, self._away(), silent=silent)
            case "ahead":
                process.clock.jump(LEAP)
            case "back":
                process.clock.jump(-LEAP)
            case fault:
                return TROUBLES.get(fault)
        return None

    def after(self, changes: Sequence[StoredChange]) -> None:
        process, world = self._process, self._process.world
        world.commits += 1
        process.host_id = next(filter(None, map(_registered, changes)), process.host_id) if process.name else ""
        for change in changes:
            if change is not SHARED_TREE:
                process.note("commit", str(change))
        for watcher in world.watchers:
            try:
                watcher(changes)
            except Exception as error:
                if not process.agenda.stepping:
                    raise
                process.agenda.halt(partial(_raise, error))  # the host that commits would take it for its own
        types = world.commits % TYPES_EVERY == 0
        if (
            world.checks
            and not all(map(_is_sign_of_life, changes))
            and (wrong := fsck.check(process.looked_at, types=types))
        ):
            texts = (f"{violation.invariant}: {violation.agent}: {violation.text}" for violation in wrong)
            process.broken(f"fsck: {'; '.join(texts)}")
        if world.ownership is not None and (judged := world.ownership.after(process, changes, process.looked_at)):
            process.broken("; ".join(judged))
        if process.fenced and not process.name:
            self._look_at_fence(changes)
        elif world.is_to_crash(committed=True) or self._drawn("crashes"):
            self._crash("after the commit, and nobody heard of it")

    def _look_at_fence(self, changes: Sequence[StoredChange]) -> None:
        """Check that a fenced host wrote only mails and documents: the rest belongs to the host that has taken over."""
        process = self._process
        if changed := [str(change) for change in changes if is_of_owner(change)]:
            process.broken(f"fenced: a host that was taken over from has written {'; '.join(changed)}")
        if process.world.runs:
            process.world.process.store.changed_by_others()

    def _hand_over(self) -> None:
        """Let another host take over, before or after the current transaction, which may then be refused."""
        process = self._process

        def end() -> None:
            process.world.handed_over()
            raise TakenOver("Another host has taken the database over. Open it there: reopen().")

        if process.threads.current() is None:
            end()
        process.agenda.halt(end)

    def _drawn(self, *faults: str) -> str:
        process = self._process
        if process.joined and process.world.runs and not process.fenced and process.world.luck.possible(*faults):
            return process.threads.on_test(lambda: "" if process.fenced else process.misfortune(*faults))
        return ""

    def _at_commit(self) -> tuple[str, ...]:
        """Return the kinds of faults that may occur at the beginning of a transaction of this process."""
        others = OF_ONE_HOST if self._process.name else OF_SEVERAL_HOSTS
        return tuple(fault for fault in AT_COMMIT if fault not in others)

    def _away(self) -> float:
        """Draw the number of seconds for which the process is stopped or cut off."""
        process = self._process
        assert process.world.ownership is not None  # it is one of several hosts
        drawn: int = process.threads.on_test(lambda: process.agenda.randrange(len(LEASES_AWAY)))
        return LEASES_AWAY[drawn] * process.world.ownership.lease

    def _freeze(self) -> None:
        """Stop the process before its current transaction, which then happens later."""
        process = self._process
        process.world.freeze(process, self._away())
        process.threads.pause("a stopped process goes on")

    def _crash(self, where: str) -> None:
        process = self._process
        process.note("crash", where)

        def end() -> None:
            if process.world.crashed(process):
                raise ProcessCrashed(f"The process has ended {where}. Open it again: reopen().")

        if process.threads.current() is None:
            end()
        process.agenda.halt(end)
        process.threads.abandoned = True
        raise Abandoned


def _is_sign_of_life(change: StoredChange) -> bool:
    """Return whether a change is only a host's heartbeat."""
    return isinstance(change, RanStatement) and change.query in SIGNS_OF_LIFE


def _registered(change: StoredChange) -> str:
    """Return the id of the host that a change registers; empty for other changes."""
    if isinstance(change, RanStatement) and change.query == "register_host":
        return str(change.parameters["id"])
    return ""


class AgendaDispatcher(Dispatcher):
    """The seeded dispatcher as one entry of an agenda. A step is one message of one actor."""

    def __init__(self, process: Process) -> None:
        self._process, self._listed = process, False
        self._inner = SeededDispatcher(process.agenda, choices=2**62, on_run=self._runs)

    def schedule(self, actor: PooledActor) -> None:
        self._inner.schedule(actor)
        self._list()

    @property
    def ready(self) -> int:
        return self._inner.ready

    def close(self) -> None:
        self._inner.close()

    def _list(self) -> None:
        if not self._listed and self._inner.ready:
            self._listed = True
            self._process.agenda.add(Entry("actors", self._run, self._process.threads))

    def _run(self) -> None:
        self._listed = False
        try:
            self._inner.run_one()
        finally:
            self._list()

    def _runs(self, actor: PooledActor) -> None:
        self._process.note("run", str(actor))
