"""A whole history in the database, read in parts on request.

    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    history.between(10, 20)             # ten messages, wherever in the lineage they are stored
    history.view(20)                    # what the history means there

A position names one message, whichever log of the lineage has it. Messages never change, so they are read once.
"""

from collections.abc import Iterator, Sequence

from ikigai_actors.records.log.heads import section
from ikigai_actors.records.log.history import EMPTY, Ancestor, View, play_all
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Transaction


class StoredHistory:
    """The history of one agent, read within a transaction. Any method may raise `StoreError` and `HistoryError`."""

    def __init__(self, tx: Transaction, lineage: Sequence[Ancestor]) -> None:
        self._tx, self._lineage = tx, lineage

    @property
    def head(self) -> int:
        """Return the position of the latest message."""
        own = self._lineage[0]
        return self._tx.run("log_head", uuid=own.uuid)[0][0] or own.fork_message_id

    def between(self, start: int, end: int) -> list[Message]:
        """Return the messages with ``start < id <= end``, oldest first."""
        parts: list[list[Message]] = []
        for agent in self._lineage:
            if end <= start:
                break
            low = max(start, agent.fork_message_id)
            if end > low:
                parts.append(section(self._tx, agent.uuid, low, end))
                end = low
        return [message for part in reversed(parts) for message in part]

    def backwards(self, position: int) -> Iterator[Message]:
        """Iterate over the visible messages up to a position, newest first; a few are read at once."""
        for start, end in reversed(self.view(position).visible(position)):
            while end > start:
                low = max(start, end - 16)
                yield from reversed(self.between(low, end))
                end = low

    def sources(self) -> dict[str, Message]:
        """Return for each setting in force the message that has set it.

        A clear keeps settings, and counts as their source.
        """
        message_by_uuid: dict[str, Message] = {}
        for message in self.controls():
            if message.kind == Kind.CLEAR:
                message_by_uuid.clear()
            elif message.kind == Kind.CONFIGURE:
                message_by_uuid.update(dict.fromkeys(message.data, message))
        in_force = self.view().settings
        return {name: message for name, message in message_by_uuid.items() if name in in_force}

    def controls(self, head: int | None = None) -> list[Message]:
        """Return the messages that change a view, up to a position (None for the end), oldest first."""
        bounds: dict[str, int | None] = {}
        bound = head
        for agent in self._lineage:
            bounds[agent.uuid] = bound
            bound = agent.fork_message_id if bound is None else min(bound, agent.fork_message_id)
        rows = self._tx.run("controls_in", uuids=list(bounds))
        messages = sorted(map(Message.from_row, rows), key=lambda message: message.id)
        return [message for message in messages if (end := bounds[message.agent_uuid]) is None or message.id <= end]

    def view(self, head: int | None = None) -> View:
        """Return the view of the history up to a position (None for the end)."""
        return play_all(EMPTY, self.controls(head))
