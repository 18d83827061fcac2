"""The checks of fsck for remote commands."""

import json
from collections.abc import Collection, Iterator

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_remote_commands(tx: Transaction, agents: Collection[str]) -> Iterator[Violation]:
    """Return the faults of remote commands; ``agents`` are the uuids of those that exist."""
    numbers: dict[str, list[int]] = {}
    for agent, number, body, answer in tx.run("remote_commands"):
        numbers.setdefault(agent, []).append(number)
        if not _is_object(body):
            text = f"expected remote command {number} to have a JSON object as its body"
            yield Violation(Invariant.REMOTE_COMMAND, agent, text)
        if answer is not None and not _is_object(answer):
            text = f"expected remote command {number} to have a JSON object as its answer"
            yield Violation(Invariant.REMOTE_COMMAND, agent, text)
    for agent, positions in numbers.items():
        if agent not in agents:
            text = "expected it to exist, since it was asked for something; there is no such agent"
            yield Violation(Invariant.REMOTE_COMMAND, agent, text)
        if (lowest := min(positions), highest := max(positions)) != (1, len(positions)):
            text = f"expected remote commands 1 to {len(positions)}; got {len(positions)} from {lowest} to {highest}"
            yield Violation(Invariant.REMOTE_COMMAND, agent, text)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
