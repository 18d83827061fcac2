"""Scrollback: any part of a history, read without the rest of it.

    scrollback = Scrollback(store, uuid)
    messages = scrollback.latest(50)                       # the end, whatever lies before
    messages = scrollback.before(messages[0].id, 50)       # and what comes before that

A screen shows a history with it: nothing is folded, so clears and rewinds stand in it as what they are. Each part costs
what it returns; an agent with a million inherited messages opens at once. A position names one message wherever in the
lineage it is stored, so only the bounds of each ancestor must be known, and these never change.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.records.heads import section
from ikigai_actors.records.history import EMPTY, Ancestor, View, play_all
from ikigai_actors.records.lineage import read_lineage
from ikigai_actors.records.messages import CONTROL, Kind, Message
from ikigai_actors.store.base import Store, Transaction


class Scrollback:
    """The whole history of one agent, unfolded, in parts. Any method may raise `StoreError` and `HistoryError`."""

    def __init__(self, store: Store, uuid: str) -> None:
        """Raises `AgentNotFound` when there is no such agent."""
        self._store, self.uuid = store, uuid
        self._lineage: list[Ancestor] = store.read(lambda tx: read_lineage(tx, uuid, whole=True))

    @property
    def inherited(self) -> int:
        """How many messages come before the agent's own."""
        return self._lineage[0].fork_message_id

    def latest(self, most: int) -> list[Message]:
        """The last messages that are committed, oldest first."""

        def read(tx: Transaction) -> list[Message]:
            head = tx.run("log_head", uuid=self.uuid)[0][0] or self.inherited
            return self._between(tx, head - most, head)

        return self._store.read(read)

    def before(self, position: int, most: int) -> list[Message]:
        """The messages that come before a position, oldest first."""
        return self.between(position - 1 - most, position - 1)

    def between(self, start: int, end: int) -> list[Message]:
        """The messages with ``start < id <= end``, oldest first."""
        return self._store.read(lambda tx: self._between(tx, start, end))

    def settings(self) -> Mapping[str, Any]:
        """The settings in force, without reading anything else of the history."""
        return self._fold(None).settings

    def sources(self) -> Mapping[str, Message]:
        """The message that set each setting in force. A clear carries settings over, and counts as their source."""
        sources: dict[str, Message] = {}
        for message in self._controls(None):
            if message.kind == Kind.CLEAR:
                sources.clear()
            elif message.kind == Kind.CONFIGURE:
                sources.update(dict.fromkeys(message.data, message))
        in_force = self.settings()
        return {name: message for name, message in sources.items() if name in in_force}

    def remembered(self) -> int:
        """How many of the inherited messages still counted at the fork, after clears and rewinds."""
        return sum(end - start for start, end in self._fold(self.inherited).visible(self.inherited))

    def _fold(self, head: int | None) -> View:
        """The view of the history up to a position, None for its end."""
        return play_all(EMPTY, self._controls(head))

    def _controls(self, head: int | None) -> list[Message]:
        """The control messages up to a position, None for the end, that decide the view; oldest first."""
        bounds: dict[str, int | None] = {}
        bound = head
        for agent in self._lineage:
            bounds[agent.uuid] = bound
            bound = agent.fork_message_id
        rows = self._store.read(lambda tx: tx.run("controls_in", uuids=list(bounds), kinds=sorted(CONTROL)))
        messages = sorted(map(Message.from_row, rows), key=lambda message: message.id)
        return [message for message in messages if _within(message.id, bounds[message.agent_uuid])]

    def _between(self, tx: Transaction, start: int, end: int) -> list[Message]:
        parts: list[list[Message]] = []
        for agent in self._lineage:
            if end <= start:
                break
            low = max(start, agent.fork_message_id)
            if end > low:
                parts.append(section(tx, agent.uuid, low, end))
                end = low
        return [message for part in reversed(parts) for message in part]


def _within(position: int, bound: int | None) -> bool:
    return bound is None or position <= bound
