"""Waits for a service that refuses a request for the moment: their length and their number. Pure.

    overloaded, no answer      waits of 0.5 s, 1 s, 2 s … between the attempts
    ``Retry-After: 20``        a wait of 20 s
    another model is there     only short waits; in place of a long wait, that model is asked at once
    a strict budget            no wait and no further attempt after a request that may have cost something

The turn waits, not a thread of the service's client. So people see the wait, signals end it, and no budget is
reserved meanwhile.
"""

import math
from typing import Any, NamedTuple
from zlib import crc32

from ikigai_actors.errors import ProviderError
from ikigai_actors.records.messages.settings import SERVICE_RETRIES
from ikigai_actors.text import utc_time

RETRIES_BEFORE_NEXT = 2
"""The most attempts if another model can be asked."""
SHORT_SERVICE_WAIT = 10
"""The most seconds of a wait if another model can be asked."""
LONGEST_SERVICE_WAIT = 86_400
"""The most seconds of any wait. A turn that would have to wait longer ends with the error."""
_FIRST, _MOST = 0.5, 60.0
"""Seconds of the first wait of which the service does not say how long it is to be, and the most."""
_SPREAD = 0.25
"""The part of such a wait by which agents differ, so that a thousand of them do not come back at once."""


class ServiceWait(NamedTuple):
    """A request that waits until its service accepts it again, or a turn that waits for hooks of another process."""

    service: str
    """The name of the provider, or what else is waited for."""
    until: int
    """The time when the request is sent again, or the wait is over, in milliseconds since 1970."""
    lacks_hooks: bool = False
    """Whether the turn waits for hooks that this process lacks."""

    @property
    def state(self) -> str:
        """Return the state of the agent, for people."""
        return f"waits for {self.service or 'its model'} until {utc_time(self.until):%Y-%m-%d %H:%M:%S} UTC"


def seconds_to_wait(
    error: ProviderError, waits: int, settings: Any, *, has_next: bool, strict: bool, who: str
) -> float | None:
    """Return the seconds after which a failed request is sent again; None if it is not sent again.

    Args:
        waits: how many times the request has waited before.
        settings: the settings in force for the agent.
        has_next: whether another model can be asked instead.
        strict: whether a strict budget reserves the cost of the request.
        who: a text that differs between requests, so that they do not all wait equally long.
    """
    asked = error.retry_after
    if asked is None or (strict and not error.free):
        return None
    most = settings.get("service_retries", SERVICE_RETRIES)
    if has_next:
        most = min(most, RETRIES_BEFORE_NEXT)
    if waits >= most:
        return None
    seconds = asked if asked > 0 else _backoff(waits, who)
    return seconds if seconds <= (SHORT_SERVICE_WAIT if has_next else LONGEST_SERVICE_WAIT) else None


def _backoff(waits: int, who: str) -> float:
    longest = min(_MOST, _FIRST * math.ldexp(1, min(waits, 30)))
    return longest * (1 - _SPREAD * crc32(who.encode()) / 2**32)
