"""Waits: until mail has come, or until agents have sent mail, are idle, or have ended. Nothing here polls.

    wait = Wait(me, (child, other), deadline)
    waiter = waits.begin(wait, done)         # done(results), once
    waits.mailed(me)                         # what may end a wait, reported by its cause, after the commit
    waits.became_idle(child)

A wait is an entry in a few dicts and in a heap of deadlines; one thread looks after all of them. The thread looks at a
wait when it begins, when something happened that may end it, and at its deadline. The code that changes something calls
a method of `Waits` after the commit, and a wait is registered before it is first looked at. So a change between a look
and the sleep marks the wait, and the thread looks at it again.

A look first asks which agents are idle, according to memory, and then reads the rows and the mail in one transaction.
So mail that an agent sent before it became idle is always seen. A result once seen stays, but mail replaces any other
result. A crash leaves nothing: the wait begins again, with the deadline that it had.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, acting_agent
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import Threads
from ikigai_actors.actors.timers import Timers
from ikigai_actors.actors.wait_graph import Until, WaitedBy
from ikigai_actors.actors.wait_registry import OpenWait, WaitRegistry, WaitTarget
from ikigai_actors.arguments import check_timeout, shown
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    BadInput,
    IkigaiError,
    StoreError,
    StoreUnavailable,
    SystemClosed,
    WouldDeadlock,
    WouldWaitForItself,
)
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import look_at_all
from ikigai_actors.records.mail.asked import AskedTurn, turn_name, turns_over
from ikigai_actors.records.mail.mail import EXIT, PERSON, unread_kinds, unread_letters
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.retrying_reader import RetryingReader
from supervisors.signals import Status

logger = logging.getLogger(__name__)


class WaitResult(StrEnum):
    """The reason why the wait for one agent ended."""

    MAIL = "mail"
    """The agent has sent mail that is unread."""
    IDLE = "idle"
    """The agent has no open turn and no waiting prompt."""
    STOPPED = "stopped"
    """The agent is paused."""
    BUDGET = "budget"
    """The agent cannot go on until a budget allows it: somebody must grant more."""
    DEAD = "dead"
    """The agent has ended."""
    UNKNOWN = "unknown"
    """There is no such agent."""
    TIMEOUT = "timeout"
    """The time-out has passed before any other result."""


WaitResults = Mapping[str, WaitResult]
"""The results of a wait, by uuid. The key for a sender that is no agent is `PERSON`."""

_Done = Callable[[Any], object]
"""Takes the results of a wait, or the error that ended it. Called on the thread of `Waits`, so it only posts."""


class Wait(NamedTuple):
    """A wait of an agent: the agents for which it waits, and the deadline."""

    mailbox: str
    """The uuid of the agent that waits. Its mailbox is checked."""
    agents: tuple[str, ...] | None
    """The uuids of the agents for which it waits; None waits for mail of anybody."""
    deadline: int | None
    """The end of the wait, in milliseconds since 1970; None for never."""
    since: int = 0
    """The time when the wait was asked for, in milliseconds since 1970. If the wall clock shows less, it was set
    back.
    """


@dataclass(eq=False, slots=True)
class Waiter(WaitTarget):
    """A wait that is registered with `Waits`, and its callback."""

    wait: Wait
    _waits: "Waits"
    _done: _Done
    pending: set[str] = field(default_factory=set)
    """The uuids for which the wait still waits; the uuid of the mailbox means mail from anybody."""
    results: dict[str, WaitResult] = field(default_factory=dict)
    of_call: OpenWait | None = None
    """The wait in the registry of waits, if a call of the agent's model waits; else None."""

    def awaited(self) -> list[str]:
        return [uuid for uuid in self.wait.agents or () if uuid in self.pending]

    def confirm(self, uuid: str) -> bool:
        return self._waits.is_awaited(self, uuid)

    def begin(self) -> None:
        """Begin the wait. If Ctrl-C may interrupt the caller, the caller must first make sure that `cancel` follows."""
        self._waits.add(self)

    def cancel(self) -> None:
        """End the wait. The callback is not called, unless the call is already in progress."""
        self._waits.forget(self)

    def answer(self, answers: WaitResults | IkigaiError) -> None:
        """Call the callback with the results, or with the error that ended the wait."""
        try:
            self._done(answers)
        except Exception:  # a defect of the callback's: the other waits go on
            logger.exception("What waited for %s failed", self.wait)


