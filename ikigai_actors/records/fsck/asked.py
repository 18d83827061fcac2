"""The checks of fsck for requests of programs to other agents."""

from collections import Counter
from collections.abc import Iterator, Mapping

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


def check_asked(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of requests of programs; ``records`` are all agents, by uuid."""
    ends = Counter[str]()
    for agent, prompt, asker, ended in tx.run("every_asked"):
        ends[asker] += ended is not None
        asked, who = records.get(agent), records.get(asker)
        text = ""
        if asked is None or who is None or prompt > asked.mailed or agent == asker:
            text = f"expected a program to have asked another agent for what is prompt {prompt} of {agent}"
        elif ended is None and not (asked.living and who.living):
            text = f"expected prompt {prompt} of {agent} to have ended, since one of the two is dead"
        elif ended not in (None, ends[asker]):
            text = f"expected end {ends[asker]} next, got {ended}"
        if text:
            yield Violation(Invariant.ASKED, asker, text)


def check_parked(tx: Transaction) -> Iterator[Violation]:
    """Return the faults of parked agents, and of the ends of turns for which they wait."""
    for agent, parked, turn, awake, wake_at, ends, counted in tx.run("every_parked"):
        text = ""
        if not parked:
            text = f"expected no end to count, and no time to wake it, since it is not parked; got {ends}, {wake_at}"
        elif not turn:
            text = "expected a parked agent to have an open turn, got none"
        elif awake != (parked < 0):
            text = f"expected column awake to be {int(parked < 0)} of one that is parked {parked}, got {awake}"
        elif parked > max(counted or 0, 0 if ends else 1):
            text = f"expected {parked} ends to count for it, got {counted or 0}"
        if text:
            yield Violation(Invariant.PARKED, agent, text)
