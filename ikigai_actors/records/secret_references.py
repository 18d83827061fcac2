"""References to secrets: ``env:NAME``, ``file:PATH``, or ``keyring:NAME``; and sealed secrets. Pure.

A row never has a secret in clear text. It has a reference, which the process that needs the secret looks up; or it has
the secret sealed by the operator's key for this row alone (`ikigai_actors.records.sealed`), as ``sealed:`` and base64.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Sequence

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

WAYS_OF_REFERENCE = "env:NAME, file:PATH or keyring:NAME"
"""The forms of a reference, in words."""

LONGEST_SECRET = 1_000
"""The most characters of a secret."""

SHORTEST_SECRET = 8
"""The fewest characters of a secret."""

_SEALED = "sealed:"

_REFERENCE = re.compile(r"(env|file|keyring):.+", re.DOTALL)


def check_reference(reference: object, what: str) -> str:
    """Return a reference, or raise `BadInput`; ``what`` names the secret."""
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        raise BadInput(f"Expected a reference to {what}, {WAYS_OF_REFERENCE}; got {shown(reference)}.")
    return reference


def check_kept_secret(text: object) -> str:
    """Return a secret as a row stores it, a reference or sealed; or raise `BadInput` for any other text."""
    if isinstance(text, str) and sealed_bytes(text) is not None:
        return text
    return check_reference(text, "the secret")


def check_secret(secret: object) -> str:
    """Return a secret, or raise `BadInput`. The error does not repeat it."""
    if not isinstance(secret, str) or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET or not secret.isprintable():
        raise BadInput(f"Expected a secret of {SHORTEST_SECRET} to {LONGEST_SECRET:,} printable characters.")
    if secret.startswith("whsec_") and not _from_base64(secret.removeprefix("whsec_")):
        raise BadInput("A secret that begins with whsec_ is not base64.")
    return secret


def new_secret() -> str:
    """Return a new secret, as Standard Webhooks writes them."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def sealed_text(sealed: bytes) -> str:
    """Return sealed bytes as text for a row; `sealed_bytes` reads it."""
    return _SEALED + base64.b64encode(sealed).decode()


def sealed_bytes(text: str) -> bytes | None:
    """Return the sealed bytes of a secret in a row; None for a reference."""
    return _from_base64(text.removeprefix(_SEALED)) if text.startswith(_SEALED) else None


def shown_secrets(kept: Sequence[str]) -> list[str]:
    """Return the secrets of a row as people may see them: each reference, and ``sealed`` for a sealed secret."""
    return ["sealed" if sealed_bytes(text) is not None else text for text in kept]


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None
