"""Charges for the costs of an agent's tools, on the same budgets as its requests."""

from ikigai_actors.errors import BudgetExceeded
from ikigai_actors.records.budgets.amounts import Settled
from ikigai_actors.records.budgets.budget import amount_text
from ikigai_actors.records.budgets.ceilings import is_strict
from ikigai_actors.records.budgets.ledger import BudgetLedger, HearerDied, Hearers, hearers
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, RunAlone


class ChargeAgent(Addressed):
    """Charge an agent for a cost that its tool will cause, ``usd`` in micro-dollars; answered with `Settled`.

    A strict budget must have room for the charge. Any other budget records it even if too little is left, and the next
    request waits.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        BudgetExceeded: a budget above it is strict, and too little is left. Nothing is recorded.
    """

    alone = True
    concerns_others = True

    def __init__(self, agent: str, tokens: int, usd: int) -> None:
        self._agent, self._amounts = agent, {"tokens": tokens, "usd": usd}
        self._hearers: Hearers = {}

    @property
    def touches(self) -> tuple[str, ...]:
        return (self._agent, *(hearer.uuid for hearer in self._hearers.values()))

    def look_up(self, tx: Transaction) -> None:
        self._hearers = hearers(tx, [self._agent])

    def write(self, tx: Transaction, locked: LockedRows) -> Settled:
        row = locked.living(self._agent, ", and is charged nothing")
        if any(locked[hearer.uuid].status == "dead" for hearer in self._hearers.values()):
            raise RunAlone(self)  # it has died since the look-up
        ledger = BudgetLedger(tx, locked, [row.budget], self._hearers)
        chain = ledger.chain(row.budget)
        for level in chain if is_strict(chain) else ():
            for unit in level.money:
                if (amount := self._amounts[unit]) > (left := max(0, level.free(unit))):
                    name, there = self._hearers[level.owner].owner, amount_text(unit, left)
                    raise BudgetExceeded(
                        f"The budget of {name} has {there} left; this costs {amount_text(unit, amount)}."
                    )
        try:
            for level in chain:
                ledger.spend(level, row.owner, self._amounts)
        except HearerDied:
            raise RunAlone(self) from None
        tx.run("add_spent", uuid=row.uuid, **self._amounts)
        ledger.write()
        return Settled((), tuple(ledger.notified))
