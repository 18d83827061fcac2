"""Lists of agents at one moment: some agents with all agents above them, or all agents in pages."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from ikigai_actors.reach.notebooks import Notebooks, notebooks_in
from ikigai_actors.reach.readable import Readable
from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.lists import MOST_LISTED, Census, Placement
from ikigai_actors.records.agents.registry import AgentRecord, shown_names
from ikigai_actors.records.hosts.liveness import Sign, latest_signs
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import HostRecord, host_names, owners
from ikigai_actors.system.remote.client import shown_state

T = TypeVar("T")


class AgentFacts(NamedTuple):
    """Facts about some agents that their rows do not have: labels, counts, hosts and heartbeats."""

    labels: Mapping[str, str]
    """The name that people are shown for each agent, by uuid."""
    own: Mapping[str, int]
    """The number of messages that each agent wrote itself, by uuid."""
    hosts: tuple[HostRecord, ...]
    """The hosts that run the agents, the latest first."""
    signs: Mapping[str, Sign]
    """The latest heartbeats of agents in a turn, by uuid."""

    def state(self, record: AgentRecord) -> str:
        """Return the state of an agent, as far as a reader of the database can know it."""
        return shown_state(record, self.hosts)

    def host_of(self, record: AgentRecord) -> str | None:
        """Return the name of the host that runs an agent; None if the host has no name, or there is none."""
        return next((host.name for host in self.hosts if host.id == record.owner), None) if record.living else None

    @property
    def host_names(self) -> Mapping[str, str]:
        """Return the names of the hosts by id, if there are several; else empty."""
        return host_names(self.hosts)


class FoundAgents(NamedTuple):
    """A list of agents at one moment, with further facts."""

    records: list[AgentRecord]
    """The matching agents, and all agents above them; the oldest first."""
    wanted: frozenset[str]
    """The uuids of the matching agents."""
    is_cut: bool
    """Whether there are more matching agents than were requested."""
    census: Census
    facts: AgentFacts


def list_agents(
    source: Readable,
    text: str,
    most: int | None,
    dead_too: bool,
    current: str | None,
    read_notebooks: Callable[[Notebooks], tuple[T, Collection[str]]],
) -> tuple[FoundAgents, T]:
    """Read a list of agents, and the notebooks of its experiments, at one moment.

    Args:
        text: lists agents whose name or two words contain it; empty lists those used last.
        most: the most agents, and as many dead ones; None for `MOST_LISTED`.
        dead_too: whether to include the dead.
        current: the uuid of an agent that is always in the list, except in a search.
        read_notebooks: returns the data of notebooks, and the uuids of further agents to list.
    """
    most = MOST_LISTED if most is None else most

    def read(tx: Transaction) -> tuple[FoundAgents, T]:
        if text:
            namesakes = lists.called_so(tx, text, most + 1, dead_too)
        else:
            namesakes = lists.latest_used(tx, most + 1, dead_too, () if current is None else (current,))
        living, dead = ([record for record in namesakes if record.living is alive] for alive in (True, False))
        shown = [*living[:most], *dead[:most]]
        records, wanted = lists.with_those_above(tx, shown), {record.uuid for record in shown}
        said, further = read_notebooks(notebooks_in(tx, records))
        further = frozenset(further) - {record.uuid for record in records}
        if further and not text:
            added = registry.some(tx, further)
            records = lists.with_those_above(tx, [*records, *added])
            wanted |= {record.uuid for record in added if record.living or dead_too}
        facts = _facts(tx, [record.uuid for record in records], lists.labels_of(tx, records))
        is_cut = max(len(living), len(dead)) > most
        return FoundAgents(records, frozenset(wanted), is_cut, lists.census(tx), facts), said

    return source._store.read(read)


def every_placement(source: Readable) -> list[Placement]:
    """Return, for each agent, the columns of its row that decide its place in the tree."""
    return source._store.read(lists.placements)


def uuids_by_age(source: Readable) -> list[str]:
    """Return the uuids of all agents, the oldest first."""
    return source._store.read(lists.by_age)


def pages_of_agents(source: Readable, uuids: Sequence[str]) -> Iterator[tuple[list[AgentRecord], AgentFacts]]:
    """Yield the agents in this order, in pages, each with further facts. Each page is read at one moment."""

    def read(tx: Transaction, some: Sequence[str]) -> tuple[list[AgentRecord], AgentFacts]:
        by_uuid = {record.uuid: record for record in registry.some(tx, some)}
        records = [by_uuid[uuid] for uuid in some]
        return records, _facts(tx, some, lists.labels_of(tx, records))

    for start in range(0, len(uuids), registry.AGENTS_AT_ONCE):
        yield source._store.read(partial(read, some=uuids[start : start + registry.AGENTS_AT_ONCE]))


def all_agents(source: Readable) -> tuple[list[AgentRecord], Mapping[str, int]]:
    """Return all agents, and the number of messages that each wrote itself, by uuid."""
    return source._store.read(lambda tx: (registry.every(tx), registry.own_counts(tx)))


def some_agents(source: Readable, uuids: Collection[str]) -> list[AgentRecord]:
    """Return the agents with these uuids that exist."""
    return source._store.read(lambda tx: registry.some(tx, uuids))


def branches_of(source: Readable, texts: Collection[str]) -> frozenset[str]:
    """Return the uuids of the agents that some texts name, and of all agents below them.

    Raises `AgentNotFound` and `AmbiguousAgent`.
    """

    def read(tx: Transaction) -> frozenset[str]:
        tops = [registry.find(tx, text).uuid for text in texts]
        return frozenset({*tops, *(below for record in tops for below in registry.uuids_below(tx, record))})

    return source._store.read(read)


def _facts(tx: Transaction, uuids: Sequence[str], labels: Mapping[str, str]) -> AgentFacts:
    return AgentFacts(labels, lists.own_counts_of(tx, uuids), owners(tx), latest_signs(tx))


def labels_among(records: Collection[AgentRecord]) -> dict[str, str]:
    """Return the shown name of each agent, by uuid. The records must be all agents."""
    return shown_names(records)
