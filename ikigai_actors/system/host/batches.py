"""The batches of a host: collects requests, and sends the batches of the services for which the host is responsible.

    collected    requests are rows; after a minute, or with a thousand requests, they are sealed as a batch
    sealed       the batch is a row, and is sent: not again as long as the outcome of the sending is unknown
    lost         the answer to the sending was lost: the host searches the service's list of batches, and sends the
                 batch again after ten minutes, if no batch in the list can be this one
    at work      the service has given the batch a name; every minute the host asks whether the results are there
    over         each request has its result or error, and the host of its agent hands this to the turn

All state is in the rows, except the waiting requests, the exchanges with services in progress, and the time of the next
read. A crash loses these: the turns of the agents go on here or on another host, and find their rows. While no request
waits and no batch is open, nothing is read.
"""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from ikigai_actors.actors.clock import Clock
from ikigai_actors.agent.batched import BatchDesk, BatchQuestion, HandOver, Sealed
from ikigai_actors.agent.subscriptions import AS_EVENT, BatchTrouble
from ikigai_actors.errors import IkigaiError, ProviderError
from ikigai_actors.providers.batches import (
    BatchRequest,
    BatchService,
    ListedBatch,
    MemberOutcome,
    batch_in,
    custom_id,
)
from ikigai_actors.records.batches import (
    AskDirectly,
    BatchAnswer,
    EndBatch,
    JoinBatch,
    LeaveBatch,
    MemberKey,
    NameBatch,
    OpenBatch,
    ReadMembers,
    SealBatch,
    TakeSeat,
    WaitingMember,
    batch_bodies,
    batch_members,
    due_members,
    known_batches,
    next_due_member,
    open_batches,
    seal_now,
    seals_at,
    services_of_batches,
    unread_members,
    unsealed_members,
    waits_for_batch,
)
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.journal import CommitResult, Committed, Journal
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.store.unit import Unit

logger = logging.getLogger(__name__)

POLL_SECONDS = 60.0
"""Seconds between two requests to a service for the state of a batch."""

LOST_SECONDS = 600.0
"""Seconds after which a batch that the service does not list is sent again."""

OTHER_HOST_SECONDS = 30.0
"""Seconds between two checks of a host whether the seat of a service is free."""


class Attend(Protocol):
    """Runs coroutines that send requests to a service."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, Any]], done: Callable[[Any], object], /) -> object:
        """Run a coroutine; ``done`` gets the result or the error, on any thread. Never waits."""


class BatchLink(NamedTuple):
    """The functions by which a host reaches the batches of its providers' services."""

    service_of: Callable[[str], BatchService | None]
    """The batches of ``provider:model``; None where this host cannot ask them."""
    attend: Attend
    new_id: Callable[[], str]
    """Makes the names of batches: letters and digits, 32 at most."""
    publish: Callable[[BatchTrouble], object]
    """Passes trouble on to subscribers."""


class BatchWork(NamedTuple):
    """The open batches and waiting requests of a service, read at one moment."""

    collected: list[WaitingMember]
    open: list[OpenBatch]
    due: list[MemberKey]
    next_due: int | None


@dataclass(slots=True)
class _Waiter:
    """A model request of an agent of this host that waits for the answer of its batch."""

    question: BatchQuestion
    hand_over: HandOver
    sealed: Sealed


@dataclass(slots=True)
class _Service:
    busy: set[str] = field(default_factory=set)  # batches about which it is being asked
    asked_at: dict[str, int] = field(default_factory=dict)  # when, by batch
    troubled: set[str] = field(default_factory=set)  # batches whose trouble is published
    sealing: bool = False


