"""Membership: which hosts of a database are dead, as another host judges.

A host that lives changes its row's ``beat`` again and again, and a session of it holds a lock of the server. Whoever
looks judges by two signs:

    the beat stays the same for the host's whole lease     it hangs, or is cut off from the server
    the lock is free at every look for `UNHELD` seconds    its process has ended: the server notices that at once

Time is counted by the monotonic clock of the one who looks. No other clock is believed, so a wall clock that is set,
the server's too, ends nobody. Who did not look for a while, since its process was stopped or the server did not answer,
knows nothing of the time between: it forgets what it saw, and begins anew.

A judgement may be wrong. Then a host ends that could have gone on, and that is all: the row of a host that is judged
dead is ended only if its beat is still the one that was seen, and a host whose row has ended writes nothing more. So
there is never a second writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

UNHELD = 2.0
"""Seconds for which the lock of a host must have been free."""

GAP = 5.0
"""Seconds between two looks after which what was seen before is forgotten."""


class Sighting(NamedTuple):
    """A host as one look found it."""

    host: str
    beat: int
    lease: float
    """Seconds for which it is believed after a beat."""
    held: bool
    """Whether a session holds its lock."""


class Suspect(NamedTuple):
    """A host that is judged dead."""

    host: str
    beat: int
    """The beat at which it was judged."""


class _Seen(NamedTuple):
    beat: int
    since: float
    unheld_since: float | None


@dataclass(frozen=True, slots=True)
class Membership:
    """What one host has seen of the others."""

    _seen: Mapping[str, _Seen] = field(default_factory=dict)
    _looked: float = float("-inf")

    def look(self, now: float, sightings: Sequence[Sighting]) -> "tuple[Membership, list[Suspect]]":
        """Judge the hosts that have not ended.

        Args:
            now: when this look began, in seconds of a monotonic clock.
            sightings: the other hosts, as they were found.

        Returns:
            What is known from now on, and the hosts that are dead.
        """
        known = self._seen if now - self._looked <= GAP else {}
        seen = {one.host: _see(known.get(one.host), now, one) for one in sightings}
        dead = [Suspect(one.host, one.beat) for one in sightings if _is_dead(seen[one.host], now, one.lease)]
        return Membership(seen, now), dead


def _see(before: _Seen | None, now: float, one: Sighting) -> _Seen:
    since = before.since if before is not None and before.beat == one.beat else now
    if one.held:
        return _Seen(one.beat, since, None)
    unheld = before.unheld_since if before is not None else None
    return _Seen(one.beat, since, now if unheld is None else unheld)


def _is_dead(seen: _Seen, now: float, lease: float) -> bool:
    return now - seen.since >= lease or (seen.unheld_since is not None and now - seen.unheld_since >= UNHELD)
