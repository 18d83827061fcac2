"""Moments: how far logs had come at a time, and what a timeline shows of them.

    store.read(lambda tx: positions_at(tx, uuids, ms))          # {uuid: position}
    store.read(lambda tx: marks(tx, uuid, 17, 200))             # the messages 18 to 200 of one log, without their texts

Positions have no holes and times do not fall, so a moment is found by halving the primary key: it costs the logarithm
of a log, and needs no index of times. Where a clock was set back, a place is found at which the time passes the moment.
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
    """The columns of the registry that a screen of everybody shows."""

    uuid: str
    name: str | None
    parent: str | None
    supervisor: str | None
    fork: int
    """The position up to which it inherits."""
    status: str
    turn: int
    born: int
    """In milliseconds since 1970, as the next one."""
    ended: int | None
    unread: int
    tokens: int
    usd: int
    """In micro-dollars."""
    waits_for: str | None
    """The unit of the budget for which its request waits."""
    budget: str | None
    """The owner of the nearest budget that holds it, by uuid; None for agent 0's."""
    owner: str | None
    """The host that runs it, by id."""
    cut_off: int = 0
    """The open turn, when it was cut off and its host does not go on with it."""


GOES_ON = "goes on"
"""The label of the birth of an agent which goes on with a turn of its history."""


class LogMark(NamedTuple):
    """A message on a timeline."""

    id: int
    kind: str
    at: int
    """In milliseconds since 1970."""
    label: str | None
    """Of a call, the tool; of the birth of a child, its uuid; `GOES_ON`; ``calls`` of a reply that calls tools;
    ``later`` where a request waits for its service.
    """


class MailTime(NamedTuple):
    """When a mail was sent, and when it was read."""

    recipient: str
    id: int
    sender: str | None
    kind: str
    sent: int
    """In milliseconds since 1970, as the next one."""
    read: int | None


def glances(tx: Transaction) -> list[Glance]:
    """Everybody, in order of birth."""
    return [Glance._make(row) for row in tx.run("glances")]


def positions_at(tx: Transaction, uuids: Collection[str], at: int) -> dict[str, int]:
    """The position up to which each history had come at a time, in milliseconds since 1970.

    It is the fork point where an agent had written nothing of its own, or where its messages were pruned.
    """
    return {uuid: position for uuid, _, position in _positions(tx, uuids, at, at, 1)}


def positions_between(tx: Transaction, uuid: str, since: int, until: int, steps: int) -> list[int]:
    """The same of one agent at ``steps`` + 1 equally distant times from ``since`` on; the last one may be later."""
    step = max(1, -(-(until - since) // steps))
    found = _positions(tx, (uuid,), since, since + step * steps, step)
    return [position for _, _, position in sorted(found, key=lambda row: row[1])]


def marks(tx: Transaction, uuid: str, start: int, end: int) -> list[LogMark]:
    """The messages of an agent's own log with ``start < id <= end``."""
    return [_mark(*row) for row in tx.run("marks", uuid=uuid, start=start, end=end)]


def latest_marks(tx: Transaction, uuids: Collection[str]) -> dict[str, LogMark]:
    """The latest message of each of these logs; none of an agent that has written nothing."""
    return {uuid: _mark(*row) for uuid, *row in tx.run("latest_marks", uuids=list(uuids))}


def mails_between(tx: Transaction, uuids: Collection[str], since: int, until: int) -> list[MailTime]:
    """The mails that these agents were sent after ``since`` and up to ``until``; `_MOST_MAILS` at most."""
    rows = tx.run("mails_between", uuids=list(uuids), since=since, until=until, most=_MOST_MAILS)
    return [MailTime._make(row) for row in rows]


def prompt_before(tx: Transaction, uuid: str, at: int) -> int:
    """The position of the latest prompt of an agent's own log up to a position; 0 for none."""
    rows = tx.run("prompt_before", uuid=uuid, at=at)
    return int(rows[0][0]) if rows else 0


def mails_read(tx: Transaction, uuid: str, since: int, until: int) -> list[MailTime]:
    """The mails that an agent has read from ``since`` to ``until``, both included, in milliseconds since 1970."""
    return [MailTime._make(row) for row in tx.run("mails_read", uuid=uuid, since=since, until=until)]


def log_activity(tx: Transaction, step: int) -> list[tuple[int, int]]:
    """How many messages of anybody were written in each stretch of ``step`` milliseconds that has any; oldest first.

    Reads every message: only for what is shown a little later.
    """
    return [(int(place) * step, count) for place, count in tx.run("activity", step=step)]


def _positions(
    tx: Transaction, uuids: Collection[str], since: int, until: int, step: int
) -> list[tuple[str, int, int]]:
    rows = tx.run("positions_at", uuids=list(uuids), since=since, until=until, step=step)
    return [(uuid, at, position) for uuid, at, position in rows]


def birth_label(data: Mapping[str, Any]) -> str | None:
    """The label of a birth, of a child or of the agent itself."""
    return data.get("child") or (GOES_ON if data.get("go") is True else None)


def _mark(number: int, kind: str, at: int, content: str | None, data: str | None) -> LogMark:
    label = content
    if kind == Kind.FORK and data is not None:
        with suppress(ValueError, AttributeError):  # the row may be damaged: fsck says so
            label = birth_label(json.loads(data))
    return LogMark(number, kind, at, label)
