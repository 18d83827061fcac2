"""The note for a model that forks, and for its child, of the amounts left in their budgets after the births."""

from ikigai_actors.frozen import replace
from ikigai_actors.records.agents import registry
from ikigai_actors.records.budgets.budget import Budget, amount_text
from ikigai_actors.records.budgets.ceilings import MONEY
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Transaction

Left = dict[str, tuple[int, str]]
"""The tokens and dollars that are left: for each unit, the amount and the uuid of the budget's owner."""


def with_left(tx: Transaction, unit: LogUnit) -> LogUnit:
    """Complete a unit of births: append the amounts left in the budgets to the results that parent and children get."""
    left = _left_of(tx, unit.agent)
    names = {owner: registry.get(tx, owner).short for _, owner in left.values()}
    inherited = f" You inherit {unit.inherited:,} tokens." if unit.inherited else ""

    def child(birth: Birth) -> Birth:
        text = _told(_of_child(left, birth.uuid, birth.budget), birth.uuid, names) + inherited
        return replace(birth, messages=_ending(birth.messages, text))

    births = tuple(map(child, unit.births))
    return replace(unit, messages=_ending(unit.messages, _told(left, unit.agent, names)), births=births)


def _left_of(tx: Transaction, agent: str) -> Left:
    """Return the tokens and dollars left for an agent, by the tightest of the budgets above it."""
    left: Left = {}
    for owner, _, _, unit, granted, used, _, held, spent, *_ in tx.run("budget_of", uuid=agent):
        free = max(0, granted - used - held - spent)
        if unit in MONEY and (unit not in left or free < left[unit][0]):
            left[unit] = free, owner
    return left


def _of_child(left: Left, child: str, budget: Budget | None) -> Left:
    own = {} if budget is None else {unit: (most, child) for unit, most in budget.limits().items() if unit in MONEY}
    return {
        unit: min(amounts[unit] for amounts in (left, own) if unit in amounts)
        for unit in MONEY
        if unit in {**left, **own}
    }


def _told(left: Left, reader: str, names: dict[str, str]) -> str:
    parts = (
        f"{amount_text(unit, amount)} of {'yours' if owner == reader else names[owner]}"
        for unit, (amount, owner) in left.items()
    )
    return f" Left of the budget: {', '.join(parts)}." if left else ""


def _ending(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    return tuple(
        replace(message, content=message.content + text) if message.kind == Kind.TOOL_RESULT else message
        for message in messages
    )
