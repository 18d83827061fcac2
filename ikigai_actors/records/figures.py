"""Figures of a whole database: the numbers of its rows, and the costs of requests.

    store.read(count)                       # Counts(mails=4, prompts=0, …)
    spending_after(store, place, 2_000)     # a batch of the messages that have cost something

All functions of this module only read.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.hosts.liveness import latest_signs
from ikigai_actors.records.log.moments import latest_marks
from ikigai_actors.records.messages.messages import SPENDING, Kind, Message
from ikigai_actors.store.base import Store, Transaction

MessagePlace = tuple[str, int]
"""A place in the order in which all logs are read: the uuid of an agent and the id of a message."""

FIRST_PLACE: MessagePlace = ("", 0)
"""The place before all messages."""


COUNTED = 100_000
"""Up to this many messages, and this many mails, are counted exactly; larger numbers are estimated."""


class Counts(NamedTuple):
    """The numbers of rows of each kind except agents. Messages and mails are estimated above `COUNTED`."""

    messages: int
    mails: int
    unread: int
    prompts: int
    """The number of prompts from other processes that no agent has taken up."""
    documents: int
    versions: int
    """The number of versions of documents, including deletions."""
    restarts: int
    hosts: int
    """The number of processes that have ever run these agents."""


class Batch(NamedTuple):
    """A batch of messages from all logs that may report the cost of a request."""

    messages: list[Message]
    """The messages of the kinds in `SPENDING`; their content is empty."""
    damaged: list[HistoryError]
    """The errors for rows of these kinds that cannot be read."""
    place: MessagePlace | None
    """The start of the next batch; None at the end."""


class Gauges(NamedTuple):
    """The figures of a database for monitoring."""

    agents: Mapping[str, int]
    """The number of agents by status."""
    turns: int
    """The number of open turns."""
    unread: int
    tokens: int
    usd: int
    """The total cost in micro-dollars."""
    restarts: int
    paused: int
    """The number of requests that wait for a budget."""
    paused_since: int | None
    """The time when the first of these began to wait, in milliseconds since 1970; None if none waits."""
    prompts: int
    """The number of prompts from other processes that no agent has taken up."""
    cut_off: int
    """Turns that were cut off, and with which no host goes on."""
    parked: int
    """Turns of programs that only wait, and have no actor."""
    now: int
    """The time of the database, in milliseconds since 1970."""


def gauges(tx: Transaction) -> Gauges:
    """Read the figures for monitoring."""
    rows = tx.run("gauges")
    turns, unread, tokens, usd, cut_off, parked = (sum(row[place] for row in rows) for place in range(2, 8))
    [(restarts, paused, since, prompts)] = tx.run("gauges_beside")
    now = max((row[8] for row in rows), default=0)
    agents = {str(row[0]): int(row[1]) for row in rows}
    return Gauges(agents, turns, unread, tokens, usd, restarts, paused, since, prompts, cut_off, parked, now)


def questions_asked(tx: Transaction) -> dict[tuple[str, str], int]:
    """Return the time at which each call of an open turn asked for approval, by agent and id of the call.

    The times are milliseconds since 1970.
    """
    asked: dict[tuple[str, str], int] = {}
    for uuid, at, text in tx.run("questions_asked"):
        with suppress(ValueError, AttributeError):  # the row may be damaged: fsck says so
            asked[uuid, str(json.loads(text or "{}").get("tool_use_id"))] = at
    return asked


def silent_turns(tx: Transaction, least: float) -> dict[str, float]:
    """Return the agents whose turns should make progress, and the seconds since their last sign of it.

    Only turns that have been silent for at least ``least`` seconds are in the result. Turns that wait for other agents,
    a budget, a batch, a service or a hook, or are stopped, are left out. Turns that wait for a person are included.
    """
    signs = latest_signs(tx)
    at_work = [uuid for (uuid,) in tx.run("turns_at_work")]
    silent = {uuid: signs[uuid].seconds for uuid in at_work if uuid in signs and signs[uuid].seconds >= least}
    waits = {
        uuid
        for uuid, mark in latest_marks(tx, [*silent]).items()
        if (mark.kind, mark.label) == (Kind.TOOL_CALL, "wait") or mark.label == "later"
    }
    return {uuid: seconds for uuid, seconds in silent.items() if uuid not in waits}


def count(tx: Transaction) -> Counts:
    """Count the rows of every kind except agents."""
    [(messages, about_messages, mails, about_mails, unread, prompts, *others)] = tx.run("figures", most=COUNTED + 1)
    return Counts(_about(messages, about_messages), _about(mails, about_mails), unread - prompts, prompts, *others)


def _about(counted: int, about: int) -> int:
    return counted if counted <= COUNTED else max(counted, about)


def other_writer_in(tx: Transaction, provider: str) -> str:
    """Return a model of any other provider that has written a reply, as ``provider:model``; empty for none."""
    for row in tx.run("reply_of_another", provider=provider):
        return str(Message.from_row(row).data["model"])
    return ""


def spending_after(store: Store, place: MessagePlace, most: int) -> Batch:
    """Read up to ``most`` messages after a place, at one moment. Raises `StoreError`."""
    rows = store.read(lambda tx: tx.run("messages_after", agent=place[0], id=place[1], most=most))
    messages: list[Message] = []
    damaged: list[HistoryError] = []
    for row in rows:
        if row[2] in SPENDING:
            try:
                messages.append(Message.from_row(row))
            except HistoryError as error:
                damaged.append(error)
    return Batch(messages, damaged, (rows[-1][0], rows[-1][1]) if rows else None)
