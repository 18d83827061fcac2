"""The part of fsck that looks at definitions of tools: each has the digest under which it is stored."""

from collections.abc import Iterator

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.definitions import digest_of_definition


def check_definitions(tx: Transaction) -> Iterator[Violation]:
    """Look at all definitions."""
    for digest, body in tx.run("all_definitions"):
        if digest_of_definition(body) != digest:
            text = f"expected the body of definition {digest} to have this digest; it was changed"
            yield Violation(Invariant.DEFINITION, None, text)
