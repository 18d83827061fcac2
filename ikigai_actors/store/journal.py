"""The journal: the one writer of a host. It commits queued units in transactions, and calls each unit's callback.

Many units share a transaction (group commit), so a thousand agents that append at once cost one wait for the disk. A
unit ends in one of four ways:

    committed   the unit's writes are durable; the callback gets `Committed` with the unit's answer
    refused     a check of the unit raised an error before the unit wrote anything
    failed      a statement of the unit failed, or the journal gave up; nothing of the unit was written
    unknown     the journal gave up while the COMMIT was in doubt; the callback gets `OutcomeUnknown`: the unit may or
                may not be written

When a statement fails, the transaction is rolled back and its units run again, one transaction each: a failing unit
fails alone. While the store is down the journal tries again and again; no unit is answered, none is lost. After
``patience`` seconds, or at once when trying again cannot help, it gives up: every unit fails, and ``on_failure`` is
called once.

Every transaction also writes its batch number into the host's row. When COMMIT fails or gives no answer, that row says
whether it happened, as soon as the store answers again. So a unit is never written twice, and never reported as failed
when it was written. The same statement is the fence. It refuses the transaction if another host has ended the row, or
if the row does not have the number of the batch before, since an older copy of the database took its place. Nothing of
the transaction is then written, and the journal gives up.

After a moment without a commit, the journal brings the database's file up to date (`Store.checkpoint`).

After each commit the store's bell rings for those who follow hosts, and for the other hosts when a row of an agent was
locked that another host runs.

A unit that concerns others than its agent (`Unit.concerns_others`: mail, death, a new status) has its answer passed to
``on_commit`` after the commit, before the unit itself is answered. So the thread that commits need not wake those
others.

One thread at a time writes: the journal's thread, or a worker. A worker writes the unit that its actor has submitted if
nobody is writing, no unit is queued, and no actor is ready that might share the transaction. So the actor goes on on
the same thread. The journal's thread writes the units that are submitted meanwhile.

Callbacks run on the thread that has written. They only post messages: they run no user code, do not wait, and submit no
unit.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ikigai_actors.actors.actor import Dispatcher
from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, TimedOut, forbid_blocking, refuse_to_block
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import SYSTEM_THREADS, Threads
from ikigai_actors.actors.tool_slots import lent
from ikigai_actors.errors import (
    CommitUnknown,
    Fenced,
    IkigaiError,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
    SystemClosed,
)
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.hosts.rows import went_back, why_ended
from ikigai_actors.store.retrying_reader import FIRST_RETRY, LONGEST_RETRY
from ikigai_actors.store.unit import RunAlone, Unit, concerned, lock
from ikigai_actors.store.writer import Writer

logger = logging.getLogger(__name__)
T = TypeVar("T")

IDLE = 1.0
"""Seconds without a commit after which the database's file is brought up to date."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a unit that was committed and is durable, with its answer."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The outcome of a unit that raised a reason not to be written."""

    error: IkigaiError


@dataclass(frozen=True, slots=True)
class Failed:
    """The outcome of a unit that could not be written, with the error."""

    error: IkigaiError


CommitResult = Committed | Refused | Failed
"""The outcome of a unit."""

Done = Callable[[CommitResult], None]
"""A function that takes the outcome of a unit."""

_Entry = tuple[Unit, Done]


@dataclass(frozen=True, slots=True)
class _Again:
    """The result for a unit of which nothing was written. Another unit runs instead, in a transaction of its own."""

    unit: Unit


_BATCH = 1_000  # the most units of one transaction
_COMMITTED = Committed()  # what nearly every unit hears


@dataclass(frozen=True, slots=True)
class JournalStatistics:
    """Counters of the journal."""

    queued: int
    """Units that wait for their transaction."""
    capacity: int
    """With this many queued units, callers outside the runtime wait."""
    waiting: int
    """Callers outside the runtime that wait for room now."""
    waits: int
    """How often such a caller had to wait for room in the queue."""
    units: int
    """The number of committed units."""
    batches: int
    """The number of committed transactions."""
    retries: int
    """Transactions tried again because the store was down."""
    trouble: str | None
    """Why the store does not answer at the moment; None if it does."""