@dataclass(eq=False, slots=True)
class Probe(Waiter):
    """A wait for a value in the store: the read is repeated whenever an agent may have changed."""

    read: Callable[[Transaction], Any] = lambda tx: None
    """Reads the result that ends the wait; None while there is none. An exception ends the wait, too."""
    late: Callable[[Transaction], Any] = lambda tx: None
    """Reads the result that ends the wait when its time is over."""
    left: Callable[[Transaction], Collection[str]] | None = None
    """Reads the uuids of the agents for which it still waits; None if each of ``pending`` is one until the end."""


class _Row(NamedTuple):
    uuid: str
    status: str
    turn: int
    unread: int
    asked: int
    paused: int


class Waits(Service):
    """The waits of one host's agents and programs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        is_idle: Callable[[str], bool],
        threads: Threads,
        registry: WaitRegistry | None = None,
        end_of: Callable[[Transaction, AskedTurn], Mapping[str, Any]] = lambda tx, turn: {},
    ) -> None:
        """Make the waits of a host.

        Args:
            store: the store of mail and statuses.
            clock: for deadlines.
            is_idle: returns whether the agent with this uuid is idle, according to memory.
            threads: makes the thread that checks the waits.
            registry: records which agents wait for which others; None makes a new registry.
            end_of: returns the outcome of a turn that has ended, as JSON data.
        """
        super().__init__("ikigai-waits", threads)
        self._store, self._registry, self._end_of = store, registry or WaitRegistry(), end_of
        self._reader, self._clock, self._is_idle = RetryingReader(store, threads), clock, is_idle
        self._open: dict[Waiter, None] = {}  # here and below in order, so that they are answered in order
        self._by_agent: dict[str, dict[Waiter, None]] = defaultdict(
            dict
        )  # by each agent looked at, the owner of the mailbox too
        self._dirty: dict[Waiter, set[str]] = {}
        self._deadlines = Timers[Waiter]()

    def stop(self) -> None:
        super().stop()
        self._reader.close()

    def close(self, timeout: float | None = None) -> None:
        """End the thread, and every wait with `SystemClosed`."""
        super().close(timeout)
        for waiter in list(self._open):
            self._open.pop(waiter, None)
            waiter.answer(SystemClosed("The system was closed before the wait was over."))

    def begin(self, wait: Wait, done: _Done) -> Waiter:
        """Begin the wait of a model's call. ``done`` is called once; soon, if nothing has to be waited for."""
        waiter = self.prepare(wait, done)
        self._begin_call(waiter)
        return waiter

    def begin_turns(self, wait: Wait, turns: Sequence[AskedTurn], need: int, done: _Done) -> Waiter:
        """Begin the wait of a program until ``need`` of these turns have ended.

        ``done`` gets their outcomes as a text; soon, if enough turns have ended already.
        """

        def late(tx: Transaction) -> str:
            ended = turns_over(tx, wait.mailbox, turns)
            return json.dumps(
                [{"turn": turn_name(turn), **self._end_of(tx, turn)} for turn in ended], ensure_ascii=False
            )

        def read(tx: Transaction) -> str | None:
            return late(tx) if len(turns_over(tx, wait.mailbox, turns)) >= need > 0 else None

        def left(tx: Transaction) -> set[str]:
            over = turns_over(tx, wait.mailbox, turns)
            return {turn.agent for turn in turns if turn not in over}

        agents = tuple(dict.fromkeys(turn.agent for turn in turns))
        waiter = Probe(wait._replace(agents=agents), self, done, set(agents), read=read, late=late, left=left)
        self._begin_call(waiter, spare=max(0, len(turns) - need))
        return waiter

    def _begin_call(self, waiter: Waiter, *, spare: int = 0) -> None:
        wait = waiter.wait
        if wait.agents and (wait.deadline is None or wait.deadline > wait.since):
            waiter.of_call = OpenWait(
                wait.mailbox,
                waiter,
                WaitedBy.CALL,
                Until.TURN,
                is_over=lambda: waiter not in self._open,
                refuse=lambda error: self._end(waiter, error),
                spare=spare,
            )
        waiter.begin()

    def prepare(self, wait: Wait, done: _Done) -> Waiter:
        """Make the waiter of a wait, and do not begin the wait yet."""
        waiter = Waiter(wait, self, done)
        waiter.pending.update((wait.mailbox,) if wait.agents is None else wait.agents)
        return waiter

    def probe(self, agent: str, read: Callable[[Transaction], Any], done: Callable[[Any], object]) -> None:
        """Repeat a read, at first soon and then whenever an agent may have changed, until it returns a result.

        Args:
            agent: the uuid of the agent.
            read: returns the result; None while there is none.
            done: gets the result, or the error of the read, once. It must not block.
        """
        Probe(Wait(agent, (agent,), None), self, done, {agent}, read=read).begin()

    def prepare_by_name(
        self,
        mailbox: str,
        agents: Iterable[Any] | None,
        timeout: float | None,
        store: Store,
        handle: Callable[[str], Any],
    ) -> tuple[Future[dict[Any, WaitResult]], Waiter]:
        """Prepare a wait for agents that a program names. It has not begun yet.

        Args:
            mailbox: the uuid of the agent whose mailbox is checked.
            agents: handles, or uuids, names or prefixes; None waits for mail of anybody.
            timeout: seconds to wait; None waits forever.
            store: the store in which the agents are looked up.
            handle: returns the handle of the agent with a uuid.

        Returns:
            A future of the results, with the agents as in the argument; and the waiter.

        Raises:
            BadInput, AmbiguousAgent: an agent or the time-out cannot be used.
            WouldWaitForItself: the code of an agent would wait for that agent itself.
        """
        check_timeout(timeout)
        if agents is not None and (isinstance(agents, str) or not isinstance(agents, Iterable)):
            raise BadInput(f"Expected agents to be a list of agents, or None for all mail; got {shown(agents)}.")
        named = None if agents is None else [*agents]
        known = None if named is None else store.read(lambda tx: {name: _known(tx, name) for name in named})
        acting = acting_agent.get(None)
        if known is not None and acting is not None and acting.uuid in known.values():
            raise WouldWaitForItself(
                "The agent whose code this is would wait for the end of its own turn. Wait for others."
            )

        def by_agent(answers: WaitResults) -> dict[Any, WaitResult]:
            if known is None:
                return {handle(uuid) if uuid else PERSON: result for uuid, result in answers.items()}
            return {name: WaitResult.UNKNOWN if uuid is None else answers[uuid] for name, uuid in known.items()}

        uuids = None if known is None else tuple(dict.fromkeys(uuid for uuid in known.values() if uuid is not None))
        now = self._clock.now_ms()
        deadline = None if timeout is None else now + int(timeout * 1000)
        waiter = self.prepare(Wait(mailbox, uuids, deadline, now), lambda answers: future.settle(answers))
        awaits = None if timeout == 0 else waiter
        future: Future[dict[Any, WaitResult]] = Future(make=by_agent, cancel=waiter.cancel, awaits=awaits)
        return future, waiter

    def is_awaited(self, waiter: Waiter, uuid: str) -> bool:
        """Return whether a wait is still open for an agent, by the agent's present state and mail.

        Raises `StoreError`.
        """
        if isinstance(waiter, Probe) and waiter.left is not None:
            return uuid in waiter.pending and uuid in self._store.read(waiter.left)
        rest = {uuid} if self._is_idle(uuid) else set[str]()

        def look(tx: Transaction) -> bool:
            rows = {row[0]: _Row(*row) for row in look_at_all(tx, {uuid, waiter.wait.mailbox})}
            wrote = unread_letters(tx, waiter.wait.mailbox, [uuid])
            return _found(rows.get(uuid), uuid in wrote, uuid in rest) is None

        return uuid in waiter.pending and self._store.read(look)

    def add(self, waiter: Waiter) -> None:
        """Register a waiter, and check soon whether its wait is over."""
        wait = waiter.wait
        with self._changed:
            closed = self._stopped
            if not closed:
                self._open[waiter] = None
                for uuid in {wait.mailbox, *waiter.pending}:
                    self._by_agent[uuid][waiter] = None
                if wait.deadline is not None:
                    left = max(0.0, (wait.deadline - max(wait.since, self._clock.now_ms())) / 1000)
                    self._deadlines.add(self._clock.monotonic() + left, waiter)
                self._mark(waiter, waiter.pending)
                if waiter.of_call is not None:
                    self._registry.add(waiter.of_call)
        if closed:
            waiter.answer(SystemClosed("The system is closed; open it again."))

    def changed(self, uuid: str) -> None:
        """Note that an agent has another status, waits for a budget, or has ended.

        Any thread may call. The call is cheap if nobody waits for the agent.
        """
        if uuid in self._by_agent:
            with self._changed:
                for waiter in self._by_agent.get(uuid, ()):
                    self._mark(waiter, {uuid})

    def became_idle(self, uuid: str) -> None:
        """Note that an agent may have become idle.

        Any thread may call. The call is cheap if nobody waits for the agent.
        """
        if uuid in self._by_agent:
            with self._changed:
                for waiter in self._by_agent.get(uuid, ()):
                    if waiter.wait.agents is not None and uuid in waiter.pending:
                        self._mark(waiter, {uuid})

    def mailed(self, recipient: str, sender: str | None) -> None:
        """Note that a mail has come. Any thread may call. The call is cheap if the recipient does not wait."""
        if recipient in self._by_agent:
            with self._changed:
                for waiter in self._by_agent.get(recipient, ()):
                    wanted = recipient if waiter.wait.agents is None else sender
                    if waiter.wait.mailbox == recipient and wanted in waiter.pending:
                        self._mark(waiter, {wanted})

    def look_again(self) -> None:
        """Check every wait, because another process may have changed anything."""
        with self._changed:
            for waiter in self._open:
                self._mark(waiter, waiter.pending)

    def forget(self, waiter: Waiter) -> None:
        """Unregister a waiter, if it is registered."""
        with self._changed:
            self._remove(waiter)

    def __len__(self) -> int:
        return len(self._open)

    def _mark(self, waiter: Waiter, uuids: Iterable[str]) -> None:
        self._dirty.setdefault(waiter, set()).update(uuids)
        self._changed.notify()

    def _remove(self, waiter: Waiter) -> bool:
        """Unregister a waiter, even if Ctrl-C has left it half registered; return whether it was registered."""
        there = waiter in self._open
        self._open.pop(waiter, None)
        if waiter.of_call is not None:
            self._registry.remove(waiter.of_call)
        self._dirty.pop(waiter, None)
        for uuid in {waiter.wait.mailbox, *(waiter.wait.agents or ())}:
            self._by_agent[uuid].pop(waiter, None)
            if not self._by_agent[uuid]:
                del self._by_agent[uuid]
        return there

    def run(self) -> None:
        while (work := self._next()) is not None:
            dirty, over = work
            try:
                self._look(dirty, over)
            except IkigaiError as error:
                for waiter in dirty:
                    self._end(waiter, error)
            except Exception:  # a defect of ours: the other waits go on
                logger.exception("The waits failed")

    def _next(self) -> tuple[dict[Waiter, set[str]], set[Waiter]] | None:
        """Wait for work; return the waiters to check, each with the uuids to check, and those whose time is over.

        None when the service ends.
        """
        with self._changed:
            while not self._stopped:
                now = self._clock.monotonic()
                over = set()
                while (waiter := self._deadlines.take_due(now)) is not None:
                    if waiter in self._open:
                        over.add(waiter)
                        self._dirty.setdefault(waiter, set()).update(waiter.pending)
                if self._dirty:
                    dirty, self._dirty = self._dirty, {}
                    return dirty, over
                self._changed.wait_for(lambda: self._stopped or self._dirty, self._deadlines.sleep(now))
        return None

    def _look(self, dirty: Mapping[Waiter, set[str]], over: set[Waiter]) -> None:
        rest = {uuid for uuids in dirty.values() for uuid in uuids if self._is_idle(uuid)}
        for waiter, answers in self._reader.read(lambda tx: _answered(tx, dirty, over, rest)).items():
            self._end(waiter, answers)
        for waiter, uuids in dirty.items():
            if waiter.of_call is not None and waiter in self._open:
                try:
                    self._registry.check(waiter.of_call, uuids)
                except WouldDeadlock as error:
                    self._end(waiter, error)
                except StoreUnavailable:  # the next look begins when the store answers
                    with self._changed:
                        self._mark(waiter, uuids)

    def _end(self, waiter: Waiter, answers: WaitResults | IkigaiError) -> None:
        with self._changed:
            there = self._remove(waiter)
        if there:
            waiter.answer(answers)


