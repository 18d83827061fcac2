"""Table ``deliveries``, the outbox: each event once for each subscription that wants it, with its outcome.

    waits       ``due_at`` is its next try
    received    ``done_at`` is set: the receiver has answered 2xx
    dead        neither is set: all attempts have failed, or the subscription has ended

The row is written in the transaction of the event (`ikigai_actors.records.outbox.events`). The host that has the shard
of the event's agent sends the delivery, and writes the result only while it has the shard in the same epoch. A host
that was stopped meanwhile may send once more, under the same id, but records nothing. After a crash before the result
is written, the attempt is repeated.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from ikigai_actors.errors import IkigaiError, SubscriptionNotFound
from ikigai_actors.records.agents import registry
from ikigai_actors.records.mail.mail import NOTICE, Mail, write_mail
from ikigai_actors.records.outbox.events import SUBSCRIPTION_PAUSED, PostedEvent, post
from ikigai_actors.records.outbox.retries import DeliveryVerdict, ReceiverAnswer, verdict
from ikigai_actors.records.outbox.subscriptions import (
    EventSubscription,
    SubscriptionChanged,
    end_subscription,
    subscription_with,
)
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, RunAlone, Unit

DELIVERIES_KEPT_MS = 30 * 24 * 3600 * 1000
"""The milliseconds after which a prune deletes a delivery that does not wait."""

LONGEST_SAID = 200
"""The most characters of a receiver's answer that are stored."""


class DeliveryKey(NamedTuple):
    """The primary key of a delivery: a subscription, and the event that is sent to it."""

    subscription: str
    agent: str
    position: int
    kind: str
    about: str

    @property
    def id(self) -> str:
        """Return the id that the receiver gets, the same in each attempt."""
        identity = "\0".join((self.subscription, self.agent, str(self.position), self.kind, self.about))
        return f"msg_{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


class DueDelivery(NamedTuple):
    """The next delivery of an agent for a subscription: a row of ``next_deliveries``."""

    key: DeliveryKey
    at: int
    """The time of its event, in milliseconds since 1970."""
    tries: int
    due_at: int
    epoch: int
    """The epoch of its agent's shard."""


class DeliveryRecord(NamedTuple):
    """A delivery with its state, as people see it: a row of the query ``deliveries_of``."""

    key: DeliveryKey
    at: int
    tries: int
    due_at: int | None
    done_at: int | None
    said: str

    @property
    def id(self) -> str:
        """Return the id that the receiver gets."""
        return self.key.id

    @property
    def state(self) -> str:
        """Return the state: ``waiting``, ``received`` or ``dead``."""
        return "waiting" if self.due_at is not None else "received" if self.done_at is not None else "dead"


def next_deliveries(tx: Transaction, subscription: str, host: str, most: int) -> list[DueDelivery]:
    """Return the next deliveries of a host for a subscription: the earliest of each agent, those due first."""
    rows = tx.run("next_deliveries", subscription=subscription, host=host, most=most)
    return [DueDelivery(DeliveryKey(subscription, *row[:4]), *row[4:]) for row in rows]


def latest_deliveries(tx: Transaction, subscription: str, most: int) -> list[DeliveryRecord]:
    """Return the latest deliveries of a subscription, newest first."""
    rows = tx.run("deliveries_of", subscription=subscription, most=most)
    return [DeliveryRecord(DeliveryKey(subscription, *row[:4]), *row[4:]) for row in rows]


def deliveries_since(tx: Transaction, subscription: str, since: int) -> list[DeliveryRecord]:
    """Return the deliveries of a subscription for events at a time or later, oldest first."""
    rows = tx.run("deliveries_since", subscription=subscription, since=since)
    return [DeliveryRecord(DeliveryKey(subscription, *row[:4]), *row[4:]) for row in rows]


def counted_deliveries(tx: Transaction, subscription: str) -> dict[str, int]:
    """Return the number of a subscription's deliveries by state."""
    return {state: int(count) for state, count in tx.run("count_deliveries", subscription=subscription)}


def prune_deliveries(tx: Transaction, now: int) -> None:
    """Delete deliveries after 30 days, except those that wait."""
    tx.run("prune_deliveries", before=now - DELIVERIES_KEPT_MS)


