"""A tour that plays itself, on a temporary database and without a key: fork, diverge, restart.

    play(print)     # True when everything came back

It tells what it does as it goes, and really compares: the tree and every history after the restart must equal those
before.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.records import registry
from ikigai_actors.records.messages import Message
from ikigai_actors.shell.text.harmless import harmless
from ikigai_actors.shell.text.tree import tree_lines
from ikigai_actors.system.ref import AgentRef
from ikigai_actors.system.system import ActorSystem

_Tell = Callable[[str], object]

_PATIENCE = 30.0
"""Seconds that an answer may take."""

Everything = dict[tuple[str, str | None, str | None, int], list[Message]]
"""The history of each agent, by what tells its place in the tree."""


def play_demo(tell: _Tell) -> bool:
    """Play the tour; return whether the restart brought everything back."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ikigai-demo-") as directory:
        database = str(Path(directory) / "demo.db")
        with ActorSystem.open(database, OfflineProvider()) as system:
            tell("Agent 0 is told something.")
            _prompt(tell, system.root, "Our shop sells tea.")
            _fork_and_diverge(tell, system)
            before, tree = everything(system), _tree(system)
            tell("\nThe tree. Each agent stores only what it wrote itself:")
            tell(tree)
        tell("\nThe system is closed, and opened again on the same database.")
        reopened = time.perf_counter()
        with ActorSystem.open(database, OfflineProvider()) as system:
            opened = time.perf_counter() - reopened
            after, tree_after = everything(system), _tree(system)
            tell(tree_after)
            same = (before, tree) == (after, tree_after)
            if same:
                tell(f"\nThe same {len(after)} agents, with the same histories, after {opened * 1000:.0f} ms.")
                _prompt(tell, system.agent("buyer"), "Where were we?")
            else:
                tell("\nSomething did not come back as it was: this is a defect, please report it.")
    tell(f"\n{'Done' if same else 'Failed'} in {time.perf_counter() - started:.2f} s.")
    return same


def _fork_and_diverge(tell: _Tell, system: ActorSystem) -> None:
    tell("\nTwo children are forked from it. Both remember the tea; a fork copies nothing.")
    buyer = system.root.fork(name="buyer")
    seller = system.root.fork(name="seller")
    _prompt(tell, buyer, "You buy from farms in Assam.")
    _prompt(tell, seller, "You sell to cafés in Lyon.")
    tell("\nThey diverge: neither knows what the other was told. A grandchild knows its own line.")
    _prompt(tell, seller.fork(name="invoices"), "Write the invoices.")


def _prompt(tell: _Tell, agent: AgentRef, text: str) -> None:
    who = agent.name or "agent 0"
    tell(f"  to {who}: {text}")
    tell(f"     {harmless(agent.prompt(text).get(timeout=_PATIENCE).text)}")


def everything(system: ActorSystem) -> Everything:
    """Who exists, where in the tree, and with which history."""
    return {
        (record.uuid, record.name, record.supervisor_uuid, record.fork_message_id): system.handle(record.uuid).history()
        for record in system.agents()
    }


def _tree(system: ActorSystem) -> str:
    records, own = system.store.read(lambda tx: (registry.every(tx), registry.own_counts(tx)))
    return "\n".join(line.text for line in tree_lines(records, own, system.state_of))
