"""Verbs about endpoints: doors by which events from outside reach agents."""

from typing import TYPE_CHECKING, BinaryIO

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.verb import LocalOption, ScriptOption, VerbGroup, verb

if TYPE_CHECKING:
    from ikigai_actors.records.arrivals.arrivals import ArrivalRecord, Received
    from ikigai_actors.records.arrivals.endpoints import Endpoint
    from ikigai_actors.verbs.place import Place

SCHEME_CHOICE = click.Choice(["standard", "github", "stripe", "slack", "hmac", "bearer"])
"""The signature schemes of senders: those of `ikigai_actors.records.arrivals.signatures`."""

WAY_CHOICE = click.Choice(["prompt", "mail", "fork"])
"""The acts that a delivery can become."""


@verb("list", script="", everywhere=True)
def list_endpoints(place: "Place") -> object:
    """List the endpoints, each with the numbers of its taken, filtered, held and dead deliveries."""
    rows = []
    for endpoint in place.system.endpoints.list():
        counts = place.system.endpoints.counts(endpoint.name)
        place.screen.line(f"{_described(place, endpoint)}  {_counted(counts)}")
        rows.append({**_endpoint_row(endpoint), "arrivals": counts})
    if not rows:
        place.screen.line("No endpoints.")
    return rows


@verb("add", script="", everywhere=True)
@click.argument("name", type=TEXT)
@click.option("--to", "to", metavar="AGENT", type=AGENT, required=True, help="The agent that it leads to.")
@click.option("--as", "way", type=WAY_CHOICE, default="prompt", help="What a delivery becomes: prompt by default.")
@click.option("--scheme", type=SCHEME_CHOICE, required=True, help="How the sender signs.")
@click.option(
    "--secret", "secrets", cls=LocalOption, metavar="REF", type=TEXT, multiple=True,
    help="Where a secret is: env:NAME, file:PATH or keyring:NAME, as the API finds it. Several may serve.",
)  # fmt: skip
@click.option(
    "--plain", cls=ScriptOption, metavar="SECRET", type=TEXT, multiple=True,
    help="A secret itself, which the database keeps sealed by the operator's key ($IKIGAI_KEYS).",
)  # fmt: skip
@click.option("--make", cls=LocalOption, is_flag=True, help="Make a secret, keep it sealed, and print it once.")
@click.option(
    "--where", "where", metavar="FIELD=VALUE", type=TEXT, multiple=True,
    help="Take only deliveries with this field, as action=opened,reopened. Each must hold.",
)  # fmt: skip
@click.option("--template", type=TEXT, default="{@}", help="The text for the agent: {a.b} is a field, {@} the body.")
@click.option("--most", metavar="N", type=click.IntRange(min=1), default=50, help="The most living children: 50.")
@click.option("--once-by", type=click.Choice(["id", "body"]), default="id", help="What makes two deliveries the same.")
def add_endpoint(
    place: "Place",
    name: str,
    to: str,
    way: str,
    scheme: str,
    where: tuple[str, ...],
    template: str,
    most: int,
    once_by: str,
    secrets: tuple[str, ...] = (),
    plain: tuple[str, ...] = (),
    make: bool = False,
) -> object:
    """Make an endpoint, or change the terms of one: signed deliveries to /in/NAME reach an agent.

    An example: endpoint add github --to triage --as fork --scheme github --secret env:GITHUB_SECRET
    --where action=opened --template 'Issue {issue.number}: {issue.title}'
    """
    from ikigai_actors.records.arrivals.templates import parsed_where
    from ikigai_actors.records.secret_references import new_secret

    made = [new_secret()] if make else []
    agent = place.system.agent(to)
    filters = parsed_where(where) or None
    is_new = place.wait_for(
        lambda: place.system.endpoints.add(
            name,
            agent,
            scheme,
            secrets,
            plain=(*plain, *made),
            way=way,
            template=template,
            where=filters,
            most=most,
            once_by_body=once_by == "body",
        )
    )
    endpoint = place.system.endpoints.get(name)
    place.screen.line(f"{_described(place, endpoint)}{'' if is_new else ', changed'}")
    for secret in made:
        place.screen.line(f"its secret, shown this once: {secret}")
    return _endpoint_row(endpoint) | ({"secret": made[0]} if made else {})


@verb("show", script="", everywhere=True)
@click.argument("name", type=TEXT)
@click.option("--most", metavar="N", type=click.IntRange(min=1, max=200), default=20, help="How many arrivals: 20.")
def show_endpoint(place: "Place", name: str, most: int) -> object:
    """Show an endpoint, and the state of each of its latest arrivals."""
    from ikigai_actors.text import utc_time

    endpoint, arrivals = place.system.endpoints.get(name), place.system.endpoints.arrivals(name, most)
    place.screen.line(_described(place, endpoint))
    for arrival in arrivals:
        when = utc_time(arrival.at).strftime("%Y-%m-%d %H:%M:%S UTC")
        place.screen.line(f"{arrival.id}  {when}  {arrival.status}{_became(arrival.gave)}")
    return {**_endpoint_row(endpoint), "arrivals": [_arrival_row(arrival) for arrival in arrivals]}


