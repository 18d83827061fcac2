"""Decides when a delivery is tried again, and what failures mean for the subscription. Pure.

at once, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h       each ± 20 %; then it is dead

2xx                received
410                the receiver is gone: the subscription ends
anything else      tried again; a redirection is not followed, since it would take the body elsewhere
"""

import hashlib
from typing import NamedTuple

TRY_PAUSES = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""The seconds before each further attempt."""

LONGEST_PUT_OFF = 86_400
"""The most seconds by which a receiver can delay an attempt, with ``Retry-After``."""

FAILING_MS = 86_400_000
"""The milliseconds for which all deliveries must fail before a subscription is paused."""

GONE = 410
"""The HTTP status by which a receiver ends its subscription."""


class ReceiverAnswer(NamedTuple):
    """The answer of a receiver to one attempt."""

    status: int
    """The HTTP status; 0 if there was no answer."""
    said: str
    """The answer in a few words."""
    retry_after: float = 0.0
    """The seconds after which the receiver wants the next attempt; 0 if it does not say."""


class DeliveryVerdict(NamedTuple):
    """The consequence of one attempt for the delivery and its subscription."""

    received: bool
    due_at: int | None
    """The time of the next attempt, in milliseconds since 1970; None for none."""
    ends: bool = False
    """Whether the subscription ends."""
    pauses: bool = False
    """Whether the subscription is paused."""


def verdict(answer: ReceiverAnswer, delivery: str, tries: int, now: int, failing_since: int | None) -> DeliveryVerdict:
    """Decide whether a delivery is tried again after an attempt, and whether its subscription is paused or ends.

    Args:
        answer: the receiver's answer.
        delivery: the id of the delivery, which spreads the attempts of many deliveries.
        tries: the number of earlier attempts.
        now: milliseconds since 1970.
        failing_since: the time since when all attempts have failed; None if the latest succeeded.
    """
    if 200 <= answer.status < 300:
        return DeliveryVerdict(True, None)
    if answer.status == GONE:
        return DeliveryVerdict(False, None, ends=True)
    pauses = failing_since is not None and now - failing_since >= FAILING_MS
    if tries >= len(TRY_PAUSES):
        return DeliveryVerdict(False, None, pauses=pauses)
    seconds = max(spread(TRY_PAUSES[tries], delivery, tries), min(answer.retry_after, LONGEST_PUT_OFF))
    return DeliveryVerdict(False, now + round(seconds * 1000), pauses=pauses)


def spread(seconds: float, delivery: str, tries: int) -> float:
    """Return the seconds changed by up to a fifth, always in the same way for one attempt of one delivery."""
    drawn = int.from_bytes(hashlib.sha256(f"{delivery} {tries}".encode()).digest()[:4], "big") / 2**32
    return seconds * (0.8 + 0.4 * drawn)
