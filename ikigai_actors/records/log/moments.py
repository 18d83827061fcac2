"""Moments: the positions that logs had reached at a time, and the messages for a timeline.

    store.read(lambda tx: positions_at(tx, uuids, ms))          # {uuid: position}
    store.read(lambda tx: marks(tx, uuid, 17, 200))             # the messages 18 to 200 of one log, without their texts

Positions have no holes and times do not fall, so a moment is found by a binary search over positions. It takes
logarithmic time, and needs no index of times. If a clock was set back, the search finds one of the places at which the
time passes the moment.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store.base import Transaction

_MOST_MAILS = 2_000
"""The most mails that `mails_between` gives."""


class Glance(NamedTuple):
    """The columns of the registry that a screen with all agents shows."""

    uuid: str
    name: str | None
    parent: str | None
    supervisor: str | None
    fork: int
    """The position up to which the agent inherits its parent's history."""
    status: str
    turn: int
    born: int
    """The time of its birth, in milliseconds since 1970; the next field has the same unit."""
    ended: int | None
    unread: int
    tokens: int
    usd: int
    """The cost in micro-dollars."""
    waits_for: str | None
    """The unit of the budget for which its request waits; None if none waits."""
    budget: str | None
    """The uuid of the owner of its nearest budget; None for agent 0's budget."""
    owner: str | None
    """The id of the host that runs it."""
    cut_off: int = 0
    """The open turn, if it was cut off and its host does not resume it; else 0."""


GOES_ON = "goes on"
"""The label of the birth of an agent that begins with a turn of its inherited history."""


class LogMark(NamedTuple):
    """A message as a timeline shows it, without its text."""

    id: int
    kind: str
    at: int
    """The time, in milliseconds since 1970."""
    label: str | None
    """A label: of a call, its tool; of a child's birth, its uuid; `GOES_ON`; ``calls`` for a reply with calls;
    ``later`` if a request waits for its service; else None.
    """


class MailTime(NamedTuple):
    """The times at which a mail was sent and read."""

    recipient: str
    id: int
    sender: str | None
    kind: str
    sent: int
    """The time of sending, in milliseconds since 1970; the next field has the same unit."""
    read: int | None


def glances(tx: Transaction) -> list[Glance]:
    """Return the rows of all agents, in the order of their births."""
    return [Glance._make(row) for row in tx.run("glances")]


def positions_at(tx: Transaction, uuids: Collection[str], at: int) -> dict[str, int]:
    """Return the position that each history had reached at a time, in milliseconds since 1970.

    For an agent that had written no message yet, or whose messages were pruned, that is its fork point.
    """
    return {uuid: position for uuid, _, position in _positions(tx, uuids, at, at, 1)}


def positions_between(tx: Transaction, uuid: str, since: int, until: int, steps: int) -> list[int]:
    """Return the positions of one history at ``steps`` + 1 equally spaced times from ``since`` to ``until``.

    The last position may be later than ``until``.
    """
    step = max(1, -(-(until - since) // steps))
    positions = _positions(tx, (uuid,), since, since + step * steps, step)
    return [position for _, _, position in sorted(positions, key=lambda row: row[1])]


def marks(tx: Transaction, uuid: str, start: int, end: int) -> list[LogMark]:
    """Return the messages of an agent's own log with ``start < id <= end``, as a timeline shows them."""
    return [_mark(*row) for row in tx.run("marks", uuid=uuid, start=start, end=end)]


def latest_marks(tx: Transaction, uuids: Collection[str]) -> dict[str, LogMark]:
    """Return the latest message of each of these agents' logs, as a timeline shows it. An empty log has no entry."""
    return {uuid: _mark(*row) for uuid, *row in tx.run("latest_marks", uuids=list(uuids))}


def mails_between(tx: Transaction, uuids: Collection[str], since: int, until: int) -> list[MailTime]:
    """Return the mails that these agents were sent after ``since`` and up to ``until``, at most `_MOST_MAILS`."""
    rows = tx.run("mails_between", uuids=list(uuids), since=since, until=until, most=_MOST_MAILS)
    return [MailTime._make(row) for row in rows]


def prompt_before(tx: Transaction, uuid: str, at: int) -> int:
    """Return the position of the latest prompt in an agent's own log up to a position; 0 for none."""
    rows = tx.run("prompt_before", uuid=uuid, at=at)
    return int(rows[0][0]) if rows else 0


def mails_read(tx: Transaction, uuid: str, since: int, until: int) -> list[MailTime]:
    """Return the mails that an agent has read from ``since`` to ``until`` inclusive, in milliseconds since 1970."""
    return [MailTime._make(row) for row in tx.run("mails_read", uuid=uuid, since=since, until=until)]


def log_activity(tx: Transaction, step: int) -> list[tuple[int, int]]:
    """Return how many messages were written in each interval of ``step`` milliseconds that has any; oldest first.

    It reads every message, so use it only for data that may be shown a little later.
    """
    return [(int(place) * step, count) for place, count in tx.run("activity", step=step)]


def _positions(
    tx: Transaction, uuids: Collection[str], since: int, until: int, step: int
) -> list[tuple[str, int, int]]:
    rows = tx.run("positions_at", uuids=list(uuids), since=since, until=until, step=step)
    return [(uuid, at, position) for uuid, at, position in rows]


def birth_label(data: Mapping[str, Any]) -> str | None:
    """Return the label of a ``fork`` message on a timeline: the child's uuid, `GOES_ON`, or None."""
    return data.get("child") or (GOES_ON if data.get("go") is True else None)


def _mark(number: int, kind: str, at: int, content: str | None, data: str | None) -> LogMark:
    label = content
    if kind == Kind.FORK and data is not None:
        with suppress(ValueError, AttributeError):  # the row may be damaged: fsck says so
            label = birth_label(json.loads(data))
    return LogMark(number, kind, at, label)
