"""Lists of agents for people: a limited number of agents, and the count of the others.

    store.read(lambda tx: latest_used(tx))          # up to 200 of the living, the latest used first
    store.read(lambda tx: called_so(tx, "otter"))   # up to 200 whose name or two words contain this text
    labels_of(tx, records)                          # what people are shown for them

The time for a list depends on its length, not on the number of agents. There are two exceptions: a count reads an entry
of an index for each agent, and a search for a text that few names contain reads all names.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ikigai_actors.errors import AgentNotFound, AmbiguousAgent
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.words import EVEN, beginnings, words_having, words_of
from ikigai_actors.store.base import Transaction
from ikigai_actors.text import storable

MOST_LISTED = 200
"""The most agents in a list, unless the caller asks for more."""

Age = tuple[int, int, str]
"""The place of an agent in the order of births: milliseconds since 1970, the position in the parent's log, and the
uuid.
"""

_ESCAPED = str.maketrans({"%": "!%", "_": "!_", "!": "!!"})
"""The characters that LIKE would not take literally."""


class Placement(NamedTuple):
    """The columns of `AgentRecord` that decide where an agent appears in the tree."""

    uuid: str
    created_at: int
    born: int
    supervisor_uuid: str | None
    parent_uuid: str | None


def by_age(tx: Transaction) -> list[str]:
    """Return the uuids of all agents, in the order of their births."""
    return [uuid for uuid, *_ in sorted(tx.run("ages"), key=lambda row: row[1:])]


def placements(tx: Transaction) -> list[Placement]:
    """Return the placements of all agents, the oldest first."""
    return registry.oldest_first(map(Placement._make, tx.run("placements")))


class Census(NamedTuple):
    """The numbers of agents by status, and of open turns."""

    all_of_them: int
    living: int
    stopped: int
    terminating: int
    turns: int
    """The number of open turns."""

    @property
    def by_status(self) -> Mapping[str, int]:
        """The number of agents by status."""
        running = self.living - self.stopped - self.terminating
        dead = self.all_of_them - self.living
        return {"running": running, "stopped": self.stopped, "terminating": self.terminating, "dead": dead}


def census(tx: Transaction) -> Census:
    """Count the agents."""
    return Census._make(tx.run("census")[0])


def latest_used(
    tx: Transaction, most: int = MOST_LISTED, dead_too: bool = False, first: Collection[str] = ()
) -> list[AgentRecord]:
    """Return the agents that were used last: those at work, then those last seen by a person and the newest.

    Args:
        most: the most agents to return.
        dead_too: whether to add this many dead agents, the latest deaths first.
        first: the uuids of agents that come before all others.
    """
    records = registry.some(tx, first) if first else []
    known = {record.uuid for record in records}
    records += [row for row in registry.rows_of(tx, "latest_used", most=most) if row.uuid not in known]
    records = sorted(records, key=lambda record: (record.uuid not in known, *_latest_first(record)))[
        : max(most, len(known))
    ]
    return [*records, *(registry.rows_of(tx, "latest_ended", most=most) if dead_too else ())]


def left_turns(tx: Transaction, most: int = MOST_LISTED) -> list[AgentRecord]:
    """Return the agents whose turns were cut off by the end of a host and are not resumed, the oldest first."""
    return registry.rows_of(tx, "cut_off", most=most)


def _latest_first(record: AgentRecord) -> tuple[bool, bool, int, int]:
    used = max(record.active_at, record.created_at)
    return (record.waits_for is None, record.turn == 0, -used, -record.born)


def called_so(
    tx: Transaction, text: str, most: int = MOST_LISTED, dead_too: bool = False, first: Collection[str] = ()
) -> list[AgentRecord]:
    """Return the agents that a text matches: the one that it names, and the newest whose name or two words contain it.

    Args:
        text: the text; upper and lower case are equal, except in a uuid or its beginning.
        most: the most agents to return.
        dead_too: whether to add this many dead agents, the latest deaths first.
        first: the uuids of agents that come before all others.
    """
    text = storable(text)
    records = registry.some(tx, [*_named(tx, text), *first])
    lowered = text.casefold()
    adjectives, nouns, both = words_having(lowered)
    having = {
        "pattern": f"%{lowered.translate(_ESCAPED)}%",
        "adjectives": adjectives,
        "nouns": nouns,
        "both": 2 if both else 1,
        "even": EVEN,
        "most": most,
    }
    for query in ("living_called", "dead_called") if dead_too else ("living_called",):
        known = {record.uuid for record in records}
        records += [record for record in registry.rows_of(tx, query, **having) if record.uuid not in known]
    return records


def _named(tx: Transaction, text: str) -> list[str]:
    try:
        return [registry.find(tx, text).uuid]
    except AmbiguousAgent as error:
        return [*error.candidates]
    except AgentNotFound:
        return []


def with_those_above(tx: Transaction, records: list[AgentRecord]) -> list[AgentRecord]:
    """Return these agents and all agents above them, the oldest first."""
    known = {record.uuid for record in records}
    above = registry.rows_of(tx, "all_above", uuids=[*known])
    return registry.oldest_first([*records, *(record for record in above if record.uuid not in known)])


def labels_of(tx: Transaction, records: Collection[AgentRecord]) -> dict[str, str]:
    """Return the names that people see for some agents, by uuid, as `registry.shown_names` does.

    Only agents that could be confused with them are looked up.
    """
    around = {record.uuid: record for record in records}

    def add(records: Iterable[AgentRecord]) -> None:
        around.update((record.uuid, record) for record in records)

    texts = {text for record in records for text in (record.name, words_of(record.uuid)) if text is not None}
    starts = {start for record in records for start in beginnings(words_of(record.uuid))}
    add(registry.rows_of(tx, "beginning_so", starts=sorted(starts)))
    asked = set[str]()
    while new := texts - asked:
        add(registry.rows_of(tx, "namesakes", names=sorted(new)))
        asked |= new
        labels = registry.shown_names(around.values())
        texts = {labels[record.uuid] for record in records}
    return {record.uuid: labels[record.uuid] for record in records} if records else {}


def labelled(tx: Transaction, text: str = "", most: int = MOST_LISTED) -> dict[str, AgentRecord]:
    """Return living agents by shown name: those that a text finds (`called_so`), or without a text those used last."""
    records = called_so(tx, text, most) if text else latest_used(tx, most)
    labels = labels_of(tx, records)
    return {labels[record.uuid]: record for record in records if record.living}


def own_counts_of(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return how many messages each of these agents has written, by uuid. Inherited messages do not count."""
    return dict(tx.run("counts_of", uuids=list(uuids)))


