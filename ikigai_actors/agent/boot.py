"""Boot: for which agents actors are made, and who cannot come back. Linear in what was left open; no log is read.

A boot looks at those agents alone that have something open: a turn, a request, or a TERM that is not carried out. All
others sleep: they are rows, until somebody asks something of them (`survey_one`).

An agent whose own rows are wrong is marked dead with the reason when it is looked at, and the others go on. Found are a
missing parent, a fork point past its parent's head that its own log contradicts, an open turn that no message began, a
word or a type of value that its column does not allow. What only the log itself shows (a hole, a body that does not
parse) is found when the log is first read, with the same end. Wrong rows of agent 0 are an error, since all others
descend from it.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

from ikigai_actors.agent.turn.state import RUNNING, LifecycleState
from ikigai_actors.errors import HistoryError, StoreUnusable
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.labels import labels_in, set_of
from ikigai_actors.records.budgets.amounts import Paused
from ikigai_actors.records.budgets.holds import settle_left_behind
from ikigai_actors.records.log.heads import heads_of
from ikigai_actors.records.log.lineage import AGENT_0_REMEDY
from ikigai_actors.records.messages.pieces import delete_pieces_of_ended
from ikigai_actors.records.transfer.graft import Imported
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.text import described
from supervisors.signals import Status

T = TypeVar("T")

MOST_CUT_OFFS = 3
"""How often a turn is cut off without a new message before it is left to a person: it may be what ends its host."""

_STATUS = {status.value: status for status in Status}  # thrice as fast as the enumeration's own look-up


class Origin(NamedTuple):
    """An agent as the registry has it: the data from which its actor is made, at a boot or at its birth."""

    uuid: str
    name: str | None
    epoch: int
    head: int
    """Position of its latest message."""
    turn: int
    """Id of the message that opened the turn in progress; 0 when idle."""
    lifecycle: LifecycleState = RUNNING
    """The status in the registry, and what belongs to that."""
    interrupted: bool = False
    """Whether another process has interrupted the turn in progress, and nobody has ended it yet."""
    paused: Paused | None = None
    """For which budget its request waits; None when it waits for none."""
    labels: str = ""
    """The labels, as one text (`records.agents.labels`)."""
    cut_offs: int = 1
    """How often its turn was cut off, with this time, since it came to its latest message."""
    is_parked: bool = False
    """Whether its turn waited only, and nothing of it was in memory: it was not cut off."""

    @property
    def is_cut_off(self) -> bool:
        """Whether its turn is cut off, and does not wait for a budget."""
        return self.turn > 0 and self.paused is None and not self.is_parked


class Unrestorable(NamedTuple):
    """An agent that cannot come back, since its rows are wrong."""

    uuid: str
    reason: str


class Survey(NamedTuple):
    """Agents of a host, as the registry had them at one moment."""

    version: int
    """The version of the tree at that moment."""
    restored: Sequence[Origin]
    unrestorable: Sequence[Unrestorable]
    gave_up: bool = False
    """Whether agents there were stopped because their supervisor gave up."""
    marked: bool = False
    """Whether many agents are marked as awake that rest."""


class RowReader(Protocol):
    """Reads a store."""

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run work that only reads, and return what it returns."""


def clear_left_behind(store: Store, host: str, shards: Collection[int]) -> None:
    """Settle what the earlier hosts of these shards have left, before an agent of these shards acts on this host.

    Raises `StoreUnusable` when rows of budgets hold what no program of ours has written.
    """

    def clear(tx: Transaction) -> None:
        try:
            settle_left_behind(tx, host, shards)
        except (LookupError, TypeError, ValueError) as error:
            raise StoreUnusable(
                f"Rows of budgets are damaged ({described(error)}), so what an earlier host has spent is unknown. "
                "See what `ikigai fsck` says, and restore a copy."
            ) from error
        delete_pieces_of_ended(tx)

    if shards:
        store.write(clear)


