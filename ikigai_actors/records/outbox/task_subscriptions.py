"""Subscriptions to single tasks of A2A: rows of table ``subscriptions`` that end with their task.

    set      a client has named a receiver: the changes of the task get rows in the outbox, and are sent
    ended    the end of the task was received, or is dead; or the client has deleted it

A subscription may be there before the agent of its task is born, so it names the uuid that this agent will have. A
prune ends subscriptions whose agent is dead, or was not born within a day.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ikigai_actors.errors import BadInput
from ikigai_actors.records.outbox.events import PostedEvent
from ikigai_actors.records.outbox.pushed_tasks import TASK_EVENTS, PushedTask
from ikigai_actors.records.outbox.subscriptions import (
    EventSubscription,
    SubscriptionChanged,
    SubscriptionSpec,
    check_receiver,
    end_subscription,
    subscription_in,
)
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

MOST_PUSHED_TASKS = 1_000
"""The most subscriptions to single tasks that are not ended."""

MOST_PUSHES_OF_TASK = 10
"""The most of them that one task has."""

LOST_TASK_MS = 24 * 3600 * 1000
"""The milliseconds after which a prune ends a subscription whose agent does not live."""


def task_subscriptions(tx: Transaction, task: str) -> list[EventSubscription]:
    """Return the subscriptions to a task that have not ended, oldest first."""
    rows = tx.run("task_subscriptions", context=task.partition(".")[0])
    every = [subscription_in(row) for row in rows]
    return [each for each in every if each.spec.task is not None and each.spec.task.task == task]


def end_lost_subscriptions(tx: Transaction, now: int) -> None:
    """End the subscriptions of tasks whose agent is dead, or was never born."""
    for (name,) in tx.run("lost_task_subscriptions", before=now - LOST_TASK_MS):
        end_subscription(tx, str(name), now, "the agent of the task does not live")


@dataclass(frozen=True, slots=True)
class SetTaskSubscription(Unit):
    """Add a subscription to one task of A2A, or change it; answered with its id. Raises `AgentNotFound`, `BadInput`."""

    id: str
    url: str
    carded: str
    """The uuid of the agent with the card."""
    task: PushedTask
    spec: SubscriptionSpec
    now: int

    locks = ("carded",)
    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        locked.existing(self.carded)
        others = [each for each in task_subscriptions(tx, self.task.task) if each.id != self.id]
        if len(others) >= MOST_PUSHES_OF_TASK:
            raise BadInput(f"This task has {MOST_PUSHES_OF_TASK} push notification configs. Delete one.")
        if tx.run("count_task_subscriptions")[0][0] >= MOST_PUSHED_TASKS:
            raise BadInput(f"{MOST_PUSHED_TASKS:,} push notification configs wait for their tasks. Subscribe instead.")
        tx.run(
            "set_task_subscription",
            id=self.id,
            url=check_receiver(self.url),
            scope=self.carded,
            kinds=f",{','.join(TASK_EVENTS)},",
            spec=self.spec.encode(),
            now=self.now,
            context=self.task.context,
        )
        return SubscriptionChanged(self.id)


@dataclass(frozen=True, slots=True)
class PostTaskEvents(Unit):
    """Write deliveries of events that happened before their subscription.

    A delivery that exists already stays unchanged.
    """

    subscription: str
    events: Sequence[PostedEvent]
    now: int

    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        for event in self.events:
            tx.run(
                "post_task_event",
                subscription=self.subscription,
                agent=event.agent,
                position=event.position,
                kind=event.kind,
                about=event.about,
                at=event.at,
                now=self.now,
            )
        return SubscriptionChanged(self.subscription)
