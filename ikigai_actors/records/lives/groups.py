"""Groups of siblings that are restarted together. They live in the shard of their supervisor, so on one host.

The host of a child that has failed restarts the whole group, and a host can restart only agents that it runs.
"""

from collections.abc import Iterable

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.lives.moves import branch_here
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows


def gather(tx: Transaction, locked: LockedRows, supervisor: str, children: Iterable[str]) -> None:
    """Move children that are restarted together to their supervisor's shard, each with the agents below it.

    The tree is locked. Raises `BadInput` when another host than the supervisor's runs one of them.
    """
    above = registry.get(tx, supervisor)
    apart = [record for record in (registry.get(tx, child) for child in children) if record.shard != above.shard]
    for record in apart:  # before anything is written
        if record.owner != above.owner:
            raise BadInput(
                f"Agent {record.short} lives on another host than its supervisor, so the siblings could not "
                "be restarted together. Move it there first."
            )
    for record in apart:
        uuids = branch_here(tx, record.uuid, record.owner) if record.owner is not None else [record.uuid]
        locked.lock(tx, uuids)
        tx.run("move_agents", uuids=uuids, shard=above.shard)
    if apart:  # a host that was about to give one of them away looks at it again
        tx.run("announce_shard", shard=above.shard, host=above.owner)
