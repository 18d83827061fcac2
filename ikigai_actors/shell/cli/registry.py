"""The registry of a database, as a tree and as JSON."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.behaviour.listing import NO_TRIALS, ListedTrials, books_in, listed_trials
from ikigai_actors.records.agents.registry import AgentRecord, shown_names
from ikigai_actors.shell.text.harmless import as_json
from ikigai_actors.shell.text.rows import as_row
from ikigai_actors.shell.text.tree import Line, drawn, tree_lines
from ikigai_actors.store.hosts.rows import host_names
from ikigai_actors.system.remote.client import Client, Overview


def read(database: str | None) -> Overview:
    """Read the registry of a database. Raises what `Client.open` and `Client.overview` do."""
    with Client.open(database) as client:
        return client.overview()


def read_tree(database: str | None, dead_too: bool) -> list[Line]:
    """The tree of a database, with what its experiments have found. Raises as `read` does."""
    with Client.open(database) as client:
        found = client.overview()
        books = client.read(lambda tx: books_in(tx, found.records))
    return as_tree(found, dead_too, listed_trials(found.records, books))


def as_tree(found: Overview, dead_too: bool, trials: ListedTrials = NO_TRIALS) -> list[Line]:
    """The tree; nobody is the current one."""
    hosts, signs = host_names(found.hosts), found.signs
    return tree_lines(found.records, found.own, found.state, None, dead_too, hosts, signs, trials)


def registry_as_json(found: Overview, tree: bool = False) -> str:
    """All agents, the dead too: columns of the registry, ``label``, ``messages``, ``state``, ``host``, and more.

    The host is the name of the one that runs the agent, or null: of a host without a name, and where nobody does.
    Silent are the seconds since the latest sign of life of an agent in a turn, lately the tokens of the last 3 s, or
    null. They come oldest first; with ``tree`` in the order of the tree, each under its supervisor, with its ``depth``.
    """
    shown = shown_names(found.records)
    if not tree:
        return as_json([_row(found, record, shown) for record in found.records], indent=2)
    nodes = drawn(found.records, lambda record: True)
    return as_json([_row(found, node.record, shown) | {"depth": node.depth} for node in nodes], indent=2)


def _row(found: Overview, record: AgentRecord, shown: Mapping[str, str]) -> dict[str, Any]:
    host = next((one.name for one in found.hosts if one.id == record.owner and record.living), None)
    messages = found.own.get(record.uuid, 0)
    sign = found.signs.get(record.uuid)
    told = {"state": found.state(record), "host": host, "silent": None if sign is None else sign.seconds}
    return {
        **as_row(record),
        "label": shown[record.uuid],
        "messages": messages,
        **told,
        "lately": None if sign is None else sign.tokens,
    }
