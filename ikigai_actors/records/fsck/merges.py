"""The checks of fsck for merges: each row has its message, and each message its row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from ikigai_actors.records.fsck.invariants import Invariant, Violation


class MergeRow(NamedTuple):
    """A merge, as a row or a message records it."""

    into: str
    child: object
    """The uuid of the merged agent."""
    head: object
    """The position up to which it was merged."""
    message: int
    """The position of the ``merge`` message in the log of the merging agent."""


def check_merges(
    rows: Iterable[MergeRow],
    expected: set[MergeRow],
    elsewhere: Set[MergeRow],
    heads: Mapping[str, int],
    is_unknown: Callable[[str, int], bool],
    is_pruned: Callable[[str], bool],
) -> Iterator[Violation]:
    """Return the faults of merges: a row without its message, a message without its row, or a wrong head.

    Args:
        expected: the merges in messages.
        elsewhere: those of them that were imported, which may have no row here.
        heads: the position of the latest message of each agent.
        is_unknown: whether the message at a position of an agent's log is not known.
        is_pruned: whether an agent's messages were deleted.
    """
    messages = {(merge.into, merge.message): merge for merge in expected}
    for row in rows:
        message = messages.pop((row.into, row.message), None)
        if message != row and not (is_unknown(row.into, row.message) or is_pruned(row.into)):
            text = f"expected message {row.message} to record the merge of {row.child} at {row.head}; it does not"
            yield Violation(Invariant.MERGE, row.into, text)
        head = heads.get(str(row.child), 0)
        if is_pruned(str(row.child)):
            continue
        if not isinstance(row.head, int) or row.head > head:
            text = f"expected {row.child}, which it merged at {row.head}, to have come so far; its log ends at {head}"
            yield Violation(Invariant.MERGE, row.into, text)
    for merge in sorted(set(messages.values()) - elsewhere, key=lambda merge: (merge.into, merge.message)):
        text = f"expected message {merge.message} to have a row of table merges, for {merge.child!r} at {merge.head!r}"
        yield Violation(Invariant.MERGE, merge.into, text)