def count_children(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return how many living agents each of these supervises, by uuid; agents without children are left out."""
    return dict(tx.run("count_children", uuids=list(uuids)))


def some_children(tx: Transaction, uuid: str, most: int = MOST_LISTED) -> list[AgentRecord]:
    """Return living agents that an agent supervises, the oldest first, at most this many."""
    return registry.rows_of(tx, "some_children", uuid=uuid, at=-1, born=-1, after="", most=most)


def breadth_first(tx: Transaction, top: str, most: int = MOST_LISTED) -> list[AgentRecord]:
    """Return living agents below an agent in the tree of supervisors, level by level, at most this many."""
    ordered, level = list[AgentRecord](), [top]
    while level and len(ordered) < most:
        having = count_children(tx, level)
        begun = len(ordered)
        for uuid in (record for record in level if record in having):
            if len(ordered) < most:
                ordered += some_children(tx, uuid, most - len(ordered))
        level = [record.uuid for record in ordered[begun:]]
    return ordered


def some_below(tx: Transaction, top: AgentRecord, most: int = MOST_LISTED, dead_too: bool = False) -> list[AgentRecord]:
    """Return up to ``most`` agents below ``top`` in the tree of supervisors: living ones level by level, then others.

    The others are the living agents below dead ones, and with ``dead_too`` the dead.
    """
    below = breadth_first(tx, top.uuid, most)
    is_all = top.parent_uuid is None and not dead_too and census(tx).living == len(below) + 1
    if len(below) < most and not is_all:
        known = {record.uuid for record in below}
        walked = registry.rows_of(tx, "some_below" if dead_too else "some_living_below", uuid=top.uuid, most=most)
        below += [record for record in walked if record.uuid not in known][: most - len(below)]
    return below


def count_below(tx: Transaction, top: AgentRecord, dead_too: bool = False) -> int:
    """Return the number of agents below ``top`` in the tree of supervisors.

    The database reads an entry for each of them, but not for agent 0, whose count is known.
    """
    if top.parent_uuid is None:
        counts = census(tx)
        return (counts.all_of_them if dead_too else counts.living) - 1
    return int(tx.run("count_below" if dead_too else "count_living_below", uuid=top.uuid)[0][0])


def age_of(record: AgentRecord) -> Age:
    """Return the sort key of an agent in the order of births. No two agents have the same."""
    return (record.created_at, record.born, record.uuid)


def living_after(tx: Transaction, after: Age, most: int) -> list[AgentRecord]:
    """Return up to ``most`` living agents that come after a key of `age_of`, the oldest first, without agent 0."""
    at, born, uuid = after
    return registry.rows_of(tx, "living_after", at=at, born=born, after=uuid, most=most)


def uuids_named(tx: Transaction) -> list[str]:
    """Return the uuids of all agents with names, including the dead."""
    return [uuid for (uuid,) in tx.run("named")]


def living_named(tx: Transaction) -> list[AgentRecord]:
    """Return the living agents that have names."""
    return registry.rows_of(tx, "living_named")


def newest_child(tx: Transaction, uuid: str) -> AgentRecord | None:
    """Return the newest living child of an agent; None if it has none."""
    return next(iter(_last_children(tx, uuid, 1)), None)


def _last_children(tx: Transaction, uuid: str, most: int) -> list[AgentRecord]:
    return registry.rows_of(tx, "some_children_before", uuid=uuid, at=2**62, born=0, before="", most=most)


def supervised(tx: Transaction, uuid: str, most: int = MOST_LISTED) -> list[AgentRecord]:
    """Return the agents that an agent supervises: all if they are few; else the newest living, and some others."""
    some = registry.rows_of(tx, "some_supervised", uuid=uuid, most=most)
    return some if len(some) < most else [*some, *_last_children(tx, uuid, most)]


class Siblings(NamedTuple):
    """The living agents before and after an agent among its siblings; None if it has no siblings."""

    previous: AgentRecord | None
    """The sibling before the agent. The one before the first is the last."""
    following: AgentRecord | None


def siblings(tx: Transaction, record: AgentRecord, many: int = MOST_LISTED) -> Siblings:
    """Return the siblings next to an agent: in the order of `registry.in_order`, or by age if there are ``many``."""
    above = record.supervisor_uuid
    if above is None:
        return Siblings(None, None)
    family = some_children(tx, above, many)
    if len(family) < many:
        row = registry.in_order(above, [*(sibling for sibling in family if sibling.uuid != record.uuid), record])
        place = next(index for index, sibling in enumerate(row) if sibling.uuid == record.uuid)
        return Siblings(None, None) if len(row) < 2 else Siblings(row[place - 1], row[(place + 1) % len(row)])
    here = {"uuid": above, "at": record.created_at, "born": record.born, "most": 1}
    following = registry.rows_of(tx, "some_children", **here, after=record.uuid) or family[:1]
    before = registry.rows_of(tx, "some_children_before", **here, before=record.uuid)
    previous = before or _last_children(tx, above, 1)
    return Siblings(previous[0], following[0])
