"""The checks of fsck for labels, and for the costs of requests."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ikigai_actors.records.agents.labels import labels_in, set_id, set_of
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.spendings import kept_labels
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction


class Counted(NamedTuple):
    """The number and the sums of an agent's requests, from its messages or from table ``spendings``."""

    requests: int
    positions: int
    """The sum of the positions of these messages."""
    tokens: int


NO_COST = Counted(0, 0, 0)


def check_spendings(
    tx: Transaction,
    records: Mapping[str, AgentRecord],
    sums: Mapping[str, Counted],
    unknown: Collection[str],
    among: Collection[str] | None = None,
) -> Iterator[Violation]:
    """Return the violations in labels and in the costs of requests.

    Args:
        sums: the requests in the messages of each agent.
        unknown: the agents of which some messages cannot be read.
        among: the agents to check; None for all.
    """
    rows = tx.run("sums_of_spendings", all=int(among is None), uuids=list(among or ()))
    kept = {row[0]: Counted(*row[1:]) for row in rows}
    for uuid in sorted(kept.keys() | sums.keys()):
        record = records.get(uuid)
        if record is None or record.pruned_at is not None or uuid in unknown:
            continue
        wanted, got = sums.get(uuid, NO_COST), kept.get(uuid, NO_COST)
        came = record.imported_at is not None and all(had <= may for had, may in zip(got, wanted, strict=True))
        if wanted != got and not came:  # what it inherited in its file was paid for by others
            text = (
                f"expected a row of spendings for each of {wanted.requests} messages with a cost of "
                f"{wanted.tokens} tokens together; got {got.requests} rows, of {got.tokens} tokens"
            )
            yield Violation(Invariant.COST, uuid, text)


def check_label_sets(tx: Transaction) -> Iterator[Violation]:
    """Return the violations in the labels of agents, and in the stored sets of labels."""
    kept = kept_labels(tx)
    for labels, rows in sorted(kept.items()):
        if set_id(set_of(rows)) != labels:
            yield Violation(Invariant.LABELS, None, f"expected the set {labels} to have the labels of its id")
    for (labels,) in sorted(tx.run("sets_of_spendings")):
        if labels and labels not in kept:
            yield Violation(Invariant.LABELS, None, f"expected the labels {labels} of a cost to be kept, they are not")
    for uuid, text in sorted(tx.run("labels_of_agents")):
        try:
            labels_in(text)
        except ValueError as error:
            yield Violation(Invariant.LABELS, uuid, str(error))
        else:
            if set_id(text) not in kept:
                yield Violation(Invariant.LABELS, uuid, f"expected its labels {text} to be kept, they are not")
