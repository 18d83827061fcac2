"""Trees of agents in a store, and the units that change them, as short as a test wants them."""

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, make_root
from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.base import Row
from tests.kit.databases import sql

HOST = "host 1"


def add_host(tx: Transaction, host: str = HOST) -> None:
    """A host without a lease, which has all shards that no living host has."""
    tx.run("register_host", id=host, hostname="here", pid=1, lease=0)
    tx.run("claim_shards", host=host)


def add(
    tx: Transaction,
    uuid: str,
    parent: str | None,
    *,
    name: str | None = None,
    fork: int = 0,
    now: int = 1,
) -> bool:
    """An agent below its parent; to look for, not to fork: its parent's log does not tell of it.

    False when a living agent has the name.
    """
    registered = tx.run(
        "register",
        uuid=uuid,
        name=name,
        parent=parent,
        supervisor=parent,
        fork=fork,
        born=fork + 1,
        turn=0,
        restart="transient",
        policy=None,
        now=now,
        epoch=FIRST_EPOCH,
        budget=None,
        labels="",
        place=0,
    )
    return bool(registered)


def plant(store: Store, /, **parents: str) -> None:
    """A host, its agent 0 "root", and further agents, each below its parent, in order of creation."""

    def work(tx: Transaction) -> None:
        add_host(tx)
        make_root(tx, "root", 1)
        for number, (uuid, parent) in enumerate(parents.items(), 2):
            add(tx, uuid, parent, now=number)

    store.write(work)


def says(agent: str, *ids: int, content: str = "hello", kind: str = "user") -> tuple[Message, ...]:
    """Messages of an agent."""
    return tuple(Message(agent, number, kind, content, {}, 1) for number in ids)


def append(
    agent: str, *ids: int, host: str = HOST, epoch: int = FIRST_EPOCH, turn: int | None = None, prompt: int = 0
) -> Append:
    """An agent appends messages to its log, perhaps as it takes up a prompt by mail."""
    return Append(LogUnit(agent, says(agent, *ids), turn, prompt=prompt), FencingToken(host, epoch))


def fork(
    parent: str, child: str, at: int = 1, *, name: str | None = None, host: str = HOST, epoch: int = FIRST_EPOCH
) -> Append:
    """An agent forks a child; ``at`` is the position of the fork in both logs."""
    birth = Birth(child, name, parent, at - 1, 0, "transient", at, says(child, at, kind="fork"), at)
    return Append(LogUnit(parent, says(parent, at, kind="fork"), births=(birth,)), FencingToken(host, epoch))


def ids(store: Store, agent: str) -> list[int]:
    """The positions in an agent's log."""
    return [row[1] for row in store.read(lambda tx: tx.run("log_section", uuid=agent, start=0, end=1_000_000))]


def record(store: Store, agent: str) -> AgentRecord:
    """An agent's row."""
    return store.read(lambda tx: registry.get(tx, agent))


def living(tx: Transaction) -> list[AgentRecord]:
    """All agents that are not dead, oldest first."""
    return [record for record in registry.every(tx) if record.living]


def change(store: Store, agent: str, assignment: str) -> None:
    """Change an agent's row as no unit would."""
    store.write(lambda tx: sql(tx, f"UPDATE agents SET {assignment} WHERE uuid = '{agent}'"))


def stop(store: Store, agent: str, status: str = "stopped") -> None:
    """Give an agent another status, by hand: a part of the runtime that is still to come."""
    change(store, agent, f"status = '{status}'")


def batch(store: Store, host: str = HOST) -> int:
    """The number of the host's last batch."""
    [(number,)] = store.read(lambda tx: sql(tx, f"SELECT batch FROM hosts WHERE id = '{host}'"))
    assert isinstance(number, int)
    return number


class Noting:
    """A transaction that notes what is run in it."""

    def __init__(self, tx: Transaction, statements: list[str]) -> None:
        self._tx, self._statements = tx, statements
        self.schema, self.append, self.defer, self.notify = tx.schema, tx.append, tx.defer, tx.notify
        self.end_stalled, self.is_hosted, self.locks_rows = tx.end_stalled, tx.is_hosted, tx.locks_rows
        self.ask, self.run_all, self.require = tx.ask, tx.run_all, tx.require
        self.hold, self.held, self.share_tree = tx.hold, tx.held, tx.share_tree
        self.words = tx.words

    @property
    def heard(self) -> int:
        return self._tx.heard

    def run(self, query: str, **parameters: object) -> list[Row]:
        self._statements.append(query)
        return self._tx.run(query, **parameters)
