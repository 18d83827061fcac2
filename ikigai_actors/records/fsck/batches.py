"""The checks of fsck for requests that wait for batches."""

from collections.abc import Iterator

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_batches(tx: Transaction) -> Iterator[Violation]:
    """Return the faults in the rows of batches and of the requests in them."""
    for agent, position, attempt, state, batch, is_gone, is_mute, ended_at in tx.run("every_member"):
        named = f"attempt {attempt} of the request at {position}"
        if state == "waiting" and is_gone:
            yield Violation(Invariant.BATCH, agent, f"expected {named}, which waits for a batch, to have its body")
        if state == "waiting" and ended_at is not None:
            yield Violation(Invariant.BATCH, agent, f"expected {named} to have ended with its batch {batch}")
        if state == "answered" and (is_mute or batch is None):
            yield Violation(Invariant.BATCH, agent, f"expected {named} to have the answer of a batch")
