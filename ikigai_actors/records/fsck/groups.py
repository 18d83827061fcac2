"""The checks of fsck for groups and monitors."""

from collections.abc import Iterator, Mapping

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_groups(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of groups and monitors; ``records`` are all agents, by uuid."""
    living = {uuid for uuid, record in records.items() if record.living}
    for name, agent in tx.run("all_members"):
        if agent not in living:
            yield Violation(Invariant.GROUP, agent, f"expected it to live, since it is in group {name}")
    for agent, watcher in tx.run("all_monitors"):
        if not {agent, watcher} <= living or agent == watcher:
            text = f"expected it to live and to be monitored by another agent that does; {watcher} does so"
            yield Violation(Invariant.MONITOR, agent, text)
