"""The registry of all agents. Its functions read table `agents`, whose rows are never deleted.

Every function takes a transaction, so several queries can read one snapshot. Writes are units
(`ikigai_actors.records.log.append`).
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from ikigai_actors.arguments import shown
from ikigai_actors.errors import AgentNotFound, AmbiguousAgent, BadInput, HistoryError, NameTaken
from ikigai_actors.frozen import maker
from ikigai_actors.records.agents.former import keep_name
from ikigai_actors.records.agents.identity import (
    PREFIX_LENGTH,
    RandomBytes,
    check_name,
    is_agent_prefix,
    is_agent_uuid,
    new_agent_uuid,
    same_name,
)
from ikigai_actors.records.agents.labels import labels_of_row
from ikigai_actors.records.agents.words import LONGEST, beginnings, called, called_awaited, letters_apart, words_of
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from ikigai_actors.text import storable, utc_time
from supervisors.intensity import DEFAULT_INTENSITY, DEFAULT_PERIOD

AGENTS_AT_ONCE = 1_000
"""The number of agents that a list reads at once."""

MOST_PUT_TO_SLEEP = 1_000
"""The most agents that one unit puts to sleep."""


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """A row of the registry: one agent."""

    uuid: str
    """The uuid: 22 characters of base64url, never used again."""
    name: str | None
    """The name for people, unique among the living; None if it has none."""
    parent_uuid: str | None
    """The uuid of the agent from which it was forked; None for agent 0. Never changes."""
    supervisor_uuid: str | None
    """The uuid of the agent that supervises it, at first the parent."""
    fork_message_id: int
    """The fork point: the last position that it inherits of its parent's history. Its own messages follow."""
    status: str
    """The status: ``running``, ``stopped``, ``terminating`` or ``dead``."""
    turn: int
    """The id of the message that opened the turn in progress; 0 when no turn is open."""
    restart: str
    """The restart type: ``permanent``, ``transient`` or ``temporary``."""
    exit_reason: str | None
    """The reason of its death; for a living agent, why it is stopped or terminating; else None."""
    created_at: int
    """The time of its birth, in milliseconds since 1970."""
    ended_at: int | None
    """The time of its death, in milliseconds since 1970; None while it lives."""
    active_at: int
    """The time when a person last looked at it in a shell, in milliseconds since 1970; 0 for never."""
    owner: str | None
    """The id of the host that runs it."""
    epoch: int
    """A number that grows when the agent dies, which fences late writes."""
    on_orphan: str = "reparent"
    """The orphan policy: ``reparent``, ``cascade``, ``stop`` or ``continue``."""
    strategy: str = "one_for_one"
    """The supervision strategy: ``one_for_one``, ``one_for_all`` or ``rest_for_one``."""
    intensity: int = DEFAULT_INTENSITY
    """How many restarts of its children it allows within the period. One more makes it give up."""
    period: int = DEFAULT_PERIOD
    """The period of the intensity, in milliseconds."""
    deadline: int | None = None
    """For a terminating agent, the time when it is killed, in milliseconds since 1970; else None."""
    exit_cause: str | None = None
    """The cause of its death: ``killed``, ``terminated``, ``exited``, ``crashed``, ``gave up``, ``orphaned`` or
    ``damaged``.
    """
    exit_sender: str | None = None
    """The uuid of the agent that ended it; None for a person or the runtime."""
    mailed: int = 0
    """The number of mails that it ever got, which is the id of the latest."""
    unread: int = 0
    """The number of its unread mails."""
    shard: int = 0
    """The shard: the set of agents with which it lives on one host."""
    born: int = 0
    """The position of the ``fork`` message in its parent's log; 0 for agent 0."""
    budget: str | None = None
    """The uuid of the owner of the nearest budget above it; None for agent 0's budget."""
    spent_tokens: int = 0
    """The tokens of all its requests to models."""
    spent_usd: int = 0
    """The cost of all its requests in micro-dollars, as far as the models had prices at that time."""
    timed: int = 0
    """The number of timers that it ever had, which is the id of the latest."""
    waits_for: str | None = None
    """The unit of the budget for which its request waits, such as tokens; None while none waits."""
    imported_at: int | None = None
    """The time when it was imported, in milliseconds since 1970; None if it was not."""
    pruned_at: int | None = None
    """The time when its messages and mail were pruned, in milliseconds since 1970; None if they were not."""
    branch: str | None = None
    """The uuid of the child of agent 0 from which it descends; its own for a child of agent 0, None for agent 0."""
    cut_off: int = 0
    """The open turn, if it was cut off and its host does not resume it; else 0."""
    parked: int = 0
    """For a parked program, the number of turns whose ends it still awaits; -1 while it is being woken, else 0."""
    awaits: tuple[str, ...] = ()
    """The names of the agents for whose turns a parked program waits, with ``(interrupted)`` after those cut off."""
    asks: tuple[str, ...] | None = None
    """The addresses that its turn asks: empty if nobody is named, None while it asks nobody."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels: the account for which it works, from its parent and its fork."""

    @property
    def created_time(self) -> datetime:
        """The time of the agent's birth, in UTC."""
        return utc_time(self.created_at)

    @property
    def ended_time(self) -> datetime | None:
        """The time of the agent's death, in UTC; None while the agent lives."""
        return None if self.ended_at is None else utc_time(self.ended_at)

    @property
    def living(self) -> bool:
        """Whether the agent is not dead."""
        return self.status != "dead"

    @property
    def grafted(self) -> bool:
        """Whether the agent was imported without its parent.

        It then inherits nothing, and its log may name unknown agents.
        """
        return self.imported_at is not None and self.born == 0

    @property
    def stands_in(self) -> bool:
        """Whether an import made this dead agent to replace a parent that is not in the file.

        Its log has only the messages that the imported agents inherit.
        """
        return self.imported_at is not None and self.created_at == self.ended_at == self.imported_at

    @property
    def why_stopped(self) -> str:
        """Return why the agent is stopped, for a person; empty if it is not, or no reason is known."""
        if self.status != "stopped":
            return ""
        return "its supervisor gave up" if self.exit_reason == "gave up" else self.exit_reason or ""

    @property
    def short(self) -> str:
        """Return the name, or the two generated words. `shown_name` also distinguishes agents that share them."""
        return called(self.uuid, self.name)


