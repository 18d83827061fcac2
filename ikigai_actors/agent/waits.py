"""Waits: until mail has come, or until agents have sent mail, have nothing to do, or have ended. Nothing here polls.

    wait = Wait(me, (child, other), deadline)
    ticket = waits.begin(wait, done)         # done(answers), once
    waits.mailed(me)                         # what may end a wait, told by whoever did it, after its commit
    waits.rested(child)

A wait is an entry in a few dicts and in a heap of deadlines; one thread looks after all of them. It looks when a wait
begins, when something happened that may end it, and at its deadline. Who tells what has happened does so after the
commit, and a wait is registered before it is first looked at; so what comes between the look and the sleep marks the
wait, and it is looked at again.

A look sees first who rests in memory, then the rows, mail among them, at one moment. So mail that was sent before its
sender had nothing more to do is always seen. What an agent was once seen to be stays; that it sent mail is told rather
than anything else. A crash leaves nothing: who waits begins again, with the deadline that it had.
"""

import heapq
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, acting_agent
from ikigai_actors.actors.threads import LONGEST_SLEEP, Threads
from ikigai_actors.arguments import check_timeout, shown
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    BadInput,
    IkigaiError,
    StoreUnavailable,
    SystemClosed,
    WouldWaitForItself,
)
from ikigai_actors.records import registry
from ikigai_actors.records.mail import EXIT, NOBODY, unread_kinds, unread_letters
from ikigai_actors.records.registry import look_at_all
from ikigai_actors.store.base import Store, Transaction
from supervisors.signals import Status

logger = logging.getLogger(__name__)

AGAIN = 1.0
"""Seconds after which a look is repeated that the store did not answer."""


class Found(StrEnum):
    """Why an agent is waited for no more."""

    MAIL = "mail"
    """It sent mail that is unread."""
    IDLE = "idle"
    """It has nothing to do: no open turn, no prompt that waits."""
    STOPPED = "stopped"
    """It is paused."""
    DEAD = "dead"
    """It has ended."""
    UNKNOWN = "unknown"
    """There is no such agent."""
    TIMEOUT = "timeout"
    """None of this came in time."""


Answers = Mapping[str, Found]
"""By uuid; a sender that is no agent is `NOBODY`."""

Done = Callable[[Answers | IkigaiError], None]
"""Takes what came of a wait. Called on the thread of the waits: it only posts."""


class Wait(NamedTuple):
    """What is waited for."""

    waiter: str
    """Whose mailbox is looked at."""
    agents: tuple[str, ...] | None
    """Each of these; None waits for mail of anybody."""
    deadline: int | None
    """In milliseconds since 1970; None is never."""


@dataclass(eq=False, slots=True)
class Ticket:
    """A wait in progress."""

    wait: Wait
    _waits: "Waits"
    _done: Done
    pending: set[str] = field(default_factory=set)
    """Who is waited for still; the waiter itself stands for mail of anybody."""
    found: dict[str, Found] = field(default_factory=dict)

    def begin(self) -> None:
        """Wait from now on. Who may be interrupted at any moment makes sure before that it is cancelled."""
        self._waits.add(self)

    def cancel(self) -> None:
        """Wait no more; nothing is called back, unless that is being done at this moment."""
        self._waits.forget(self)

    def answer(self, answers: Answers | IkigaiError) -> None:
        """Call back."""
        try:
            self._done(answers)
        except Exception:  # a defect of the waiter's: the others wait on
            logger.exception("What waited for %s failed", self.wait)


class Row(NamedTuple):
    """A row of the query ``look_at_all``."""

    uuid: str
    status: str
    turn: int
    unread: int
    asked: int


