"""The rules that decide on a call, on random trees, against a model that copies rules from agent to agent."""

from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from ikigai_actors.records.agents.registry import make_root
from ikigai_actors.records.agents.rules import AddRule, RemoveRule, rules_for
from ikigai_actors.records.lives.supervision import AdoptChild
from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import write_alone
from ikigai_actors.tools.policy import Asked, Compared, Policy
from ikigai_actors.tools.rules.rule import NewRule, Rules, RulesVersion, Scope, deciding, version_of
from tests.kit.programs import programs
from tests.kit.trees import HOST, add_host

COMMANDS = ("git push", "git log", "ls; git push", "ls")
ALLOWED = {
    "": {*COMMANDS}, "git push *": {"git push"}, "git *": {"git push", "git log"}, "*": {"git push", "git log", "ls"},
}  # fmt: skip
"""The commands that a rule with a pattern allows; one that asks or denies also finds what it names in a chain."""
CHAINED = {"git push *": {"ls; git push"}, "git *": {"ls; git push"}, "*": {"ls; git push"}}
NAMES = {"bash": {"bash"}, "*": {"bash", "work"}, "w*k": {"work"}, "work": {"work"}}


@dataclass
class Copies:
    """The model: every agent has the rules that hold for it, each as it was copied to it."""

    above: dict[str, str] = field(default_factory=dict)
    own: dict[str, dict[int, NewRule]] = field(default_factory=dict)
    copied: dict[str, set[NewRule]] = field(default_factory=dict)

    def born(self, child: str, parent: str) -> None:
        self.above[child], self.own[child] = parent, {}
        self.copy_down()

    def copy_down(self) -> None:
        """Copy the rules from each agent to those below it, agents above first."""
        self.copied = {}
        while left := self.own.keys() - self.copied.keys():
            for agent in [agent for agent in left if self.above[agent] not in left]:
                inherited = {rule for rule in self.copied.get(self.above[agent], ()) if rule.scope is Scope.BELOW}
                self.copied[agent] = inherited | {*self.own[agent].values()}

    def is_above(self, agent: str, other: str) -> bool:
        while other in self.above:
            if other == agent:
                return True
            other = self.above[other]
        return False

    def decision(self, agent: str, tool: str, command: str) -> Policy | None:
        """The strictest decision of those copied to an agent."""
        decisions = {
            rule.decision for rule in self.copied[agent] if tool in NAMES[rule.tool] and _fits(rule, tool, command)
        }
        return next((decision for decision in (Policy.DENY, Policy.ASK, Policy.ALLOW) if decision in decisions), None)


def _fits(rule: NewRule, tool: str, command: str) -> bool:
    if tool == "work":  # it has no patterns
        return not rule.pattern or rule.decision is not Policy.ALLOW
    allowed = ALLOWED[rule.pattern]
    return command in (allowed if rule.decision is Policy.ALLOW else allowed | CHAINED.get(rule.pattern, set()))


def born(store: Store, child: str, parent: str, heads: dict[str, int]) -> None:
    """Let an agent be born below another one."""
    at = heads[parent] + 1
    words = (Message(child, at, "fork", "", {"parent": parent}, 1),)
    birth = Birth(child, None, parent, at - 1, 0, "transient", 1, words, at)
    unit = LogUnit(parent, (Message(parent, at, "fork", "", {"child": child}, 1),), births=(birth,))
    write_alone(store, Append(unit, FencingToken(HOST, 1)))
    heads[parent] = heads[child] = at


def take_steps(store: Store, chance: Random, name: str, heads: dict[str, int]) -> None:
    """Make up a tree, rules and adoptions, and compare every decision on every agent."""
    model = Copies()
    agents, known = list[str](), dict[tuple[str, RulesVersion], Rules]()
    for step in range(chance.randint(4, 14)):
        what = chance.choice(("birth", "birth", "rule", "rule", "rule", "remove", "adopt"))
        if what == "birth" or not agents:
            parent, child = chance.choice([*agents, "0"]), f"{name}.{step}"
            born(store, child, parent, heads)
            model.born(child, parent)
            agents.append(child)
        elif what == "rule":
            agent = chance.choice(agents)
            rule = NewRule(
                chance.choice(list(Policy)), chance.choice(list(NAMES)), chance.choice(list(ALLOWED)),
                chance.choice(list(Scope)),
            )  # fmt: skip
            model.own[agent][write_alone(store, AddRule(agent, rule, 1)).id] = rule
        elif what == "remove":
            agent = chance.choice(agents)
            if model.own[agent]:
                number = chance.choice(list(model.own[agent]))
                del model.own[agent][number]
                write_alone(store, RemoveRule(agent, number, 2))
        else:
            agent, by = chance.choice(agents), chance.choice(agents)
            if not model.is_above(agent, by):
                write_alone(store, AdoptChild(agent, by, 9))
                model.above[agent] = by
        model.copy_down()
        for agent in agents:
            rules, version = store.read(partial(_rules_and_version, agent))
            assert version == version_of(rules)
            assert known.setdefault((agent, version), rules) == rules
    for agent in agents:
        rules, _ = store.read(partial(_rules_and_version, agent))
        for tool, command in [("work", ""), *(("bash", command) for command in COMMANDS)]:
            decisive = deciding(rules, tool, Asked(Compared.COMMAND, command) if tool == "bash" else None)
            expected = model.decision(agent, tool, command)
            assert (None if decisive is None else decisive.decision) == expected, (agent, tool, command, rules)


def _rules_and_version(agent: str, tx: Transaction) -> tuple[Rules, RulesVersion]:
    return rules_for(tx, agent), frozenset(tx.run("rules_version", uuid=agent))


@pytest.mark.timeout(600)
@programs(few=30, many=10_000)
def test_the_rules_of_a_tree_decide_as_copies_of_them_would(examples: int) -> None:
    store, heads = open_store(":memory:"), {"0": 0}
    try:
        ensure_schema(store)
        store.write(add_host)
        store.write(lambda tx: make_root(tx, "0", 1))
        for number in range(examples):
            take_steps(store, Random(number), str(number), heads)
    finally:
        store.close()
