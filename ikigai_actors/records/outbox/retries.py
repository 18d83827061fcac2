"""When a delivery is tried again, and what its tries say of the receiver. Pure.

at once, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h       each ± 20 %; then it is dead

2xx                received
410                the receiver is gone: the subscription ends
anything else      tried again; a redirection is not followed, since it would take the body elsewhere
"""

import hashlib
from typing import NamedTuple

TRY_PAUSES = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds before each further try."""

LONGEST_PUT_OFF = 86_400
"""Seconds for which a receiver can put a try off, by ``Retry-After``."""

FAILING_MS = 86_400_000
"""Milliseconds of nothing but failures after which a subscription is paused."""

GONE = 410
"""The status by which a receiver says that it wants no more."""


class ReceiverAnswer(NamedTuple):
    """The answer of a receiver."""

    status: int
    """The HTTP status; 0 where none came."""
    said: str
    """The same in a few words."""
    retry_after: float = 0.0
    """Seconds after which it wants the next try; 0 where it does not say."""


class DeliveryVerdict(NamedTuple):
    """The consequence of a try."""

    received: bool
    due_at: int | None
    """When it is tried again, in milliseconds since 1970; None where it is not."""
    ends: bool = False
    """Whether the subscription ends."""
    pauses: bool = False
    """Whether the subscription is paused."""


def verdict(answer: ReceiverAnswer, delivery: str, tries: int, now: int, failing_since: int | None) -> DeliveryVerdict:
    """Decide what follows from a try.

    Args:
        answer: the answer to it.
        delivery: its id, which spreads the tries of many.
        tries: how many came before this one.
        now: milliseconds since 1970.
        failing_since: since when nothing but failures came to the receiver; None where the latest try was received.
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
    """A time up to a fifth shorter or longer, always the same for one try of one delivery."""
    drawn = int.from_bytes(hashlib.sha256(f"{delivery} {tries}".encode()).digest()[:4], "big") / 2**32
    return seconds * (0.8 + 0.4 * drawn)