class Batches(BatchDesk):
    """The batches of one host's model requests. One thread uses it; any thread may call `join` and `leave`."""

    def __init__(
        self,
        reader: RetryingReader,
        journal: Journal,
        host: str,
        clock: Clock,
        link: BatchLink,
        post: Callable[[Callable[[], object]], object],
        after: Callable[[float, Callable[[], object]], object],
    ) -> None:
        """Make the batches of a host.

        Args:
            reader: reads the waiting requests and open batches.
            journal: commits the changes.
            host: the id of the host.
            clock: gives the time by which work is due.
            link: asks services.
            post: has the thread call a function; from any thread.
            after: lets the thread call a function in this many seconds.
        """
        self._reader, self._journal, self._host, self._clock = reader, journal, host, clock
        self._link = link
        self._post, self._after = post, after
        self._waiters: dict[tuple[str, int], _Waiter] = {}
        self._services: dict[str, _Service] = {}
        self._is_wanted = True  # whether something may wait; looked at once, at the start
        self._is_asked = False
        self._alarm: float | None = None

    def join(self, question: BatchQuestion, sealed: Sealed, hand_over: HandOver) -> None:
        self._post(lambda: self._join(question, sealed, hand_over))

    def leave(self, question: BatchQuestion) -> None:
        self._post(lambda: self._leave(question))

    def look_soon(self) -> None:
        """Check the batches soon, because another process may have changed rows. From any thread; never waits."""
        if (self._is_wanted or self._waiters) and not self._is_asked:
            self._is_asked = True
            self._post(self._look)

    def _join(self, question: BatchQuestion, sealed: Sealed, hand_over: HandOver) -> None:
        now = self._clock.now_ms()
        unit = JoinBatch(
            question.agent, question.position, question.service, question.body, now, now + question.patience
        )
        try:
            answer: BatchAnswer = self._journal.perform(unit)
        except IkigaiError as error:
            hand_over(error)
            return
        if answer.state == "waiting":
            self._waiters[question.agent, question.position] = _Waiter(question, hand_over, sealed)
            if answer.is_sealed:
                sealed()
            self._is_wanted = True
            self.look_soon()
        else:
            hand_over(answer)

    def _leave(self, question: BatchQuestion) -> None:
        waiter = self._waiters.get((question.agent, question.position))
        if waiter is not None and waiter.question is question:
            del self._waiters[question.agent, question.position]
            self._write(LeaveBatch(question.agent, question.position), lambda: None)

    def _look(self) -> None:
        self._is_asked = False
        self._hand_over_ended()
        services = self._reader.read(services_of_batches)
        self._is_wanted = bool(services)
        for name in services:
            if (service := self._link.service_of(name)) is None:
                continue
            if name in self._services or self._takes_seat(name):
                self._see_to(name, service)
            else:
                self._wake_in(OTHER_HOST_SECONDS)

    def _takes_seat(self, service: str) -> bool:
        try:
            return bool(self._journal.perform(TakeSeat(service, self._host)))
        except IkigaiError as error:  # the database does not answer: it is asked again as if another had the seat
            logger.warning("The seat of %s could not be taken: %s", service, error)
            return False

    def _hand_over_ended(self) -> None:
        ended = self._reader.read(lambda tx: unread_members(tx, self._host))
        if not ended:
            return

        def hand_over() -> None:
            for member in ended:
                waiter = self._waiters.pop(member.key[:2], None)
                if waiter is not None:
                    waiter.hand_over(BatchAnswer(member.state, member.result, True))
            self.look_soon()

        self._write(ReadMembers([member.key for member in ended], self._clock.now_ms()), hand_over)

    def _see_to(self, name: str, service: BatchService) -> None:
        """Do the due work for the batches of one service, for which this host is responsible."""
        now = self._clock.now_ms()
        work = self._reader.read(lambda tx: _work(tx, name, now))
        known = self._services.setdefault(name, _Service())
        if work.due:
            self._write(AskDirectly(name, self._host, work.due), self.look_soon)
        if not known.sealing and (chosen := seal_now(work.collected, now)):
            self._seal(name, known, [member.key for member in chosen if member.key not in work.due])
        for batch in work.open:
            if batch.id not in known.busy:
                self._go_on(known, service, batch, now)
        if times := [time for time in (seals_at(work.collected), work.next_due) if time is not None and time > now]:
            self._wake_in((min(times) - now) / 1000)  # what is due already is on its way, and its commit looks again

    def _seal(self, name: str, known: _Service, members: list[MemberKey]) -> None:
        if not members:
            return
        unit = SealBatch(name, self._host, self._link.new_id(), members, self._clock.now_ms())
        known.sealing = True
        known.asked_at[unit.id] = -1  # to be sent, not looked for

        def sealed() -> None:
            known.sealing = False
            for key in members:
                if (waiter := self._waiters.get(key[:2])) is not None:
                    waiter.sealed()
            self.look_soon()

        def failed() -> None:
            known.sealing = False
            self._wake_in(POLL_SECONDS)

        self._write(unit, sealed, failed)

    def _go_on(self, known: _Service, service: BatchService, batch: OpenBatch, now: int) -> None:
        """Do the next step of a batch: send it, look for it at the service, or ask whether it has ended."""
        asked_at = known.asked_at.get(batch.id)
        if batch.remote is None and asked_at == -1:
            known.asked_at[batch.id] = now
            self._send(known, service, batch)
            return
        since = batch.made_at if asked_at is None and batch.remote is None else asked_at
        if asked_at is not None and since is not None and now - since < POLL_SECONDS * 1000:
            self._wake_in(POLL_SECONDS - (now - since) / 1000)
            return
        known.asked_at[batch.id] = now
        if batch.remote is None:
            self._find(known, service, batch)
        elif self._reader.read(lambda tx: waits_for_batch(tx, batch.id)):
            self._poll(known, service, batch, batch.remote)
        else:
            self._cancel(known, service, batch, batch.remote)

    def _send(self, known: _Service, service: BatchService, batch: OpenBatch) -> None:
        members = self._reader.read(lambda tx: batch_bodies(tx, batch.id))
        requests = [BatchRequest(custom_id(*key, batch.id), body) for key, body in members]

        def answered(remote: str | BaseException) -> None:
            if isinstance(remote, str):
                self._name(known, batch, remote)
            elif isinstance(remote, ProviderError) and remote.free and not remote.retry_after:
                self._report(known, batch, f"The service refused a batch, and its requests are sent directly: {remote}")
                outcome = MemberOutcome("not taken", str(remote))
                self._end(known, batch, {key: outcome for key, _ in members})
            else:
                self._report(known, batch, f"The service did not say whether it has taken a batch: {remote}")
                self._rest(known, batch)

        self._ask(known, batch, lambda: service.create_batch(batch.id, requests), answered)

    def _find(self, known: _Service, service: BatchService, batch: OpenBatch) -> None:
        """Search the service's list for a batch whose sending had an unclear result."""
        taken = self._reader.read(lambda tx: known_batches(tx, batch.service))

        async def look() -> str | bool:
            candidates = [listed for listed in await service.listed_batches() if listed.remote not in taken]
            return await _found(service, batch, candidates)

        def looked(answer: "str | bool | BaseException") -> None:
            since = batch.made_at if batch.sent_at is None else batch.sent_at
            if isinstance(answer, str):
                self._name(known, batch, answer)
            elif answer is False and self._clock.now_ms() - since >= LOST_SECONDS * 1000:
                unit = NameBatch(batch.service, self._host, batch.id, None, self._clock.now_ms())

                def again() -> None:
                    known.asked_at[batch.id] = -1
                    self._rest(known, batch)
                    self.look_soon()

                self._write(unit, again, lambda: self._rest(known, batch))
            else:
                if isinstance(answer, BaseException):
                    self._report(known, batch, f"A batch could not be looked for: {answer}")
                self._rest(known, batch)

        self._ask(known, batch, look, looked)

    def _poll(self, known: _Service, service: BatchService, batch: OpenBatch, remote: str) -> None:
        """Ask the service whether a batch has ended, and take the results."""

        async def ask() -> "dict[str, MemberOutcome] | None":
            if not await service.has_ended(remote):
                return None
            return {result.custom_id: result.outcome for result in await service.batch_results(remote)}

        def answered(results: "dict[str, MemberOutcome] | BaseException | None") -> None:
            if isinstance(results, dict):
                members = self._reader.read(lambda tx: batch_members(tx, batch.id))
                named = ((key, results.get(custom_id(*key, batch.id))) for key in members)
                self._end(known, batch, {key: outcome for key, outcome in named if outcome is not None})
                return
            if results is not None:
                self._report(known, batch, f"The results of a batch could not be fetched: {results}")
            self._rest(known, batch)

        self._ask(known, batch, ask, answered)

    def _cancel(self, known: _Service, service: BatchService, batch: OpenBatch, remote: str) -> None:
        """Cancel a batch at its service, because no member waits for it: the models were asked directly."""

        def cancelled(error: BaseException | None) -> None:
            if error is None:
                self._end(known, batch, {})
            else:
                self._report(known, batch, f"A batch could not be cancelled: {error}")
                self._rest(known, batch)

        self._ask(known, batch, lambda: service.cancel_batch(remote), cancelled)

    def _ask(
        self,
        known: _Service,
        batch: OpenBatch,
        work: Callable[[], Coroutine[Any, Any, Any]],
        done: Callable[[Any], object],
    ) -> None:
        def answered(answer: Any) -> None:
            if not isinstance(answer, BaseException):
                known.troubled.discard(batch.id)
            done(answer)

        known.busy.add(batch.id)
        self._link.attend(work, lambda answer: self._post(lambda: answered(answer)))

    def _report(self, known: _Service, batch: OpenBatch, text: str) -> None:
        """Publish trouble with a batch once; trouble is published again only after the service has answered."""
        if batch.id not in known.troubled:
            known.troubled.add(batch.id)
            logger.warning("Batch %s of %s: %s", batch.id, batch.service, text, extra=AS_EVENT)
            self._link.publish(BatchTrouble(batch.service, batch.id, text))

    def _name(self, known: _Service, batch: OpenBatch, remote: str) -> None:
        unit = NameBatch(batch.service, self._host, batch.id, remote, self._clock.now_ms())
        self._write(unit, lambda: self._rest(known, batch), lambda: self._rest(known, batch))

    def _end(self, known: _Service, batch: OpenBatch, outcomes: dict[MemberKey, MemberOutcome]) -> None:
        unit = EndBatch(batch.service, self._host, batch.id, outcomes, self._clock.now_ms())

        def ended() -> None:
            known.busy.discard(batch.id)
            known.asked_at.pop(batch.id, None)
            known.troubled.discard(batch.id)
            self.look_soon()

        self._write(unit, ended, lambda: self._rest(known, batch))

    def _rest(self, known: _Service, batch: OpenBatch) -> None:
        known.busy.discard(batch.id)
        self._wake_in(POLL_SECONDS)

    def _write(self, unit: Unit, done: Callable[[], object], failed: Callable[[], object] = lambda: None) -> None:
        def committed(result: CommitResult) -> None:
            if isinstance(result, Committed):
                self._post(done)
            else:
                logger.warning("The state of batches could not be written: %s", result.error)
                self._post(failed)

        self._journal.submit(unit, committed)

    def _wake_in(self, seconds: float) -> None:
        at = self._clock.monotonic() + seconds
        if self._alarm is None or at < self._alarm:
            self._alarm = at
            self._after(seconds, partial(self._wake, at))

    def _wake(self, alarm: float) -> None:
        if alarm == self._alarm:
            self._alarm = None
            self.look_soon()


def _work(tx: Transaction, service: str, now: int) -> BatchWork:
    return BatchWork(
        unsealed_members(tx, service),
        open_batches(tx, service),
        due_members(tx, service, now),
        next_due_member(tx, service),
    )


async def _found(service: BatchService, batch: OpenBatch, candidates: list[ListedBatch]) -> str | bool:
    """Return the service's id of a batch, searched among candidates.

    False if no candidate can be the batch, True if a candidate may be.
    """
    open_ones = False
    for candidate in candidates:
        if candidate.id == batch.id:
            return candidate.remote
        if candidate.id is not None or candidate.size != batch.size:
            continue
        if not candidate.has_ended:
            open_ones = True
            continue
        results = await service.batch_results(candidate.remote)
        if results and batch_in(results[0].custom_id) == batch.id:
            return candidate.remote
    return open_ones