class Waits:
    """The waits of one host."""

    def __init__(self, store: Store, clock: Clock, rests: Callable[[str], bool], threads: Threads) -> None:
        """Make it; ``rests`` tells whether an agent, as far as memory tells, has nothing to do."""
        self._store, self._clock, self._rests = store, clock, rests
        self._changed = threads.condition()
        self._open: dict[Ticket, None] = {}  # here and below in order, so that they are answered in order
        self._tickets: dict[str, dict[Ticket, None]] = defaultdict(dict)  # by each agent looked at, the waiter too
        self._dirty: dict[Ticket, set[str]] = {}
        self._due: list[tuple[float, int, Ticket]] = []
        self._count = 0
        self._closed = False
        self._thread = threads.thread(self._run, "ikigai-waits")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End every wait."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()
        for ticket in list(self._open):
            self._open.pop(ticket, None)
            ticket.answer(SystemClosed("The system was closed before the wait was over."))

    def begin(self, wait: Wait, done: Done) -> Ticket:
        """Wait from now on; ``done`` is called once, soon if there is nothing to wait for."""
        ticket = self.ticket(wait, done)
        ticket.begin()
        return ticket

    def ticket(self, wait: Wait, done: Done) -> Ticket:
        """A wait that has yet to begin."""
        ticket = Ticket(wait, self, done)
        ticket.pending.update((wait.waiter,) if wait.agents is None else wait.agents)
        return ticket

    def ticket_of(
        self,
        waiter: str,
        agents: Iterable[Any] | None,
        timeout: float | None,
        store: Store,
        handle: Callable[[str], Any],
    ) -> tuple[Future[dict[Any, Found]], Ticket]:
        """A wait that has yet to begin, for agents as a program calls them.

        Args:
            waiter: the uuid of the agent whose mailbox is looked at.
            agents: handles, or uuids, names or prefixes; None waits for mail of anybody.
            timeout: seconds to wait; None waits for ever.
            store: where the agents are looked up.
            handle: gives the handle of an agent whose uuid is known.

        Returns:
            What comes of it, by agent as it was given, and the ticket.

        Raises:
            BadInput, AmbiguousAgent: what is given makes no sense.
            WouldWaitForItself: the code of an agent would wait for that agent.
        """
        check_timeout(timeout)
        if agents is not None and (isinstance(agents, str) or not isinstance(agents, Iterable)):
            raise BadInput(f"Expected agents to be a list of agents, or None for all mail; got {shown(agents)}.")
        named = None if agents is None else [*agents]
        known = None if named is None else store.read(lambda tx: {one: _known(tx, one) for one in named})
        acting = acting_agent.get(None)
        if known is not None and acting is not None and acting.uuid in known.values():
            raise WouldWaitForItself(f"Agent {acting.uuid} would wait for the end of its own turn. Wait for others.")

        def by_agent(answers: Answers) -> dict[Any, Found]:
            if known is None:
                return {handle(uuid) if uuid else NOBODY: found for uuid, found in answers.items()}
            return {one: Found.UNKNOWN if uuid is None else answers[uuid] for one, uuid in known.items()}

        future: Future[dict[Any, Found]] = Future(make=by_agent, cancel=lambda: ticket.cancel())
        uuids = None if known is None else tuple(dict.fromkeys(uuid for uuid in known.values() if uuid is not None))
        deadline = None if timeout is None else self._clock.now_ms() + int(timeout * 1000)
        ticket = self.ticket(Wait(waiter, uuids, deadline), future.settle)
        return future, ticket

    def add(self, ticket: Ticket) -> None:
        """See `Ticket.begin`."""
        wait = ticket.wait
        with self._changed:
            closed = self._closed
            if not closed:
                self._open[ticket] = None
                for uuid in {wait.waiter, *ticket.pending}:
                    self._tickets[uuid][ticket] = None
                if wait.deadline is not None:
                    self._at(max(0.0, (wait.deadline - self._clock.now_ms()) / 1000), ticket)
                self._mark(ticket, ticket.pending)
        if closed:
            ticket.answer(SystemClosed("The system is closed; open it again."))

    def changed(self, uuid: str) -> None:
        """An agent has another status, or has ended. Any thread may tell; costs little when nobody waits."""
        if uuid in self._tickets:
            with self._changed:
                for ticket in self._tickets.get(uuid, ()):
                    self._mark(ticket, {uuid})

    def rested(self, uuid: str) -> None:
        """An agent may have nothing more to do; likewise."""
        if uuid in self._tickets:
            with self._changed:
                for ticket in self._tickets.get(uuid, ()):
                    if ticket.wait.agents is not None and uuid in ticket.pending:
                        self._mark(ticket, {uuid})

    def mailed(self, recipient: str, sender: str | None) -> None:
        """A mail has come; likewise."""
        if recipient in self._tickets:
            with self._changed:
                for ticket in self._tickets.get(recipient, ()):
                    wanted = recipient if ticket.wait.agents is None else sender
                    if ticket.wait.waiter == recipient and wanted in ticket.pending:
                        self._mark(ticket, {wanted})

    def look_again(self) -> None:
        """Another process may have done anything."""
        with self._changed:
            for ticket in self._open:
                self._mark(ticket, ticket.pending)

    def forget(self, ticket: Ticket) -> None:
        """See `Ticket.cancel`."""
        with self._changed:
            self._remove(ticket)

    def __len__(self) -> int:
        return len(self._open)

    def _mark(self, ticket: Ticket, uuids: Iterable[str]) -> None:
        self._dirty.setdefault(ticket, set()).update(uuids)
        self._changed.notify()

    def _at(self, seconds: float, ticket: Ticket) -> None:
        self._count += 1
        heapq.heappush(self._due, (self._clock.monotonic() + seconds, self._count, ticket))

    def _remove(self, ticket: Ticket) -> bool:
        """Whether it was there; of one that was interrupted while it was added, parts."""
        there = ticket in self._open
        self._open.pop(ticket, None)
        self._dirty.pop(ticket, None)
        for uuid in {ticket.wait.waiter, *(ticket.wait.agents or ())}:
            self._tickets[uuid].pop(ticket, None)
            if not self._tickets[uuid]:
                del self._tickets[uuid]
        return there

    def _run(self) -> None:
        while (work := self._next()) is not None:
            dirty, over = work
            try:
                self._look(dirty, over)
            except StoreUnavailable as error:
                logger.info("A look at what is waited for is repeated: %s", error)
                self._repeat(dirty, over)
            except IkigaiError as error:
                for ticket in dirty:
                    self._end(ticket, error)
            except Exception:  # a defect of ours: the other waits go on
                logger.exception("The waits failed")

    def _next(self) -> tuple[dict[Ticket, set[str]], set[Ticket]] | None:
        """The waits to be looked at, with whom, and those of them whose time is over; None at the end."""
        with self._changed:
            while not self._closed:
                now = self._clock.monotonic()
                over = set()
                while self._due and self._due[0][0] <= now:
                    ticket = heapq.heappop(self._due)[2]
                    if ticket in self._open:
                        over.add(ticket)
                        self._dirty.setdefault(ticket, set()).update(ticket.pending)
                if self._dirty:
                    dirty, self._dirty = self._dirty, {}
                    return dirty, over
                wait = min(self._due[0][0] - now, LONGEST_SLEEP) if self._due else None
                self._changed.wait_for(lambda: self._closed or self._dirty, wait)
        return None

    def _repeat(self, dirty: Mapping[Ticket, set[str]], over: set[Ticket]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, AGAIN)
            for ticket, uuids in dirty.items():
                if ticket in self._open:
                    self._mark(ticket, uuids)
            for ticket in over:
                self._at(0.0, ticket)

    def _look(self, dirty: Mapping[Ticket, set[str]], over: set[Ticket]) -> None:
        rest = {uuid for uuids in dirty.values() for uuid in uuids if self._rests(uuid)}
        for ticket, answers in self._store.read(lambda tx: _answered(tx, dirty, over, rest)).items():
            self._end(ticket, answers)

    def _end(self, ticket: Ticket, answers: Answers | IkigaiError) -> None:
        with self._changed:
            there = self._remove(ticket)
        if there:
            ticket.answer(answers)


