"""Verbs about the tokens by which programs and people get access to ``ikigai api``."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.errors import BadInput, NotAllowed
from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, TEXT
from ikigai_actors.verbs.principal import RIGHTS, has_right
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.verb import VerbGroup, verb

if TYPE_CHECKING:
    from ikigai_actors.records.tokens import Token
    from ikigai_actors.verbs.place import Place

_DAY = 24 * 3600 * 1000


@verb("create", script="")
@click.argument("principal", metavar="ID", type=TEXT)
@click.option(
    "--role",
    "roles",
    metavar="ROLE",
    multiple=True,
    required=True,
    type=TEXT,
    help="look, prompt, approve or operate, each with those before it; other words address questions.",
)
@click.option("--under", metavar="AGENT", type=AGENT, help="Only this agent and those below it.  [default: all]")
@click.option("--days", type=click.IntRange(min=1), help="It ends after this many days.  [default: never]")
@click.option("--name", type=TEXT, help="A name for people.  [default: the ID]")
def create_token(
    place: "Place", principal: str, roles: tuple[str, ...], under: str | None, days: int | None, name: str | None
) -> object:
    """Issue a token to a principal, and print it once.

    The log has the ID beside everything that the principal does. The database keeps only a hash of the token.
    """
    import secrets

    from ikigai_actors.records.tokens import TOKEN_PREFIX, AddToken, token_digest

    wanted = sorted({_word(role, "role") for role in roles})
    for word in wanted:
        if word in RIGHTS and not has_right(place.principal, RIGHTS[word]):
            raise NotAllowed(f"{place.principal.id} lacks the role {word}, and so cannot give it away.")
    agent = place.top if under is None else place.system.agent(under)
    top = None if agent.uuid == place.system.root.uuid else agent.uuid
    secret, now = TOKEN_PREFIX + secrets.token_urlsafe(32), place.system._clock.now_ms()
    ends = None if days is None else now + days * _DAY
    unit = AddToken(
        token_digest(secret), _word(principal, "ID"), name or principal, wanted, top, place.principal.id, now, ends
    )
    token: Token = place.wait_for(lambda: place.system._writer.perform(unit))
    place.screen.line(secret)
    return {"token": secret, **_row(token, now)}


@verb("list", script="")
def list_tokens(place: "Place") -> object:
    """List the tokens, each by the beginning of its hash; expired and revoked tokens too."""
    from ikigai_actors.records.tokens import every_token

    now, tokens = place.system._clock.now_ms(), place.system._store.read(every_token)
    label = words.shown_name_in(place.system)
    for token in tokens:
        below = "" if token.under is None else f"  under {label(token.under)}"
        place.screen.line(f"{token.id}  {token.principal}  {token.roles}{below}  {token.state(now)}")
    if not tokens:
        place.screen.line("No tokens.")
    return [_row(token, now) for token in tokens]


@verb("revoke", script="")
@click.argument("token", metavar="ID|HASH", type=TEXT)
def revoke_token(place: "Place", token: str) -> object:
    """Revoke all tokens of a principal, or one by the beginning of its hash, as list shows it."""
    from ikigai_actors.records.tokens import RevokeTokens

    unit = RevokeTokens(token, place.system._clock.now_ms())
    revoked: list[str] = place.wait_for(lambda: place.system._writer.perform(unit))
    if not revoked:
        raise BadInput(f"No open token is of {token!r}, or has a hash that begins so: token list shows them.")
    place.screen.line(f"revoked {words.counted(len(revoked), 'token')}")
    return {"revoked": [each[:12] for each in revoked]}


token = VerbGroup(
    "token",
    "Issue, list and revoke the tokens by which principals come in through ikigai api.",
    (create_token, list_tokens, revoke_token),
    list_tokens,
    callers=Callers.SCRIPTS,
)


def _word(text: str, what: str) -> str:
    if not text.isprintable() or not text or len(text) > 200 or any(map(str.isspace, text)):
        raise BadInput(f"Expected {what} to be a word of 1 to 200 printable characters; got {text!r}.")
    return text


def _row(token: "Token", now: int) -> dict[str, object]:
    row = words.as_row(token) | {"roles": token.roles.split(), "id": token.id, "state": token.state(now)}
    return {name: value for name, value in row.items() if name != "sha256"}
