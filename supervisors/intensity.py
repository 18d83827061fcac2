"""Intensity: how many restarts are too many, how long to wait after one that failed, and which turns are poison.

OTP's rule: a restart is allowed if, with it, no more than ``intensity`` restarts lie within ``period``. Both ends of
the period belong to it: a restart exactly one period ago still counts. One that is further ahead does not: the clock
was set back, and it would count until the clock is there again.
"""

from collections.abc import Iterable

DEFAULT_INTENSITY = 3
"""Restarts that a new supervisor allows within its period. ``schema.sql`` gives every agent the same number: a change
here needs a migration.
"""
DEFAULT_PERIOD = 10 * 60 * 1000
"""The default period in milliseconds; also in ``schema.sql``. OTP's few seconds are too short for turns of models."""

FIRST_WAIT = 1_000
"""Milliseconds before a failed restart is tried again for the first time."""
LONGEST_WAIT = 60_000
"""The longest wait between two attempts of a failed restart, in milliseconds."""

POISON = 2
"""The number of crashes of its agent after which a turn is closed."""


def add_restart(restarts: Iterable[int], now: int, intensity: int, period: int) -> tuple[int, ...] | None:
    """Count a restart.

    Args:
        restarts: the times of earlier restarts, in milliseconds.
        now: the present time, in milliseconds.
        intensity: how many restarts are allowed within a period.
        period: the length of the period, in milliseconds.

    Returns:
        The restarts that count from now on, this one last; None when it is not allowed.
    """
    counted = (*(restart for restart in restarts if abs(now - restart) <= period), now)
    return counted if len(counted) <= intensity else None


def backoff(attempt: int) -> int:
    """Milliseconds to wait after the ``attempt``-th restart (from 1) has failed: doubled each time, up to a minute."""
    doublings = min(max(attempt - 1, 0), LONGEST_WAIT.bit_length())
    return min(FIRST_WAIT << doublings, LONGEST_WAIT)


def is_poison(crashes: int) -> bool:
    """Whether a turn that crashed its agent this often is closed with an error instead of resumed once more."""
    return crashes >= POISON