class Journal(Service, Writer):
    """The one writer of a host. Start it, submit units, and close it. Closing writes the accepted units first."""

    def __init__(
        self,
        store: Store,
        host: str,
        clock: Clock,
        *,
        threads: Threads = SYSTEM_THREADS,
        capacity: int = 10_000,
        patience: float = 60.0,
        on_commit: Callable[[Any], object] = lambda answer: None,
        on_posted: Callable[[], object] = lambda: None,
        on_trouble: Callable[[str | None], None] = lambda trouble: None,
        on_failure: Callable[[IkigaiError], None] = lambda error: None,
    ) -> None:
        """Make a journal.

        Args:
            store: the database that it writes to.
            host: id of the host's row, which keeps the batch number.
            clock: measures the patience.
            threads: makes the thread of the writer.
            capacity: with this many queued units, callers outside the runtime wait.
            patience: seconds that the store may be down, from its first failure on, before the journal gives up.
            on_commit: takes the answer of each committed unit that concerns others.
            on_posted: called after each transaction of which somebody outside may have to hear.
            on_trouble: gets the reason when the store stops answering, and None when it answers again.
            on_failure: gets the error when the journal gives up; once.
        """
        self._lock = threading.Lock()
        super().__init__("ikigai-journal", threads, self._lock)
        self._store, self._host, self._clock = store, host, clock
        self._capacity, self._patience = capacity, patience
        self._on_commit, self._on_trouble, self._on_failure = on_commit, on_trouble, on_failure
        self._on_posted, self._posted = on_posted, False
        self._entries: deque[_Entry] = deque()
        self._asleep = False
        self._times_idleness = False  # whether the sleeping thread looks when nothing was committed for a while
        self._writing = False  # whether somebody writes: one at a time
        self._failure: IkigaiError | None = None
        self._number = 0
        self._fresh = True  # every process that opens the database has written, too
        self._others_wrote = False
        self._concerned: set[str] | None = None  # the agents that the latest transaction has changed
        self._concerns_hosts = False  # whether it concerns other hosts
        self._waiting = self._waits = self._units = self._retries = 0
        self._trouble: str | None = None

    def submit(self, unit: Unit, done: Done, workers: Dispatcher | None = None) -> None:
        """Queue a unit of an actor for its commit. Never waits: an actor has at most one unit in flight.

        Args:
            unit: the unit.
            done: takes the outcome.
            workers: the dispatcher whose calling worker may write the unit itself, if no other unit waits; None for no
                worker.
        """
        with self._lock:
            if self._failure is None and not self._stopped:
                if workers is None or not self._is_left_to(workers, (unit, done)):
                    self._entries.append((unit, done))
                    if self._asleep and not self._writing:
                        self._changed.notify_all()
                return
        done(Failed(self._gone()))

    def _is_left_to(self, workers: Dispatcher, entry: _Entry) -> bool:
        """Return whether the calling worker may write a unit.

        Nobody may be writing, and no ready actor could share the transaction.
        """
        if self._writing or self._entries or not self.started or workers.ready:
            return False
        self._writing = workers.step_aside(lambda: self._write_aside(entry), "ikigai-commit")
        return self._writing

    def _write_aside(self, entry: _Entry) -> Callable[[], object]:
        results = list(self._commit((entry,)))

        def answer() -> None:
            for entry, result in results:
                self._answer(entry, result)
            with self._changed:
                self._writing = False
                if self._asleep and self._is_called():
                    self._changed.notify_all()

        return answer

    def ask(
        self,
        unit: Unit,
        make: Callable[[Any], Any] | None = None,
        *,
        timeout: float | None = None,
        waits: bool = False,
    ) -> Future[Any]:
        answer = Future(make=make, timeout=timeout)
        if waits:
            refuse_to_block()
            started = self._clock.monotonic()
            self._wait_for_room(timeout)
            if timeout is not None:
                answer.within(max(0.0, timeout - (self._clock.monotonic() - started)))

        def done(result: CommitResult) -> None:
            answer.settle(result.value if isinstance(result, Committed) else result.error)

        self.submit(unit, done)
        return answer

    def note_others(self) -> None:
        """Record that another process may have written.

        After a second without commits, the log is moved into the file.
        """
        with self._changed:
            self._others_wrote = True
            if self._asleep:
                self._changed.notify_all()

    def statistics(self) -> JournalStatistics:
        """Return the counters of the journal."""
        return JournalStatistics(
            queued=len(self._entries),
            capacity=self._capacity,
            waiting=self._waiting,
            waits=self._waits,
            units=self._units,
            batches=self._number,
            retries=self._retries,
            trouble=self._trouble,
        )

    def close(self, timeout: float | None = None) -> None:
        """Write the accepted units, then stop. A store that is down gets one more try, not the whole patience."""
        super().close(timeout)
        while self._entries and not self.started:  # nobody else writes
            self.commit_pending()

    def _gone(self) -> IkigaiError:
        why = "The system is closed; open it again."
        return SystemClosed(why if self._failure is None else f"Nothing is written any more: {self._failure}")

    def _wait_for_room(self, timeout: float | None) -> None:
        with self._changed:
            if len(self._entries) < self._capacity:
                return
            self._waits += 1
            self._waiting += 1
            try:
                with lent():
                    roomy = self._changed.wait_for(
                        lambda: len(self._entries) < self._capacity or self._stopped, timeout
                    )
            finally:
                self._waiting -= 1
        if not roomy:
            raise TimedOut(f"The journal had no room within {timeout} s: {self._capacity} units wait to be written.")

    def run(self) -> None:
        forbid_blocking("the journal's thread")
        while True:
            with self._changed:
                before = self._number
                self._asleep, self._times_idleness = True, self._fresh
                woken = self._changed.wait_for(self._is_called, IDLE if self._fresh else None)
                self._asleep = False
                if self._stopped and not self._entries and not self._writing:
                    return
                if self._others_wrote:
                    self._others_wrote, self._fresh = False, True
                writes = bool(self._entries) and not self._writing
                self._writing |= writes
            if writes:
                self.commit_pending()
                with self._lock:
                    self._writing = False
            elif not woken and self._number == before:
                self._bring_up_to_date()

    def _is_called(self) -> bool:
        is_fresh = self._others_wrote or self._fresh
        return not self._writing and (bool(self._entries) or self._stopped or (is_fresh and not self._times_idleness))

    def _bring_up_to_date(self) -> None:
        self._fresh = False
        try:
            self._store.checkpoint()
        except StoreError as error:  # the next commit has the same trouble, and reports it
            logger.info("The database's file could not be brought up to date: %s", error)

    def commit_pending(self) -> None:
        """Write the queued units, with as few transactions as possible."""
        with self._changed:
            entries = [self._entries.popleft() for _ in range(min(len(self._entries), _BATCH))]
            if self._waiting:
                self._changed.notify_all()
        for batch in _batches(entries):
            for entry, result in self._commit(batch):
                self._answer(entry, result)

    def _answer(self, entry: _Entry, result: CommitResult) -> None:
        unit, done = entry
        if unit.concerns_others and isinstance(result, Committed):
            _tell(self._on_commit, result.value)
        _tell(done, result)

    def _commit(self, entries: Sequence[_Entry]) -> Iterator[tuple[_Entry, CommitResult]]:
        units = [unit for unit, _ in entries]
        try:
            results = self._until_it_answers(units)
        except (StoreUnavailable, StoreUnusable, SystemClosed, Fenced) as error:  # patience is over, or will never help
            results = [Failed(self._give_up(error))] * len(units)
        except Exception as error:  # a statement failed, or a unit has a defect: the other agents' units go on
            self._note_trouble(None)  # the store answers
            if len(entries) > 1:
                for entry in entries:
                    yield from self._commit((entry,))
                return
            results = [Failed(_ours(error, units[0]))]
        for entry, result in zip(entries, results, strict=True):
            if isinstance(result, _Again):
                yield from self._commit(((result.unit, entry[1]),))
            else:
                yield entry, result

    def _until_it_answers(self, units: Sequence[Unit]) -> list[CommitResult | _Again]:
        """Run the transaction until the store takes or refuses it.

        When patience is over it raises the last error: `_InDoubt` when a COMMIT may have happened. Raises `Fenced` at
        once.
        """
        if self._failure is not None:
            return [Failed(self._gone())] * len(units)
        down_since, pause = None, FIRST_RETRY
        number, settling, last = self._number + 1, False, False
        results: list[CommitResult | _Again] = []
        while True:
            try:
                # A write, which locks the row: a server that has heard COMMIT and is still at it must finish first.
                if settling and self._store.write(lambda tx: tx.run("batch_of", host=self._host)) == [(number,)]:
                    break
                settling = False
                self._store.write(lambda tx: self._write(tx, units, number, results))
                break
            except StoreUnavailable as unavailable:
                trouble, settling = unavailable, settling or isinstance(unavailable, CommitUnknown)
            except (StoreError, SystemClosed, Fenced) as error:
                if settling:
                    raise _InDoubt(error) from error
                raise
            down_since = down_since or self._clock.monotonic()  # not before the attempt: a process may be stopped
            if last or self._clock.monotonic() - down_since >= self._patience:
                if settling:
                    raise _InDoubt(trouble) from trouble
                raise trouble
            last = self._stopped  # one more try, which may be what settles a COMMIT
            self._retries += 1
            self._note_trouble(str(trouble))
            with self._changed:
                self._changed.wait_for(lambda: self._stopped, pause)
            pause = min(pause * 2, LONGEST_RETRY)
        self._number, self._fresh = number, True
        if self._store.leases:  # else each commit changes the file, which other processes watch
            _tell(lambda agents: self._store.ring(agents, hosts=self._concerns_hosts), self._concerned)
        if self._posted:
            _tell(lambda _: self._on_posted(), None)
        self._units += sum([isinstance(result, Committed) for result in results])
        self._note_trouble(None)
        return results

    def _write(self, tx: Transaction, units: Sequence[Unit], number: int, results: list[CommitResult | _Again]) -> None:
        """Run one transaction: lock the tree and the agents' rows, then write the units in order and the batch number.

        The results are left in the caller's list, since a broken COMMIT returns nothing.
        """
        results.clear()
        locked = lock(tx, units)
        for unit in units:
            try:
                answer = unit.write(tx, locked)
                results.append(_COMMITTED if answer is None else Committed(answer))
            except RunAlone as alone:
                results.append(_Again(alone.unit))
            except StoreError:
                raise
            except IkigaiError as refusal:
                results.append(Refused(refusal))
        locked.settle(tx)
        self._concerned, self._posted = concerned(units, locked), locked.posted
        owners = {row.owner for row in locked.values()}
        self._concerns_hosts = any(unit.concerns_hosts for unit in units) or not owners <= {self._host}
        last = number - 1
        tx.require("set_batch", lambda after: self._fenced(after, last), host=self._host, last=last, batch=number)

    def _fenced(self, tx: Transaction, last: int) -> Fenced:
        """Return the error that explains why the fence has refused the transaction."""
        rows = tx.run("batch_of", host=self._host)
        if rows == [(last,)]:
            return why_ended(tx, self._host, then=" What this one still did is dropped.")
        known = f"it knows {rows[0][0]} of {last} transactions" if rows else "it does not know this host"
        return went_back(self._store.location, known)

    def _note_trouble(self, trouble: str | None) -> None:
        changed = (trouble is None) != (self._trouble is None)
        self._trouble = trouble
        if changed:
            _tell(self._on_trouble, trouble)

    def _give_up(self, error: IkigaiError) -> IkigaiError:
        """Refuse all writes from now on; return the error for the current units."""
        self._failure = error.trouble if isinstance(error, _InDoubt) else error
        _tell(self._on_failure, self._failure)
        return OutcomeUnknown(str(error)) if isinstance(error, _InDoubt) else self._gone()


