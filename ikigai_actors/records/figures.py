"""Figures of a whole database: how much there is of everything, and what was spent.

    store.read(count)                       # Counts(mails=4, prompts=0, …)
    spending_after(store, place, 2_000)     # a batch of the messages that have cost something

Both read; nothing here writes.
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
"""The uuid of an agent and the id of a message: a place in the order in which all logs are read."""

FIRST_PLACE: MessagePlace = ("", 0)
"""The place before all messages."""


COUNTED = 100_000
"""Up to this many messages, and as many mails, are counted; of more it is said about how many there are."""


class Counts(NamedTuple):
    """How many rows there are of each thing but agents; messages and mails about, where that is more than `COUNTED`."""

    messages: int
    mails: int
    unread: int
    prompts: int
    """Prompts of other processes that no agent has taken up."""
    documents: int
    versions: int
    """Versions of documents, deletions too."""
    restarts: int
    hosts: int
    """Processes that have run these agents, one after another."""


class Batch(NamedTuple):
    """The messages of a stretch of all logs that may say what a request has cost."""

    messages: list[Message]
    """Messages of the kinds in `SPENDING`; their content is empty."""
    damaged: list[HistoryError]
    """An error for each row of these kinds that holds no message."""
    place: MessagePlace | None
    """The start of the next batch; None when there is nothing more."""


class Gauges(NamedTuple):
    """The figures that are watched of a database."""

    agents: Mapping[str, int]
    """How many agents there are of each status."""
    turns: int
    """Turns that are open."""
    unread: int
    tokens: int
    usd: int
    """In micro-dollars."""
    restarts: int
    paused: int
    """Requests that wait for a budget."""
    paused_since: int | None
    """When the first of these began to wait, in milliseconds since 1970."""
    prompts: int
    """Prompts of other processes that no agent has taken up."""
    cut_off: int
    """Turns that were cut off, and with which no host goes on."""
    parked: int
    """Turns of programs that only wait, and have no actor."""
    now: int
    """The time of the database, in milliseconds since 1970."""


def gauges(tx: Transaction) -> Gauges:
    """Read what is watched."""
    rows = tx.run("gauges")
    turns, unread, tokens, usd, cut_off, parked = (sum(row[place] for row in rows) for place in range(2, 8))
    [(restarts, paused, since, prompts)] = tx.run("gauges_beside")
    now = max((row[8] for row in rows), default=0)
    agents = {str(row[0]): int(row[1]) for row in rows}
    return Gauges(agents, turns, unread, tokens, usd, restarts, paused, since, prompts, cut_off, parked, now)


def questions_asked(tx: Transaction) -> dict[tuple[str, str], int]:
    """When each call of an open turn asked for approval, by agent and id of the call; in milliseconds since 1970."""
    asked: dict[tuple[str, str], int] = {}
    for uuid, at, text in tx.run("questions_asked"):
        with suppress(ValueError, AttributeError):  # the row may be damaged: fsck says so
            asked[uuid, str(json.loads(text or "{}").get("tool_use_id"))] = at
    return asked


def silent_turns(tx: Transaction, least: float) -> dict[str, float]:
    """Turns in which something should happen and nothing has for ``least`` seconds: how many it is, by agent.

    Those that wait for other agents or for a budget, or are stopped, are not among them; those that wait for a person
    are.
    """
    signs = latest_signs(tx)
    at_work = [uuid for (uuid,) in tx.run("turns_at_work")]
    silent = {uuid: signs[uuid].seconds for uuid in at_work if uuid in signs and signs[uuid].seconds >= least}
    waits = {
        uuid
        for uuid, mark in latest_marks(tx, [*silent]).items()
        if (mark.kind, mark.label) == (Kind.TOOL_CALL, "wait")
    }
    return {uuid: seconds for uuid, seconds in silent.items() if uuid not in waits}


def count(tx: Transaction) -> Counts:
    """Count everything but agents."""
    [(messages, about_messages, mails, about_mails, unread, prompts, *others)] = tx.run("figures", most=COUNTED + 1)
    return Counts(_about(messages, about_messages), _about(mails, about_mails), unread - prompts, prompts, *others)


def _about(counted: int, about: int) -> int:
    return counted if counted <= COUNTED else max(counted, about)


def other_writer_in(tx: Transaction, provider: str) -> str:
    """A model of another provider than this one that has written a reply, as ``provider:model``; empty for none."""
    for row in tx.run("reply_of_another", provider=provider):
        return str(Message.from_row(row).data["model"])
    return ""


def spending_after(store: Store, place: MessagePlace, most: int) -> Batch:
    """Read up to ``most`` messages behind a place, at one moment. Raises `StoreError`."""
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
