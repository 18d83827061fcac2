"""The rules of agents about tool calls, checked by the commits: the invariant ``rule``.

A call begins only if the rules in force at the commit allow it, and is denied by a rule only if a rule denies it. Here
every agent has a copy of each rule of the agents above it.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn.calls import GIVE_RESULT, calls_of
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange

if TYPE_CHECKING:
    from ikigai_actors.testing.machine.commit_invariants import CommitCheck
    from ikigai_actors.testing.simulation.world import Simulation

_DENIED = re.compile(r"Rule (\d+) of agent (\S+) denies this call")


class KnownRule(NamedTuple):
    """A rule in force about calls of tools, without a pattern."""

    agent: str
    id: int
    decision: str
    tool: str
    scope: str


class RuleOracle:
    """Checks the rules of a run, and the calls that they decide."""

    def __init__(self, world: "Simulation", commits: "CommitCheck") -> None:
        self._world, self._commits = world, commits
        self.rules: dict[str, dict[int, KnownRule]] = {}
        self._calls: dict[tuple[str, str], str] = {}
        """The names of the calls of latest replies, by agent and id."""
        self._begun: set[tuple[str, str]] = set()
        """The calls of latest replies that were begun, or approved."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Record the rules that a commit changes, and check the calls that it begins or denies."""
        for change in changes:
            if isinstance(change, RanStatement):
                self._ran(change.query, change.parameters)
        for change in changes:
            if not isinstance(change, RanStatement) and change.table == "messages":
                self._wrote(Message.from_row(change.row))

    def for_agent(self, uuid: str) -> list[KnownRule]:
        """Return the rules in force for an agent."""
        rules, above = [*self.rules.get(uuid, {}).values()], self._commits.agents[uuid].supervisor
        while above is not None:
            rules += [rule for rule in self.rules.get(above, {}).values() if rule.scope == "below"]
            above = self._commits.agents[above].supervisor
        return rules

    def strict(self, uuid: str) -> list[KnownRule]:
        """Return the agent's own rules that ask or deny, in the order of their numbers."""
        return [rule for rule in self.rules.get(uuid, {}).values() if rule.decision != "allow"]

    def _ran(self, query: str, parameters: Mapping[str, Any]) -> None:
        match query:
            case "add_rule":
                rule = KnownRule(
                    parameters["agent"],
                    parameters["id"],
                    parameters["decision"],
                    parameters["tool"],
                    parameters["scope"],
                )
                self.rules.setdefault(rule.agent, {})[rule.id] = rule
            case "remove_rule":
                self.rules[parameters["agent"]].pop(parameters["id"], None)

    def _wrote(self, message: Message) -> None:
        uuid, call = message.agent_uuid, str(message.data.get("tool_use_id"))
        key = uuid, call
        match message.kind:
            case Kind.ASSISTANT:
                for each in [earlier for earlier in self._calls if earlier[0] == uuid]:
                    del self._calls[each]
                    self._begun.discard(each)
                self._calls |= {(uuid, made.id): made.name for made in calls_of(message)}
            case Kind.APPROVAL if message.data.get("approved"):
                self._begun.add(key)
            case Kind.TOOL_CALL:
                self._begins(uuid, call)
                self._begun.add(key)
            case Kind.TOOL_RESULT if denied := _DENIED.match(message.content):
                self._is_denied(uuid, call, int(denied[1]), denied[2])
            case Kind.TOOL_RESULT if self._calls.get(key) in BUILTIN_CALLS and not message.data.get("is_error"):
                self._begins(uuid, call)

    def _begins(self, uuid: str, call: str) -> None:
        name = self._calls.get((uuid, call))
        if name is None or name == GIVE_RESULT:
            return
        decisions = {rule.decision for rule in self.for_agent(uuid) if fnmatchcase(name, rule.tool)}
        if "deny" in decisions or ("ask" in decisions and (uuid, call) not in self._begun):
            self._broken(f"agent {uuid} begins a call of {name}, and its rules are {self.for_agent(uuid)}")

    def _is_denied(self, uuid: str, call: str, number: int, whose: str) -> None:
        name = self._calls.get((uuid, call), "")
        rule = self.rules.get(whose, {}).get(number)
        if rule not in self.for_agent(uuid) or rule.decision != "deny" or not fnmatchcase(name, rule.tool):
            self._broken(
                f"rule {number} of {whose} denies {name} of agent {uuid}, whose rules are {self.for_agent(uuid)}"
            )

    def _broken(self, what: str) -> None:
        self._world.process.broken(f"rule: {what}")
