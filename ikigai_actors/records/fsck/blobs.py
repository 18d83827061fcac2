"""The checks of fsck for blobs: each has the hash under which it is stored, and each reference leads to a blob."""

from collections.abc import Iterator, Mapping
from hashlib import sha256

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.messages.blobs import uploaded_blobs
from ikigai_actors.store.base import Transaction


def check_blobs(tx: Transaction, referenced: Mapping[str, tuple[str, int]]) -> Iterator[Violation]:
    """Check all blobs, one at a time.

    Args:
        referenced: for each blob to which messages refer, one such message: its agent and its position.
    """
    stored = [name for (name,) in tx.run("all_blobs")]
    for name in stored:
        for _, data in tx.run("read_blobs", hashes=[name]):
            if sha256(data).hexdigest() != name:
                text = f"expected the bytes of blob {name} to have this hash; they were changed"
                yield Violation(Invariant.BLOB, None, text)
    for name in sorted({*uploaded_blobs(tx)} - set(stored)):
        yield Violation(Invariant.BLOB, None, f"expected blob {name}, which was uploaded; there is none")
    for name in sorted(referenced.keys() - set(stored)):
        agent, position = referenced[name]
        yield Violation(
            Invariant.BLOB, agent, f"expected blob {name}, to which message {position} refers; there is none"
        )
