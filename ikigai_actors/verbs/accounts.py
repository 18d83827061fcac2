"""Verbs about accounts at remote MCP servers."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.errors import BadInput
from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.verb import LocalOption, VerbGroup, verb

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ikigai_actors.system.accounts import Accounts
    from ikigai_actors.verbs.place import Place


def _keyed(work: "Callable[..., Any]") -> "Callable[..., Any]":
    """Add the option ``--key``, which names the operator's keys, to a verb."""
    says = "The operator's key, as ikigai api has it.  Repeatable.  [default: $IKIGAI_KEYS]"
    return click.option("--key", "keys", cls=LocalOption, metavar="REF", multiple=True, type=TEXT, help=says)(work)


@verb("list", script="")
def list_accounts(place: "Place") -> object:
    """List the accounts at remote MCP servers: whose they are, their rights, and when they end."""
    from ikigai_actors.records.accounts import every_account
    from ikigai_actors.text import iso_time

    rows = place.system._store.read(lambda tx: list(every_account(tx)))
    for row in rows:
        ends = "" if row.expires_at is None else f"  renewed before {iso_time(row.expires_at)}"
        place.screen.line(f"{row.server}  {row.subject}  {row.scope or 'no scope'}{ends}")
    if not rows:
        place.screen.line("No accounts.")
    names = ("server", "subject", "version", "issuer", "scope", "expires_at")
    return [{name: getattr(row, name) for name in names} for row in rows]


@verb("link", script="")
@click.argument("question", metavar="QUESTION", type=TEXT)
@click.option("--url", required=True, metavar="URL", type=TEXT, help="The address of ikigai api, as people reach it.")
@_keyed
def link_account(place: "Place", question: str, url: str, keys: tuple[str, ...]) -> object:
    """Print the link by which a person connects the account that a question asks for.

    The link is valid for seven days.
    """
    from ikigai_actors.records.questions.links import LINK_MS, signed_link
    from ikigai_actors.system.secrets import key_references, referred_key

    row = place.system.questions.get(question)
    if not place.reaches(row.agent):
        raise BadInput(f"There is no question {question!r}. questions list shows those that wait.")
    references = key_references(keys or None)
    if not references:
        raise BadInput("A link needs the operator's key: give --key env:NAME or file:PATH, as ikigai api has it.")
    link = signed_link(referred_key(references[0]), row.id, place.system._clock.now_ms() + LINK_MS)
    whole = f"{url.rstrip('/')}/q/{link}"
    place.screen.line(whole)
    return {"question": row.id, "link": whole}


@verb("remove", script="")
@click.argument("server", metavar="URL", type=TEXT)
@click.argument("subject", metavar="SUBJECT", type=TEXT)
@_keyed
def remove_account(place: "Place", server: str, subject: str, keys: tuple[str, ...]) -> object:
    """Remove the account of a subject, user=anna, at a server, and revoke it there."""
    import asyncio

    accounts = _accounts(place, keys)
    was_there, trouble = place.wait_for(lambda: asyncio.run(accounts.remove(server, subject)))
    if not was_there:
        raise BadInput(f"{subject} has no account at {server}: account list shows them.")
    place.screen.line(f"removed; it was not revoked: {trouble}" if trouble else "removed and revoked")
    return {"server": server, "subject": subject, "revoked": not trouble}


@verb("rekey", script="")
@_keyed
def rekey_accounts(place: "Place", keys: tuple[str, ...]) -> object:
    """Seal all secrets again, by the first of the keys. Give the new key first, and the former key after it.

    The secrets are the accounts, and the secrets of endpoints and subscriptions.
    """
    from ikigai_actors.system.kept_secrets import KeptSecrets, seal_secrets_again
    from ikigai_actors.system.secrets import key_references

    system, secrets = place.system, KeptSecrets(lambda: key_references(keys or None))
    changed: int = place.wait_for(_accounts(place, keys).rekey)
    others: int = place.wait_for(lambda: seal_secrets_again(secrets, system._store.read, system._writer.perform))
    place.screen.line(
        f"sealed {words.counted(changed, 'account')} again, and the secrets of {others:,} endpoints and subscriptions"
    )
    return {"sealed": changed, "secrets": others}


account = VerbGroup(
    "account",
    "List, connect and remove accounts at remote MCP servers.",
    (list_accounts, link_account, remove_account, rekey_accounts),
    list_accounts,
    callers=Callers.SCRIPTS,
)


def _accounts(place: "Place", keys: tuple[str, ...]) -> "Accounts":
    """Return the accounts of the database. Raises `BadInput` without a key."""
    from ikigai_actors.system.accounts import Accounts
    from ikigai_actors.system.guarded_http import allowed_addresses
    from ikigai_actors.system.secrets import key_references, referred_key

    system = place.system
    opened = tuple(referred_key(reference) for reference in key_references(keys or None))
    return Accounts(system._store.read, system._writer.perform, system._clock.now_ms, opened, allowed_addresses(None))
