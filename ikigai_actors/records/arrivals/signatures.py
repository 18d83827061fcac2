"""Signatures of deliveries: checks that a request comes from its sender, and finds the id of the delivery. Pure.

    delivery = verified_delivery("github", headers, raw, [secret], now=time())
    delivery.id                         # the same for each try of the sender

The signature covers the received bytes, so it is checked before they are parsed. Schemes with a time in the signature
refuse a time that is more than five minutes off, so that an intercepted request cannot be used later.

    scheme     what is signed          id of the delivery                         time
    standard   id.timestamp.body       webhook-id                                 signed
    github     body                    X-GitHub-Delivery, which is not signed     none
    stripe     t.body                  id in the body                             signed
    slack      v0:t:body               event_id in the body                       signed
    hmac       body                    X-Delivery, ce-source and ce-id, or hash   none
    bearer     nothing                 as hmac                                    none
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ikigai_actors.errors import BadInput, Forged
from ikigai_actors.extras import NeedsExtra

TOLERANCE = 300.0
"""The most seconds by which the time of a signature may differ from now."""

PUBLIC_KEY = "whpk_"
"""The beginning of a sender's public key in the scheme ``standard``: it verifies ``v1a``, and needs the extra
``accounts``.
"""

LONGEST_ID = 200
"""The most characters of a delivery's id. A longer one is replaced by its hash."""

Headers = Mapping[str, str]
"""The headers of a request, by name in lower case."""


class SignedDelivery(NamedTuple):
    """A delivery whose signature is valid."""

    id: str
    """The sender's id for the delivery, the same in each attempt."""
    value: Any
    """The body as JSON; None if it is not JSON."""
    is_json: bool
    challenge: str | None = None
    """The text that the sender wants back at once as a test of the URL; None for a delivery."""


