"""Fork points: the settings at an earlier position, for a fork there. They never change."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import NotABoundary
from ikigai_actors.records.log.boundaries import is_boundary, nearest
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.store.base import Transaction


def settings_at(tx: Transaction, uuid: str, position: int) -> Mapping[str, Any]:
    """Return the settings that were in force at a position of an agent's history, at which a fork may begin.

    Reads the messages back to the latest reply, and all messages that change a view.

    Raises:
        AgentNotFound: there is no such agent.
        NotABoundary: the position lies within a step, or does not exist.
        HistoryError: rows of the history are wrong.
    """
    history = StoredHistory(tx, read_lineage(tx, uuid, whole=True))
    head = history.head
    if 0 <= position <= head and is_boundary(history.between, position):
        return history.view(position).settings
    before, after = nearest(history.between, position, head)
    wrong = "lies within a step of its turn" if 0 <= position <= head else f"is none of its positions, 0 to {head}"
    places = " and ".join(str(place) for place in (before, after) if place is not None)
    text = f"Agent {uuid} cannot be forked at {position}, which {wrong}. The nearest positions that would do: {places}."
    raise NotABoundary(text, uuid, position, before, after)
