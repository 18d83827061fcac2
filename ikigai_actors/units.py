"""Units: the writes that belong together. The journal commits a unit whole or not at all.

A unit names the agents it touches, which are locked before it runs, and whether it changes the tree. It checks before
it writes: a refusal (an `IkigaiError`) leaves nothing behind and is an answer, not a failure. It is safe to run twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ikigai_actors.errors import AgentDead, AgentNotFound, AgentStopped, Fenced, NameTaken, RootProtected, TooManyAgents
from ikigai_actors.locks import Locked, Locks
from ikigai_actors.messages import Message
from ikigai_actors.store.base import Store, Transaction


class Fence(NamedTuple):
    """Who writes: the host, as the owner of the agent in this epoch."""

    host: str
    epoch: int


class Unit(Protocol):
    """Writes that belong together."""

    @property
    def touches(self) -> tuple[str, ...]:
        """Uuids of the agents whose rows are locked first."""

    @property
    def changes_tree(self) -> bool:
        """Whether the one row of ``tree`` is taken before that: fork, death, adoption, claim."""

    @property
    def alone(self) -> bool:
        """Whether it has a transaction of its own: death, adoption, claim."""

    def write(self, tx: Transaction, locked: Locks) -> Any:
        """Check, then write; return the answer. Raises an `IkigaiError` to refuse."""


def lock(tx: Transaction, units: Sequence[Unit]) -> Locks:
    """Take what units need, in the one order in which everybody does: the tree's row, then the agents' rows."""
    if any(unit.changes_tree for unit in units):
        tx.run("tree_change")
    uuids = sorted({uuid for unit in units for uuid in unit.touches})
    return Locks(tx.run("lock_agents", uuids=uuids) if uuids else ())


def write_alone(store: Store, unit: Unit) -> Any:
    """Commit one unit, and return its answer: how a process writes that is no host, and has no journal.

    Raises the unit's refusal, and what `Store.write` raises.
    """

    def work(tx: Transaction) -> Any:
        locked = lock(tx, (unit,))
        answer = unit.write(tx, locked)
        locked.settle(tx)
        return answer

    return store.write(work)


@dataclass(frozen=True, slots=True)
class Birth:
    """A child on its way into the registry, and the first messages of its log."""

    uuid: str
    name: str | None
    parent_uuid: str
    fork_message_id: int
    turn: int
    restart: str
    created_at: int
    messages: tuple[Message, ...]
    limit: int | None = None
    """How many agents may live beside it; None is no limit."""


@dataclass(frozen=True, slots=True)
class LogUnit:
    """What an agent writes about itself: messages of its log, the turn it opens or closes, a child."""

    agent: str
    messages: tuple[Message, ...]
    turn: int | None = None
    """The new value of ``agents.turn``; None leaves it."""
    birth: Birth | None = None


class Append:
    """A `LogUnit` with its fence: what the journal commits."""

    __slots__ = ("_fence", "_rows", "_unit", "changes_tree", "touches")

    alone = False

    def __init__(self, unit: LogUnit, fence: Fence) -> None:
        """Encodes the rows here, on the agent's worker: the journal's one thread has enough to do."""
        self._unit = unit
        self._fence = fence
        self._rows = [message.row() for message in unit.messages]
        self.touches = (unit.agent,)
        self.changes_tree = unit.birth is not None

    def write(self, tx: Transaction, locked: Mapping[str, Locked]) -> None:
        unit = self._unit
        row = locked.get(unit.agent)
        if row is None:
            raise AgentNotFound(f"There is no agent {unit.agent}.", unit.agent)
        check_fence(row, self._fence)
        if unit.birth is not None:
            _bear(tx, unit.birth, row, self._fence.host)
        if unit.turn is not None:
            tx.defer("set_turn", uuid=unit.agent, turn=unit.turn)
        tx.append(self._rows)


def check_fence(row: Locked, fence: Fence) -> None:
    """Refuse the write of a dead agent, of another host, or of an earlier epoch. Raises `Fenced`."""
    if row.status == "dead":
        raise Fenced(f"Agent {row.uuid} is dead; what it still did is dropped.", row.uuid)
    if row.owner != fence.host or row.epoch != fence.epoch:
        raise Fenced(f"Agent {row.uuid} belongs to another host by now; what it still did here is dropped.", row.uuid)


def _bear(tx: Transaction, birth: Birth, parent: Locked, host: str) -> None:
    """The child's row and first messages. The tree row is held, so nobody else can take the name meanwhile."""
    if parent.status != "running":
        raise AgentStopped(
            f"Agent {parent.uuid} is {parent.status}: only a running agent forks. Continue it first.", parent.uuid
        )
    if birth.name is not None and tx.run("living_by_name", name=birth.name):
        raise NameTaken(f"A living agent is named {birth.name!r}; choose another name.", birth.name)
    if birth.limit is not None and tx.run("count_living")[0][0] >= birth.limit:
        raise TooManyAgents(f"{birth.limit} agents live already: a model makes no more. Let some of them end first.")
    tx.run(
        "register",
        uuid=birth.uuid,
        name=birth.name,
        parent=birth.parent_uuid,
        supervisor=birth.parent_uuid,
        fork=birth.fork_message_id,
        turn=birth.turn,
        restart=birth.restart,
        now=birth.created_at,
        owner=host,
        epoch=FIRST_EPOCH,
    )
    tx.append([message.row() for message in birth.messages])


FIRST_EPOCH = 1
"""The epoch in which an agent is born."""


class Bury:
    """The death of one agent; its children go to its supervisor, which lives. One transaction, under the tree's row."""

    __slots__ = ("_host", "_now", "_reason", "_uuid")

    alone = True
    changes_tree = True

    def __init__(self, uuid: str, host: str, reason: str, now: int) -> None:
        self._uuid = uuid
        self._host = host
        self._reason = reason
        self._now = now

    touches: tuple[
        str, ...
    ] = ()  # it locks victim, children and supervisor itself, in one statement: two could deadlock

    def write(self, tx: Transaction, locked: Mapping[str, Locked]) -> None:
        """Raises `AgentNotFound`, `AgentDead`, `RootProtected`; `Fenced` when another host owns it."""
        family = {row[0]: Locked(*row) for row in tx.run("lock_family", uuid=self._uuid)}
        victim = family.get(self._uuid)
        if victim is None:
            raise AgentNotFound(f"There is no agent {self._uuid}.", self._uuid)
        if victim.status == "dead":
            raise AgentDead(f"Agent {self._uuid} is dead already.", self._uuid)
        if victim.owner != self._host:
            raise Fenced(f"Agent {self._uuid} belongs to another host by now, which decides on it.", self._uuid)
        if tx.run("root")[0][0] == self._uuid:
            raise RootProtected(f"Agent {self._uuid} is agent 0, which cannot die.", self._uuid)
        tx.run("bury", uuid=self._uuid, reason=self._reason, now=self._now)
        tx.run("reparent_children", uuid=self._uuid)


class Touch:
    """A person looked at an agent: a shell begins there next time."""

    __slots__ = ("_now", "_uuid")

    alone = False
    changes_tree = False

    def __init__(self, uuid: str, now: int) -> None:
        self._uuid = uuid
        self._now = now

    @property
    def touches(self) -> tuple[str, ...]:
        return (self._uuid,)

    def write(self, tx: Transaction, locked: Mapping[str, Locked]) -> None:
        tx.defer("touch", uuid=self._uuid, now=self._now)
