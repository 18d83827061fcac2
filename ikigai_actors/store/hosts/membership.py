"""Membership: one host decides which other hosts of a database are dead.

A living host changes its row's ``beat`` regularly (`rhythm`), and one of its sessions holds a lock of the server. An
observing host judges by three signs:

    the beat stays the same for the host's whole lease     the host hangs, or is cut off from the server
    for `UNHELD` seconds the lock is free at every look,   the host's process has ended: the server frees its lock at
    and the beat stays the same                            once. A living host takes a lost lock again in a second
    the lock is free, and its process has ended            the host has ended: seen at once on the same machine

The observer counts time by its own monotonic clock. It uses no other clock, so a change of a wall clock, even the
server's, ends no host. An observer that was stopped, or got no answer from the server, knows nothing of that time. It
forgets its observations, and starts again. After the server did not answer, other hosts may not have their locks again
yet. A free lock then counts only after the observer has seen the lock held (`CUT_OFF`).

A judgement may be wrong. Then a living host is ended, and nothing worse happens: the row of a host that is judged dead
is ended only if its beat is unchanged, and a host whose row has ended writes nothing more. So there is never a second
writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LOOK = 1.0
"""Seconds between two checks of the other hosts."""

UNHELD = 2.0
"""Seconds that a host's lock must have been free before the host counts as dead; enough for two renewals (`rhythm`)."""

GAP = 5.0
"""If two checks lie further apart than this many seconds, earlier observations are forgotten."""


def rhythm(lease: float) -> float:
    """Return the seconds between two renewals of a lease of this length.

    Each renewal also takes the lock, if it was lost.
    """
    return min(lease / 4, LOOK)


class Sighting(NamedTuple):
    """The state of another host at one check."""

    host: str
    beat: int
    lease: float
    """Seconds that the host counts as living after a heartbeat."""
    held: bool
    """Whether a database session holds the host's lock."""
    gone: bool = False
    """Whether the host's process is known to have ended, which can be checked on the same machine only."""


class _Seen(NamedTuple):
    beat: int
    since: float
    unheld_since: float | None = None
    lock_counts: bool = True


@dataclass(frozen=True, slots=True)
class Membership:
    """The observations of one host about the other hosts. Immutable."""

    _seen: Mapping[str, _Seen] = field(default_factory=dict)
    _looked: float = float("-inf")
    _locks_count: bool = True

    def judge(self, now: float, sightings: Sequence[Sighting]) -> "tuple[Membership, list[Sighting]]":
        """Judge the hosts that have not ended.

        Args:
            now: the monotonic time at which this check began, in seconds.
            sightings: the other hosts, as they were found.

        Returns:
            What is known from now on, and the hosts that are dead, as they were found now.
        """
        known = self._seen if now - self._looked <= GAP else {}
        new = _Seen(-1, now, lock_counts=self._locks_count)
        seen = {sighting.host: _see(known.get(sighting.host, new), now, sighting) for sighting in sightings}
        dead = [
            sighting
            for sighting in sightings
            if (sighting.gone and not sighting.held) or _is_dead(seen[sighting.host], now, sighting.lease)
        ]
        return Membership(seen, now), dead


KNOWS_NOBODY = Membership()
"""The membership of a host that begins."""

CUT_OFF = Membership(_locks_count=False)
"""The membership of a host that could not reach the server. The others may have been cut off as well, and have lost
their locks."""


def _see(before: _Seen, now: float, sighting: Sighting) -> _Seen:
    if before.beat != sighting.beat:
        before = _Seen(sighting.beat, now, lock_counts=before.lock_counts)
    if sighting.held:
        return before._replace(unheld_since=None, lock_counts=True)
    return before._replace(unheld_since=now) if before.lock_counts and before.unheld_since is None else before


def _is_dead(seen: _Seen, now: float, lease: float) -> bool:
    return now - seen.since >= lease or (seen.unheld_since is not None and now - seen.unheld_since >= UNHELD)