def _known(tx: Transaction, agent: object) -> str | None:
    """Return the uuid of an agent, given by its handle, uuid, name or prefix; None if there is no such agent."""
    text = getattr(agent, "uuid", agent)
    if not isinstance(text, str):
        raise BadInput(f"Expected an agent, or its uuid, name or prefix; got {shown(agent)}.")
    try:
        return registry.find(tx, text).uuid
    except AgentNotFound:
        return None


def _answered(
    tx: Transaction, dirty: Mapping[Waiter, set[str]], over: set[Waiter], rest: set[str]
) -> dict[Waiter, WaitResults | IkigaiError]:
    uuids = {uuid for waiter, looked_at in dirty.items() for uuid in (*looked_at, waiter.wait.mailbox)}
    rows = {row[0]: _Row(*row) for row in look_at_all(tx, uuids)}
    ended: dict[Waiter, WaitResults | IkigaiError] = {}
    for waiter, looked_at in dirty.items():
        answers: Any
        if isinstance(waiter, Probe):
            answers = _of_probe(tx, waiter, waiter in over)
        elif waiter.wait.agents is None:
            answers = _of_anybody(tx, waiter, rows)
        else:
            answers = _of_each(tx, waiter, looked_at, rows, rest)
        if answers is not None:
            ended[waiter] = answers
        elif waiter in over:
            ended[waiter] = {**dict.fromkeys(waiter.wait.agents or (), WaitResult.TIMEOUT), **waiter.results}
    return ended


