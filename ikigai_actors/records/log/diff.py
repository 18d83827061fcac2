"""Diffs: the last position that the histories of two agents share, and the messages of each after it.

    positions   1   2   3   4   5   6   7
    a           u   a   u   a                 the tail of a: 3 and 4
    b           └───┴── 3   4   5             forked from a at 2; its tail: 3 to 5

Two histories share the messages that both inherit, or that one inherits from the other: all messages up to one
position, `MergeBase.common`. The search goes up both lineages, and takes the least of the fork points on each, since a
fork may begin before the fork point of its parent. So the time of a diff grows with the depth of both lineages and the
length of the tails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.history import Ancestor
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Transaction


class MergeBase(NamedTuple):
    """The last position that two histories share."""

    common: int
    """The position; 0 when they share nothing."""
    holder: str | None
    """The uuid of the agent whose log has that position; None when there is none."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The part of an agent's history that the other agent does not have."""

    agent: str
    """The uuid of the agent."""
    name: str | None
    """The name of the agent; None if it has none."""
    head: int
    """The position of its latest message."""
    messages: tuple[Message, ...]
    """The visible messages after the shared position, oldest first, with clears and rewinds applied. Summaries hide
    none of them here.
    """
    forgets: bool
    """Whether the agent has cleared or rewound a part of the shared history."""


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference of two histories: their last shared message, and the messages of each after it."""

    common: int
    """The position of the last shared message; 0 when there is none."""
    holder: str | None
    """The uuid of the agent whose log has that message; None when there is none."""
    a: Tail
    b: Tail


def merge_base(a: Sequence[Ancestor], a_head: int, b: Sequence[Ancestor], b_head: int) -> MergeBase:
    """Return where two histories part. Pure.

    Args:
        a: an agent and its ancestors, nearest first.
        a_head: the position of its latest message.
        b: the other agent and its ancestors.
        b_head: the position of the other's latest message.
    """
    bounds, bound = dict[str, int](), a_head
    for agent in a:
        bounds[agent.uuid] = bound
        bound = min(bound, agent.fork_message_id)
    bound = b_head
    for place, agent in enumerate(b):
        if agent.uuid in bounds:
            common = min(bound, bounds[agent.uuid])
            holders = (ancestor.uuid for ancestor in b[place:] if ancestor.fork_message_id < common)
            return MergeBase(common, next(holders, None))
        bound = min(bound, agent.fork_message_id)
    return MergeBase(0, None)


def read_diff(tx: Transaction, a: str, b: str) -> Diff:
    """Return the diff of two agents, by uuid, living or dead.

    Raises:
        AgentNotFound: there is no such agent.
        HistoryError: rows of a history are wrong.
    """
    lineages = [read_lineage(tx, uuid, whole=True) for uuid in (a, b)]
    first, second = (StoredHistory(tx, lineage) for lineage in lineages)
    where = merge_base(lineages[0], first.head, lineages[1], second.head)
    return Diff(
        where.common, where.holder, read_tail(tx, a, first, where.common), read_tail(tx, b, second, where.common)
    )


def read_tail(tx: Transaction, uuid: str, history: StoredHistory, common: int) -> Tail:
    """Return the part of an agent's history after the position that it last shares with another history."""
    head, view = history.head, history.view()
    stretches = view.visible(head, above=common)
    messages = [message for start, end in stretches for message in history.between(start, end)]
    shown = tuple(message for message in messages if message.kind != Kind.SUMMARY)
    kept = [(start, min(end, common)) for start, end in view.visible(head) if start < common]
    forgets = kept != history.view(common).visible(common)
    return Tail(uuid, registry.get(tx, uuid).name, head, shown, forgets)
