"""How far logs have come, and what they have more than before.

    store.read(lambda tx: heads(tx, since))             # of everybody
    store.read(lambda tx: heads_of(tx, uuids))          # of these
    store.read(lambda tx: latest_at_rest(tx, uuids))   # how the latest turn of each of these has ended
    store.read(lambda tx: section(tx, uuid, 17, 20))    # messages 18, 19 and 20 of one log

A follower of agents reads these through the database.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Transaction

UP_TO_THE_END = 2**62
"""An ``end`` of a section that no log comes to."""

EVERYBODY = 2**62
"""More agents than there are."""


class Head(NamedTuple):
    """How far the log of an agent has come."""

    uuid: str
    status: str
    """As `AgentRecord.status`."""
    turn: int
    """Id of the message that opened the turn in progress; 0 when idle."""
    fork_message_id: int
    last: int
    """Id of the latest message of its own; 0 when it has none."""
    exit_cause: str | None
    exit_reason: str | None
    name: str | None
    shard: int

    @property
    def position(self) -> int:
        """Id of the latest message of its history, inherited ones too."""
        return max(self.last, self.fork_message_id)


class Section(NamedTuple):
    """A part of a log, as far as it can be read."""

    messages: list[Message]
    damage: HistoryError | None = None
    """Why nothing after these messages was read; None when all was."""


def heads(tx: Transaction, since: int, after: str = "", most: int = EVERYBODY) -> list[Head]:
    """The heads of the living, and of those who died at ``since`` or later; by uuid.

    Args:
        since: in milliseconds since 1970.
        after: only those whose uuids come after this one.
        most: at most this many of them.
    """
    return [Head._make(row) for row in tx.run("heads", since=since, after=after, most=most)]


def heads_of(tx: Transaction, uuids: Collection[str]) -> list[Head]:
    """The heads of those of these agents that exist, the dead too."""
    return [Head._make(row) for row in tx.run("heads_of", uuids=list(uuids))]


def latest_times(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """When each of these agents has written its latest message, in milliseconds since 1970; none for an empty log."""
    return {uuid: time for uuid, time in tx.run("latest_times", uuids=list(uuids)) if time is not None}


def latest_at_rest(tx: Transaction, uuids: Collection[str]) -> dict[str, Message]:
    """The latest message of each of these agents that lives and has no turn open, by uuid."""
    return {row[0]: Message.from_row(row) for row in tx.run("latest_at_rest", uuids=list(uuids))}


def first_notes(tx: Transaction, uuids: Collection[str]) -> list[Message]:
    """The note of each of these agents right after the fork that made it, if there is one to be read."""
    found: list[Message] = []
    for row in tx.run("first_notes", uuids=list(uuids)):
        with suppress(HistoryError):
            found.append(Message.from_row(row))
    return found


def section(tx: Transaction, uuid: str, start: int, end: int = UP_TO_THE_END) -> list[Message]:
    """An agent's own messages with ``start < id <= end``, oldest first. Raises `HistoryError` for a wrong row."""
    return [Message.from_row(row) for row in tx.run("log_section", uuid=uuid, start=start, end=end)]


def readable_section(tx: Transaction, uuid: str, start: int, end: int) -> Section:
    """As `section`, up to the first wrong row."""
    messages: list[Message] = []
    for row in tx.run("log_section", uuid=uuid, start=start, end=end):
        try:
            messages.append(Message.from_row(row))
        except HistoryError as error:
            return Section(messages, error)
    return Section(messages)
