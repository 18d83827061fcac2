"""The checks of fsck for rules."""

from collections.abc import Collection, Iterator
from itertools import groupby

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.rules import every_rule
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.rules.rule import check_rule


def check_rule_rows(tx: Transaction, agents: Collection[str]) -> Iterator[Violation]:
    """Return the faults of rules; ``agents`` are the uuids of all agents."""
    for agent, rows in groupby(every_rule(tx), key=lambda row: row.agent):
        if agent not in agents:
            yield Violation(Invariant.RULE, agent, "expected an agent that has a rule, and there is none")
        for number, row in enumerate(rows, 1):
            if row.id != number:
                yield Violation(Invariant.RULE, agent, f"expected rule {number}, got {row.id}")
                break
            try:
                check_rule(row.decision, row.tool, row.pattern, row.scope)
            except BadInput as error:
                yield Violation(Invariant.RULE, agent, f"rule {number}: {error}")
