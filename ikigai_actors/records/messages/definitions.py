"""Table ``definitions``: the definitions of tools to which questions refer, each once under its digest.

A body is written in the transaction of the first question that names it, so the digest in a question leads to its body.
An agent that came from a file brings digests alone. Nothing deletes a definition.
"""

from collections.abc import Collection, Iterable

from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.definitions import Definition


class Definitions:
    """The definitions of tools to which the questions of a transaction refer."""

    def __init__(self) -> None:
        self._named: set[Definition] = set()

    def keep(self, named: Iterable[Definition]) -> None:
        """Store definitions with the transaction."""
        self._named.update(named)

    def settle(self, tx: Transaction) -> None:
        """Write the definitions that are not stored yet.

        A fixed order keeps hosts with equal definitions from a deadlock.
        """
        for digest, name, body in sorted(self._named):
            tx.run("keep_definition", digest=digest, name=name, body=body)


def definition_bodies(tx: Transaction, digests: Collection[str]) -> dict[str, str]:
    """Return the bodies of definitions, by digest; missing ones are left out."""
    return dict(tx.run("definition_bodies", digests=sorted(digests)))
