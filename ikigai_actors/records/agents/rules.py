"""Rules of agents about calls of tools: which run, which need approval, which are denied. Table ``rules``.

    set       the rule is a row, with the next number of its agent
    in force  until it is taken back: for its agent alone, or also for all agents below it in the tree of supervisors
    taken back  the row stays, and has the time at which the rule was taken back

The unit that begins a call names the rules on which the decision was based. If other rules are in force in its
transaction, it is refused with `RulesChanged`, and the agent decides again. So a committed rule holds for every call
that has not begun, on every host. A new rule also marks the row of the agent as changed. Then hosts check whether it
decides open questions of agents below.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ikigai_actors.errors import AgentError, BadInput, RuleNotFound
from ikigai_actors.records.agents import registry
from ikigai_actors.store.asker import current_principal
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from ikigai_actors.tools.policy import Policy
from ikigai_actors.tools.rules.rule import NewRule, Rule, Rules, RuleSet, check_rule, version_of

MOST_RULES = 200
"""The most rules in force of one agent."""


class RuleRow(NamedTuple):
    """A row of table ``rules``: a rule that an agent has or had."""

    agent: str
    """The uuid of the agent that has the rule."""
    id: int
    decision: str
    tool: str
    pattern: str
    scope: str
    created_at: int
    """The time when it was set, in milliseconds since 1970 (UTC)."""
    removed_at: int | None
    """The time when it was removed, in milliseconds since 1970; None while it is in force."""
    skill: str | None
    """The digest of the skill with which somebody has allowed it; None for other rules."""


class RulesChanged(AgentError):
    """The error when a call was to begin, but other rules are in force now than those by which it was decided."""

    def __init__(self, agent: str, rules: Rules) -> None:
        super().__init__(f"The rules for agent {agent} have changed.", agent)
        self.rules = rules
        """The rules in force."""


def rules_for(tx: Transaction, uuid: str) -> Rules:
    """Return the rules in force for an agent: its own, and those of all agents above it in the tree of supervisors."""
    return RuleSet(_rule(RuleRow(*row)) for row in tx.run("rules_for", uuid=uuid))


def check_rules(tx: Transaction, uuid: str, decided_by: Rules) -> None:
    """Raise `RulesChanged` if the rules in force for an agent differ from those on which its decision was based."""
    if frozenset(tx.run("rules_version", uuid=uuid)) != version_of(decided_by):
        raise RulesChanged(uuid, rules_for(tx, uuid))


def write_rule(
    tx: Transaction, uuid: str, new: NewRule, now: int, principal: str | None = None, skill: str | None = None
) -> Rule:
    """Add a rule to an agent whose row and tree are locked. An equal rule is not added again. Raises `BadInput`."""
    rows = _rows(tx, uuid)
    in_force = [row for row in rows if row.removed_at is None]
    for row in in_force:
        if (row.decision, row.tool, row.pattern, row.scope) == new and row.skill == skill:
            return _rule(row)
    if len(in_force) >= MOST_RULES:
        raise BadInput(f"Agent {uuid} has {MOST_RULES} rules, and none may have more. Take some back.")
    number = rows[-1].id + 1 if rows else 1
    decision, tool, pattern, scope = new
    tx.run(
        "add_rule", agent=uuid, id=number, decision=decision.value, tool=tool, pattern=pattern, scope=scope.value,
        now=now, principal=principal, skill=skill,
    )  # fmt: skip
    tx.run("mark_ruled", uuid=uuid)
    return Rule(uuid, number, *new, skill=skill or "")


class _ChangesRules(Unit):
    """The base of units that change rules. It marks the agent's row, so that every host notices the change."""

    __slots__ = ()

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True
    concerns_hosts = True
    locks = ("_uuid",)


class AddRule(_ChangesRules):
    """Add a rule to an agent; answered with the `Rule`. Raises `AgentNotFound`, `AgentDead`, `BadInput`."""

    __slots__ = ("_new", "_now", "_uuid")

    def __init__(self, uuid: str, new: NewRule, now: int) -> None:
        self._uuid, self._new, self._now = uuid, new, now

    def write(self, tx: Transaction, locked: LockedRows) -> Rule:
        locked.living(self._uuid, ": its rules stay as they are")
        return write_rule(tx, self._uuid, self._new, self._now, current_principal())