def _agent_0(tx: Transaction) -> str | None:
    root = registry.root(tx)
    return None if root is None else root.uuid


class DeliveryRecorded(NamedTuple):
    """The answer of a `RecordDelivery` that has paused its subscription."""

    notice: Mail | None
    """The notice to the topmost agent of the subscription's branch; None if that agent takes no mail."""


@dataclass(frozen=True, slots=True)
class RecordDelivery(Unit):
    """Record the result of an attempt to deliver.

    Nothing is written if the shard or the delivery has changed since it began.

    Answered with `DeliveryRecorded` if this pauses the subscription, else with None.
    """

    due: DueDelivery
    answer: ReceiverAnswer
    host: str
    now: int
    top: str | None = None
    """The topmost agent of the subscription's branch, if the subscription is to be paused."""
    is_last: bool = False
    """Whether its subscription ends once this is received or dead: the end of the only task."""

    locks = ("top",)
    concerns_others = True

    @property
    def touches(self) -> tuple[str, ...]:
        return () if self.top is None else (self.top,)

    def write(self, tx: Transaction, locked: LockedRows) -> DeliveryRecorded | None:
        key = self.due.key
        tx.run("lock_subscription", id=key.subscription)
        try:
            subscription = subscription_with(tx, key.subscription)
        except SubscriptionNotFound:
            return None  # it was removed meanwhile, and its deliveries ended
        done = verdict(self.answer, key.id, self.due.tries, self.now, subscription.failing_since)
        pauses = done.pauses and subscription.paused_at is None
        if pauses and self.top is None:
            raise RunAlone(replace(self, top=subscription.scope or _agent_0(tx)))
        if not self._recorded(tx, done):
            return None
        if done.received:
            tx.run("note_received", id=key.subscription)
        elif done.ends:
            end_subscription(tx, key.subscription, self.now, "the receiver is gone (410)")
        else:
            tx.run("note_failing", id=key.subscription, now=self.now)
        if self.is_last and done.due_at is None:
            end_subscription(tx, key.subscription, self.now, "the task is over")
            return None
        return self._pause(tx, locked, subscription) if pauses else None

    def _recorded(self, tx: Transaction, done: DeliveryVerdict) -> bool:
        key = self.due.key
        return bool(
            tx.run(
                "record_delivery",
                subscription=key.subscription,
                agent=key.agent,
                position=key.position,
                kind=key.kind,
                about=key.about,
                tries=self.due.tries,
                due=done.due_at,
                done=self.now if done.received else None,
                said=self.answer.said[:LONGEST_SAID],
                host=self.host,
                epoch=self.due.epoch,
            )
        )

    def _pause(self, tx: Transaction, locked: LockedRows, subscription: EventSubscription) -> DeliveryRecorded:
        assert self.top is not None
        tx.run("pause_subscription", id=subscription.id, now=self.now)
        post(tx, locked, PostedEvent(SUBSCRIPTION_PAUSED, self.top, self.now, subscription.id, self.now))
        text = (
            f"Subscription {subscription.id} to {subscription.url} is paused: its receiver has failed for a day, the "
            f"last time with: {self.answer.said[:LONGEST_SAID]}. Go on with: ikigai subscription resume "
            f"{subscription.id}"
        )
        notice: Mail | None = None
        with suppress(IkigaiError):  # the agent is dead, or its mailbox is full
            locked.living(self.top)
            notice = write_mail(tx, locked, self.top, None, text, self.now, NOTICE)
        return DeliveryRecorded(notice)


@dataclass(frozen=True, slots=True)
class Redeliver(Unit):
    """Make deliveries due again at once; answered with `Redelivered`. Raises `SubscriptionNotFound`."""

    subscription: str
    keys: Sequence[DeliveryKey]
    now: int

    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> "Redelivered":
        subscription_with(tx, self.subscription)
        count = 0
        for key in self.keys:
            fields = {"agent": key.agent, "position": key.position, "kind": key.kind, "about": key.about}
            count += len(tx.run("redeliver", subscription=self.subscription, now=self.now, **fields))
        return Redelivered(SubscriptionChanged(self.subscription), count)


class Redelivered(NamedTuple):
    """The number of deliveries that are due again."""

    subscription: SubscriptionChanged
    times: int
    """The number of deliveries that are due now."""
