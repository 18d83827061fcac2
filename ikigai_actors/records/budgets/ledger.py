"""Whole budgets, locked with the portions of all hosts, for a unit that has its own transaction.

The rows of the agents are locked before (`lock`), also those of agents that may get a notice (`Hearers`). These agents
are looked up before any lock. If one of them has died meanwhile, the unit runs again.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ikigai_actors.errors import BudgetExceeded
from ikigai_actors.records.agents import registry
from ikigai_actors.records.budgets.amounts import Charge, Held, Need, Paused
from ikigai_actors.records.budgets.ceilings import (
    LINE,
    MONEY,
    NOTIFIED_NEARLY,
    NOTIFIED_PAUSE,
    SLOT_TIME,
    BudgetLimit,
    Chain,
    Level,
    Owner,
    Portion,
    allot,
    decide_hold,
    is_strict,
    nearly_notice,
    pause_notice,
    time_line,
)
from ikigai_actors.records.budgets.purse import budget_chain, read_levels
from ikigai_actors.records.mail.mail import NOTICE, write_mail
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Locked, LockedRows

LOOK_AT_TIME = 60_000
"""The interval, in milliseconds, at which a budget with a time limit is checked, in case the clock is set back."""


class Hearer(NamedTuple):
    """The agent that gets the notices of a budget."""

    owner: Owner
    uuid: str
    """The uuid of the owner, or else of its nearest living supervisor."""


Hearers = Mapping[str, Hearer]
"""The agent that gets the notices of each budget, by the owner of the budget."""


class HearerDied(Exception):
    """An agent that was to get a notice has died. Nothing is written, and the unit runs again."""


def hearers(tx: Transaction, agents: Iterable[str]) -> Hearers:
    """Find the agents that get the notices of the budgets above some agents. Nothing is locked."""
    rows = tx.run("look_at_budgets", uuids=sorted(set(agents)))
    by_owner: dict[str, Hearer] = {}
    for owner, level in read_levels(tx, {budget for _, budget in rows}).items():
        if level.limits:
            by_owner[owner] = hearer_of(tx, owner)
    return by_owner


def hearer_of(tx: Transaction, owner: str) -> Hearer:
    """Return the agent that gets the notices of an agent's budget."""
    above = [registry.get(tx, owner), *registry.ancestors(tx, owner)]
    called = Owner(above[0].short, above[0].parent_uuid is None)
    return Hearer(called, next((record for record in above if record.living), above[-1]).uuid)


