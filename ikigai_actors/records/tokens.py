"""Tokens: secrets by which a principal gets access through the network.

    issued = AddToken("tk-3f…", "anna", ("approve",), under=uuid, made_by="bob", now=now, expires_at=None)
    token = token_of(tx, "ikg_…", now)          # a `Token`; None for a secret that nobody has, or no more

The database has only the SHA-256 of a secret, so a copy of the database gives nobody access. Each request checks its
token, so an expiry or a committed revocation holds from the next request on.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

TOKEN_PREFIX = "ikg_"
"""The prefix of a secret, by which scanners for leaked secrets find it."""

_SHOWN = 12
"""The number of characters of a digest that identify a token for people."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a principal: a row of the table ``tokens``."""

    sha256: str
    principal: str
    name: str
    roles: str
    """The roles, separated by blanks."""
    under: str | None
    made_by: str | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    @property
    def id(self) -> str:
        """Return the id of the token: the beginning of its digest."""
        return self.sha256[:_SHOWN]

    def state(self, now: int) -> str:
        """Return the state of the token: ``open``, ``expired`` or ``revoked``. Only an open token gives access."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "open"


def token_digest(secret: str) -> str:
    """Return the digest of a secret, by which its token is found."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class AddToken(Unit):
    """Issue a token to a principal."""

    sha256: str
    principal: str
    name: str
    roles: Sequence[str]
    under: str | None
    made_by: str | None
    now: int
    expires_at: int | None

    def write(self, tx: Transaction, locked: LockedRows) -> Token:
        token = Token(
            self.sha256, self.principal, self.name, " ".join(self.roles), self.under, self.made_by, self.now,
            self.expires_at, None,
        )  # fmt: skip
        tx.run("add_token", **asdict(token))
        return token


@dataclass(frozen=True, slots=True)
class RevokeTokens(Unit):
    """Revoke the open tokens of a principal, or the token whose digest begins with the given text.

    Answered with the digests of the revoked tokens.
    """

    named: str
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> list[str]:
        return [sha256 for (sha256,) in tx.run("revoke_tokens", named=self.named, now=self.now)]


def token_of(tx: Transaction, secret: str, now: int) -> Token | None:
    """Return the token with a secret, if the token gives access now; else None."""
    tokens = [Token(*row) for row in tx.run("token_of", sha256=token_digest(secret))]
    return next((token for token in tokens if token.state(now) == "open"), None)


def every_token(tx: Transaction) -> list[Token]:
    """Return all tokens, oldest first, including expired and revoked ones."""
    return [Token(*row) for row in tx.run("every_token")]
