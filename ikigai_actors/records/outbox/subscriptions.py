"""Table ``subscriptions``: outside receivers, and the events that each gets.

    live      events of the subscription get rows in the outbox, which are sent
    paused    events get rows, which wait: a person has paused the subscription, or all sendings of a day have failed
    ended     a person has removed the subscription, or its receiver has answered 410: the waiting rows are dead

Rows are never deleted, since deliveries name them. A row never has a secret in clear text. It has a reference to the
secret, which the sending host looks up, or the secret sealed for this subscription.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlsplit

from ikigai_actors.arguments import check_choice, shown
from ikigai_actors.errors import BadInput, SubscriptionNotFound
from ikigai_actors.records.outbox.events import check_event_kinds
from ikigai_actors.records.outbox.pushed_tasks import PushedTask
from ikigai_actors.records.secret_references import WAYS_OF_REFERENCE, check_kept_secret, check_reference
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import LockedRows, Unit

MOST_SUBSCRIPTIONS = 100
"""The most subscriptions that are not ended."""

MOST_SECRETS = 5
"""The most secrets by which one subscription signs after a rotation."""

LONGEST_URL = 2_000
"""The most characters of a receiver's address."""

BODY_FORMATS = ("standard", "cloudevents")
"""The formats of a body: ``{"type", "timestamp", "data"}``, or CloudEvents 1.0 as structured JSON."""

A2A_FORM = "a2a"
"""The format of a subscription to one task: a task of A2A 1.0."""


@dataclass(frozen=True, slots=True)
class SubscriptionSpec:
    """The settings of a subscription. Raises `BadInput` for invalid ones."""

    secrets: tuple[str, ...]
    """References to the secrets, or the secrets sealed, the latest last. Each signs."""
    form: str = "standard"
    """The format of bodies, one of `BODY_FORMATS`, or `A2A_FORM` for one task."""
    thin: bool = False
    """Whether bodies have only names, and no texts."""
    links: str = ""
    """The address of the API for links to questions; empty for no links."""
    key: str = ""
    """The reference to the operator's key, which signs the links."""
    task: PushedTask | None = None
    """The only task whose changes are sent; None for all events. Then each secret is a header, and signs nothing."""

    def __post_init__(self) -> None:
        if bool(self.links) != bool(self.key):
            raise BadInput(
                "Links to questions need both the address of the API, and the operator's key that signs them."
            )
        if self.links:
            check_receiver(self.links)
            check_reference(self.key, "the operator's key")
        check_choice(self.form, "form", BODY_FORMATS if self.task is None else (A2A_FORM,))
        if not self.secrets and self.task is None:
            raise BadInput(f"Expected a secret: {WAYS_OF_REFERENCE}; or one to keep sealed (--plain, --make).")
        for kept in self.secrets:
            check_kept_secret(kept)

    def encode(self) -> str:
        """Return the settings as text for the database."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def decode(cls, text: str) -> "SubscriptionSpec":
        """Return the settings from the text in the database."""
        stored = json.loads(text)
        task = None if stored.get("task") is None else PushedTask.decode(stored["task"])
        return cls(**{**stored, "secrets": tuple(stored["secrets"]), "task": task})


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """A row of table ``subscriptions`` that has not ended."""

    id: str
    url: str
    scope: str | None
    """The uuid of the agent whose events it gets; None for all agents."""
    below: bool
    """Whether it also gets the events of all agents below that agent."""
    kinds: tuple[str, ...]
    spec: SubscriptionSpec
    created_at: int
    """The time when it was made, in milliseconds since 1970 (UTC)."""
    failing_since: int | None
    """The time since when all deliveries have failed, in milliseconds since 1970; None if the latest was received."""
    paused_at: int | None
    """The time since when it is paused, in milliseconds since 1970; None if it is not."""


def subscription_place(name: str) -> str:
    """Return the place for which `SealedBox` seals the secrets of a subscription, by its id."""
    return f"subscription\n{name}"


def check_receiver(url: str) -> str:
    """Return the address of a receiver, or raise `BadInput`.

    Each attempt checks whether the IP address may be reached, because DNS may change.
    """
    try:
        if not isinstance(url, str) or not url.isprintable() or len(url) > LONGEST_URL:
            raise ValueError
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        has_host, parts = False, urlsplit("")
    if not has_host or parts.scheme not in ("http", "https"):
        raise BadInput(f"Expected the address of a receiver, as https://example.com/events; got {shown(url)}.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise BadInput("Expected an address without a password or a fragment: the signature says who sends.")
    return url


def subscription_with(tx: Transaction, name: str) -> EventSubscription:
    """Return the subscription with an id. Raises `SubscriptionNotFound` if there is none, or it has ended."""
    for row in tx.run("subscription", id=name):
        return subscription_in(row)
    raise SubscriptionNotFound(f"There is no subscription {name!r}. See ikigai subscription list.", name)


def all_subscriptions(tx: Transaction) -> list[EventSubscription]:
    """Return the subscriptions that have not ended, oldest first."""
    return [subscription_in(row) for row in tx.run("subscriptions")]


def is_subscribed(tx: Transaction) -> bool:
    """Return whether any subscription has not ended."""
    return bool(tx.run("any_subscription"))


def waiting_subscriptions(tx: Transaction) -> list[EventSubscription]:
    """Return the subscriptions with waiting deliveries that are neither ended nor paused, oldest first."""
    return [subscription_in(row) for row in tx.run("waiting_subscriptions")]


def subscription_in(row: Row) -> EventSubscription:
    """Return the subscription from a row."""
    name, url, scope, below, kinds, spec, *times = row
    chosen = tuple(kinds.strip(",").split(","))
    return EventSubscription(name, url, scope, bool(below), chosen, SubscriptionSpec.decode(spec), *times)


class SubscriptionChanged(str):
    """The id of a subscription that was added or changed, as the answer of a unit."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AddSubscription(Unit):
    """Add a subscription; answered with its id. Raises `AgentNotFound`, `BadInput`."""

    id: str
    url: str
    scope: str | None
    below: bool
    kinds: Sequence[str]
    spec: SubscriptionSpec
    now: int

    locks = ("scope",)
    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        if self.scope is not None:
            locked.existing(self.scope)
        if tx.run("count_subscriptions")[0][0] >= MOST_SUBSCRIPTIONS:
            raise BadInput(f"There are {MOST_SUBSCRIPTIONS} subscriptions, and no more may be. Remove one.")
        tx.run(
            "add_subscription",
            id=self.id,
            url=check_receiver(self.url),
            scope=self.scope,
            below=int(self.below),
            kinds=f",{','.join(check_event_kinds(self.kinds))},",
            spec=self.spec.encode(),
            now=self.now,
        )
        return SubscriptionChanged(self.id)