def _known(tx: Transaction, agent: object) -> str | None:
    """The uuid of an agent that is given by its handle, uuid, name or prefix; None when there is none."""
    text = getattr(agent, "uuid", agent)
    if not isinstance(text, str):
        raise BadInput(f"Expected an agent, or its uuid, name or prefix; got {shown(agent)}.")
    try:
        return registry.find(tx, text).uuid
    except AgentNotFound:
        return None


def _answered(
    tx: Transaction, dirty: Mapping[Ticket, set[str]], over: set[Ticket], rest: set[str]
) -> dict[Ticket, Answers | IkigaiError]:
    """The waits that are over, of those that are to be looked at."""
    uuids = {uuid for ticket, looked_at in dirty.items() for uuid in (*looked_at, ticket.wait.waiter)}
    rows = {row[0]: Row(*row) for row in look_at_all(tx, uuids)}
    ended: dict[Ticket, Answers | IkigaiError] = {}
    for ticket, looked_at in dirty.items():
        answers = (
            _of_anybody(tx, ticket, rows) if ticket.wait.agents is None else _of_each(tx, ticket, looked_at, rows, rest)
        )
        if answers is not None:
            ended[ticket] = answers
        elif ticket in over:
            ended[ticket] = {**dict.fromkeys(ticket.wait.agents or (), Found.TIMEOUT), **ticket.found}
    return ended