def survey(store: Store, host: str, shards: Collection[int]) -> Survey:
    """Look at the rows of the agents of these shards of a host that have something open: who comes back, who cannot.

    Raises `HistoryError` when agent 0's rows are wrong, and `StoreError` when the store fails.
    """

    def read_all(tx: Transaction) -> Survey:
        found = registry.open_work(tx, host, shards)
        if found.root is None or not found.root.living:
            raise HistoryError(f"Agent 0 is missing or dead. {AGENT_0_REMEDY}")
        rows = registry.boot(tx, host, shards, found.at_work)
        return Survey(found.version, *_judge(tx, rows), found.gave_up, found.marked)

    return store.read(read_all)


def survey_one(store: RowReader, host: str, shards: Collection[int], uuid: str, *, resting: bool) -> Survey:
    """Look at the rows of one agent. Nothing is found of one that is dead, or does not live in these shards of a host.

    Args:
        store: raises `StoreError` when it fails.
        resting: whether to find it only when nothing of it is open, or it is parked.
    """

    def read_it(tx: Transaction) -> Survey:
        version = tx.ask("tree_version")
        rows = registry.boot(tx, host, shards, (uuid,))
        found = [row for row in rows if row[16] or not (resting and (row[3] or row[13]))]
        return Survey(version()[0][0], *_judge(tx, found))

    return store.read(read_it)


def _judge(tx: Transaction, rows: Sequence[Row]) -> tuple[list[Origin], list[Unrestorable]]:
    """The agents of these rows: those that come back, and those that cannot."""
    restored: list[Origin] = []
    unrestorable: list[Unrestorable] = []
    heads = {row[0]: row[4] if row[6] is None else row[6] for row in rows}
    others = {row[5] for row in rows} - heads.keys() - {None}
    if others:
        heads |= {head.uuid: head.last or head.fork_message_id for head in heads_of(tx, sorted(others))}
    for row in rows:
        uuid, name, epoch, turn, _, parent, _, status, ending, restart, _, interrupted, labels, _, *more = row
        resumes, resumed_at, parked, *paused = more
        try:
            labels_in(labels)
            reason = _wrong(row, heads.get(parent))
            lifecycle = LifecycleState(_STATUS[status], ending or "", restart)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"its rows hold what no program of ours wrote ({error})"
        if reason is None:
            waits = Paused(paused[0], paused[1], "", at=paused[2]) if paused[0] is not None else None
            told = 0 < turn == interrupted
            cut_offs = 1 + (resumes if resumed_at == heads[uuid] else 0)
            place = (uuid, name, epoch, heads[uuid], turn)
            restored.append(Origin(*place, lifecycle, told, waits, labels, cut_offs, parked != 0))
        elif parent is None:
            raise HistoryError(f"Agent 0 ({uuid}) cannot come back: {reason}. {AGENT_0_REMEDY}")
        else:
            unrestorable.append(Unrestorable(uuid, f"could not be restored: {reason}"))
    return restored, unrestorable


def left_cut_off(found: Survey, resume: bool) -> list[str]:
    """The agents whose turns were cut off and with which a host does not go on: all, or those that come no further."""
    cut_off = (one for one in found.restored if one.is_cut_off)
    return [one.uuid for one in cut_off if not (resume and one.cut_offs < MOST_CUT_OFFS)]


def survey_of(imported: Imported) -> Survey:
    """The agents that an import has brought, and that have an open turn; nothing is read."""
    found = [
        Origin(
            *(one.uuid, one.name, one.epoch, imported.heads[one.uuid], one.turn),
            LifecycleState(_STATUS[one.status], one.exit_reason or "", one.restart),
            labels=set_of(one.labels),
        )
        for one in imported.agents
        if one.living and one.turn
    ]
    return Survey(imported.version, found, [])


def _wrong(row: Row, parent_head: int | None) -> str | None:
    """Why an agent cannot come back, or None."""
    turn, fork, parent, head = row[3:7]
    if parent is not None and parent_head is None:
        return f"its parent {parent} is missing"
    if parent is not None and fork > parent_head and row[10] != fork + 1:  # else it is the parent's log that is wrong
        return f"it was forked at message {fork} of {parent}, whose log ends at {parent_head}"
    if head is not None and head <= fork:
        return f"its log ends at {head}, before its fork point {fork}"
    if turn and (head is None or not fork < turn <= head):
        return f"its open turn began with message {turn}, which is not in its log"
    return None
