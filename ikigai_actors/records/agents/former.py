"""Former values of rows that change in place. A unit that changes a value stores the old one, in its transaction.

Logs, births, deaths, mail, rules, documents and spendings have times. Together with table ``former`` the state of all
agents at any earlier time can be read: a value at a time is in the row with the smallest ``until`` after that time;
without such a row it is the present value. Objects that were made after that time are left out.

    supervisor    the uuid of the supervisor before an adoption
    name          the name before a new name; empty if the agent had none
    status        the status before a signal or a pause. An agent that dies without such a row was running
    strategy      strategy, intensity, period and orphan policy, with a space between
    group         by the group's name: the time when a member joined that has left or died since
    limit         by unit, the former limit of the agent's budget; empty if there was none. A limit without a row never
                  changed. The entry ``strict`` has whether the budget was strict, and when it was made
    timer         by number: the row, as JSON, of a timer that has fired, was cancelled, or whose agent has died

Turns, forks and mail write nothing here. A row has the value before its time stamp. The stamps of one value's rows
never fall. `prune_logs` deletes rows that are older than `FORMER_MS`.
"""

from collections.abc import Sequence

from ikigai_actors.store.base import Transaction

FORMER_MS = 30 * 86_400_000
"""The milliseconds for which former values are kept."""


def keep_supervisors(tx: Transaction, uuids: Sequence[str], by: str, now: int) -> None:
    """Store the supervisors of agents that are about to be adopted."""
    tx.run("keep_supervisors", uuids=uuids, by=by, now=now)


def keep_name(tx: Transaction, uuid: str, now: int) -> None:
    """Store the name of an agent that is about to be renamed."""
    tx.run("keep_name", uuids=[uuid], now=now)


def keep_statuses(tx: Transaction, uuids: Sequence[str], now: int) -> None:
    """Store the statuses of agents that are about to get another status and stay alive."""
    tx.run("keep_statuses", uuids=uuids, ends=0, now=now)


def keep_last_statuses(tx: Transaction, uuids: Sequence[str], now: int) -> None:
    """Store the statuses of agents that are about to die, unless they were running."""
    tx.run("keep_statuses", uuids=uuids, ends=1, now=now)


def keep_supervision(tx: Transaction, uuid: str, now: int) -> None:
    """Store how an agent supervises its children, which is about to change."""
    tx.run("keep_supervision", uuids=[uuid], now=now)


def keep_memberships(tx: Transaction, uuids: Sequence[str], now: int, group: str | None = None) -> None:
    """Store that agents were members of a group that they are about to leave; None for all groups."""
    tx.run("keep_memberships", uuids=uuids, name=group, now=now)


def keep_limit(tx: Transaction, budget: str, unit: str, granted: int, now: int) -> None:
    """Store the present limit of a budget for a unit, before the limit becomes ``granted``."""
    tx.run("keep_limit", budget=budget, unit=unit, granted=granted, now=now)


def keep_strictness(tx: Transaction, budget: str, now: int) -> None:
    """Store whether a budget is strict, and the time since when, before that changes."""
    tx.run("keep_strictness", budget=budget, now=now)


def keep_timers(tx: Transaction, uuids: Sequence[str], now: int, number: int = 0) -> None:
    """Store timers of agents before they fire or are removed: the timer with this number, or for 0 all of them."""
    tx.run("keep_timers", uuids=uuids, id=number, now=now)


def prune_former(tx: Transaction, now: int) -> None:
    """Delete former values that are older than `FORMER_MS`."""
    tx.run("prune_former", before=now - FORMER_MS)