class BudgetLedger:
    """The budgets above some agents, locked together with the portions of all hosts."""

    def __init__(self, tx: Transaction, locked: LockedRows, budgets: Iterable[str | None], hearers: Hearers) -> None:
        """Lock the chains of budgets above agents.

        Args:
            tx: a transaction of this unit alone.
            locked: the rows of the agents and of those that get notices, locked before.
            budgets: the owners of the agents' nearest budgets.
            hearers: the agents that get the notices.
        """
        self._tx, self._locked, self._hearers = tx, locked, hearers
        owners = sorted(read_levels(tx, budgets))
        self._paused: dict[str, int] = dict(tx.run("lock_budgets", budgets=owners))
        self.levels = read_levels(tx, owners)  # again, now that they are locked: limits may be new
        for budget, unit, granted, used, risk, word in tx.run("lock_limits", budgets=owners):
            self.levels[budget].limits[unit] = BudgetLimit(granted, used, risk, word)
        for budget, unit, host, allotted, held, spent, risk, wanted in tx.run("lock_portions", budgets=owners):
            self.levels[budget].portions[unit, host] = Portion(allotted, held, spent, risk, wanted)
        self._chains: dict[str | None, Chain] = {}
        self._hosts = [host for (host,) in tx.run("living_hosts")]
        [(self.now,)] = tx.run("time")
        self._pauses_before = dict(self._paused)
        self.notified: list[tuple[str, str]] = []
        """The notices that were sent: recipient, and the agent that it is about."""

    def chain(self, budget: str | None) -> Chain:
        """Return the budgets above an agent that have limits."""
        if budget not in self._chains:
            self._chains[budget] = budget_chain(self.levels, budget)
        return self._chains[budget]

    def settle_request(self, row: Locked, charge: Charge) -> None:
        """Settle the open request of an agent, whichever host runs the agent."""
        assert row.held_host is not None  # as the request is open
        for level in self.chain(row.budget):
            for unit in level.money:
                held, spent, risk = row.held_tokens, charge.tokens, charge.risk_tokens - row.held_risk_tokens
                if unit == "usd":
                    held, spent, risk = row.held_usd, charge.usd, charge.risk_usd - row.held_risk_usd
                level.portion(unit, row.held_host).book(-held, spent, risk + level.beyond(held, spent))

    def place(
        self, row: Locked, need: Need, host: str, served: str | None = None, may_wait: bool = True
    ) -> Held | Paused:
        """Reserve the need of an agent's request in a host's portions; or let the request wait, and send the notice.

        Args:
            need: the need of its request.
            host: the host that runs the agent.
            served: the owner of the budget for which it waits already; None if it does not wait.
            may_wait: whether it may wait. Otherwise this raises `BudgetExceeded`, and writes nothing.
        """
        chain = self.chain(row.budget)
        slots = {level.owner: self._slot(level) for level in chain if "requests" in level.limits}
        decided = decide_hold(chain, need, self.now)
        if not isinstance(decided, Held):
            if not may_wait:
                level, unit = decided
                why = pause_notice(level, unit, need, self._owner(level), is_strict(chain), waits=False)
                raise BudgetExceeded(why)
            return self._pause(row, need, *decided, is_strict(chain), served)
        for level in () if need.is_nothing else chain:
            if (slot := slots.get(level.owner)) is not None:
                self._tx.run("use_slot", budget=level.owner, id=slot, now=self.now)
            for unit in level.money:
                amount = decided.tokens if unit == "tokens" else decided.usd
                allot(level, unit, host, max(1, amount), len(self._hosts))  # 1: so that the next, free too, fits
                level.portion(unit, host).book(amount, 0, decided.risk_tokens if unit == "tokens" else decided.risk_usd)
            if any(level.nearly_used(unit) for unit in level.money):
                level.want(True)
        return decided

    def _slot(self, level: Level) -> int | None:
        """Return the number of a free slot in a limit of requests a minute.

        If all slots are taken, set `Level.slot_due`, and return None.
        """
        most = level.limits["requests"].granted
        rows: dict[int, int] = dict(self._tx.run("slots_of", budget=level.owner))
        taken = {number: at for number, at in rows.items() if -SLOT_TIME <= self.now - at < SLOT_TIME}
        free = next((number for number in range(1, most + 1) if number not in taken), None)
        level.slot_due = None if free is not None else min(taken.values(), default=self.now) + SLOT_TIME
        return free

    def _pause(self, row: Locked, need: Need, level: Level, unit: str, strict: bool, served: str | None) -> Paused:
        text = pause_notice(level, unit, need, self._owner(level), strict)
        due = level.slot_due if unit == "requests" and level.limits[unit].granted else None
        if served == level.owner:
            self._tx.run("change_pause", agent=row.uuid, unit=unit, due=due, at=need.at, need=need.encode())
        else:
            self._paused[level.owner] += 1
            self._tx.run(
                "add_pause",
                agent=row.uuid,
                budget=level.owner,
                unit=unit,
                number=self._paused[level.owner],
                turn=need.turn,
                at=need.at,
                need=need.encode(),
                now=self.now,
                due=due,
            )
        level.want(True)
        self._note_nearly_used(level)  # before the pause, which would be the last notice
        limit = level.limits[unit]
        if limit.notified < NOTIFIED_PAUSE and due is None:
            limit.notified, limit.changed = NOTIFIED_PAUSE, True
            self._notify(level, row.uuid, text)
        is_over = unit == "ms" and limit.granted > 0
        return Paused(level.owner, unit, text, due, need.at, self.now + LOOK_AT_TIME if is_over else due)

    def look_at(self, level: Level) -> None:
        """Send the notice that a budget is nearly used, if due, and note whether the budget must be checked again."""
        self._note_nearly_used(level)
        level.want(
            bool(self._tx.run("waiting_for", budgets=[level.owner]))
            or any(level.nearly_used(unit) for unit in level.money)
        )

    def _note_nearly_used(self, level: Level) -> None:
        for unit, limit in level.limits.items():
            if not limit.notified and self._is_nearly_used(level, unit):
                limit.notified, limit.changed = NOTIFIED_NEARLY, True
                self._notify(level, level.owner, nearly_notice(level, unit, self._owner(level)))

    def _is_nearly_used(self, level: Level, unit: str) -> bool:
        granted = level.limits[unit].granted
        if unit == "ms":
            return granted > 0 and self.now >= time_line(level.created_at, granted)
        return unit in MONEY and 0 < granted * LINE <= level.spent(unit) * 100

    def _owner(self, level: Level) -> Owner:
        hearer = self._hearers.get(level.owner)
        return Owner(level.owner, is_root=False) if hearer is None else hearer.owner

    def _notify(self, level: Level, sender: str, text: str) -> None:
        hearer = self._hearers.get(level.owner)
        if hearer is None or hearer.uuid not in self._locked or self._locked[hearer.uuid].status == "dead":
            raise HearerDied
        write_mail(self._tx, self._locked, hearer.uuid, sender, text, self.now, NOTICE)
        self.notified.append((hearer.uuid, sender))

    @property
    def freed(self) -> tuple[str, ...]:
        """Return the owners of budgets that must be checked again when an amount in them is freed."""
        return tuple(
            owner for owner, level in self.levels.items() if any(portion.wanted for portion in level.portions.values())
        )

    def spend(self, level: Level, host: str | None, amounts: Mapping[str, int]) -> None:
        """Spend tokens and dollars that were not reserved before; send the notices that are due."""
        for unit in level.money:
            if host is None:  # nobody runs the agent
                limit = level.limits[unit]
                limit.used, limit.changed = limit.used + amounts[unit], True
            else:
                allot(level, unit, host, amounts[unit], len(self._hosts))
                level.portion(unit, host).book(0, amounts[unit])
        self.look_at(level)

    def bear(self, budget: str | None, births: int) -> None:
        """Count births below an agent in the budgets above it. Raises `BudgetExceeded`."""
        for level in self.chain(budget):
            for unit in ("agents", "agents_ever"):
                limit = level.limits.get(unit)
                if limit is not None and limit.used + births > limit.granted:
                    name = self._hearers[level.owner].owner
                    if unit == "agents_ever":
                        raise BudgetExceeded(
                            f"The budget of {name} allows {limit.granted} births below it, and {limit.used} were."
                        )
                    raise BudgetExceeded(
                        f"The budget of {name} allows {limit.granted} agents below it, {limit.used} live: let some "
                        "end, or grant more of them."
                    )
        for level in self.chain(budget):
            for unit in ("agents", "agents_ever"):
                if (limit := level.limits.get(unit)) is not None:
                    limit.used, limit.changed = limit.used + births, True

    def bury(self, budget: str | None, deaths: int = 1, of: str | None = None) -> None:
        """Subtract dead agents from the counts of all budgets above them, except the one that the agent ``of`` owns."""
        for level in self.chain(budget) if deaths else ():
            limit = level.limits.get("agents")
            if limit is not None and level.owner != of:
                limit.used, limit.changed = limit.used - deaths, True

    def fold(self, host: str) -> None:
        """Move the amounts that an ended host has spent to the limits, once nothing is reserved in its portions."""
        for level in self.levels.values():
            for (unit, of), portion in [*level.portions.items()]:
                if of == host and portion.held == 0 and unit in level.limits:
                    limit = level.limits[unit]
                    limit.used, limit.risk, limit.changed = limit.used + portion.spent, limit.risk + portion.risk, True
                    del level.portions[unit, of]
                    self._tx.run("end_portion", budget=level.owner, unit=unit, host=of)

    def write(self) -> None:
        """Write all changes of budgets, limits and portions."""
        for owner, level in self.levels.items():
            if self._paused[owner] != self._pauses_before[owner]:
                self._tx.run("set_paused", budget=owner, paused=self._paused[owner])
            for unit, limit in level.limits.items():
                if limit.changed:
                    self._tx.run(
                        "set_limit",
                        budget=owner,
                        unit=unit,
                        granted=limit.granted,
                        base=0,
                        used=limit.used,
                        risk=limit.risk,
                        notified=limit.notified,
                    )
            for (unit, host), portion in level.portions.items():
                if portion.changed:
                    self._tx.run(
                        "set_portion",
                        budget=owner,
                        unit=unit,
                        host=host,
                        allotted=portion.allotted,
                        held=portion.held,
                        spent=portion.spent,
                        risk=portion.risk,
                        wanted=portion.wanted,
                    )