@dataclass(frozen=True, slots=True)
class PauseSubscription(Unit):
    """Pause a subscription: nothing is sent until it is resumed. Raises `SubscriptionNotFound`."""

    id: str
    now: int

    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        subscription_with(tx, self.id)
        tx.run("pause_subscription", id=self.id, now=self.now)
        return SubscriptionChanged(self.id)


@dataclass(frozen=True, slots=True)
class ResumeSubscription(Unit):
    """Resume a paused subscription. Raises `SubscriptionNotFound`."""

    id: str

    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        subscription_with(tx, self.id)
        tx.run("resume_subscription", id=self.id)
        return SubscriptionChanged(self.id)


@dataclass(frozen=True, slots=True)
class RotateSecret(Unit):
    """Add a secret by which a subscription signs, or drop all but the latest.

    Raises `SubscriptionNotFound`, `BadInput`.
    """

    id: str
    secret: str | None
    """The new secret as the row has it; None ends the rotation."""

    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        tx.run("lock_subscription", id=self.id)
        spec = subscription_with(tx, self.id).spec
        if spec.task is not None:
            raise BadInput(f"{self.id} signs nothing: the client of A2A that made it gives the header.")
        if self.secret is None:
            secrets = spec.secrets[-1:]
        else:
            secrets = (*(kept for kept in spec.secrets if kept != self.secret), self.secret)
        if len(secrets) > MOST_SECRETS:
            raise BadInput(
                f"{MOST_SECRETS} secrets sign for {self.id}, and no more may. Let the latest sign alone: "
                f"ikigai subscription rotate {self.id} --finish"
            )
        tx.run(
            "change_subscription_spec",
            id=self.id,
            former=spec.encode(),
            spec=replace(spec, secrets=secrets).encode(),
        )
        return SubscriptionChanged(self.id)


@dataclass(frozen=True, slots=True)
class SealSubscriptionAgain(Unit):
    """Replace the secrets of a subscription by the same ones sealed with another key.

    Answered with whether the subscription was unchanged until then.
    """

    id: str
    former: SubscriptionSpec
    spec: SubscriptionSpec

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        return bool(
            tx.run("change_subscription_spec", id=self.id, former=self.former.encode(), spec=self.spec.encode())
        )


@dataclass(frozen=True, slots=True)
class EndSubscription(Unit):
    """End a subscription. Its waiting deliveries become dead. Raises `SubscriptionNotFound`."""

    id: str
    now: int

    alone = True
    concerns_others = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> SubscriptionChanged:
        subscription_with(tx, self.id)
        end_subscription(tx, self.id, self.now, "the subscription was removed")
        return SubscriptionChanged(self.id)


def end_subscription(tx: Transaction, name: str, now: int, why: str) -> None:
    """End a subscription and its waiting deliveries."""
    tx.run("end_subscription", id=name, now=now)
    tx.run("end_deliveries", id=name, said=why)
