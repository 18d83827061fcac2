"""The limits of budgets: the first limits, and later changes.

A new budget of a living agent, or a new limit, counts everything except earlier spending (``base``): amounts that are
reserved for open requests are reserved in it, too. So the rows of all living agents below it are locked, and also the
tree, so that no agent is born meanwhile.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.former import keep_limit, keep_strictness
from ikigai_actors.records.agents.registry import shown_name_of
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.ceilings import MONEY
from ikigai_actors.records.budgets.grants import Grant, Served
from ikigai_actors.records.budgets.ledger import BudgetLedger, hearer_of
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.unit import Locked, LockedRows, TreeLock, write_alone


def add_budget(tx: Transaction, owner: str, parent: str, budget: Budget, now: int) -> None:
    """Write the budget of an agent that is being born, below the budgets of its parent. The parent's row is locked."""
    tx.run("add_budget", owner=owner, parent=parent, strict=int(budget.strict), now=now)
    for unit, granted in budget.limits().items():
        _add_limit(tx, owner, unit, granted)


def _add_limit(tx: Transaction, budget: str, unit: str, granted: int, base: int = 0, used: int = 0) -> None:
    """Write the row that limits a unit of a budget.

    ``base``: the amount that its members had spent before; ``used``: for a limit of agents, their present number.
    """
    tx.run("set_limit", budget=budget, unit=unit, granted=granted, base=base, used=used, risk=0, notified=0)


class _Member(NamedTuple):
    """A row of the query ``descent``: an agent, dead or alive, at or below the owner of a budget."""

    uuid: str
    status: str
    budget: str | None
    spent_tokens: int
    spent_usd: int


class SetBudget(Grant):
    """Set the limits of an agent's own budget; make the budget if the agent has none. Answered with `Served`.

    Limits that are new do not count earlier spending.

    Raises:
        AgentNotFound: there is no such agent.
        BadInput: an agent below has its own budget, and no new budget can be put above it; or the agent is dead and has
            no budget; or the budget has limits and is not strict, but is to become strict.
    """

    tree = TreeLock.WHOLE

    def __init__(self, agent: str, budget: Budget) -> None:
        super().__init__(agent, budget.limits(), sets=True)
        self._wanted = budget

    def look_up(self, tx: Transaction) -> None:
        members = _members(tx, self._agent)
        self.budget = self._agent if members else ""
        if members:
            self.find_waiting(tx)
            hearer = hearer_of(tx, self._agent)
            self._hearers = {**self._hearers, self._agent: hearer}
            living = (member.uuid for member in members if member.status != "dead")
            self._touched = tuple({*self._touched, hearer.uuid, *living})

    def write(self, tx: Transaction, locked: LockedRows) -> Served:
        if self.budget:
            self.check_hearers(locked)
            self.make(tx, locked)
        return super().write(tx, locked)

    def make(self, tx: Transaction, locked: LockedRows) -> None:
        """Make the budget, or its new limits."""
        members = _members(tx, self._agent)
        ledger = BudgetLedger(tx, locked, [self._agent, *(row.budget for row in locked.values())], {})
        level = ledger.levels.get(self._agent)
        if self._wanted.strict and level is not None and level.limits and not level.strict:
            raise BadInput(
                f"The budget of agent {self._agent} is not strict, and strict is set where a budget is made: leave "
                "it out."
            )
        if level is None:
            self._check_place(tx, members)
            add_budget(tx, self._agent, self._agent, Budget(strict=self._wanted.strict), ledger.now)
            tx.run("move_below_budget", budget=self._agent, uuids=[member.uuid for member in members])
        new = {unit: granted for unit, granted in self._more.items() if level is None or unit not in level.limits}
        made = level is None or not level.limits
        if made or "ms" in new:  # nothing else counts from then
            strict = self._wanted.strict if made or level is None else level.strict
            if level is not None:
                keep_strictness(tx, self._agent, ledger.now)
            tx.run("set_strict", budget=self._agent, strict=int(strict), now=ledger.now)
        holding = [locked[member.uuid] for member in members if member.uuid in locked and locked[member.uuid].held_at]
        if made and self._wanted.strict:
            holding = _raised(tx, locked, ledger, holding)
        for unit, granted in new.items():
            if level is not None:
                keep_limit(tx, self._agent, unit, granted, ledger.now)
            _add_limit(tx, self._agent, unit, granted, *_counted(unit, members))
            for row in holding if unit in MONEY else ():
                held, risk = _held(row, unit)
                tx.run("hold_more", budget=self._agent, unit=unit, host=row.held_host, held=held, risk=risk)
        if level is None:
            for row in [locked[member.uuid] for member in members if member.uuid in locked]:
                locked[row.uuid] = row._replace(budget=self._agent)

    def _check_place(self, tx: Transaction, members: Iterable[_Member]) -> None:
        own = [member.uuid for member in members if member.uuid == member.budget]
        if own:
            raise BadInput(
                f"Agent {shown_name_of(tx, own[0])} descends from agent {shown_name_of(tx, self._agent)} and has a "
                "budget of its own: none can be put between. Set that one, or one above."
            )
        if any(member.uuid == self._agent and member.status == "dead" for member in members):
            raise BadInput(f"Agent {self._agent} is dead, and has no budget that could be set.")