def verified_delivery(scheme: str, headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> SignedDelivery:
    """Check the signature of a request, and return its delivery.

    Args:
        scheme: a key of `SCHEMES`.
        headers: the headers of the request, by name in lower case.
        raw: the body as received.
        secrets: the secrets, any of which may have been used: there are two while one is being replaced.
        now: the time, in seconds since 1970.

    Raises:
        Forged: there is no signature, no secret fits it, or its time is too far off.
    """
    if not secrets:
        raise Forged("This endpoint has no secret, so nothing can be its sender's.")
    SCHEMES[scheme].check(headers, raw, secrets, now)
    value, is_json = parsed_body(raw)
    challenge = value.get("challenge") if scheme == "slack" and isinstance(value, dict) else None
    if challenge is not None and value.get("type") != "url_verification":
        challenge = None
    name = SCHEMES[scheme].name(headers, raw, value)
    return SignedDelivery(_short(name), value, is_json, challenge if isinstance(challenge, str) else None)


def parsed_body(raw: bytes) -> tuple[Any, bool]:
    """Return the body as JSON, and whether it is JSON at all."""
    try:
        return json.loads(raw), True
    except (ValueError, RecursionError):
        return None, False


def _short(name: str) -> str:
    if 0 < len(name) <= LONGEST_ID and name.isprintable():
        return name
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _signed(secret: bytes, *parts: bytes) -> bytes:
    return hmac.new(secret, b"".join(parts), hashlib.sha256).digest()


def _one_matches(shown: Sequence[bytes], secrets: Sequence[str], made: Callable[[str], bytes]) -> None:
    """Raise `Forged` unless one of the secrets makes one of the signatures. All are compared, in constant time."""
    if not shown:
        raise Forged("Expected a signature of the sender, got none.")
    usable = [secret for secret in secrets if secret]  # by an empty key everybody can sign
    good = [hmac.compare_digest(made(secret), signature) for secret in usable for signature in shown]
    if not any(good):
        raise Forged("The signature is not the sender's: another secret, or other bytes than were signed.")


def _check_time(text: str, now: float) -> bytes:
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise Forged("Expected the time of the signature in seconds since 1970.")
    if abs(int(text) - now) > TOLERANCE:
        raise Forged(f"The signature is of another time: {int(text) - now:+.0f} seconds from now.")
    return text.encode()


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text) if text.isascii() else b""
    except ValueError:
        return b""


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _standard_key(secret: str) -> bytes:
    return _base64(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()


def _standard(headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> None:
    time = _check_time(headers.get("webhook-timestamp", ""), now)
    name = headers.get("webhook-id", "").encode()
    if not name:
        raise Forged("Expected a webhook-id, got none.")
    shown = [text.partition(",") for text in headers.get("webhook-signature", "").split()]
    public = [secret for secret in secrets if secret.startswith(PUBLIC_KEY)]
    asymmetric = [_base64(text) for version, _, text in shown if version == "v1a"]
    if any(_verifies(key, asymmetric, b".".join((name, time, raw))) for key in public):
        return
    signatures = [_base64(text) for version, _, text in shown if version == "v1"]
    own = [secret for secret in secrets if secret not in public]  # whoever knows a public key could sign by it as v1
    usable = [secret for secret in own if _standard_key(secret)]
    if own and not usable:
        raise Forged("The secret of this endpoint begins with whsec_ and is not base64, so nobody can sign by it.")
    if not usable:
        raise Forged("The signature is not the sender's: no v1a of it fits the public key.")
    _one_matches(signatures, usable, lambda secret: _signed(_standard_key(secret), name, b".", time, b".", raw))


def _verifies(key: str, signatures: Sequence[bytes], content: bytes) -> bool:
    with NeedsExtra("accounts", "A public key of Standard Webhooks"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    try:
        opened = Ed25519PublicKey.from_public_bytes(_base64(key.removeprefix(PUBLIC_KEY)))
    except ValueError:
        raise Forged("The key of this endpoint begins with whpk_ and is not 32 bytes in base64.") from None
    for signature in signatures:
        with suppress(InvalidSignature):
            opened.verify(signature, content)
            return True
    return False


def _github(headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> None:
    _body_signed(headers.get("x-hub-signature-256", ""), raw, secrets)


def _hmac(headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> None:
    _body_signed(headers.get("x-signature-256", "") or headers.get("x-signature", ""), raw, secrets)


def _body_signed(shown: str, raw: bytes, secrets: Sequence[str]) -> None:
    signature = shown.strip().removeprefix("sha256=")
    _one_matches([_hex(signature)] if signature else [], secrets, lambda secret: _signed(secret.encode(), raw))


def _stripe(headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> None:
    parts = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
    time = _check_time(next((text for name, _, text in parts if name == "t"), ""), now)
    signatures = [_hex(text) for name, _, text in parts if name == "v1"]
    _one_matches(signatures, secrets, lambda secret: _signed(secret.encode(), time, b".", raw))


def _slack(headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> None:
    time = _check_time(headers.get("x-slack-request-timestamp", ""), now)
    shown = headers.get("x-slack-signature", "")
    signatures = [_hex(shown.removeprefix("v0="))] if shown.startswith("v0=") else []
    _one_matches(signatures, secrets, lambda secret: _signed(secret.encode(), b"v0:", time, b":", raw))


def _bearer(headers: Headers, raw: bytes, secrets: Sequence[str], now: float) -> None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    shown = [token.strip().encode("utf-8", "surrogatepass")] if kind.lower() == "bearer" and token.strip() else []
    _one_matches(shown, secrets, lambda secret: secret.encode())


def _named_by(header: str) -> Callable[[Headers, bytes, Any], str]:
    return lambda headers, raw, value: headers.get(header, "") or _hash(raw)


def _named_in(field: str) -> Callable[[Headers, bytes, Any], str]:
    def name(headers: Headers, raw: bytes, value: Any) -> str:
        said = value.get(field) if isinstance(value, dict) else None
        return said if isinstance(said, str) and said else _hash(raw)

    return name


def _named_anyhow(headers: Headers, raw: bytes, value: Any) -> str:
    if headers.get("x-delivery"):
        return headers["x-delivery"]
    if headers.get("ce-id"):
        return f"{headers.get('ce-source', '')} {headers['ce-id']}".strip()
    return _hash(raw)


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


class Scheme(NamedTuple):
    """A scheme by which senders sign."""

    check: Callable[[Headers, bytes, Sequence[str], float], None]
    """Raises `Forged` unless the signature is valid."""
    name: Callable[[Headers, bytes, Any], str]
    """Returns the id of the delivery, from headers, body and the body as JSON."""


SCHEMES: Mapping[str, Scheme] = {
    "standard": Scheme(_standard, _named_by("webhook-id")),
    "github": Scheme(_github, _named_by("x-github-delivery")),
    "stripe": Scheme(_stripe, _named_in("id")),
    "slack": Scheme(_slack, _named_in("event_id")),
    "hmac": Scheme(_hmac, _named_anyhow),
    "bearer": Scheme(_bearer, _named_anyhow),
}
"""The schemes, by the values of ``ikigai endpoint add --scheme``."""

SECRET_HEADERS = frozenset(
    {
        "authorization",
        "cookie",
        "proxy-authorization",
        "stripe-signature",
        "webhook-signature",
        "x-hub-signature",
        "x-hub-signature-256",
        "x-signature",
        "x-signature-256",
        "x-slack-signature",
    }
)
"""Headers that are not stored with an arrival."""


def check_scheme(word: str) -> str:
    """Return the name of a signature scheme, or raise `BadInput` for an unknown one."""
    if word not in SCHEMES:
        raise BadInput(f"Expected a scheme, one of {', '.join(SCHEMES)}; got {word!r}.")
    return word
