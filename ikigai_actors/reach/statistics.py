"""The figures of a database: its numbers of rows, and its costs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from ikigai_actors.providers.prices import MICRO
from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.budgets.status import budgets_that_limit
from ikigai_actors.records.figures import COUNTED, count
from ikigai_actors.records.messages.replies import spent_of
from ikigai_actors.records.spending import dearest_branches, own_spendings, spent_by_branches
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import owners
from ikigai_actors.system.remote.client import Client

SHOWN = 10
"""The most agents whose costs and tokens are shown as lines, and the most budgets."""

MOST_BUDGETS = 100

SUMMED = 10_000
"""The most agents of which all costs are added up; beyond that only agent 0 and its most expensive children count."""

CostTable = dict[str, dict[str, float]]
"""Tokens and dollars (``usd``), by the uuid of an agent."""


SPENT_NOTHING = {"tokens": 0.0, "usd": 0.0}
"""The costs of an agent that has spent nothing."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a database for people: numbers of rows, costs and budgets."""

    database: str
    host: str | None
    """The hosts that run the agents; None for none."""
    agents: dict[str, int]
    """The number of agents by status."""
    turns: int
    """The number of open turns."""
    messages: int
    """The number of messages, estimated above `COUNTED`; also the number of mails."""
    mails: int
    unread: int
    prompts: int
    """The number of prompts from other processes that no agent has taken up."""
    documents: int
    versions: int
    """Versions of documents, deletions too."""
    restarts: int
    hosts: int
    """The number of processes that have ever run these agents."""
    spent_in_all: dict[str, float]
    """The tokens and dollars (``usd``) that all requests and tools have cost."""
    spent: CostTable
    """The costs of each agent itself, including dead ones, by uuid."""
    branches: CostTable
    """The costs of each agent with all its descendants, if these exceed the agent's own costs, by uuid."""
    budgets: list[dict[str, Any]]
    """The budgets with limits, agent 0's first, as `BudgetStatus`; at most `MOST_BUDGETS`."""
    names: dict[str, str] = field(default_factory=dict)
    """The names of the shown agents, by uuid."""
    tokens: dict[str, dict[str, int]] | None = None
    """The tokens in and out of each agent, as the providers reported them; None when not asked for."""


def read_figures(database: str | None, tokens: bool, everybody: bool = False) -> Figures:
    """Read the figures of a database.

    Args:
        tokens: whether to read the tokens of each agent, for which every message is read.
        everybody: whether to read the cost of each agent, however many there are.

    Raises what `Client.open` and `Client.spending` do.
    """
    with Client.open(database) as client:
        figures = client._store.read(partial(_figures, location=client.location, everybody=everybody))
        if tokens:
            figures = replace(figures, tokens=_tokens(client))
        costly = [*figures.spent, *figures.branches] if everybody else [agent for agent, _ in dearest(figures)]
        busy = [*(figures.tokens or ())] if everybody else [agent for agent, _ in busiest(figures)]
        shown = [*dict.fromkeys((*costly, *busy, *(budget["owner"] for budget in figures.budgets)))]
        return replace(figures, names=client._store.read(partial(_names, uuids=shown)))


def _figures(tx: Transaction, location: str, everybody: bool) -> Figures:
    census = lists.census(tx)
    in_all, spent, branches = (_all_costs if everybody or census.all_of_them <= SUMMED else _dearest_costs)(tx)
    return Figures(
        database=location,
        host="; ".join(map(str, owners(tx))) or None,
        agents=dict(census.by_status),
        turns=census.turns,
        spent_in_all=in_all,
        spent=spent,
        branches={uuid: cost for uuid, cost in branches.items() if cost != spent.get(uuid, SPENT_NOTHING)},
        budgets=[asdict(budget) for budget in budgets_that_limit(tx, MOST_BUDGETS)],
        **count(tx)._asdict(),
    )


def _all_costs(tx: Transaction) -> tuple[dict[str, float], CostTable, CostTable]:
    """Return the costs: in all, of each agent, and of each agent with all its descendants."""
    rows = own_spendings(tx)
    spent = {row.uuid: _cost(row.spent_tokens, row.spent_usd) for row in rows if row.spent_tokens or row.spent_usd}
    in_all = _cost(sum(row.spent_tokens for row in rows), sum(row.spent_usd for row in rows))
    return in_all, spent, {uuid: _cost(*sums) for uuid, sums in spent_by_branches(rows).items()}


def _dearest_costs(tx: Transaction) -> tuple[dict[str, float], CostTable, CostTable]:
    """Return the costs as `_all_costs` does, but only those of agent 0 and its most expensive children."""
    dearest, root = dearest_branches(tx, SHOWN), registry.root(tx)
    in_all = _cost(dearest.tokens, dearest.usd)
    branches = {uuid: _cost(*sums) for uuid, sums in dearest.branches.items() if uuid is not None}
    branches |= {root.uuid: in_all} if root is not None else {}
    spenders = [record for record in registry.some(tx, branches) if record.spent_tokens or record.spent_usd]
    return in_all, {spender.uuid: _cost(spender.spent_tokens, spender.spent_usd) for spender in spenders}, branches


def _names(tx: Transaction, uuids: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for start in range(0, len(uuids), registry.AGENTS_AT_ONCE):
        names |= lists.labels_of(tx, registry.some(tx, uuids[start : start + registry.AGENTS_AT_ONCE]))
    return names


def dearest(figures: Figures) -> list[tuple[str, dict[str, float]]]:
    """Return the agents with the highest costs of their whole branches, each with its costs, the highest first."""
    branches = {**figures.spent, **figures.branches}
    return sorted(branches.items(), key=lambda pair: (-pair[1]["usd"], -pair[1]["tokens"]))[:SHOWN]


def busiest(figures: Figures) -> list[tuple[str, dict[str, int]]]:
    """Return the agents with the most tokens, by uuid, each with its tokens by kind; the highest first."""
    return sorted((figures.tokens or {}).items(), key=lambda pair: -sum(pair[1].values()))[:SHOWN]


def is_counted(rows: int) -> bool:
    """Return whether a number of messages or mails was counted exactly, rather than estimated."""
    return rows <= COUNTED


def _cost(tokens: int, usd: int) -> dict[str, float]:
    return {"tokens": tokens, "usd": usd / MICRO}


def _tokens(client: Client) -> dict[str, dict[str, int]]:
    """Return the tokens of every agent that has used any, by uuid."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for message in client.spending():
        if (spent := spent_of(message)) is not None:
            usage = spent.usage
            taken = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
            used[message.agent_uuid].update(input=taken, output=usage.output_tokens)
    return {agent: {"input": count["input"], "output": count["output"]} for agent, count in used.items()}
