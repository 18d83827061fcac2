"""The part of fsck that looks at requests."""

import json
from collections.abc import Collection, Iterator

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_requests(tx: Transaction, agents: Collection[str]) -> Iterator[Violation]:
    """What is wrong with the requests of other processes; ``agents`` are those that exist, by uuid."""
    numbers: dict[str, list[int]] = {}
    for agent, number, body, answer in tx.run("requests"):
        numbers.setdefault(agent, []).append(number)
        if not _is_object(body):
            yield Violation(Invariant.REQUEST, agent, f"expected request {number} to have a JSON object as its body")
        if answer is not None and not _is_object(answer):
            yield Violation(Invariant.REQUEST, agent, f"expected request {number} to have a JSON object as its answer")
    for agent, found in numbers.items():
        if agent not in agents:
            text = "expected it to exist, since it was asked for something; there is no such agent"
            yield Violation(Invariant.REQUEST, agent, text)
        if (lowest := min(found), highest := max(found)) != (1, len(found)):
            text = (
                f"expected each request to be numbered, 1 to {len(found)}; got {len(found)} from {lowest} to {highest}"
            )
            yield Violation(Invariant.REQUEST, agent, text)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
