"""The hash of a history: of a message together with everything that its agent remembers before it.

    h(0) = SHA-256("ikigai history 1")
    h(n) = SHA-256(h(n-1) + for each of position, created_at, kind, content, data: its length in bytes, as 8 bytes
           with the greatest first, and these bytes)

Numbers are decimal digits, texts UTF-8; ``data`` is the text that is stored, and no data the empty text. The agent is
not part of it: a child goes on from the hash at its fork point, so two forks agree up to where they part.
"""

from collections.abc import Sequence
from hashlib import sha256

from ikigai_actors.errors import HistoryError
from ikigai_actors.store.base import Row, Transaction

EMPTY_HASH = sha256(b"ikigai history 1").digest()
"""The hash of a history without any message."""

_SIZES = tuple(size.to_bytes(8) for size in range(256))
"""Most sizes as they are hashed: each message has five."""


def hash_after(before: bytes, row: Row) -> bytes:
    """Return the hash of a history after one more row of ``messages``; ``before`` is the hash of the history so far."""
    parts = [before]
    for value in (row[1], row[5], row[2], row[3], row[4] or ""):
        text = str(value).encode(errors="surrogatepass")  # half of a character: the database refuses it
        size = len(text)
        parts += (_SIZES[size] if size < len(_SIZES) else size.to_bytes(8), text)
    return sha256(b"".join(parts)).digest()


class HashChain:
    """Computes the hashes of the messages that one transaction writes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bytes] = {}  # by agent and position in its history

    def settle(self, tx: Transaction) -> None:
        """Do nothing, because the hashes are in the rows."""

    def link(self, tx: Transaction, rows: Sequence[Row], head: bytes | None = None) -> list[Row]:
        """Return consecutive rows of a log with their hashes.

        Args:
            tx: the transaction that writes them.
            rows: the rows, as `Message.row` makes them.
            head: the hash of the message before them, if the agent's log in memory has it.
        """
        if not rows:
            return []
        uuid, first = rows[0][:2]
        if head is not None:
            self._known.setdefault((uuid, first - 1), head)
        before = self.at(tx, uuid, first - 1)
        linked: list[Row] = []
        for row in rows:
            before = self._known[uuid, row[1]] = hash_after(before, row)
            linked.append((*row, before))
        return linked

    def bear(self, tx: Transaction, parent: str, fork: int, rows: Sequence[Row]) -> list[Row]:
        """Return the first rows of a child's log with their hashes.

        They continue the parent's hash at the fork point.
        """
        return self.link(tx, rows, self.at(tx, parent, fork))

    def at(self, tx: Transaction, uuid: str, position: int) -> bytes:
        """Return the hash of an agent's history up to a position.

        Raises `HistoryError` when there is no such message.
        """
        if not position:
            return EMPTY_HASH
        if (known := self._known.get((uuid, position))) is None:
            rows = tx.run("hash_at", uuid=uuid, position=position)
            if not rows:
                text = f"The history of agent {uuid} has no message {position}. Run `ikigai fsck`."
                raise HistoryError(text, uuid)
            known = self._known[uuid, position] = rows[0][0]
        return known
