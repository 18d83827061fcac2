"""The part of fsck that looks at merges: each row has its message, each message its row, and both name the past."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from ikigai_actors.records.fsck.invariants import Invariant, Violation


class MergeRow(NamedTuple):
    """A merge, as a row or a message reports it."""

    into: str
    child: object
    """The merged agent's uuid."""
    head: object
    """The position up to which it was merged."""
    message: int
    """Position of the message ``merge`` in the log of the agent that merged."""


def check_merges(
    rows: Iterable[MergeRow],
    told: set[MergeRow],
    elsewhere: Set[MergeRow],
    heads: Mapping[str, int],
    is_unknown: Callable[[str, int], bool],
    is_pruned: Callable[[str], bool],
) -> Iterator[Violation]:
    """The faults of merges.

    Args:
        told: the merges that messages name.
        elsewhere: those among them that came from a file, and may have no row here.
        heads: the position of the latest message of each agent.
        is_unknown: whether the message at a position of an agent's log is not known.
        is_pruned: whether an agent's messages were deleted.
    """
    messages = {(one.into, one.message): one for one in told}
    for row in rows:
        found = messages.pop((row.into, row.message), None)
        if found != row and not (is_unknown(row.into, row.message) or is_pruned(row.into)):
            text = f"expected message {row.message} to record the merge of {row.child} at {row.head}; it does not"
            yield Violation(Invariant.MERGE, row.into, text)
        head = heads.get(str(row.child), 0)
        if is_pruned(str(row.child)):
            continue
        if not isinstance(row.head, int) or row.head > head:
            text = f"expected {row.child}, which it merged at {row.head}, to have come so far; its log ends at {head}"
            yield Violation(Invariant.MERGE, row.into, text)
    for one in sorted(set(messages.values()) - elsewhere, key=lambda one: (one.into, one.message)):
        text = f"expected message {one.message} to have a row of table merges, for {one.child!r} at {one.head!r}"
        yield Violation(Invariant.MERGE, one.into, text)
