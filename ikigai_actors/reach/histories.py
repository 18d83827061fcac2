"""Readings of histories. Each function reads one moment. Raises `HistoryPruned` for pruned messages."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.errors import AgentNotFound
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.boundaries import is_boundary
from ikigai_actors.records.log.heads import UP_TO_THE_END, section
from ikigai_actors.records.log.history import EMPTY, View, merge, play
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.handles.ref import System


def written_by(system: System, agent: str, start: int | None = None, end: int = UP_TO_THE_END) -> list[Message]:
    """Return an agent's own messages after a position (None for its fork point), up to another one."""

    def read(tx: Transaction) -> list[Message]:
        [own, *_] = read_lineage(tx, agent, whole=True)
        return section(tx, agent, own.fork_message_id if start is None else start, end)

    return system._store.read(read)


def controls_up_to(system: System, agent: str, position: int) -> list[Message]:
    """Return the messages that change the view of a history, up to a position."""
    return system._store.read(lambda tx: _history(tx, agent).controls(position))


def views_of(system: System, uuid: str, positions: Iterable[int]) -> dict[int, View]:
    """Return the view of a history at each of these positions."""
    wanted = sorted(set(positions))
    controls, view, place = controls_up_to(system, uuid, wanted[-1]), EMPTY, 0
    views: dict[int, View] = {}
    for position in wanted:
        while place < len(controls) and controls[place].id <= position:
            view, place = play(view, controls[place]), place + 1
        views[position] = view
    return views


def settings_with(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with changes applied; None removes a setting."""
    return merge(settings, changes)


def latest_such(system: System, agent: str, position: int, wanted: Callable[[Message], bool]) -> Message | None:
    """Return the latest matching message of a history up to a position; None for none."""
    return system._store.read(lambda tx: next(filter(wanted, _history(tx, agent).backwards(position)), None))


def history_up_to(system: System, agent: str, end: int) -> tuple[list[Message], list[Message]]:
    """Return all messages of a history up to a position, and the visible ones, including summarised messages."""

    def read(tx: Transaction) -> tuple[list[Message], list[Message]]:
        history = _history(tx, agent)
        everything, visible = history.between(0, end), history.view(end).visible(end)
        return everything, [
            message for message in everything if any(start < message.id <= last for start, last in visible)
        ]

    return system._store.read(read)


def boundaries_among(everything: Sequence[Message], wanted: Iterable[int]) -> list[int]:
    """Return the positions among ``wanted`` at which a history with these messages may be forked."""
    ids = [message.id for message in everything]

    def read(start: int, end: int) -> Sequence[Message]:
        return everything[bisect_right(ids, start) : bisect_right(ids, end)]

    return [number for number in wanted if is_boundary(read, number)]


def settings_at_heads(system: System, agents: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return the settings in force for each of these agents, by uuid."""

    def read(tx: Transaction) -> dict[str, Mapping[str, Any]]:
        histories = {agent: _history(tx, agent) for agent in agents}
        return {agent: history.view(history.head).settings for agent, history in histories.items()}

    return system._store.read(read)


def living_of_name(system: System, name: str) -> AgentRecord | None:
    """Return the living agent with exactly this name; None when there is none."""
    try:
        record = system._store.read(lambda tx: registry.find(tx, name))
    except AgentNotFound:
        return None
    return record if record.living and record.name == name else None


def _history(tx: Transaction, agent: str) -> StoredHistory:
    return StoredHistory(tx, read_lineage(tx, agent, whole=True))
