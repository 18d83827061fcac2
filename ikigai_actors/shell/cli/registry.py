"""The registry as another process sees it: opened for reading, beside a running shell or without one.

Nothing is taken over, made or migrated. What only the host knows (which turn waits for the model) is told as far as the
rows tell it: an open turn is ``in a turn`` while its host lives, and ``interrupted`` when it does not. See
`host.owner`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.frozen import as_dict
from ikigai_actors.records import registry
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.shell.line import output
from ikigai_actors.shell.text.tree import Line, drawn, tree_lines
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.location import locate
from ikigai_actors.store.migrations import check_types, require_schema
from ikigai_actors.store.owner import owner


class Registry(NamedTuple):
    """Everybody at one moment."""

    records: list[AgentRecord]
    own: dict[str, int]
    """Messages that each agent wrote itself, by uuid."""
    hosted: bool
    """Whether a process runs the agents."""

    def state(self, record: AgentRecord) -> str:
        """What an agent is doing, as far as a reader can tell."""
        if record.status != "running":
            return record.status
        if not record.turn:
            return "idle"
        return "in a turn" if self.hosted else "interrupted"


@contextmanager
def existing(database: str | None) -> Iterator[Store]:
    """A database that is there, for the length of a block.

    Raises:
        StoreUnusable: there is no database, or no ikigai has run on it.
        StoreError, BadInput: see `open_store`.
    """
    place = locate(database)
    try:
        missing = place.path is not None and not place.path.exists()
    except OSError as error:  # a directory that may not be entered, a name that is too long
        raise StoreUnusable(
            f"Database {place.shown} cannot be looked at: {error.strerror}. Name another with --database."
        ) from error
    if missing:
        raise StoreUnusable(
            f"There is no database {place.shown}. Run ikigai to begin one, or name another with --database."
        )
    store = open_store(database)
    try:
        require_schema(store)
        yield store
    finally:
        store.close()


def read(database: str | None) -> Registry:
    """Read the registry of a database. Raises what `existing` does."""
    with existing(database) as store:
        check_types(store)
        records, own, host = store.read(lambda tx: (registry.every(tx), registry.own_counts(tx), owner(tx)))
    return Registry(records, own, host is not None)


def as_tree(found: Registry, dead_too: bool) -> list[Line]:
    """The tree; nobody is the current one."""
    return tree_lines(found.records, found.own, found.state, dead_too=dead_too)


def as_json(found: Registry, tree: bool = False) -> str:
    """All agents, the dead too: the columns of the registry, and ``messages`` and ``state``; oldest first.

    With ``tree`` in the order of the tree, each under its supervisor, and with its ``depth``.
    """
    if not tree:
        return output.as_json([_row(found, record) for record in found.records], indent=2)
    depths: dict[str | None, int] = {}
    rows = []
    for record, _ in drawn(found.records, dead_too=True):
        depths[record.uuid] = depths.get(record.supervisor_uuid, -1) + 1
        rows.append(_row(found, record) | {"depth": depths[record.uuid]})
    return output.as_json(rows, indent=2)


def _row(found: Registry, record: AgentRecord) -> dict[str, Any]:
    return {**as_dict(record), "messages": found.own.get(record.uuid, 0), "state": found.state(record)}
