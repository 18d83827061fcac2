"""Signed links: a person who has a link can answer one question, once. Pure.

    link = signed_link(key, question, expires_at)       # "6b3e5db84abb….1796574493.hVx1…"
    opened_link([key], link)                            # LinkedQuestion, or None where no key has signed it

A link has the id of the question, the second at which it expires, and an HMAC-SHA256 of both, by the operator's key.
Links are not in the database: the host that makes links and the API that accepts them share the key. A link cannot
change the answer of an answered question.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from typing import NamedTuple

from ikigai_actors.errors import BadInput

LINK_MS = 7 * 24 * 3600 * 1000
"""The milliseconds after the question for which a link is valid."""

_USE = b"ikigai-actors: links to questions"
_KEY_BYTES = 32


class LinkedQuestion(NamedTuple):
    """The contents of a link with a valid signature."""

    question: str
    """The id of the question."""
    expires_at: int
    """The end of its validity, in milliseconds since 1970 (UTC)."""
    name: str
    """The name in the log of the person who answers by it: ``link:`` with eight digits of its hash."""


def operator_key(text: str) -> bytes:
    """Parse an operator's key, written as 64 hexadecimal digits or in base64. Raises `BadInput`."""
    written = text.strip()
    try:
        key = bytes.fromhex(written) if len(written) == 2 * _KEY_BYTES else base64.b64decode(written, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _KEY_BYTES:
        raise BadInput("Expected the operator's key to be 64 hexadecimal digits, as openssl rand -hex 32 prints them.")
    return key


def signed_link(key: bytes, question: str, expires_at: int) -> str:
    """Return the last part of a link's path. The link is valid until the second in which it expires."""
    body = f"{question}.{expires_at // 1000}"
    return f"{body}.{_signature(key, body)}"


def opened_link(keys: Iterable[bytes], link: str) -> LinkedQuestion | None:
    """Return the question of a link; None if the link is not signed by any of the keys."""
    body, _, signature = link.rpartition(".")
    question, _, expires = body.partition(".")
    if not any(hmac.compare_digest(_signature(key, body).encode(), signature.encode()) for key in keys):
        return None
    return LinkedQuestion(question, int(expires) * 1000, f"link:{hashlib.sha256(link.encode()).hexdigest()[:8]}")


def _signature(key: bytes, body: str) -> str:
    own = hmac.digest(key, _USE, "sha256")  # other uses of the operator's key have keys of their own
    return base64.urlsafe_b64encode(hmac.digest(own, body.encode(), "sha256")).decode().rstrip("=")
