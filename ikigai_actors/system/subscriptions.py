"""Subscriptions: receivers outside get events of agents, signed, each at least once under one id.

    system.subscriptions.add("https://example.com/events", ["env:EVENTS_SECRET"], ["turn", "question.asked"])

The event is written in the same transaction as the change that it reports. The host that runs the agent sends it, and
repeats failed attempts for four days (`ikigai_actors.system.host.deliveries`). If another host takes the agent over, it
continues.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any

from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.arguments import check_flag
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import RandomBytes
from ikigai_actors.records.agents.registry import Handle
from ikigai_actors.records.outbox.deliveries import (
    DeliveryRecord,
    Redeliver,
    Redelivered,
    counted_deliveries,
    deliveries_since,
    latest_deliveries,
)
from ikigai_actors.records.outbox.events import EVENT_KINDS, check_event_kinds
from ikigai_actors.records.outbox.subscriptions import (
    AddSubscription,
    EndSubscription,
    EventSubscription,
    PauseSubscription,
    ResumeSubscription,
    RotateSecret,
    SubscriptionSpec,
    all_subscriptions,
    check_receiver,
    subscription_place,
    subscription_with,
)
from ikigai_actors.store.base import Store
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.kept_secrets import KeptSecrets
from ikigai_actors.text import check_text

DeliveryRecords = list[DeliveryRecord]


class Subscriptions(OfOneProcess):
    """The subscriptions of a system. See `ActorSystem.subscriptions`."""

    def __init__(
        self,
        store: Store,
        perform: Callable[[Unit], Any],
        now_ms: Callable[[], int],
        random_bytes: RandomBytes,
        secrets: KeptSecrets,
    ) -> None:
        """Use a store. ``perform`` commits a unit and returns its answer; ``secrets`` seals and opens secrets."""
        self._store, self._perform, self._now_ms, self._random_bytes = store, perform, now_ms, random_bytes
        self._secrets = secrets

    def add(
        self,
        url: str,
        secrets: Sequence[str] = (),
        kinds: Sequence[str] = EVENT_KINDS,
        *,
        plain: Sequence[str] = (),
        agent: Handle | str | None = None,
        below: bool = True,
        form: str = "standard",
        thin: bool = False,
        links: str = "",
        key: str = "",
    ) -> str:
        """Send events to a receiver from now on; return the id of the subscription.

        Args:
            url: the address of the receiver. A host sends to public addresses by https, and to other addresses if it
                allows them.
            secrets: references to the secrets, as ``env:NAME``, which the sending host looks up.
            plain: secrets themselves. The database keeps them sealed by the operator's key, which the sending host
                needs as well.
            kinds: the kinds of events, as ``turn.done``; ``turn`` means all kinds of turns.
            agent: the agent whose events are sent: a handle, uuid, name or prefix; None for all agents.
            below: whether the events of all agents below that one are sent as well.
            form: ``standard``, or ``cloudevents``.
            thin: whether bodies have only ids and names, and no texts.
            links: the address of the API, as people reach it. Then ``question.asked`` has a link by which anybody who
                has it can answer the question once.
            key: the reference to the operator's key, which signs links; `ikigai_actors.api.api` gets the same.

        Raises:
            BadInput: a term cannot be used, there are too many subscriptions, or there is no operator's key for
                ``plain``.
            AgentNotFound, AmbiguousAgent: the agent cannot be found.
        """
        check_receiver(url)
        chosen = check_event_kinds(kinds)
        if isinstance(secrets, str) or isinstance(plain, str):
            raise BadInput("Expected secrets as a list of references, such as ['env:EVENTS_SECRET'].")
        name = f"sub_{base64.b32encode(self._random_bytes(10)).decode().lower()}"
        kept = self._secrets.kept(subscription_place(name), secrets, plain)
        spec = SubscriptionSpec(
            kept, form, check_flag(thin, "thin"), check_text(links, "links"), check_text(key, "key")
        )
        check_flag(below, "below")
        scope = self._store.read(lambda tx: registry.find(tx, agent)).uuid if isinstance(agent, str) else None
        if agent is not None and not isinstance(agent, str):
            scope = agent.uuid
        return str(self._perform(AddSubscription(name, url, scope, below, chosen, spec, self._now_ms())))

    def list(self) -> list[EventSubscription]:
        """Return the subscriptions that have not ended, the oldest first."""
        return self._store.read(all_subscriptions)

    def get(self, subscription: str) -> EventSubscription:
        """Return the subscription with this id. Raises `SubscriptionNotFound`."""
        return self._store.read(lambda tx: subscription_with(tx, subscription))

    def counts(self, subscription: str) -> dict[str, int]:
        """Return the numbers of a subscription's deliveries by state: ``waiting``, ``received``, ``dead``."""
        return self._store.read(lambda tx: counted_deliveries(tx, subscription))

    def deliveries(self, subscription: str, most: int = 20) -> DeliveryRecords:
        """Return the latest deliveries of a subscription, newest first. Raises `SubscriptionNotFound`."""
        return self._store.read(lambda tx: latest_deliveries(tx, subscription_with(tx, subscription).id, most))

    def pause(self, subscription: str) -> None:
        """Pause a subscription: new events wait until `resume`. Raises `SubscriptionNotFound`."""
        self._perform(PauseSubscription(subscription, self._now_ms()))

    def resume(self, subscription: str) -> None:
        """Resume a paused subscription. Raises `SubscriptionNotFound`."""
        self._perform(ResumeSubscription(subscription))

    def rotate(self, subscription: str, secret: str | None = None, *, plain: str | None = None) -> None:
        """Add a secret by which deliveries are signed from now on, beside the existing ones, until `finish_rotation`.

        Args:
            subscription: the id of the subscription.
            secret: a reference to the new secret, as ``env:NAME``; or give ``plain``.
            plain: the new secret itself, which the database keeps sealed by the operator's key.

        Raises:
            SubscriptionNotFound: there is no such subscription.
            BadInput: not exactly one secret was given, the secret cannot be used, or the subscription has too many.
        """
        if (secret is None) == (plain is None):
            raise BadInput("Expected one new secret: a reference, such as 'env:EVENTS_SECRET', or plain.")
        self.get(subscription)
        references, plains = ([] if text is None else [text] for text in (secret, plain))
        [kept] = self._secrets.kept(subscription_place(subscription), references, plains)
        self._perform(RotateSecret(subscription, kept))

    def finish_rotation(self, subscription: str) -> None:
        """Drop all secrets but the latest. Raises `SubscriptionNotFound`."""
        self._perform(RotateSecret(subscription, None))

    def remove(self, subscription: str) -> None:
        """End a subscription; its waiting deliveries become dead. Raises `SubscriptionNotFound`."""
        self._perform(EndSubscription(subscription, self._now_ms()))

    def redeliver(
        self, subscription: str, delivery: str | None = None, *, since: int = 0, received: bool = False
    ) -> int:
        """Send deliveries once more, at once; return how many. They keep their ids.

        The result of an attempt in progress is ignored: if it succeeds, the receiver gets the delivery twice.

        Args:
            subscription: the id of the subscription.
            delivery: the id of one of its deliveries, received, dead or late; None for all that are dead or
                late, which are those that failed and wait for their next try.
            since: only deliveries of events at this time or later, in milliseconds since 1970.
            received: whether those that were received are sent once more, too.

        Raises:
            SubscriptionNotFound: there is no such subscription.
            BadInput: the subscription has no delivery with that id.
        """
        self.get(subscription)
        every = self._store.read(lambda tx: deliveries_since(tx, subscription, since))
        deliveries = [each for each in every if each.due_at is None or each.tries]
        if delivery is not None:
            deliveries = [each for each in deliveries if each.id == delivery]
            if not deliveries:
                raise BadInput(
                    f"Subscription {subscription} has no delivery {delivery!r} that was received, is dead or is late. "
                    f"See ikigai subscription show {subscription}."
                )
        elif not received:
            deliveries = [each for each in deliveries if each.done_at is None]
        done: Redelivered = self._perform(Redeliver(subscription, [each.key for each in deliveries], self._now_ms()))
        return done.times
