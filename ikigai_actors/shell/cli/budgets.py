"""The budget of an agent, beside a running shell or without one."""

from dataclasses import asdict

from ikigai_actors.errors import BadInput, NoHost
from ikigai_actors.records.budgets.budget import Budget, BudgetStatus, checked_limits, parse_budget, parse_grant
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.shell.text.harmless import as_json
from ikigai_actors.system.remote.client import Client


def look_or_grant(database: str | None, agent: str, more: str | None) -> tuple[BudgetStatus | None, str]:
    """The nearest budget of an agent, or of agent 0, after a grant, or what was set; and what people call its owner.

    Raises `BadInput`, and what `Client.open` and `Client.find` do.
    """
    wanted = None if more is None or "=" not in more else checked_limits(parse_budget(more))
    granted = Budget(**parse_grant(more)).limits() if more is not None and wanted is None else {}
    with Client.open(database) as client:
        record = client.find(agent) if agent else client.root()
        if record is None:
            raise NoHost(f"Database {client.location} has no agents yet.")
        if wanted is not None:
            client.write(SetBudget(record.uuid, wanted))
        found = client.budget(record.uuid)
        if granted:
            if found is None:
                raise BadInput(f"No budget limits {record.short}: there is nothing to grant.")
            client.write(Grant(found.owner, granted))
            found = client.budget(record.uuid)
        return found, "" if found is None else client.get(found.owner).short


def as_object(found: BudgetStatus | None, owner: str) -> str:
    """The same as JSON, with the label of the owner; null without a budget."""
    return as_json(None if found is None else {**asdict(found), "label": owner}, indent=2)
