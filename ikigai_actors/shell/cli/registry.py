"""The registry of a database, as a tree and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.liveness import Sign, latest_signs
from ikigai_actors.shell.agent_lists import list_lines, read_list
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import HostRecord, owners
from ikigai_actors.system.remote.client import Client, shown_state
from ikigai_actors.verbs.text.harmless import as_json
from ikigai_actors.verbs.text.rows import as_row
from ikigai_actors.verbs.text.tree import Line, drawn

_WRITTEN_AT_ONCE = 100
"""How many agents a piece of JSON has."""


def lines(client: Client, text: str = "", most: int | None = None, dead_too: bool = False) -> list[Line]:
    """The lines of a list; nobody is the current one. Raises `StoreUnusable` for a value of a wrong type."""
    client.check_types()
    found = client.read(lambda tx: read_list(tx, text, most or lists.MOST_LISTED, dead_too))
    return list_lines(found, found.state, "ikigai agents")


def json_pieces(
    client: Client, text: str = "", most: int | None = None, dead_too: bool = False, tree: bool = False
) -> Iterator[str]:
    """A JSON list of agents, in pieces.

    Without a text and a limit these are all agents, the dead too, which are read a thousand at a time. An agent has the
    columns of the registry, ``label``, ``messages``, ``state``, ``host``, and more.

    The host is the name of the one that runs the agent, or null: of a host without a name, and where nobody does.
    Silent are the seconds since the latest sign of life of an agent in a turn, lately the tokens of the last 3 s, or
    null. They come oldest first; with ``tree`` in the order of the tree, each under its supervisor, with its ``depth``.

    Raises `StoreUnusable` for a value of a wrong type.
    """
    texts = (as_json(row, indent=2).replace("\n", "\n  ") for row in _rows(client, text, most, dead_too, tree))
    before = "["
    while some := list(islice(texts, _WRITTEN_AT_ONCE)):
        yield f"{before}\n  " + ",\n  ".join(some)
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _rows(client: Client, text: str, most: int | None, dead_too: bool, tree: bool) -> Iterator[dict[str, Any]]:
    client.check_types()
    if text or most is not None:
        found = client.read(lambda tx: read_list(tx, text, most or lists.MOST_LISTED, dead_too))
        shown = [one for one in found.records if one.uuid in found.wanted]
        facts = _Facts(found.labels, found.own, found.hosts, found.signs)
        yield from (facts.row(record) for record in shown) if not tree else _in_tree(found.records, facts)
        return
    depths: dict[str, dict[str, int]] = {}
    if tree:
        depths = {
            node.record.uuid: {"depth": node.depth} for node in drawn(client.read(lists.placements), lambda one: True)
        }
    uuids = [*depths] or client.read(lists.by_age)
    for start in range(0, len(uuids), registry.AGENTS_AT_ONCE):
        records, facts = client.read(partial(_page, uuids=uuids[start : start + registry.AGENTS_AT_ONCE]))
        yield from (facts.row(record) | depths.get(record.uuid, {}) for record in records)


def _page(tx: Transaction, uuids: Sequence[str]) -> tuple[list[AgentRecord], "_Facts"]:
    found = {one.uuid: one for one in registry.some(tx, uuids)}
    records = [found[uuid] for uuid in uuids]
    return records, _read_facts(tx, uuids, lists.labels_of(tx, records))


def _read_facts(tx: Transaction, uuids: Sequence[str], labels: Mapping[str, str]) -> "_Facts":
    return _Facts(labels, lists.own_counts_of(tx, uuids), owners(tx), latest_signs(tx))


def _in_tree(records: Sequence[AgentRecord], facts: "_Facts") -> Iterator[dict[str, Any]]:
    for node in drawn(records, lambda record: True):
        yield facts.row(node.record) | {"depth": node.depth}


class _Facts:
    """What is said of agents beside their rows."""

    def __init__(
        self,
        labels: Mapping[str, str],
        own: Mapping[str, int],
        hosts: tuple[HostRecord, ...],
        signs: Mapping[str, Sign],
    ) -> None:
        self._labels, self._own, self._hosts, self._signs = labels, own, hosts, signs
        self._names = {one.id: one.name for one in hosts}

    def row(self, record: AgentRecord) -> dict[str, Any]:
        """An agent as JSON."""
        sign = self._signs.get(record.uuid)
        return {
            **as_row(record),
            "label": self._labels[record.uuid],
            "messages": self._own.get(record.uuid, 0),
            "state": shown_state(record, self._hosts),
            "host": self._names.get(record.owner or "") if record.living else None,
            "silent": None if sign is None else sign.seconds,
            "lately": None if sign is None else sign.tokens,
        }