_record = maker(AgentRecord)


def _records(rows: list[tuple[object, ...]]) -> list[AgentRecord]:
    return [
        _record(*columns, _awaited(awaits), _addresses(asks), labels_of_row(text))
        for *columns, awaits, asks, text in rows
    ]


def _awaited(text: Any) -> tuple[str, ...]:
    """Return the awaited agents in a row, each with its uuid, its turn that was cut off or 0, and its name."""
    entries = (entry.split(" ", 2) for entry in json.loads(text or "[]"))
    return tuple(called_awaited(uuid, name or None, interrupted=cut_off != "0") for uuid, cut_off, name in entries)


def _addresses(text: Any) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        return tuple(map(str, json.loads(text)))
    except (ValueError, TypeError):
        return ()


def rows_of(tx: Transaction, query: str, **parameters: object) -> list[AgentRecord]:
    """Return the agents that a named query selects, in its order. The query must select the columns of ``agent``."""
    return _records(tx.run(query, **parameters))


class Placed(Protocol):
    """The attributes of an agent that decide where it appears in the tree: of a record or a `Placement`."""

    @property
    def uuid(self) -> str:
        """The uuid of the agent."""

    @property
    def created_at(self) -> int:
        """The time of the agent's birth, in milliseconds since 1970."""

    @property
    def born(self) -> int:
        """The position of the agent's birth in its parent's log."""

    @property
    def supervisor_uuid(self) -> str | None:
        """The uuid of the agent's supervisor."""

    @property
    def parent_uuid(self) -> str | None:
        """The uuid of the agent's parent."""


P = TypeVar("P", bound=Placed)


def oldest_first(records: Iterable[P]) -> list[P]:
    """Return agents in the order of their births."""
    return sorted(records, key=lambda record: (record.created_at, record.born))


def every(tx: Transaction, status: str | None = None) -> list[AgentRecord]:
    """Return all agents, or those with a status, in the order of their births."""
    return oldest_first(_records(tx.run("agents", status=status)))