@verb("pause", script="", everywhere=True)
@click.argument("name", type=TEXT)
def pause_endpoint(place: "Place", name: str) -> object:
    """Hold the deliveries that come from now on. Senders get the answer that a delivery has arrived."""
    place.wait_for(lambda: place.system.endpoints.pause(name))
    place.screen.line(f"{name} holds what comes")
    return {"name": name, "paused": True}


@verb("resume", script="", everywhere=True)
@click.argument("name", type=TEXT)
def resume_endpoint(place: "Place", name: str) -> object:
    """Let a paused endpoint go on, and take the held deliveries, in the order in which they came."""
    taken = place.wait_for(lambda: place.system.endpoints.resume(name))
    place.screen.line(f"{name} goes on: {words.counted(len(taken), 'arrival')} taken")
    return {"name": name, "paused": False, "taken": [_row(arrival) for arrival in taken]}


@verb("replay", script="", everywhere=True)
@click.argument("name", type=TEXT)
@click.argument("delivery", metavar="[DELIVERY]", type=TEXT, required=False)
@click.option("--dead", is_flag=True, help="All that are dead and were not repeated.")
def replay_arrival(place: "Place", name: str, delivery: str | None, dead: bool) -> object:
    """Take an arrival once more, as a new arrival: ID~2. With --dead, take each dead arrival once more."""
    if dead == (delivery is not None):
        raise click.UsageError("Give the id of a delivery, or --dead.")
    endpoints = place.system.endpoints
    taken = place.wait_for(
        lambda: endpoints.replay_dead(name) if delivery is None else [endpoints.replay(name, delivery)]
    )
    for received in taken:
        place.screen.line(f"{received.id}  {received.status}{_became(received.gave)}")
    if not taken:
        place.screen.line("No arrival is dead.")
    return [_row(arrival) for arrival in taken]


@verb("test", script="", everywhere=True, callers=Callers.PEOPLE | Callers.SCRIPTS)  # it reads a file of this machine
@click.argument("name", type=TEXT)
@click.argument("file", type=click.File("rb"))
def test_endpoint(place: "Place", name: str, file: BinaryIO) -> object:
    """Show the text that an endpoint would make of the body in a FILE, without a signature; nothing is done."""
    wanted, text = place.system.endpoints.preview(name, file.read())
    place.screen.line(text if wanted else "filtered, or dead: it has not the fields that are wanted")
    return {"taken": wanted, "text": text}


@verb("remove", script="", everywhere=True)
@click.argument("name", type=TEXT)
def remove_endpoint(place: "Place", name: str) -> object:
    """Remove an endpoint. Deliveries to it are refused; the records of its arrivals stay for 30 days."""
    place.wait_for(lambda: place.system.endpoints.remove(name))
    place.screen.line(f"{name} is removed")
    return {"name": name, "removed": True}


endpoints = VerbGroup(
    "endpoint",
    "Make, show and remove endpoints, by which signed events from outside reach agents.\n\n"
    "A delivery becomes a prompt, a mail or a child, once, however often its sender tries.",
    (
        list_endpoints,
        add_endpoint,
        show_endpoint,
        pause_endpoint,
        resume_endpoint,
        replay_arrival,
        test_endpoint,
        remove_endpoint,
    ),
    usual=list_endpoints,
)


def _endpoint_row(endpoint: "Endpoint") -> dict[str, object]:
    from ikigai_actors.records.secret_references import shown_secrets

    spec = {**words.as_row(endpoint.spec), "secrets": shown_secrets(endpoint.spec.secrets)}
    return {**words.as_row(endpoint), "spec": spec}


def _arrival_row(arrival: "ArrivalRecord") -> dict[str, object]:
    from ikigai_actors.text import iso_time

    return {**arrival._asdict(), "gave": dict(arrival.gave), "at": iso_time(arrival.at)}


def _described(place: "Place", endpoint: "Endpoint") -> str:
    agent = place.system.handle(endpoint.agent).record
    paused = ", paused" if endpoint.paused_at is not None else ""
    return f"{endpoint.name}: {endpoint.spec.way} to {agent.short}, signed as {endpoint.spec.scheme}{paused}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{counts[status]:,} {status}" for status in ("taken", "filtered", "held", "dead") if status in counts
    )


def _became(gave: object) -> str:
    facts = gave if isinstance(gave, dict) else {}
    if "why" in facts:
        return f": {facts['why']}"
    named = [f"{what} {facts[what]}" for what in ("child", "mail", "same_body_as") if what in facts]
    return f": {', '.join(named)}" if named else ""


def _row(received: "Received") -> dict[str, object]:
    return {"id": received.id, "status": received.status, "gave": dict(received.gave), "repeated": received.repeated}
