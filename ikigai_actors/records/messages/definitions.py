"""Table ``definitions``: what questions about calls of tools hold for, each body once under its digest.

A body is written in the transaction of the first question that names it, so the digest in a question leads to its body.
An agent that came from a file brings digests alone. Nothing deletes a definition.
"""

from collections.abc import Collection, Iterable

from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.definitions import Definition


class Definitions:
    """The definitions that the questions of a transaction name: a `Part` of its rows."""

    def __init__(self) -> None:
        self._named: set[Definition] = set()

    def keep(self, named: Iterable[Definition]) -> None:
        """Have definitions written with the transaction."""
        self._named.update(named)

    def settle(self, tx: Transaction) -> None:
        """Write those that are not there yet, in one order: hosts that write the same ones wait for one another."""
        for digest, name, body in sorted(self._named):
            tx.run("keep_definition", digest=digest, name=name, body=body)


def definition_bodies(tx: Transaction, digests: Collection[str]) -> dict[str, str]:
    """The bodies of definitions, by digest; one that is not kept here is left out."""
    return dict(tx.run("definition_bodies", digests=sorted(digests)))
