"""Secrets by reference. The process that needs a secret looks it up.

    env:NAME        a variable of the process
    file:PATH       a file that the process may read, without the blanks at its ends
    keyring:NAME    the keyring of the machine (macOS, Windows, Secret Service), by ``keyring set ikigai-actors NAME``

The database has references alone.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.extras import NeedsExtra
from ikigai_actors.records.questions.links import operator_key
from ikigai_actors.records.secret_references import check_reference

KEYRING_SERVICE = "ikigai-actors"
"""The service name under which a keyring has ikigai's secrets."""


def referred_secret(reference: str) -> str:
    """Return the secret that a reference names; empty if this process does not find the secret.

    Raises `BadInput` if the machine's keyring cannot be asked.
    """
    kind, _, place = reference.partition(":")
    if kind == "env":
        return os.environ.get(place, "")
    if kind == "keyring":
        return _in_keyring(place)
    try:
        return Path(place).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def referred_key(reference: str) -> bytes:
    """Return the operator's key that a reference names. Raises `BadInput` if it is missing or is no key."""
    if not (text := referred_secret(check_reference(reference, "the operator's key"))):
        raise BadInput(f"The operator's key is not there: {reference}.")
    return operator_key(text)


def key_references(keys: Sequence[str] | None) -> tuple[str, ...]:
    """Return references to the operator's keys; for None, those in ``$IKIGAI_KEYS``. Raises `BadInput`."""
    if keys is None:
        keys = [key.strip() for key in os.environ.get("IKIGAI_KEYS", "").split(",") if key.strip()]
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not all(isinstance(key, str) for key in keys):
        raise BadInput(f"Expected keys to be a list of references, such as ['env:KEY'], or None; got {shown(keys)}.")
    return tuple(keys)


def _in_keyring(name: str) -> str:
    with NeedsExtra("keyring", f"A secret at keyring:{name}"):
        import keyring
        from keyring.errors import KeyringError
    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except KeyringError as error:
        raise BadInput(f"The keyring of this machine cannot be asked for keyring:{name}: {error}") from error
