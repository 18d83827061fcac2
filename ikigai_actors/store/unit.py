"""Units: the writes that belong together. The journal commits a unit whole or not at all.

A unit names the agents it touches, which are locked before it runs, and whether it changes the tree. It checks before
it writes: a refusal (an `IkigaiError`) leaves nothing behind and is an answer, not a failure. It is safe to run twice.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.locks import Locks


class Unit(Protocol):
    """Writes that belong together."""

    @property
    def touches(self) -> tuple[str, ...]:
        """Uuids of the agents whose rows are locked first."""

    @property
    def changes_tree(self) -> bool:
        """Whether the one row of ``tree`` is taken before that: fork, death, adoption, claim."""

    @property
    def alone(self) -> bool:
        """Whether it has a transaction of its own: death, adoption, claim."""

    @property
    def concerns_others(self) -> bool:
        """Whether its answer tells what it did to others than its agent: then whoever follows the commits hears it."""

    def write(self, tx: Transaction, locked: Locks) -> Any:
        """Check, then write; return the answer. Raises an `IkigaiError` to refuse."""


class Addressed:
    """A unit that knows only how somebody is called whose row it touches. No ABC: each batch asks this of every unit,
    and `isinstance` of those costs ten times as much.
    """

    __slots__ = ()

    def look_up(self, tx: Transaction) -> None:
        """Find out, before the rows are locked, what `Unit.touches` gives. Raises nothing but a `StoreError`: whom it
        does not find it refuses in `Unit.write`.
        """
        raise NotImplementedError


def lock(tx: Transaction, units: Sequence[Unit]) -> Locks:
    """Take what units need, in the one order in which everybody does: the tree's row, then the agents' rows."""
    if any(unit.changes_tree for unit in units):
        tx.run("tree_change")
    for unit in units:
        if isinstance(unit, Addressed):
            unit.look_up(tx)
    uuids = sorted({uuid for unit in units for uuid in unit.touches})
    return Locks(tx.run("lock_agents", uuids=uuids) if uuids else ())


def write_alone(store: Store, unit: Unit) -> Any:
    """Commit one unit, and return its answer: how a process writes that is no host, and has no journal.

    Raises the unit's refusal, and what `Store.write` raises.
    """

    def work(tx: Transaction) -> Any:
        locked = lock(tx, (unit,))
        answer = unit.write(tx, locked)
        locked.settle(tx)
        tx.notify()
        return answer

    return store.write(work)
