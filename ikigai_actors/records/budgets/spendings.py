"""The costs of requests by account: tables ``spendings`` and ``label_values``.

The row of a request is written with the message that reports it, in one unit, so the sums are exact over every crash.
There are no counters, which hosts would have to share: a sum is computed when it is asked for. Requests whose cost no
service has counted (code that answers, a request that a crash cut off) have no row.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ikigai_actors.records.agents.labels import labels_in, set_id, set_of
from ikigai_actors.records.budgets.amounts import SpendingRow
from ikigai_actors.store.base import Store, Transaction


@dataclass(frozen=True, slots=True)
class Spending:
    """The total cost of some requests to models."""

    tokens: int
    """The tokens that the services have counted, including caches."""
    usd: float
    """The cost in dollars, as far as the models had a price when they answered."""
    requests: int
    """The number of requests."""


def keep_labels(tx: Transaction, text: str) -> None:
    """Write a row for a set of labels, unless there is one already."""
    for key, value in labels_in(text).items():
        tx.defer("keep_label", labels=set_id(text), key=key, value=value)


def label_root(store: Store, shards: Collection[int], labels: Mapping[str, str]) -> None:
    """Give agent 0 labels, if this process will run agent 0. Call this before the process runs agents."""

    def write(tx: Transaction) -> None:
        text = set_of(labels)
        tx.run("set_root_labels", labels=text, shards=[str(shard) for shard in shards])
        keep_labels(tx, text)

    store.write(write)


def kept_labels(tx: Transaction) -> dict[str, dict[str, str]]:
    """Return all stored sets of labels, by id."""
    sets: dict[str, dict[str, str]] = {}
    for labels, key, value in tx.run("all_labels"):
        sets.setdefault(labels, {})[key] = value
    return sets


def spendings_of(tx: Transaction, agent: str) -> list[SpendingRow]:
    """Return the costs of an agent's requests, in order: its rows of table ``spendings``."""
    return [SpendingRow._make(row) for row in tx.run("spendings_of", uuid=agent)]


def spending(tx: Transaction, by: str, since: int) -> dict[str, Spending]:
    """Return the amounts spent by all agents, by the value of a label.

    The key ``""`` has the amount without such a label.

    Args:
        tx: a transaction.
        by: the key of the label; empty for one sum of all.
        since: only requests that were recorded from then on, in milliseconds since 1970.
    """
    rows = tx.run("spending_by_label", key=by, since=since)
    return {value: Spending(tokens, usd / 1_000_000, requests) for value, tokens, usd, requests in sorted(rows)}
