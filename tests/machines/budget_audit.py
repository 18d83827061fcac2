"""Questions of a judge about budgets, when nobody else writes: needless waits, and holds of ended hosts."""

from collections.abc import Collection, Iterator

from ikigai_actors.records.budgets.amounts import Held, Need
from ikigai_actors.records.budgets.ceilings import decide_hold
from ikigai_actors.records.budgets.ledger import BudgetLedger
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows


def budgets_above(tx: Transaction, agents: Collection[str]) -> dict[str, set[str]]:
    """The budgets above some agents, by the owners of these, also those that limit nothing."""
    above = {owner: over for owner, over, _ in tx.run("all_budgets")}
    root = next(owner for owner, over in above.items() if over is None)
    chains: dict[str, set[str]] = {}
    for uuid, budget in tx.run("look_at_budgets", uuids=sorted(agents)):
        chain, current = set[str](), budget or root
        while current is not None:
            chain.add(current)
            current = above[current]
        chains[uuid] = chain
    return chains


def beyond(tx: Transaction, agent: str) -> dict[str, int]:
    """By how many tokens what is spent and held is more than each budget above an agent grants; less than 0: not."""
    excess: dict[str, int] = {}
    for owner, _, _, unit, granted, used, _, held, spent, *_ in tx.run("budget_of", uuid=agent):
        if unit == "tokens":
            excess[owner] = used + held + spent - granted
    return excess


def left_behind(tx: Transaction) -> list[str]:
    """The agents with open requests that an ended host has begun."""
    hosts = {host for (host,) in tx.run("living_hosts")}
    return [uuid for uuid, _, _, host in tx.run("open_holds") if host not in hosts]


def waiting_for_what_is_there(tx: Transaction, budgets: Collection[str]) -> Iterator[tuple[str, str]]:
    """The agents that are first in line for one of these budgets, though there is enough; and for which unit of it."""
    for budget in sorted(budgets):
        for uuid, need, unit, _ in tx.run("pauses_of", budget=budget, most=1):
            [(_, nearest)] = tx.run("look_at_budgets", uuids=[uuid])
            ledger = BudgetLedger(tx, LockedRows(()), [nearest], {})
            decision = decide_hold(ledger.chain(nearest), Need.decode(need), ledger.now)
            if unit not in ("requests", "ms") and isinstance(decision, Held):  # time comes back when a clock is set
                yield uuid, unit


def overdue(tx: Transaction, agents: Collection[str], now: int) -> Iterator[str]:
    """Those of these agents that were to go on by themselves before a time."""
    for uuid, _, _, due, _ in tx.run("pauses_by_agent", uuids=sorted(agents)):
        if due is not None and due < now:
            yield uuid
