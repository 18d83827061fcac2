"""Scrollback: any part of a history, read without the rest.

    scrollback = Scrollback(store, uuid)
    messages = scrollback.latest(50)                       # the end, whatever lies before
    messages = scrollback.before(messages[0].id, 50)       # and what comes before that

A screen shows a history with it: clears and rewinds are not applied. The cost of a part depends only on its size; an
agent with a million inherited messages opens at once. A position names one message wherever in the lineage it is
stored, so only the bounds of each ancestor must be known, and these never change.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ikigai_actors.records.log.history import Ancestor
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Store

_Found = TypeVar("_Found")


class Scrollback:
    """The whole history of one agent, in parts. Any method may raise `StoreError` and `HistoryError`."""

    def __init__(self, store: Store, uuid: str) -> None:
        """Read an agent's history. Raises `AgentNotFound` when there is no such agent."""
        self._store, self.uuid = store, uuid
        self._lineage: list[Ancestor] = store.read(lambda tx: read_lineage(tx, uuid, whole=True))

    @property
    def inherited(self) -> int:
        """Return the number of inherited messages."""
        return self._lineage[0].fork_message_id

    def latest(self, most: int) -> list[Message]:
        """Return the last ``most`` messages, the oldest first."""

        def read(history: StoredHistory) -> list[Message]:
            head = history.head
            return history.between(head - most, head)

        return self._read(read)

    def before(self, position: int, most: int) -> list[Message]:
        """Return the last ``most`` messages before a position, the oldest first."""
        return self.between(position - 1 - most, position - 1)

    def between(self, start: int, end: int) -> list[Message]:
        """Return the messages with ``start < id <= end``, the oldest first."""
        return self._read(lambda history: history.between(start, end))

    def settings(self) -> Mapping[str, Any]:
        """Return the settings in force, without reading other messages."""
        return self._read(StoredHistory.view).settings

    def sources(self) -> Mapping[str, Message]:
        """Return the message that set each setting in force. A clear counts as the source of the settings it keeps."""
        return self._read(StoredHistory.sources)

    def remembered(self) -> int:
        """Return how many inherited messages were visible at the fork, after clears and rewinds."""
        view = self._read(lambda history: history.view(self.inherited))
        return sum(end - start for start, end in view.visible(self.inherited))

    def _read(self, work: Callable[[StoredHistory], _Found]) -> _Found:
        return self._store.read(lambda tx: work(StoredHistory(tx, self._lineage)))
