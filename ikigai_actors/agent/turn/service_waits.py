"""Waits for a service that refuses a request for the moment: how long they take, and how many there are. Pure.

    overloaded, no answer      0.5 s, 1 s, 2 s … between the attempts
    ``Retry-After: 20``        20 s
    another model is there     short waits alone; else that model is asked at once
    a strict budget            none after a request that may have cost something

The turn waits, and no client of a service: people see it, signals end it, and no budget is held meanwhile.
"""

import math
from typing import Any, NamedTuple
from zlib import crc32

from ikigai_actors.errors import ProviderError
from ikigai_actors.records.messages.settings import SERVICE_RETRIES
from ikigai_actors.text import utc_time

RETRIES_BEFORE_NEXT = 2
"""How often at most where another model can be asked."""
SHORT_SERVICE_WAIT = 10
"""The most seconds of a wait where another model can be asked."""
LONGEST_SERVICE_WAIT = 86_400
"""The most seconds of any wait: a turn that would have to wait longer ends with the error."""
_FIRST, _MOST = 0.5, 60.0
"""Seconds of the first wait of which the service does not say how long it is to be, and the most."""
_SPREAD = 0.25
"""The part of such a wait by which agents differ, so that a thousand of them do not come back at once."""


class ServiceWait(NamedTuple):
    """A request that waits until its service takes it again."""

    service: str
    """The name of its provider."""
    until: int
    """When it is sent again, in milliseconds since 1970."""

    @property
    def state(self) -> str:
        """The state of its agent, for people."""
        return f"waits for {self.service or 'its model'} until {utc_time(self.until):%Y-%m-%d %H:%M:%S} UTC"


def seconds_to_wait(
    error: ProviderError, waits: int, settings: Any, *, has_next: bool, strict: bool, who: str
) -> float | None:
    """The seconds after which a request that has failed is sent again; None where it is not.

    Args:
        waits: how often it has waited before.
        settings: the settings in force for the agent.
        has_next: whether another model can be asked in place of this one.
        strict: whether a strict budget holds what it may cost.
        who: differs between requests.
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