def after(tx: Transaction, uuid: str, status: str | None = None) -> list[AgentRecord]:
    """Return up to `AGENTS_AT_ONCE` agents whose uuids follow ``uuid``, optionally only those with a status."""
    query = "paused_after" if status in ("stopped", "terminating") else "agents_after"
    return _records(tx.run(query, after=uuid, status=status, most=AGENTS_AT_ONCE))


def uuids_below(tx: Transaction, uuid: str) -> list[str]:
    """Return the uuids of all agents below an agent in the tree of supervisors, including the dead."""
    return [below for (below,) in tx.run("uuids_below", uuid=uuid)]


def uuids_descended(tx: Transaction, uuid: str) -> list[str]:
    """Return the uuids of all agents that descend from an agent by forks, including the dead."""
    return [below for below, *_ in tx.run("descent", uuid=uuid) if below != uuid]


def uuids_belonging(tx: Transaction, uuid: str) -> list[str]:
    """Return the uuids of an agent and of all below it, by forks or by supervision, including the dead."""
    return [belonging for (belonging,) in tx.run("belonging", uuid=uuid)]


def seen_last(tx: Transaction) -> AgentRecord | None:
    """Return the living agent that a person has looked at last; None if there is none."""
    return next(iter(_records(tx.run("seen_last"))), None)


def own_counts(tx: Transaction) -> dict[str, int]:
    """Return how many messages each agent has written, by uuid. Inherited messages do not count."""
    return dict(tx.run("counts"))


def get(tx: Transaction, uuid: str) -> AgentRecord:
    """Return the agent with this uuid. Raises `AgentNotFound`."""
    records = _records(tx.run("agent_by_uuid", uuid=uuid))
    if not records:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return records[0]


def some(tx: Transaction, uuids: Collection[str]) -> list[AgentRecord]:
    """Return the agents with these uuids, in no order. Missing agents are left out."""
    return _records(tx.run("agents_by_uuids", uuids=list(uuids)))


def root(tx: Transaction) -> AgentRecord | None:
    """Return agent 0; None before it was made."""
    records = _records(tx.run("root"))
    return records[0] if records else None


class OpenWork(NamedTuple):
    """The open work in some shards of a host, which the host looks at when it starts."""

    root: AgentRecord | None
    at_work: list[str]
    """The uuids of the agents with open work."""
    gave_up: bool
    """Whether some agents are stopped because their supervisor gave up."""
    marked: bool
    """Whether at least `MOST_PUT_TO_SLEEP` agents that rest are marked as awake."""
    version: int
    """The version of the tree of agents."""


def open_work(tx: Transaction, host: str, shards: Collection[int]) -> OpenWork:
    """Read the open work of these shards, in one round trip."""
    within = [str(shard) for shard in shards]
    agent_0, at_work = tx.ask("root"), tx.ask("at_work_in", host=host, shards=within)
    gave_up = tx.ask("gave_up_in", host=host, shards=within)
    idle = tx.ask("idle_awake", host=host, most=MOST_PUT_TO_SLEEP)
    version = tree_version(tx)
    return OpenWork(
        next(iter(_records(agent_0())), None),
        [uuid for (uuid,) in at_work()],
        bool(gave_up()),
        len(idle()) == MOST_PUT_TO_SLEEP,
        version,
    )


def boot(tx: Transaction, host: str, shards: Collection[int], uuids: Collection[str]) -> list[Row]:
    """Return the data that a starting host needs about these agents: rows of the query ``boot``.

    Agents outside of these shards of the host are left out.
    """
    return tx.run("boot", host=host, shards=[str(shard) for shard in shards], uuids=list(uuids))


def count_living(tx: Transaction, host: str) -> int:
    """Return the number of living agents in the shards of a host."""
    return int(tx.run("living_of", host=host)[0][0])


class PutToSleep(Unit):
    """Clear the wake marks of idle agents, so that a starting host skips them; answered with about how many remain.

    Agents that are at work, or belong to another host, keep their marks.
    """

    alone = True

    def __init__(self, host: str, agents: Collection[str] | None = None) -> None:
        """Make the unit for these agents, by uuid; None finds up to `MOST_PUT_TO_SLEEP` marked agents."""
        self._host, self._agents = host, agents

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        agents = self._agents
        if agents is None:
            agents = [uuid for (uuid,) in tx.run("idle_awake", host=self._host, most=MOST_PUT_TO_SLEEP)]
        locked.lock(tx, agents)
        rest = [row for row in locked.values() if row.owner == self._host and not (row.turn or row.held_at)]
        tx.run("put_to_sleep", uuids=[row.uuid for row in rest if row.status != "dead"])
        return len(agents)


