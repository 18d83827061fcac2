"""The checks of fsck for pieces of replies in progress. Rows that ended hosts have left are allowed."""

from collections.abc import Collection, Iterator

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.messages.pieces import decode_pieces
from ikigai_actors.store.base import Transaction


def check_pieces(tx: Transaction, agents: Collection[str], hosts: Collection[str]) -> Iterator[Violation]:
    """Return the faults of the rows of replies in progress; ``agents`` and ``hosts`` are those that exist."""
    for host, number, agent, body in tx.run("pieces"):
        row = f"expected row {number} of host {host}"
        if agent not in agents:
            yield Violation(Invariant.PIECES, agent, f"{row} to be of an agent; there is no such agent")
        if host not in hosts:
            yield Violation(Invariant.PIECES, agent, f"{row} to be of a host; there is no such host")
        if not decode_pieces(body):
            yield Violation(Invariant.PIECES, agent, f"{row} to have kinds and texts, as a JSON list of pairs")