def _tell(listener: Callable[[T], object], news: T) -> None:
    """Call a listener. Log its errors instead of raising them, so that they do not end the journal."""
    try:
        listener(news)
    except Exception:  # whatever it is, the units after it must still be written
        logger.exception("A listener of the journal failed on %r", news)


class _InDoubt(CommitUnknown):
    """The last error of a transaction that may have been committed."""

    def __init__(self, trouble: IkigaiError) -> None:
        super().__init__(
            "It may or may not be written: COMMIT failed, and the database could not be asked what came of it. Open "
            f"the system again and look, before you do it again. {trouble}"
        )
        self.trouble = trouble


def _ours(error: Exception, unit: Unit) -> IkigaiError:
    """Return the error of a failed unit, for the caller who submitted it."""
    if isinstance(error, IkigaiError):
        return error
    logger.error("A unit of agent(s) %s has a defect", ", ".join(unit.touches), exc_info=error)
    return StoreError(f"The unit failed: {error!r}")


def _batches(entries: Sequence[_Entry]) -> list[list[_Entry]]:
    """Split entries before and after each unit that must have a transaction of its own."""
    batches: list[list[_Entry]] = []
    shared = False
    for entry in entries:
        if shared and not entry[0].alone:
            batches[-1].append(entry)
        else:
            batches.append([entry])
        shared = not entry[0].alone
    return batches
