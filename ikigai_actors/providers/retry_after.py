"""The time after which a service accepts a refused request again. Pure.

    Retry-After: 20 · Retry-After: Fri, 31 Dec 2027 23:59:59 GMT · retry-after-ms: 350 · x-should-retry: false

No client waits by itself: the agent's turn does (`ikigai_actors.agent.turn.service_waits`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_FOR_THE_MOMENT = frozenset({408, 409, 429})
"""The statuses below 500 of a request that may be accepted a little later."""


def is_for_the_moment(status: int) -> bool:
    """Return whether an HTTP status is a temporary refusal, so that the same request may be accepted later."""
    return status in _FOR_THE_MOMENT or status >= 500


def refused_until(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a refused request may be sent again, as `ProviderError.retry_after`.

    Args:
        status: The HTTP status.
        headers: the headers of the answer, by lower-case name or in a case-insensitive mapping.
    """
    advice = headers.get("x-should-retry", "").strip().lower()
    if advice == "false" or not (advice == "true" or is_for_the_moment(status)):
        return None
    milliseconds, seconds = _number(headers.get("retry-after-ms")), _number(headers.get("retry-after"))
    if milliseconds > 0:
        return milliseconds / 1_000
    return seconds if seconds > 0 else _until(headers.get("retry-after"), headers.get("date"))


def _number(text: str | None) -> float:
    """Return the number in a text; 0 if there is none, or if it is no possible time to wait."""
    try:
        number = float(text or "")
    except ValueError:
        return 0.0
    return number if number > 0 else 0.0  # nan is not


def _until(text: str | None, sent: str | None) -> float:
    """Return the seconds from an answer's time, by the service's clock if it is known, to a date; 0 for no date."""
    then = _date(text)
    if then is None:
        return 0.0
    return max(0.0, (then - (_date(sent) or datetime.now(UTC))).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