def _of_anybody(tx: Transaction, ticket: Ticket, rows: Mapping[str, Row]) -> Answers | IkigaiError | None:
    """Of whom there is mail; None when there is none."""
    uuid = ticket.wait.waiter
    row = rows.get(uuid)
    if row is None:
        return AgentNotFound(f"There is no agent {uuid}.", uuid)
    if row.unread:
        kinds: dict[str, Found] = {}
        for sender, kind in unread_kinds(tx, uuid):
            found = Found.DEAD if kind == EXIT else Found.MAIL
            kinds[sender or NOBODY] = Found.MAIL if Found.MAIL in (found, kinds.get(sender or NOBODY)) else found
        return kinds
    if row.status == Status.DEAD:
        return AgentDead(f"Agent {uuid} is dead: no mail comes any more.", uuid)
    return None


def _of_each(
    tx: Transaction, ticket: Ticket, looked_at: set[str], rows: Mapping[str, Row], rest: set[str]
) -> Answers | None:
    """What each of its agents was found to be; None when some are waited for still."""
    wait = ticket.wait
    waiter = rows.get(wait.waiter)
    unread = waiter is not None and waiter.unread > 0

    def letters(of: Iterable[str]) -> set[str]:
        return unread_letters(tx, wait.waiter, of) if unread else set()

    wrote = letters(looked_at)
    for uuid in looked_at & ticket.pending:
        if (found := _found(rows.get(uuid), uuid in wrote, uuid in rest)) is not None:
            ticket.found[uuid] = found
    ticket.pending.difference_update(ticket.found)
    if ticket.pending:
        return None
    ticket.found.update(dict.fromkeys(letters(wait.agents or ()), Found.MAIL))
    return {uuid: ticket.found[uuid] for uuid in wait.agents or ()}


def _found(row: Row | None, wrote: bool, rests: bool) -> Found | None:
    """Why an agent is waited for no more; None when it is."""
    if row is None:
        return Found.UNKNOWN
    if wrote:
        return Found.MAIL
    if row.status == Status.DEAD:
        return Found.DEAD
    if row.status == Status.STOPPED:
        return Found.STOPPED
    idle = rests and row.status == Status.RUNNING and not row.turn and not row.asked
    return Found.IDLE if idle else None
