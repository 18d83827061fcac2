"""Sends the due deliveries of the agents that a host runs, and records the result of each.

    asleep      no delivery is due; a new event, a hint of another process, or the next due time starts a read
    sending     20 deliveries at once, 4 to one subscription; one of an agent at a time to a subscription, in order
    recording   the journal writes the receiver's answer; then the rows are read again

All state is in the rows, except the deliveries in progress and the time of the next read. A crash loses these, and the
next host of the agents sends the deliveries again under the same ids. While nobody has subscribed, an event costs one
check of a flag.
"""

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from ikigai_actors.actors.clock import Clock
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.records.outbox.deliveries import DueDelivery, RecordDelivery, next_deliveries
from ikigai_actors.records.outbox.retries import ReceiverAnswer
from ikigai_actors.records.outbox.signing import signed_headers, task_headers
from ikigai_actors.records.outbox.subscriptions import (
    EventSubscription,
    is_subscribed,
    subscription_place,
    waiting_subscriptions,
)
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.journal import CommitResult, Committed, Journal
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.system.host.calendar_alarm import CalendarAlarm
from ikigai_actors.system.host.delivery_bodies import delivery_body
from ikigai_actors.system.host.task_bodies import task_body
from ikigai_actors.system.kept_secrets import KeptSecrets
from ikigai_actors.system.secrets import referred_key

logger = logging.getLogger(__name__)

SENT_AT_ONCE = 20
"""The most deliveries that a host sends at the same time."""

SENT_TO_ONE = 4
"""The most deliveries of one subscription that are sent at once."""

RECORD_RETRY = 5.0
"""Seconds after which deliveries are checked again when a result could not be written."""

MEDIA = {"standard": "application/json", "cloudevents": "application/cloudevents+json", "a2a": "application/a2a+json"}
"""The media type of each form of a body."""

OF_ANOTHER_TASK = ReceiverAnswer(204, "not sent: it does not change this task")
"""The answer that is recorded for an event in a task's context that its receiver does not want."""


class Outgoing(NamedTuple):
    """An HTTP request to a receiver outside."""

    url: str
    headers: dict[str, str]
    body: bytes
    is_last: bool = False
    """Whether the subscription ends with it."""


class ReceiverLink(Protocol):
    """A way to send requests to receivers outside, such as HTTP."""

    def send(self, outgoing: Outgoing, done: Callable[[ReceiverAnswer], object]) -> None:
        """Send a request; ``done`` gets the answer of the receiver, once, on any thread. Never waits."""

    def close(self) -> None:
        """Stop sending. Requests in progress may be cut off, and their ``done`` is not called."""


