"""Reads the latest positions of logs, and their new messages.

    store.read(lambda tx: heads(tx, since))             # of everybody
    store.read(lambda tx: heads_of(tx, uuids))          # of these
    store.read(lambda tx: latest_at_rest(tx, uuids))   # how the latest turn of each of these has ended
    store.read(lambda tx: section(tx, uuid, 17, 20))    # messages 18, 19 and 20 of one log

Processes that follow agents through the database use these functions.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Transaction

_TURN_PAGE = 500
"""Messages of a turn that are read at once."""

UP_TO_THE_END = 2**62
"""The ``end`` of a section that reads to the end of the log."""

EVERYBODY = 2**62
"""A limit that no number of agents reaches."""


class Head(NamedTuple):
    """The head of an agent's log: its latest message, with the state of the agent."""

    uuid: str
    status: str
    """The status, as `AgentRecord.status`."""
    turn: int
    """The id of the message that opened the turn in progress; 0 when no turn is open."""
    fork_message_id: int
    last: int
    """The id of the agent's own latest message; 0 when it has none."""
    exit_cause: str | None
    exit_reason: str | None
    name: str | None
    shard: int

    @property
    def position(self) -> int:
        """Return the id of the latest message of the agent's history, including inherited ones."""
        return max(self.last, self.fork_message_id)


class Section(NamedTuple):
    """A part of a log, as far as it can be read."""

    messages: list[Message]
    damage: HistoryError | None = None
    """The error after these messages; None when all could be read."""


def heads(tx: Transaction, since: int, after: str = "", most: int = EVERYBODY) -> list[Head]:
    """Return the heads of the living agents, and of those that died at ``since`` or later; by uuid.

    Args:
        since: in milliseconds since 1970.
        after: only those whose uuids come after this one.
        most: at most this many of them.
    """
    return [Head._make(row) for row in tx.run("heads", since=since, after=after, most=most)]


def heads_of(tx: Transaction, uuids: Collection[str]) -> list[Head]:
    """Return the heads of these agents, including the dead. Agents that do not exist are left out."""
    return [Head._make(row) for row in tx.run("heads_of", uuids=list(uuids))]


def latest_times(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return when each of these agents has written its latest message, in milliseconds since 1970.

    An empty log has no entry.
    """
    return {uuid: time for uuid, time in tx.run("latest_times", uuids=list(uuids)) if time is not None}


def latest_at_rest(tx: Transaction, uuids: Collection[str]) -> dict[str, Message]:
    """Return the latest message of each of these agents that is alive and has no open turn, by uuid."""
    return {row[0]: Message.from_row(row) for row in tx.run("latest_at_rest", uuids=list(uuids))}


def first_notes(tx: Transaction, uuids: Collection[str]) -> list[Message]:
    """Return the note directly after the fork of each of these agents, if there is one and it can be read."""
    notes: list[Message] = []
    for row in tx.run("first_notes", uuids=list(uuids)):
        with suppress(HistoryError):
            notes.append(Message.from_row(row))
    return notes


def section(tx: Transaction, uuid: str, start: int, end: int = UP_TO_THE_END) -> list[Message]:
    """Return an agent's own messages with ``start < id <= end``, oldest first.

    Raises `HistoryError` for a damaged row.
    """
    return [Message.from_row(row) for row in tx.run("log_section", uuid=uuid, start=start, end=end)]


def turn_messages(tx: Transaction, uuid: str, opening: int) -> list[Message]:
    """Return the messages after the opening message of a turn, until another turn begins."""
    messages: list[Message] = []
    place = opening
    while part := section(tx, uuid, place, place + _TURN_PAGE):
        later = next((place for place, message in enumerate(part) if message.kind == Kind.USER), None)
        messages += part[:later]
        place = part[-1].id
        if later is not None:
            break
    return messages


def readable_section(tx: Transaction, uuid: str, start: int, end: int) -> Section:
    """Return a section as `section` does, but only up to the first damaged row."""
    messages: list[Message] = []
    for row in tx.run("log_section", uuid=uuid, start=start, end=end):
        try:
            messages.append(Message.from_row(row))
        except HistoryError as error:
            return Section(messages, error)
    return Section(messages)
