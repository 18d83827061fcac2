"""Moves of a branch of the tree to another host."""

from dataclasses import dataclass
from zlib import crc32

from ikigai_actors.errors import AgentDead, BadInput, Fenced, RootProtected, StoreConflict
from ikigai_actors.records.agents import registry
from ikigai_actors.records.lives.deaths import Relative, branch, hosts_of
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from supervisors.strategies import Strategy

UNSHARED = (
    "The process that runs these agents shares them with nobody. Hosts share agents on PostgreSQL: start them by "
    "ikigai host --name NAME, or by ActorSystem.open(join=True)."
)
"""The reason why agents cannot leave a host that does not share them."""


def branch_here(tx: Transaction, uuid: str, host: str) -> list[str]:
    """Return the uuids of an agent and of those of its living descendants that the host runs."""
    return [relative.uuid for relative in _movable(tx, uuid, host)]


def movable_top(tx: Transaction, uuid: str, host: str) -> str | None:
    """Return the agent with which an agent of a host moves: itself, or the one above its group; None if none moves."""
    record = registry.get(tx, uuid)
    while record.living and record.supervisor_uuid is not None and record.owner == host:
        supervisor = registry.get(tx, record.supervisor_uuid)
        if supervisor.strategy == Strategy.ONE_FOR_ONE:
            return record.uuid
        record = supervisor
    return None


def check_movable(tx: Transaction, uuid: str, host: str) -> None:
    """Raise the error of `MoveBranch` for an agent that this host cannot move."""
    record = registry.get(tx, uuid)
    if not record.living:
        raise AgentDead(f"Agent {record.short} is dead.", uuid)
    if record.supervisor_uuid is None:
        raise RootProtected("Agent 0 cannot be moved. Its branches can.", uuid)
    if registry.get(tx, record.supervisor_uuid).strategy != Strategy.ONE_FOR_ONE:
        raise BadInput(f"Agent {record.short} is restarted together with its siblings: move their supervisor.")
    if record.owner != host:
        raise Fenced(f"Agent {record.short} now belongs to another host.", uuid)


@dataclass(frozen=True, slots=True)
class MoveBranch(Unit):
    """Move an agent, and those of its descendants that live on the same host, to a shard of another host.

    Answered with the uuids of these agents. Siblings that are restarted together live on one host, so such an agent can
    only move together with its supervisor.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        RootProtected: agent 0 cannot be moved.
        BadInput: the agent is restarted together with its siblings.
        Fenced: another host runs the agent.
        StoreConflict: the other host does not live, or has no shard.
    """

    agent: str
    host: str
    """The host that runs the agent, and commits this unit."""
    to: str

    alone = True
    tree = TreeLock.WHOLE
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> list[str]:
        check_movable(tx, self.agent, self.host)
        rows = tx.run("shard_for", host=self.to, place=crc32(self.agent.encode()))
        if not rows or not tx.run("announce_shard", shard=rows[0][0], host=self.to):
            raise StoreConflict(f"Host {self.to} has no shard for agent {self.agent}.")
        uuids = branch_here(tx, self.agent, self.host)
        locked.lock(tx, uuids)
        tx.run("move_agents", uuids=uuids, shard=rows[0][0])
        return uuids


def _movable(tx: Transaction, uuid: str, host: str) -> list[Relative]:
    """Return the agents of a branch that can be reached from its top without crossing an agent of another host."""
    family = branch(tx, uuid)
    hosts = hosts_of(tx, family.values())
    movable: dict[str, Relative] = {}
    below = [uuid]
    children: dict[str | None, list[str]] = {}
    for relative in family.values():
        children.setdefault(relative.supervisor, []).append(relative.uuid)
    while below:
        relative = family[below.pop()]
        if hosts.get(relative.shard) == host and relative.uuid not in movable:
            movable[relative.uuid] = relative
            below += children.get(relative.uuid, ())
    return [relative for relative in movable.values() if relative.status != "dead"]