class Deliveries:
    """Sends the due deliveries of one host's agents to receivers. One thread uses it, and may wait for the database."""

    def __init__(
        self,
        reader: RetryingReader,
        journal: Journal,
        host: str,
        clock: Clock,
        link: ReceiverLink,
        secrets: KeptSecrets,
        post: Callable[[Callable[[], object]], object],
        after: Callable[[float, Callable[[], object]], object],
    ) -> None:
        """Make the sender of a host's deliveries.

        Args:
            reader: reads the due deliveries.
            journal: writes the results.
            host: the id of the host.
            clock: gives the time by which deliveries are due.
            link: sends requests to receivers.
            secrets: opens the secrets of subscriptions.
            post: has the thread call a function; from any thread.
            after: lets the thread call a function in this many seconds.
        """
        self._reader, self._journal, self._host, self._clock, self._link = reader, journal, host, clock, link
        self._secrets, self._post, self._after = secrets, post, after
        self._is_wanted = True  # whether somebody may subscribe to something; looked at once, at the start
        self._is_asked = False  # whether a look is posted already
        self._sent: set[tuple[str, str]] = set()  # subscription and agent of each that is on its way
        self._to: Counter[str] = Counter()
        self._alarm = CalendarAlarm(clock, after, self.look_soon)

    def note_event(self) -> None:
        """Note that an event was committed, which may have to be delivered. From any thread; never waits."""
        if self._is_wanted:
            self.look_soon()

    def look_soon(self) -> None:
        """Check for due deliveries, because subscriptions or deliveries may have changed. Thread-safe; never waits."""
        self._is_wanted = True
        if not self._is_asked:
            self._is_asked = True
            self._post(self._look)

    def _look(self) -> None:
        self._is_asked = False
        waiting = self._reader.read(self._waiting)
        self._is_wanted = waiting is not None
        now, next_due = self._clock.now_ms(), None
        for subscription, heads in waiting or ():
            for due in heads:
                if due.key[:2] in self._sent:
                    continue
                if due.due_at > now:
                    next_due = due.due_at if next_due is None else min(next_due, due.due_at)
                elif self._to[subscription.id] < SENT_TO_ONE and len(self._sent) < SENT_AT_ONCE:
                    self._send(subscription, due)
        self._alarm.set(next_due)

    def _waiting(self, tx: Transaction) -> list[tuple[EventSubscription, list[DueDelivery]]] | None:
        """Return the waiting deliveries of each subscription, those that are due first; None without subscriptions."""
        if not is_subscribed(tx):
            return None
        most, waiting = 2 * SENT_TO_ONE, waiting_subscriptions(tx)
        return [(subscription, next_deliveries(tx, subscription.id, self._host, most)) for subscription in waiting]

    def _send(self, subscription: EventSubscription, due: DueDelivery) -> None:
        self._sent.add(due.key[:2])
        self._to[subscription.id] += 1
        try:
            outgoing = self._outgoing(subscription, due)
        except IkigaiError as error:
            self._answered(due, False, ReceiverAnswer(0, f"not sent: {error}"))
            return
        if outgoing is None:
            self._answered(due, False, OF_ANOTHER_TASK)
        else:
            self._link.send(outgoing, partial(self._answered, due, outgoing.is_last))

    def _outgoing(self, subscription: EventSubscription, due: DueDelivery) -> Outgoing | None:
        """Return the request of a delivery; None for an event of another task than the subscription's only one."""
        spec, is_last = subscription.spec, False
        secrets = self._secrets.opened(subscription_place(subscription.id), spec.secrets)
        if (task := spec.task) is not None:
            pushed = self._reader.read(lambda tx: task_body(tx, due, task))
            if pushed is None:
                return None
            body, is_last = pushed
            proof = {"webhook-id": due.key.id, **task_headers(task, secrets)}
        elif not secrets:
            raise BadInput(f"none of the secrets is there in the host: {', '.join(spec.secrets)}")
        else:
            key = referred_key(spec.key) if spec.links else None
            body = self._reader.read(lambda tx: delivery_body(tx, due, spec, key))
            proof = signed_headers(due.key.id, self._clock.now_ms() // 1000, body, secrets)
        headers = {"content-type": MEDIA[spec.form], "user-agent": "ikigai-actors", **proof}
        return Outgoing(subscription.url, headers, body, is_last)

    def _answered(self, due: DueDelivery, is_last: bool, answer: ReceiverAnswer) -> None:
        """Write the result of an attempt to deliver. Called on any thread."""
        unit = RecordDelivery(due, answer, self._host, self._clock.now_ms(), is_last=is_last)
        self._journal.submit(unit, partial(self._recorded, due))

    def _recorded(self, due: DueDelivery, result: CommitResult) -> None:
        if not isinstance(result, Committed):
            logger.warning("What came of delivery %s could not be written: %s", due.key.id, result.error)
        self._post(lambda: self._go_on(due, isinstance(result, Committed)))

    def _go_on(self, due: DueDelivery, is_written: bool) -> None:
        self._sent.discard(due.key[:2])
        self._to[due.key.subscription] -= 1
        if not self._to[due.key.subscription]:
            del self._to[due.key.subscription]
        if is_written:
            self.look_soon()
        else:
            self._after(RECORD_RETRY, self.look_soon)