def ensure_root(store: Store, random_bytes: RandomBytes, now: int) -> None:
    """Make agent 0 unless it exists. If several processes try, the first makes it."""

    def make(tx: Transaction) -> None:
        tx.run("tree_change")
        make_root(tx, uuid, now)

    if store.read(root) is None:
        uuid = new_agent_uuid(random_bytes)
        store.write(make)


def make_root(tx: Transaction, uuid: str, now: int) -> None:
    """Make agent 0, with a budget without limits; do nothing if it exists."""
    tx.run("register_root", uuid=uuid, now=now)
    tx.run("register_root_budget")


def look_at_all(tx: Transaction, uuids: Collection[str]) -> list[Row]:
    """Return a row for each of these agents that exists: uuid, status, open turn and unread mail.

    The last two columns say whether prompts wait for the agent, and whether a request of the agent waits for a grant.
    """
    return tx.run("look_at_all", uuids=list(uuids))


def is_below(tx: Transaction, uuid: str, top: str) -> bool:
    """Return whether an agent is below another one in the tree of supervisors."""
    return top in {row[0] for row in tx.run("supervisors_of", uuid=uuid)}


def nobody_called(text: str) -> AgentNotFound:
    """Return the error for a text that names no agent."""
    text = storable(text)
    if is_agent_uuid(text):
        return AgentNotFound(f"There is no agent {text}.", text)
    words = beginnings(text)
    if not words and not is_agent_prefix(text):
        return AgentNotFound(
            f"Expected a name, two words, or a uuid or its first {PREFIX_LENGTH} or more characters; "
            f"nobody is called {text[:80]!r}.",
            text,
        )
    why = "no agent has these two words" if words else "no uuid begins with it"
    return AgentNotFound(f"No agent is named {text!r}, and {why}. See the list of agents.", text)


def find(tx: Transaction, text: str) -> AgentRecord:
    """Find an agent by the text that a person or a model uses for it.

    The text is tried in this order: a uuid; the name of a living agent; the name of a dead agent, the latest that died;
    ``0`` for agent 0; the two words of a uuid, maybe with letters; a unique prefix of a uuid. Names come first, those
    of the dead too: a text that means a dead agent must not hit a stranger.

    Raises:
        AgentNotFound: no agent has this name.
        AmbiguousAgent: several agents have these words, or this prefix.
    """
    text = storable(text)  # what no database takes is nobody's name
    if is_agent_uuid(text):
        return get(tx, text)
    if (named := _named(tx, text)) is not None:
        return named
    if text == "0" and (top := root(tx)) is not None:
        return top
    words = beginnings(text)
    matches = _beginning_with(tx, words or (text,)) if words or is_agent_prefix(text) else []
    if not matches:
        raise nobody_called(text)
    if len(matches) > 1:
        candidates = sorted(record.uuid for record in matches)
        shared = "is short for" if words else "begins the uuid of"
        names = ", ".join(shown_name(tx, record) for record in matches)
        raise AmbiguousAgent(f"{text!r} {shared} several agents: {names}. Give one of these.", text, candidates)
    return matches[0]


def _named(tx: Transaction, text: str) -> AgentRecord | None:
    """Return the agent with a name: the living one, or else the dead one that died last; None if there is none."""
    records = _records(tx.run("living_by_name", name=same_name(text))) or _records(tx.run("dead_by_name", name=text))
    return max(records, key=_precedence) if records else None


def _precedence(record: AgentRecord) -> tuple[bool, int, int, int]:
    return (record.living, record.ended_at or 0, record.created_at, record.born)


def _beginning_with(tx: Transaction, texts: Sequence[str]) -> list[AgentRecord]:
    """Return agents whose uuids begin with one of these texts, all of one length: by uuid, and at most ten."""
    if not texts:
        return []
    starts = sorted({text[:PREFIX_LENGTH] for text in texts})
    rows = tx.run("agents_by_prefix", starts=starts, prefixes=list(texts), length=len(texts[0]), most=10)
    return sorted(_records(rows), key=lambda record: record.uuid)