def _of_probe(tx: Transaction, waiter: Probe, is_late: bool) -> Any:
    """Return the result or the error of a probe's read; None while it goes on waiting. Raises `StoreError`."""
    try:
        return (waiter.late if is_late else waiter.read)(tx)
    except StoreError:
        raise
    except IkigaiError as error:
        return error


def _of_anybody(tx: Transaction, waiter: Waiter, rows: Mapping[str, _Row]) -> WaitResults | IkigaiError | None:
    """Return the results of a wait for any mail; None while no mail has come."""
    uuid = waiter.wait.mailbox
    row = rows.get(uuid)
    if row is None:
        return AgentNotFound(f"There is no agent {uuid}.", uuid)
    if row.unread:
        kinds: dict[str, WaitResult] = {}
        for sender, kind in unread_kinds(tx, uuid):
            result = WaitResult.DEAD if kind == EXIT else WaitResult.MAIL
            kinds[sender or PERSON] = (
                WaitResult.MAIL if WaitResult.MAIL in (result, kinds.get(sender or PERSON)) else result
            )
        return kinds
    if row.status == Status.DEAD:
        return AgentDead(f"Agent {uuid} is dead: no mail comes any more.", uuid)
    return None


def _of_each(
    tx: Transaction, waiter: Waiter, looked_at: set[str], rows: Mapping[str, _Row], rest: set[str]
) -> WaitResults | None:
    """The results of a wait for agents; None while some are still waited for."""
    wait = waiter.wait
    own = rows.get(wait.mailbox)
    unread = own is not None and own.unread > 0

    def letters(of: Iterable[str]) -> set[str]:
        return unread_letters(tx, wait.mailbox, of) if unread else set()

    wrote = letters(looked_at)
    for uuid in looked_at & waiter.pending:
        if (result := _found(rows.get(uuid), uuid in wrote, uuid in rest)) is not None:
            waiter.results[uuid] = result
    waiter.pending.difference_update(waiter.results)
    if waiter.pending:
        return None
    waiter.results.update(dict.fromkeys(letters(wait.agents or ()), WaitResult.MAIL))
    return {uuid: waiter.results[uuid] for uuid in wait.agents or ()}


def _found(row: _Row | None, wrote: bool, is_idle: bool) -> WaitResult | None:
    """Return the result of the wait for one agent; None while the wait goes on."""
    if row is None:
        return WaitResult.UNKNOWN
    if wrote:
        return WaitResult.MAIL
    if row.status == Status.DEAD:
        return WaitResult.DEAD
    if row.status == Status.STOPPED:
        return WaitResult.STOPPED
    if row.paused:
        return WaitResult.BUDGET
    idle = is_idle and row.status == Status.RUNNING and not row.turn and not row.asked
    return WaitResult.IDLE if idle else None
