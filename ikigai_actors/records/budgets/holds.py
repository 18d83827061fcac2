"""The reserved amount of an open request, in its agent's row; and the end of requests that a dead host has left."""

from collections.abc import Collection, Iterable

from ikigai_actors.records.budgets.amounts import Charge, Held, Paused, whole_hold
from ikigai_actors.records.budgets.ledger import BudgetLedger
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Locked, LockedRows


def keep_hold(
    tx: Transaction, row: Locked, charge: Charge | None, held: Held | None, host: str, turn: int | None = None
) -> None:
    """Write the cost of an agent's ended request, and the amount reserved for the next one, into the agent's row."""
    tx.defer(
        "keep_hold",
        uuid=row.uuid,
        turn=turn,
        at=0 if held is None else held.at,
        tokens=0 if held is None else held.tokens,
        usd=0 if held is None else held.usd,
        risk_tokens=0 if held is None else held.risk_tokens,
        risk_usd=0 if held is None else held.risk_usd,
        most=None if held is None else held.max_tokens,
        host=None if held is None else host,
        spent_tokens=0 if charge is None else charge.tokens,
        spent_usd=0 if charge is None else charge.usd,
    )


def bury_holds(tx: Transaction, locked: LockedRows, dead: Collection[str], pausing: Collection[str]) -> tuple[str, ...]:
    """Spend the amounts reserved for agents that die, end their waits for budgets, and count the agents as dead.

    Args:
        tx: a transaction of its own.
        locked: the locked rows; those of the dead that have no entry count at agent 0's budget, and hold nothing.
        dead: the agents that die.
        pausing: the dying agents that may wait for a budget.

    Returns:
        The owners of the budgets to be checked again.
    """
    rows = [row for uuid in dead if (row := locked.get(uuid)) is not None]
    ledger = BudgetLedger(tx, locked, {row.budget for row in rows}, {})
    _spend(tx, ledger, rows)
    for row in rows:
        ledger.bury(row.budget, of=row.uuid)
    ledger.bury(None, len(dead) - len(rows))
    tx.run("end_pauses", agents=list(pausing))
    ledger.write()
    return ledger.freed


def _spend(tx: Transaction, ledger: BudgetLedger, rows: Iterable[Locked]) -> None:
    """Count the reserved amounts of these rows as spent, since nobody will report what their requests have cost."""
    for row in rows:
        if row.held_at:
            charge = whole_hold(row)
            ledger.settle_request(row, charge)
            keep_hold(tx, row, charge, None, "")


def settle_left_behind(tx: Transaction, host: str, shards: Collection[int]) -> None:
    """Count as spent the amounts reserved for open requests that earlier hosts of some shards have left.

    A request that continues without its host keeps its reserved amount, until the next host asks for the same reply.
    """
    held, portions = tx.ask("held_in", host=host, shards=[str(shard) for shard in shards]), tx.ask("portions_of_ended")
    uuids = [uuid for (uuid,) in held()]
    locked = LockedRows(tx.run("lock_agents", uuids=sorted(uuids), writers=[]) if uuids else ())
    if locked:
        ledger = BudgetLedger(tx, locked, {row.budget for row in locked.values()}, {})
        _spend(tx, ledger, locked.values())
        ledger.write()
    if ended := portions():
        ledger = BudgetLedger(tx, locked, {budget for budget, _ in ended}, {})
        for gone in {gone for _, gone in ended}:
            ledger.fold(gone)
        ledger.write()


def holds_of(tx: Transaction, agents: Collection[str]) -> dict[str, Held]:
    """Return the reserved amounts for the open requests of some agents, by uuid."""
    rows = tx.run("holds_of", uuids=list(agents)) if agents else ()
    return {
        uuid: Held(at, tokens, usd, most or 0, most, risk_tokens, risk_usd)
        for uuid, at, tokens, usd, most, risk_tokens, risk_usd in rows
    }


def pauses_of(tx: Transaction, agents: Collection[str]) -> dict[str, Paused]:
    """Return the waits of some agents' requests for budgets, by uuid. Agents that do not wait are left out."""
    rows = tx.run("pauses_by_agent", uuids=list(agents)) if agents else ()
    return {uuid: Paused(budget, unit, "", due, at, due) for uuid, budget, unit, due, at in rows}
