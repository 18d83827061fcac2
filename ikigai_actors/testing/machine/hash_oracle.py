"""The hashes of histories, checked by the commits: the invariant ``hash``.

Each message is stored with the hash of its agent's history up to this message. The oracle has the expected hashes as a
list for each agent, copied at each fork. A stored hash never changes.
"""

from collections.abc import Sequence
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING

from ikigai_actors.store.base import Row
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


class HashOracle:
    """Checks the hash of each message that a simulated run commits, and later that the message still has this hash."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self._hashes: dict[str, list[bytes]] = {}  # of each agent's history; the first is that of no message
        self._stored: dict[tuple[str, int], bytes] = {}
        self._pruned: set[str] = set()

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the hash of each message that a commit writes."""
        written = [each.row for each in changes if isinstance(each, Written) and each.table == "messages"]
        parents = {
            each.parameters["uuid"]: (each.parameters["parent"], each.parameters["fork"])
            for each in changes
            if isinstance(each, RanStatement) and each.query == "register"
        }
        for change in changes:
            if isinstance(change, RanStatement) and change.query == "mark_pruned":
                self._pruned.update(change.parameters["uuids"])
        for row in sorted(written, key=itemgetter(1)):  # a child goes on from what its parent writes with it
            self._check(row, parents)

    def _check(self, row: Row, parents: dict[str, tuple[str, int]]) -> None:
        uuid, position, kind, content, data, created_at, stored = row
        self._stored[uuid, position] = stored
        if uuid not in self._hashes:
            parent, fork = parents.get(uuid, ("", 0))
            inherited = self._hashes.get(parent, [sha256(b"ikigai history 1").digest()])
            self._hashes[uuid] = inherited[: fork + 1]
        known = self._hashes[uuid]
        if len(known) != position:
            return  # another law is broken
        digest = sha256(known[-1])
        for part in (str(position), str(created_at), kind, content, data or ""):
            digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
        known.append(digest.digest())
        if stored != known[-1]:
            self._world.process.broken(f"hash: message {position} of agent {uuid} has not the hash of its history")

    def check_rest(self) -> None:
        """Check that every message is stored with the hash with which it was committed."""
        rows = self._world.process.looked_at.read(
            lambda tx: tx.schema.execute("SELECT agent_uuid, id, hash FROM messages")
        )
        kept = {(uuid, position): stored for uuid, position, stored in rows}
        there = {place: stored for place, stored in self._stored.items() if place[0] not in self._pruned}
        if changed := sorted(place for place, stored in there.items() if kept.get(place) != stored):
            raise Broken(f"hash: messages {changed} are gone, or have other hashes than they were committed with")
