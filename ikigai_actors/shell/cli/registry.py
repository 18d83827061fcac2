"""The registry of a database, as a tree and as JSON."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ikigai_actors.reach.agent_lists import (
    AgentFacts,
    every_placement,
    pages_of_agents,
    uuids_by_age,
)
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.shell.agent_lists import list_lines, read_list
from ikigai_actors.system.remote.client import Client
from ikigai_actors.verbs.text.harmless import as_json
from ikigai_actors.verbs.text.rows import as_row
from ikigai_actors.verbs.text.tree import Line, drawn

_WRITTEN_AT_ONCE = 100
"""The number of agents in a piece of JSON."""


def lines(client: Client, text: str = "", most: int | None = None, dead_too: bool = False) -> list[Line]:
    """Return the lines of a list of agents, without a mark at any. Raises `StoreUnusable` for damaged values."""
    client.check_types()
    listed = read_list(client, text, most, dead_too)
    return list_lines(listed, listed.state, "ikigai agents")


def json_pieces(
    client: Client, text: str = "", most: int | None = None, dead_too: bool = False, tree: bool = False
) -> Iterator[str]:
    """Return a JSON list of agents, in pieces.

    Without a text and a limit the list has all agents, including dead ones, which are read a thousand at a time. An
    agent has the columns of the registry, ``label``, ``messages``, ``state``, ``host``, and more.

    ``host`` is the name of the host that runs the agent, or null. ``silent`` is the seconds since the latest heartbeat
    of an agent in a turn, ``lately`` its tokens in the last 3 s; both can be null. The agents are in order of birth;
    with ``tree`` they are in the order of the tree, each under its supervisor, with its ``depth``.

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
        agents, facts = (listed := read_list(client, text, most, dead_too)).agents, listed.facts
        shown = [record for record in agents.records if record.uuid in agents.wanted]
        yield from (_row(record, facts) for record in shown) if not tree else _in_tree(agents.records, facts)
        return
    depths: dict[str, dict[str, int]] = {}
    if tree:
        depths = {
            node.record.uuid: {"depth": node.depth} for node in drawn(every_placement(client), lambda record: True)
        }
    uuids = [*depths] or uuids_by_age(client)
    for records, facts in pages_of_agents(client, uuids):
        yield from (_row(record, facts) | depths.get(record.uuid, {}) for record in records)


def _in_tree(records: Sequence[AgentRecord], facts: AgentFacts) -> Iterator[dict[str, Any]]:
    for node in drawn(records, lambda record: True):
        yield _row(node.record, facts) | {"depth": node.depth}


def _row(record: AgentRecord, facts: AgentFacts) -> dict[str, Any]:
    sign = facts.signs.get(record.uuid)
    return {
        **as_row(record),
        "label": facts.labels[record.uuid],
        "messages": facts.own.get(record.uuid, 0),
        "state": facts.state(record),
        "host": facts.host_of(record),
        "silent": None if sign is None else sign.seconds,
        "lately": None if sign is None else sign.tokens,
    }
