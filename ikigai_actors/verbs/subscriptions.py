"""Verbs about subscriptions: receivers outside that get events of agents."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, TEXT
from ikigai_actors.verbs.verb import LocalOption, ScriptOption, VerbGroup, verb

if TYPE_CHECKING:
    from ikigai_actors.records.outbox.deliveries import DeliveryRecord
    from ikigai_actors.records.outbox.subscriptions import EventSubscription
    from ikigai_actors.verbs.place import Place

_HOUR = 3600 * 1000


@verb("list", script="", everywhere=True)
def list_subscriptions(place: "Place") -> object:
    """List the subscriptions, each with the numbers of its waiting, received and dead deliveries."""
    rows = []
    for subscription in place.system.subscriptions.list():
        counts = place.system.subscriptions.counts(subscription.id)
        counted = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
        place.screen.line(f"{_described(place, subscription)}  {counted}".rstrip())
        rows.append({**_subscription_row(subscription), "deliveries": counts})
    if not rows:
        place.screen.line("No subscriptions.")
    return rows


@verb("add", script="", everywhere=True)
@click.argument("url", type=TEXT)
@click.option(
    "--secret", "secrets", cls=LocalOption, metavar="REF", type=TEXT, multiple=True,
    help="Where a secret is: env:NAME, file:PATH or keyring:NAME, as the host finds it. Each of several signs.",
)  # fmt: skip
@click.option(
    "--plain", cls=ScriptOption, metavar="SECRET", type=TEXT, multiple=True,
    help="A secret itself, which the database keeps sealed by the operator's key ($IKIGAI_KEYS).",
)  # fmt: skip
@click.option("--make", cls=LocalOption, is_flag=True, help="Make a secret, keep it sealed, and print it once.")
@click.option(
    "--kind", "kinds", metavar="KIND", type=TEXT, multiple=True,
    help="A kind of events, as turn.done; turn for all that begin so.  [default: all]",
)  # fmt: skip
@click.option("--under", metavar="AGENT", type=AGENT, help="Of this agent, and those below it.  [default: of all]")
@click.option("--alone", is_flag=True, help="Not of those below it.")
@click.option("--cloudevents", is_flag=True, help="Send CloudEvents 1.0.")
@click.option("--thin", is_flag=True, help="Send names alone, and no texts.")
@click.option(
    "--links",
    cls=LocalOption,
    metavar="URL",
    type=TEXT,
    help="The API's address: a link there answers a question once.",
)
@click.option(
    "--key", cls=LocalOption, metavar="REF", type=TEXT, help="The operator's key for links, a reference like --secret."
)
def add_subscription(
    place: "Place",
    url: str,
    kinds: tuple[str, ...],
    under: str | None,
    alone: bool,
    cloudevents: bool,
    thin: bool,
    secrets: tuple[str, ...] = (),
    plain: tuple[str, ...] = (),
    make: bool = False,
    links: str | None = None,
    key: str | None = None,
) -> object:
    """Send events to URL from now on, each with a signature of Standard Webhooks.

    An example: subscription add https://example.com/events --secret env:EVENTS_SECRET --kind turn --under triage
    """
    from ikigai_actors.records.outbox.events import EVENT_KINDS
    from ikigai_actors.records.secret_references import new_secret

    if alone and under is None:
        raise click.UsageError("Give --under AGENT with --alone.")
    made = [new_secret()] if make else []
    agent = None if under is None else place.system.agent(under)
    name = place.wait_for(
        lambda: place.system.subscriptions.add(
            url,
            secrets,
            kinds or EVENT_KINDS,
            plain=(*plain, *made),
            agent=agent,
            below=not alone,
            form="cloudevents" if cloudevents else "standard",
            thin=thin,
            links=links or "",
            key=key or "",
        )
    )
    subscription = place.system.subscriptions.get(name)
    place.screen.line(_described(place, subscription))
    for secret in made:
        place.screen.line(f"its secret, shown this once: {secret}")
    return _subscription_row(subscription) | ({"secret": made[0]} if made else {})


@verb("show", script="", everywhere=True)
@click.argument("subscription", metavar="SUBSCRIPTION", type=TEXT)
@click.option("--most", metavar="N", type=click.IntRange(min=1, max=200), default=20, help="How many deliveries: 20.")
def show_subscription(place: "Place", subscription: str, most: int) -> object:
    """Show a subscription, and the state of each of its latest deliveries."""
    shown = place.system.subscriptions.get(subscription)
    deliveries = place.system.subscriptions.deliveries(subscription, most)
    place.screen.line(f"{_described(place, shown)}, gets {', '.join(shown.kinds)}")
    for each in deliveries:
        place.screen.line(f"{each.id}  {_shown_time(each.at)}  {each.key.kind}  {_outcome(each)}")
    return {**_subscription_row(shown), "deliveries": [_delivery_row(delivery) for delivery in deliveries]}


def _outcome(delivery: "DeliveryRecord") -> str:
    """Return the state of a delivery; for a delivery that will be tried again, also the time of the next attempt."""
    again = f" until {_shown_time(delivery.due_at)}" if delivery.due_at is not None and delivery.tries else ""
    return f"{delivery.state}{again}{f': {delivery.said}' if delivery.said else ''}"


def _shown_time(at: int) -> str:
    from ikigai_actors.text import utc_time

    return utc_time(at).strftime("%Y-%m-%d %H:%M:%S UTC")


@verb("pause", script="", everywhere=True)
@click.argument("subscription", metavar="SUBSCRIPTION", type=TEXT)
def pause_subscription(place: "Place", subscription: str) -> object:
    """Pause a subscription: new deliveries wait."""
    place.wait_for(lambda: place.system.subscriptions.pause(subscription))
    place.screen.line(f"{subscription} waits")
    return {"id": subscription, "paused": True}


@verb("resume", script="", everywhere=True)
@click.argument("subscription", metavar="SUBSCRIPTION", type=TEXT)
def resume_subscription(place: "Place", subscription: str) -> object:
    """Let a paused subscription go on with its waiting deliveries."""
    place.wait_for(lambda: place.system.subscriptions.resume(subscription))
    place.screen.line(f"{subscription} goes on")
    return {"id": subscription, "paused": False}


@verb("rotate", script="", everywhere=True)
@click.argument("subscription", metavar="SUBSCRIPTION", type=TEXT)
@click.option(
    "--secret", cls=LocalOption, metavar="REF", type=TEXT,
    help="Where the new secret is: env:NAME, file:PATH or keyring:NAME, as the host finds it.",
)  # fmt: skip
@click.option(
    "--plain", cls=ScriptOption, metavar="SECRET", type=TEXT,
    help="The new secret itself, which the database keeps sealed by the operator's key ($IKIGAI_KEYS).",
)  # fmt: skip
@click.option("--make", cls=LocalOption, is_flag=True, help="Make the new secret, keep it sealed, and print it once.")
@click.option("--finish", is_flag=True, help="Sign with the latest secret alone from now on.")
def rotate_secret(
    place: "Place",
    subscription: str,
    finish: bool,
    plain: str | None = None,
    secret: str | None = None,
    make: bool = False,
) -> object:
    """Sign with a new secret in addition to the present secrets; with --finish, sign with the latest secret alone.

    An example: subscription rotate sub_abc --secret env:NEW_SECRET
    """
    from ikigai_actors.records.secret_references import new_secret

    if [secret is not None, plain is not None, make, finish].count(True) != 1:
        raise click.UsageError("Give one new secret (--secret, --plain or --make), or --finish.")
    subscriptions, made = place.system.subscriptions, new_secret() if make else None
    if finish:
        place.wait_for(lambda: subscriptions.finish_rotation(subscription))
    else:
        place.wait_for(lambda: subscriptions.rotate(subscription, secret, plain=made or plain))
    rotated = subscriptions.get(subscription)
    count = len(rotated.spec.secrets)
    place.screen.line(f"{subscription} signs with {count} secret{'s' if count > 1 else ''}")
    if made is not None:
        place.screen.line(f"the new secret, shown this once: {made}")
    return _subscription_row(rotated) | ({"secret": made} if made else {})


@verb("redeliver", script="", everywhere=True)
@click.argument("subscription", metavar="SUBSCRIPTION", type=TEXT)
@click.argument("delivery", metavar="[DELIVERY]", type=TEXT, required=False)
@click.option("--hours", type=click.IntRange(min=1), help="Of events within this many hours.  [default: of all]")
@click.option("--received", is_flag=True, help="Those that were received, too.")
def repeat_deliveries(
    place: "Place", subscription: str, delivery: str | None, hours: int | None, received: bool
) -> object:
    """Send deliveries once more under their ids: one delivery, or all dead and late deliveries."""
    since = 0 if hours is None else place.system._clock.now_ms() - hours * _HOUR
    again = place.system.subscriptions.redeliver
    count = place.wait_for(lambda: again(subscription, delivery, since=since, received=received))
    place.screen.line(f"{count:,} deliveries of {subscription} are sent once more")
    return {"id": subscription, "redelivered": count}


@verb("remove", script="", everywhere=True)
@click.argument("subscription", metavar="SUBSCRIPTION", type=TEXT)
def remove_subscription(place: "Place", subscription: str) -> object:
    """End a subscription. Waiting deliveries count as dead; the records of its deliveries stay for 30 days."""
    place.wait_for(lambda: place.system.subscriptions.remove(subscription))
    place.screen.line(f"{subscription} is removed")
    return {"id": subscription, "removed": True}


subscriptions = VerbGroup(
    "subscription",
    "Make, show and remove subscriptions, by which receivers outside get signed events.\n\n"
    "The host of an agent sends its events, each at least once under one id, in order.",
    (
        list_subscriptions,
        add_subscription,
        show_subscription,
        pause_subscription,
        resume_subscription,
        rotate_secret,
        repeat_deliveries,
        remove_subscription,
    ),
    usual=list_subscriptions,
)


def _subscription_row(subscription: "EventSubscription") -> dict[str, object]:
    from ikigai_actors.records.secret_references import shown_secrets

    spec = {**words.as_row(subscription.spec), "secrets": shown_secrets(subscription.spec.secrets)}
    return {**words.as_row(subscription), "spec": spec}


def _delivery_row(delivery: "DeliveryRecord") -> dict[str, object]:
    from ikigai_actors.text import iso_time

    key = delivery.key._asdict()
    return {
        "id": delivery.id,
        "state": delivery.state,
        **{name: key[name] for name in ("agent", "position", "kind", "about")},
        "at": iso_time(delivery.at),
        "tries": delivery.tries,
        "said": delivery.said,
    }


def _described(place: "Place", subscription: "EventSubscription") -> str:
    whose = "everybody's events"
    if subscription.scope is not None:
        name = place.system.handle(subscription.scope).record.short
        whose = f"the events of {name}{' and those below it' if subscription.below else ''}"
        if (task := subscription.spec.task) is not None:
            whose = f"task {task.task} of {name}, for {task.principal},"
    paused = ", paused" if subscription.paused_at is not None else ""
    return f"{subscription.id}: {whose} to {subscription.url}{paused}"
