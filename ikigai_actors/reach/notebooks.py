"""The notebooks of experiments: their logs, as `ikigai_actors.behaviour.book` reads them.

An experiment is an agent whose first note has ``terms``.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from ikigai_actors.errors import HistoryError
from ikigai_actors.reach.readable import Readable
from ikigai_actors.records.agents.lists import living_named, uuids_named
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.heads import first_notes, section
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.base import Transaction

Notebooks = Mapping[str, Sequence[Message]]
"""The messages of experiments, by uuid."""


def notebooks_in(tx: Transaction, records: Iterable[AgentRecord]) -> dict[str, list[Message]]:
    """Return the notebooks of the experiments among these agents, without unreadable ones, which fsck reports."""
    everybody = {record.uuid: record for record in records}
    sections: dict[str, list[Message]] = {}
    for note in first_notes(tx, list(everybody)):
        if "terms" in note.data:
            uuid = note.agent_uuid
            with suppress(HistoryError):
                sections[uuid] = section(tx, uuid, everybody[uuid].fork_message_id)
    return sections


def notebooks_of(source: Readable, records: Iterable[AgentRecord]) -> Notebooks:
    """Return the notebooks of the experiments among these agents."""
    asked = [*records]
    return source._store.read(lambda tx: notebooks_in(tx, asked))


def living_notebooks(source: Readable) -> Notebooks:
    """Return the notebooks of living experiments. Each experiment has a name."""
    return source._store.read(lambda tx: notebooks_in(tx, living_named(tx)))


def first_notes_of_named(source: Readable) -> list[Message]:
    """Return the first note of each agent with a name, including the dead. Notes of experiments have ``terms``."""
    return source._store.read(lambda tx: first_notes(tx, uuids_named(tx)))


def own_messages_of(source: Readable, uuid: str) -> list[Message]:
    """Return all messages that an agent wrote itself, by uuid."""
    return source._store.read(lambda tx: section(tx, uuid, 0))