def shown_name(tx: Transaction, record: AgentRecord) -> str:
    """Return the shown name of an agent, which finds exactly this agent; see `shown_names`."""
    if record.name is not None and (namesake := _named(tx, record.name)) is not None and namesake.uuid == record.uuid:
        return record.name
    sharing = [other.uuid for other in _beginning_with(tx, beginnings(words_of(record.uuid)))]
    return _spelled(record.uuid, sharing, lambda text: _named(tx, text) is not None)


def shown_name_of(tx: Transaction, uuid: str) -> str:
    """Return the shown name of the agent with a uuid; the two words if only an imported log names it."""
    records = some(tx, [uuid])
    return shown_name(tx, records[0]) if records else words_of(uuid)


def shown_names(records: Collection[AgentRecord]) -> dict[str, str]:
    """Return the names that people see for agents, by uuid. Each of these names finds exactly its agent.

    An agent is shown by its name. If it has none, or another agent has that name now, it is shown by its two words.
    Letters of the uuid follow the words where other agents have the same words, or such a name.

    Args:
        records: all agents, including the dead.
    """
    having = (record for record in records if record.name is not None)
    named = {record.name: record.uuid for record in sorted(having, key=_precedence)}
    name_by_uuid = {uuid: name for name, uuid in named.items()}
    words = {record.uuid: words_of(record.uuid) for record in records}
    sharing: dict[str, list[str]] = {}
    for uuid, text in words.items():
        sharing.setdefault(text, []).append(uuid)
    return {
        uuid: name_by_uuid.get(uuid)
        or (
            text if len(sharing[text]) == 1 and text not in named else _spelled(uuid, sharing[text], named.__contains__)
        )
        for uuid, text in words.items()
    }


def _spelled(uuid: str, sharing: Iterable[str], taken: Callable[[str], bool]) -> str:
    """Return the words of a uuid, with enough letters to differ from the uuids ``sharing`` them and from all names."""
    fewest = max((letters_apart(uuid, other) for other in sharing if other != uuid), default=0)
    spelled = (words_of(uuid, letters) for letters in range(fewest, LONGEST + 1))
    return next((text for text in spelled if not taken(text)), uuid)


def check_free(tx: Transaction, name: str, uuid: str | None = None) -> None:
    """Raise `NameTaken` when a living agent other than the one with this uuid has the name."""
    for record in _records(tx.run("living_by_name", name=name)):
        if record.uuid != uuid:
            above = [owner for owner in (record.parent_uuid, record.supervisor_uuid) if owner is not None]
            raise NameTaken(f"A living agent is named {name!r}; choose another name.", name, record.uuid, above)


def child_named(tx: Transaction, agent: str, name: str) -> AgentRecord | None:
    """Return the living agent with this name that an agent has forked or supervises; None if there is none."""
    records = _records(tx.run("living_by_name", name=name))
    return next((record for record in records if agent in (record.parent_uuid, record.supervisor_uuid)), None)


def tree_version(tx: Transaction) -> int:
    """Return the version of the tree, which grows with every birth, death, adoption and new name."""
    return int(tx.run("tree_version")[0][0])


class Handle(Protocol):
    """An object that names an agent by its uuid: a handle, or a record."""

    @property
    def uuid(self) -> str:
        """The uuid of the agent."""


def uuid_of(store: Store, agent: Handle | str) -> str:
    """Return the uuid of an agent named by a handle, or by a text as in `find`. A whole uuid is not looked up.

    Raises `AgentNotFound`, `AmbiguousAgent`, and `BadInput` for other values.
    """
    text = getattr(agent, "uuid", agent)
    if not isinstance(text, str):
        raise BadInput(f"Expected an agent, or its uuid, name or prefix; got {shown(agent)}.")
    return text if is_agent_uuid(text) else store.read(lambda tx: find(tx, text)).uuid


def children(tx: Transaction, uuid: str) -> list[AgentRecord]:
    """Return the agents that an agent supervises, including the dead, in order of creation, adopted ones last."""
    return in_order(uuid, _records(tx.run("children", uuid=uuid)))


