"""The headers of a delivery, as Standard Webhooks has them. Pure.

webhook-id            names the delivery, the same at each try
webhook-timestamp     of this try, in seconds since 1970
webhook-signature     v1 and HMAC-SHA256 over id.timestamp.body, one for each secret

A push notification of A2A is not signed. It has the proofs that its client has asked for, beside ``webhook-id``.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from ikigai_actors.errors import BadInput
from ikigai_actors.records.outbox.pushed_tasks import PushedTask

_PREFIX = "whsec_"


def signed_headers(delivery: str, at: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the HTTP headers of an attempt, with its id, time and signatures.

    Args:
        delivery: the id of the delivery.
        at: seconds since 1970.
        body: the bytes that are sent.
        secrets: the secrets; each makes a signature, because a receiver may know only the older or the newer one.

    Raises:
        BadInput: a secret that should be base64 is not.
    """
    signed = f"{delivery}.{at}.".encode() + body
    signatures = (hmac.new(_key(secret), signed, hashlib.sha256).digest() for secret in secrets)
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(signature).decode()}" for signature in signatures),
    }


def task_headers(task: PushedTask, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers by which a receiver recognises a push notification of A2A.

    Args:
        task: the terms.
        secrets: the token, if there is one, and then the credentials, if there is a scheme.
    """
    token = "".join(secrets[: len(secrets) - bool(task.scheme)])
    headers = {"X-A2A-Notification-Token": token} if token else {}
    return headers | ({"Authorization": f"{task.scheme} {secrets[-1]}"} if task.scheme else {})


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise BadInput("A secret that begins with whsec_ is not base64.") from None
