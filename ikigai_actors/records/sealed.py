r"""Sealed bytes, which only a process with the operator's key can read. Pure.

    box = SealedBox([key])
    sealed = box.seal("account\\nhttps://mcp.example.com/mcp\\nuser=anna", b"…")
    box.opened("account\\nhttps://mcp.example.com/mcp\\nuser=anna", sealed)

Bytes are encrypted by AES-256-GCM with a key that is derived from the operator's key for this use alone. Sealed bytes
begin with the id of the key, so that several keys can decrypt while one replaces another. The place is authenticated:
bytes that were moved to another row cannot be decrypted. Needs the extra ``accounts``.
"""

import hashlib
import hmac
import os
from collections.abc import Sequence

from ikigai_actors.errors import BadInput
from ikigai_actors.extras import NeedsExtra

_USE = b"ikigai-actors: accounts at servers"
_ID_BYTES, _NONCE_BYTES = 8, 12


class SealedBox:
    """Encrypts bytes with the first of the operator's keys, and decrypts with any of them."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Make the box from keys of 32 bytes each.

        Raises `BadInput` if there is none, or the extra ``accounts`` is missing.
        """
        with NeedsExtra("accounts", "What is sealed in the database"):
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        if not keys:
            raise BadInput(
                "Accounts at remote MCP servers, and secrets that are kept in the database, need the operator's key, "
                "which seals them: give ikigai host and ikigai api --key env:NAME or file:PATH, set IKIGAI_KEYS to "
                "such a reference, or give ActorSystem.open keys=[…]. openssl rand -hex 32 makes one."
            )
        own = [hmac.digest(key, _USE, "sha256") for key in keys]
        self._by_id = {hashlib.sha256(key).digest()[:_ID_BYTES]: AESGCM(key) for key in own}
        self._id = hashlib.sha256(own[0]).digest()[:_ID_BYTES]

    def seal(self, place: str, data: bytes) -> bytes:
        """Encrypt bytes so that they can only be opened for the same place."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._id + nonce + self._by_id[self._id].encrypt(nonce, data, self._id + place.encode())

    def opened(self, place: str, sealed: bytes) -> bytes:
        """Decrypt the bytes that were sealed for a place. Raises `BadInput` for any others."""
        from cryptography.exceptions import InvalidTag

        id_, rest = sealed[:_ID_BYTES], sealed[_ID_BYTES:]
        nonce, rest = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        if (key := self._by_id.get(id_)) is None:
            raise BadInput(
                "This was sealed by another operator's key: give that one as a second --key, and run ikigai account "
                "rekey."
            )
        try:
            return key.decrypt(nonce, rest, id_ + place.encode())
        except InvalidTag:
            raise BadInput("A sealed row was changed, or belongs elsewhere: it does not open.") from None

    def is_current(self, sealed: bytes) -> bool:
        """Return whether bytes were sealed by the first key."""
        return sealed[:_ID_BYTES] == self._id