def living_children(tx: Transaction, uuid: str) -> list[AgentRecord]:
    """Return the living agents that an agent supervises, in order of creation, adopted ones last."""
    return in_order(uuid, _records(tx.run("living_children", uuid=uuid)))


def in_order(supervisor: str, records: Iterable[P]) -> list[P]:
    """Sort a supervisor's children by creation, adopted ones last.

    The positions of births in one log always grow; creation times can be equal.
    """

    def place(record: Placed) -> tuple[bool, int, int]:
        adopted = record.parent_uuid != supervisor
        return (adopted, record.created_at if adopted else record.born, record.born)

    return sorted(records, key=place)


def descendants(tx: Transaction, uuid: str) -> list[AgentRecord]:
    """Return all agents below an agent in the tree of supervisors, including the dead; the oldest first."""
    return oldest_first(_records(tx.run("descendants", uuid=uuid)))


def ancestors(tx: Transaction, uuid: str) -> list[AgentRecord]:
    """Return the supervisor of an agent, the supervisor of that supervisor, and so on to agent 0.

    Raises `HistoryError` when the supervisors form a circle.
    """
    rows = {record.uuid: record for record in _records(tx.run("supervisors", uuid=uuid))}
    chain: list[AgentRecord] = []
    current = rows.pop(uuid, None)
    if current is None:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    while current.supervisor_uuid is not None:
        current = rows.pop(current.supervisor_uuid, None)
        if current is None:
            raise HistoryError(f"The supervisors of agent {uuid} run in a circle or break off.")
        chain.append(current)
    return chain


@dataclass(frozen=True, slots=True)
class Died:
    """The event that an agent has died, with its cause."""

    kind: ClassVar[str] = "died"
    agent_uuid: str
    cause: str
    reason: str

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class Renamed:
    """The event that an agent got another name, or lost its name."""

    kind: ClassVar[str] = "renamed"
    agent_uuid: str
    name: str | None
    """The new name; None if it has none any more."""

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


@dataclass(frozen=True, slots=True)
class StatusSet:
    """The event that a living agent got another status: it was stopped or continued, or will end after its turn."""

    kind: ClassVar[str] = "status_set"
    agent_uuid: str
    status: str
    """The new status: ``running``, ``stopped`` or ``terminating``."""

    @property
    def agent(self) -> str:
        """The uuid of the agent."""
        return self.agent_uuid


class Rename(Unit):
    """Rename an agent, or remove its name; answered with `Renamed`.

    The unit locks the row of ``tree``, as births do. So no other agent can take the name meanwhile, and other processes
    notice that names may have changed.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        NameTaken: a living agent has the name.
    """

    __slots__ = ("_name", "_now", "_uuid")

    locks = ("_uuid",)
    tree = TreeLock.WHOLE
    concerns_others = True

    def __init__(self, uuid: str, name: str | None, now: int) -> None:
        """Name an agent.

        Args:
            uuid: the agent.
            name: its new name; empty or None takes the name away.
            now: milliseconds since 1970.

        Raises:
            BadInput: the text cannot be a name.
        """
        self._uuid, self._name = uuid, check_name(name) if name not in (None, "") else None
        self._now = now

    def write(self, tx: Transaction, locked: LockedRows) -> Renamed:
        locked.living(self._uuid, " and keeps the name that it had")
        if self._name is not None:
            check_free(tx, self._name, self._uuid)
        keep_name(tx, self._uuid, self._now)
        tx.run("rename", uuid=self._uuid, name=self._name)
        return Renamed(self._uuid, self._name)


class Touch(Unit):
    """Record that a person looked at an agent. The next shell then opens with this agent."""

    __slots__ = ("_now", "_uuid")

    def __init__(self, uuid: str, now: int) -> None:
        self._uuid = uuid
        self._now = now

    locks = ("_uuid",)

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.defer("touch", uuid=self._uuid, now=self._now)


def turns_that_asked(tx: Transaction, agents: Collection[str] | None = None) -> dict[str, int]:
    """Return the open turns in which a call asked for approval, by agent: the id of the message that opened the turn.

    Args:
        tx: the transaction.
        agents: the agents to look at, by uuid; None for all, which reads the log of each parked agent.
    """
    if agents is None:
        return dict(tx.run("turns_that_asked"))
    return dict(tx.run("turns_that_asked_of", uuids=list(agents)))
