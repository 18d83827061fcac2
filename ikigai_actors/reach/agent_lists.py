"""Lists of agents at one moment: some of them with everybody above them, or all of them in pages."""

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
    """Facts about some agents beside their rows."""

    labels: Mapping[str, str]
    """The name that people are shown for each, by uuid."""
    own: Mapping[str, int]
    """Messages that each wrote itself, by uuid."""
    hosts: tuple[HostRecord, ...]
    """The hosts that run the agents, the latest first."""
    signs: Mapping[str, Sign]
    """The latest heartbeats of those that are in a turn, by uuid."""

    def state(self, record: AgentRecord) -> str:
        """The state of an agent, as far as a reader of the database can know."""
        return shown_state(record, self.hosts)

    def host_of(self, record: AgentRecord) -> str | None:
        """The name of the host that runs an agent; None of a host without one, and where nobody does."""
        return next((host.name for host in self.hosts if host.id == record.owner), None) if record.living else None

    @property
    def host_names(self) -> Mapping[str, str]:
        """The names of the hosts, by id, where there are several."""
        return host_names(self.hosts)


class FoundAgents(NamedTuple):
    """A list at one moment."""

    records: list[AgentRecord]
    """The wanted agents, and everybody above them; the oldest first."""
    wanted: frozenset[str]
    """By uuid."""
    is_cut: bool
    """Whether there are more than were asked for."""
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
    """Read a list, and what the notebooks of the experiments in it say, all at one moment.

    Args:
        text: lists those whose name, or two words, have it; empty lists those that were used last.
        most: how many of them at most, and as many of the dead; None for `MOST_LISTED`.
        dead_too: the dead too.
        current: an agent that is in the list anyway, by uuid, unless it is searched.
        read_notebooks: gives what notebooks say, and further agents to be listed, by uuid.
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
    """The place of each agent in the tree."""
    return source._store.read(lists.placements)


def uuids_by_age(source: Readable) -> list[str]:
    """Every agent by its uuid, the oldest first."""
    return source._store.read(lists.by_age)


def pages_of_agents(source: Readable, uuids: Sequence[str]) -> Iterator[tuple[list[AgentRecord], AgentFacts]]:
    """Agents in this order, and what is said of them. Each page is read at one moment of its own."""

    def read(tx: Transaction, some: Sequence[str]) -> tuple[list[AgentRecord], AgentFacts]:
        by_uuid = {record.uuid: record for record in registry.some(tx, some)}
        records = [by_uuid[uuid] for uuid in some]
        return records, _facts(tx, some, lists.labels_of(tx, records))

    for start in range(0, len(uuids), registry.AGENTS_AT_ONCE):
        yield source._store.read(partial(read, some=uuids[start : start + registry.AGENTS_AT_ONCE]))


def all_agents(source: Readable) -> tuple[list[AgentRecord], Mapping[str, int]]:
    """Every agent, and how many messages each wrote itself, by uuid."""
    return source._store.read(lambda tx: (registry.every(tx), registry.own_counts(tx)))


def some_agents(source: Readable, uuids: Collection[str]) -> list[AgentRecord]:
    """The agents among these that exist."""
    return source._store.read(lambda tx: registry.some(tx, uuids))


def branches_of(source: Readable, texts: Collection[str]) -> frozenset[str]:
    """The agents that these texts mean and all below them, by uuid. Raises `AgentNotFound` and `AmbiguousAgent`."""

    def read(tx: Transaction) -> frozenset[str]:
        tops = [registry.find(tx, text).uuid for text in texts]
        return frozenset({*tops, *(below for record in tops for below in registry.uuids_below(tx, record))})

    return source._store.read(read)


def _facts(tx: Transaction, uuids: Sequence[str], labels: Mapping[str, str]) -> AgentFacts:
    return AgentFacts(labels, lists.own_counts_of(tx, uuids), owners(tx), latest_signs(tx))


def labels_among(records: Collection[AgentRecord]) -> dict[str, str]:
    """The name that people are shown for each agent, by uuid, where these are all agents."""
    return shown_names(records)
