"""The portions of this host, in a transaction that the units of many agents share.

The portions are read and locked for all agents of the transaction at once, together with the rows of these agents if a
unit is to spend. If the portions are too small for a unit, `RunAlone` is raised before anything is written, and the
unit runs again with a `BudgetLedger`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.records.budgets.amounts import Charge, Held, Need
from ikigai_actors.records.budgets.ceilings import BudgetLimit, Chain, Level, Portion, is_strict, whole
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import Locked


def read_levels(tx: Transaction, budgets: Iterable[str | None]) -> dict[str, Level]:
    """Return budgets and all budgets above them by their owners, without portions. A budget of None means agent 0's."""
    return _levels(tx.run("budget_levels", budgets=sorted({budget for budget in budgets if budget is not None})))


def _levels(rows: Iterable[Row]) -> dict[str, Level]:
    """Return the levels in rows that begin with the columns ``level`` of ``queries.sql``."""
    levels: dict[str, Level] = {}
    for owner, above, strict, created_at, unit, granted, used, risk, notified, *_ in rows:
        level = levels.setdefault(owner, Level(owner, above, bool(strict), created_at))
        if unit is not None:
            level.limits[unit] = BudgetLimit(granted, used, risk, notified)
    return levels


def budget_chain(levels: Mapping[str, Level], budget: str | None) -> Chain:
    """Return the budgets with limits above an agent, agent 0's first. ``budget`` is the owner of its nearest budget.

    Raises `StoreUnusable` for a damaged database, in which agent 0 has no budget.
    """
    chain: list[Level] = []
    current = budget or next((owner for owner, level in levels.items() if level.above is None), None)
    if current is None:
        raise StoreUnusable("Agent 0 has no budget in the database, so the database is damaged: see ikigai fsck.")
    while current is not None and current in levels and levels[current] not in chain:
        chain.append(levels[current])
        current = levels[current].above
    return [level for level in reversed(chain) if level.limits]


class Booking(NamedTuple):
    """The amounts to add to one portion of a host."""

    level: Level
    portion: Portion
    held: int
    spent: int
    risk: int


class Short(Exception):
    """The error when this host's portions are too small to decide. The whole chain of budgets must be read."""


class Purse:
    """The portions of budgets that a host may spend without other hosts. One for each transaction."""

    def __init__(self, tx: Transaction, host: str, agents: Collection[str]) -> None:
        """Read the budgets above these agents, and lock this host's portions.

        The agents' rows must be locked already.
        """
        self._host = host
        self._rows = tx.ask("own_budgets", host=host, uuids=sorted(agents))
        self._chains: dict[str | None, Chain] = {}
        self._known: dict[str, Level] | None = None
        self._before: dict[tuple[str, str], tuple[int, int, int]] = {}

    def _levels(self) -> dict[str, Level]:
        if self._known is not None:
            return self._known
        rows = self._rows()
        levels = self._known = _levels(rows)
        for owner, _, _, _, unit, _, _, _, _, allotted, held, spent, risk, wanted in rows:
            if allotted is not None:
                levels[owner].portions[unit, self._host] = Portion(allotted, held, spent, risk, wanted)
                self._before[owner, unit] = held, spent, risk
        return levels

    def chain(self, budget: str | None) -> Chain:
        """Return the budgets above an agent that have limits."""
        if budget not in self._chains:
            self._chains[budget] = budget_chain(self._levels(), budget)
        return self._chains[budget]

    def plan(self, row: Locked, charge: Charge | None, need: Need | None) -> tuple[Held | None, list[Booking]]:
        """Plan the changes that settle an agent's request and reserve the need of its next one. Changes nothing.

        Args:
            charge: the cost of its open request; None when there is none, or it stays open.
            need: the need of its next request; None for none.

        Returns:
            The reserved amount, and what to add to each portion.

        Raises:
            Short: the portions of this host are not enough to decide.
        """
        chain = self.chain(row.budget)
        held = None if need is None else whole(chain, need)
        if held is not None and any("ms" in level.limits or "requests" in level.limits for level in chain):
            raise Short
        if held is not None and need is not None and not need.priced and is_strict(chain):
            raise Short
        if charge is not None and row.held_host != self._host and any(level.money for level in chain):
            raise Short
        booked: list[Booking] = []
        for level in chain if charge is not None or need is not None else ():
            for unit in level.money:
                portion = level.portions.get((unit, self._host))
                if portion is None:
                    raise Short
                place = int(unit == "usd")
                released = 0 if charge is None else (row.held_tokens, row.held_usd)[place]
                spent = 0 if charge is None else (charge.tokens, charge.usd)[place]
                freed_risk = 0 if charge is None else (row.held_risk_tokens, row.held_risk_usd)[place]
                risk = 0 if charge is None else (charge.risk_tokens, charge.risk_usd)[place]
                new = 0 if held is None else (held.tokens, held.usd)[place]
                new_risk = 0 if held is None else (held.risk_tokens, held.risk_usd)[place]
                if held is not None and portion.taken - released + spent + max(1, new) > portion.allotted:
                    raise Short
                beyond = level.beyond(released, spent)
                booked.append(Booking(level, portion, new - released, spent, new_risk + risk - freed_risk + beyond))
        return held, booked

    def book(self, planned: Sequence[Booking], charge: Charge | None) -> tuple[str, ...]:
        """Add planned amounts to the portions; return the owners of the budgets to be checked again."""
        for _, portion, more, spent, risk in planned:
            portion.book(more, spent, risk)
        return tuple({each.level.owner: None for each in planned if charge is not None and each.portion.wanted})

    def bear(self, budget: str | None) -> None:
        """Count a birth below an agent. Raises `Short` if a budget limits births."""
        if any("agents" in level.limits or "agents_ever" in level.limits for level in self.chain(budget)):
            raise Short

    def settle(self, tx: Transaction) -> None:
        """Write all changes of portions, before COMMIT."""
        for level in self._levels().values():
            for (unit, host), portion in level.portions.items():
                if portion.changed:
                    held, spent, risk = self._before[level.owner, unit]
                    tx.defer(
                        "use_portion",
                        budget=level.owner,
                        unit=unit,
                        host=host,
                        held=portion.held - held,
                        spent=portion.spent - spent,
                        risk=portion.risk - risk,
                    )
