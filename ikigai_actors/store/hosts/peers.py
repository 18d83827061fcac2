"""The other hosts of a database: one host observes them, judges them (`membership`), and ends dead ones."""

import logging

from ikigai_actors.actors.clock import Clock
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.hosts.machine import has_ended
from ikigai_actors.store.hosts.membership import CUT_OFF, KNOWS_NOBODY, Sighting

logger = logging.getLogger(__name__)


class Peers:
    """Checks the other hosts and ends dead ones. For one thread."""

    def __init__(self, store: Store, host: str, clock: Clock) -> None:
        self._store, self._host, self._clock = store, host, clock
        self._membership = KNOWS_NOBODY
        self._held = False  # this host's own lock, at the latest look
        self._names: dict[str, str] = {}

    def end_dead(self) -> bool:
        """Check the other hosts once, and end the dead ones; return whether there were any.

        Raises `StoreError`; then all earlier observations are forgotten.
        """
        seen, self._membership = self._membership, CUT_OFF
        began = self._clock.monotonic()
        sightings, own = self._store.read(self._sightings)
        if self._held and not own:  # its connection broke, perhaps with those of all others
            seen = CUT_OFF
        self._held = own
        membership, dead = seen.judge(began, sightings)
        for host in dead:
            self._end(host)
        self._membership = membership
        return bool(dead)

    def _sightings(self, tx: Transaction) -> tuple[list[Sighting], bool]:
        """Return the other hosts, and whether this host's lock is held."""
        rows = tx.run("other_hosts", host=self._host)
        held = tx.held([self._host, *(row[0] for row in rows)])
        self._names = {row[0]: row[3] for row in rows}
        sightings = [
            Sighting(host, beat, lease / 1000, host in held, has_ended(pid, machine))
            for host, beat, lease, _, pid, machine in rows
        ]
        return sightings, self._host in held

    def _end(self, dead: Sighting) -> None:
        now = self._clock.now_ms()
        # In a transaction of its own: a transaction that does nothing may hold the row that the next one needs.
        self._store.write(lambda tx: tx.end_stalled(dead.host, now))
        self._store.write(lambda tx: tx.run("end_suspect", host=dead.host, beat=dead.beat))
        logger.info("Host %s sends no heartbeat, so its agents go on elsewhere.", self._names[dead.host])