class SetFirstLimits(SetBudget):
    """Limit agent 0, and so all agents, unless it has limits already; answered with whether it had none.

    Earlier spending does not count.
    """

    def __init__(self, budget: Budget) -> None:
        super().__init__("", budget)

    def look_up(self, tx: Transaction) -> None:
        [(self._agent,)] = tx.run("root_budget")
        super().look_up(tx)

    def write(self, tx: Transaction, locked: LockedRows) -> bool:  # type: ignore[override]
        if BudgetLedger(tx, locked, [self._agent], {}).levels[self._agent].limits:
            return False
        super().write(tx, locked)
        return True


def limit_everybody(store: Store, budget: Budget) -> bool:
    """Limit agent 0, and so all agents, unless it has limits already. The host of this process must not run yet.

    Returns whether agent 0 had no limits. Raises the errors of `Store.write`.
    """
    return bool(write_alone(store, SetFirstLimits(budget)))


def _members(tx: Transaction, agent: str) -> list[_Member]:
    return [_Member._make(row) for row in tx.run("descent", uuid=agent)]


def _counted(unit: str, members: list[_Member]) -> tuple[int, int]:
    """Return the start values ``base`` and ``used`` of a new limit for the agents below it.

    Spending before the limit does not count: for tokens and dollars ``base`` is that spending, and ``used`` 0. Agents
    that are there already count: for them ``base`` is 0, and ``used`` their number.
    """
    match unit:
        case "tokens":
            return sum(member.spent_tokens for member in members), 0
        case "usd":
            return sum(member.spent_usd for member in members), 0
        case "agents":
            return 0, sum(member.status != "dead" for member in members) - 1
        case "agents_ever":
            return 0, len(members) - 1
    return 0, 0


def _held(row: Locked, unit: str) -> tuple[int, int]:
    return (row.held_tokens, row.held_risk_tokens) if unit == "tokens" else (row.held_usd, row.held_risk_usd)


def _raised(tx: Transaction, locked: LockedRows, ledger: BudgetLedger, holding: list[Locked]) -> list[Locked]:
    """Raise the reserved amounts of open requests to their highest possible cost, because a budget becomes strict.

    Returns the new rows of the agents.
    """
    for row in holding:
        for level in ledger.chain(row.budget):
            for unit in level.money:
                _, risk = _held(row, unit)
                tx.run("hold_more", budget=level.owner, unit=unit, host=row.held_host, held=risk, risk=-risk)
        locked[row.uuid] = row._replace(
            held_tokens=row.held_tokens + row.held_risk_tokens,
            held_usd=row.held_usd + row.held_risk_usd,
            held_risk_tokens=0,
            held_risk_usd=0,
        )
    tx.run("raise_holds", uuids=[row.uuid for row in holding])
    return [locked[row.uuid] for row in holding]