class SetSkillRules(_ChangesRules):
    """Replace the rules that an agent has of some skills; answered with the new ones.

    They are in force only where the skill is in use. Raises `AgentNotFound`, `AgentDead`, `BadInput`.
    """

    __slots__ = ("_new", "_now", "_skills", "_uuid")

    def __init__(self, uuid: str, skills: Collection[str], new: Mapping[str, Sequence[NewRule]], now: int) -> None:
        """Take the digests of the skills whose rules end, and the new rules by the digests of their skills."""
        self._uuid, self._skills, self._new, self._now = uuid, skills, new, now

    def write(self, tx: Transaction, locked: LockedRows) -> list[Rule]:
        locked.living(self._uuid, ": its rules stay as they are")
        tx.run("remove_skill_rules", agent=self._uuid, skills=sorted(self._skills), now=self._now)
        tx.run("mark_ruled", uuid=self._uuid)
        by = current_principal()
        return [
            write_rule(tx, self._uuid, rule, self._now, by, skill)
            for skill, rules in self._new.items()
            for rule in rules
        ]


class RemoveRule(_ChangesRules):
    """Remove a rule of an agent, dead or alive; answered with the `Rule`. Raises `AgentNotFound`, `RuleNotFound`."""

    __slots__ = ("_id", "_now", "_uuid")

    def __init__(self, uuid: str, number: int, now: int) -> None:
        self._uuid, self._id, self._now = uuid, number, now

    def write(self, tx: Transaction, locked: LockedRows) -> Rule:
        locked.existing(self._uuid)
        in_force = {row.id: row for row in _rows(tx, self._uuid) if row.removed_at is None}
        if self._id not in in_force:
            known = ", ".join(map(str, in_force)) or "none"
            raise RuleNotFound(
                f"Agent {self._uuid} has no rule {self._id}. Its own rules: {known}. One that it has from an agent "
                "above it is taken back there."
            )
        tx.run("remove_rule", agent=self._uuid, id=self._id, now=self._now)
        tx.run("mark_ruled", uuid=self._uuid)
        return _rule(in_force[self._id])


def set_rules_of_root(store: Store, rules: Sequence[NewRule], now: int) -> None:
    """Add rules to agent 0, except those that it has, in one transaction. Raises `BadInput` if it gets too many."""

    def write(tx: Transaction) -> None:
        tx.run("tree_change")
        root = registry.root(tx)
        assert root is not None  # it was made before
        LockedRows(()).lock(tx, (root.uuid,))
        for rule in rules:
            write_rule(tx, root.uuid, rule, now)
        tx.notify(None)

    if rules:
        store.write(write)


def rules_among(tx: Transaction, agents: Collection[str]) -> Iterator[tuple[Rule, int]]:
    """Iterate over the rules in force that these agents themselves have, each with the time when it was set.

    Those of skills are left out, since an import leaves out the skills.
    """
    for row in every_rule(tx):
        if row.agent in agents and row.removed_at is None and row.skill is None:
            yield _rule(row), row.created_at


def every_rule(tx: Transaction) -> list[RuleRow]:
    """Return all rules that were ever set, including removed ones."""
    return [RuleRow(*row) for row in tx.run("all_rules")]


def _rows(tx: Transaction, uuid: str) -> list[RuleRow]:
    return [RuleRow(*row) for row in tx.run("rules_of", uuid=uuid)]


@lru_cache(16_384)  # of a row nothing changes but its end
def _rule(row: RuleRow) -> Rule:
    """Return the rule in a row. A damaged row becomes a rule that denies all calls of its tool."""
    try:
        checked = check_rule(row.decision, row.tool, row.pattern, row.scope)
        return Rule(row.agent, row.id, *checked, skill=row.skill or "")
    except BadInput:
        pass
    try:
        check_rule(Policy.DENY, row.tool)
    except BadInput:
        return Rule(row.agent, row.id, Policy.DENY, "*")
    return Rule(row.agent, row.id, Policy.DENY, row.tool)
