"""Boot: decides which agents get actors, and which cannot come back.

The time of a boot grows with the open work, since a boot reads no log.

A boot looks only at agents with open work: a turn, a request, or a TERM that is not carried out. All others sleep: they
have rows and no actors until a command for them comes (`survey_one`).

If the rows of an agent are wrong, the boot marks the agent dead with the reason, and the others go on. It finds these
faults: the parent does not exist; the fork point is after the parent's head, and the agent's log contradicts it; no
message began the open turn; a column has a value or type that it does not allow. A fault of the log itself, such as a
hole or a body that does not parse, is found when the log is first read, and the agent is marked dead then. Wrong rows
of agent 0 are an error, since all agents descend from it.
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
"""The most times that a turn is cut off without a new message before a person must resume it: the turn may be what ends
its host.
"""

_STATUS = {status.value: status for status in Status}  # thrice as fast as the enumeration's own look-up


class Origin(NamedTuple):
    """The facts about an agent in the registry from which its actor is made."""

    uuid: str
    name: str | None
    epoch: int
    head: int
    """The position of the agent's latest message."""
    turn: int
    """The id of the message that opened the turn in progress; 0 when no turn is open."""
    lifecycle: LifecycleState = RUNNING
    """The status in the registry, with the reason, restart type and so on."""
    interrupted: bool = False
    """Whether another process has interrupted the turn in progress, and the turn has not ended yet."""
    paused: Paused | None = None
    """The budget for which the agent's request waits; None when it waits for none."""
    labels: str = ""
    """The labels of the agent, encoded as one text (`records.agents.labels`)."""
    cut_offs: int = 1
    """The number of times the turn was cut off since its latest message, this time included."""
    is_parked: bool = False
    """Whether the agent was parked: its turn only waited and had nothing in memory, so it was not cut off."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the turn is cut off, and does not wait for a budget."""
        return self.turn > 0 and self.paused is None and not self.is_parked


class Unrestorable(NamedTuple):
    """An agent that cannot come back, because its rows are wrong."""

    uuid: str
    reason: str


class Survey(NamedTuple):
    """The agents of a host with open work, as the registry had them at one moment."""

    version: int
    """The version of the tree of agents at that moment."""
    restored: Sequence[Origin]
    unrestorable: Sequence[Unrestorable]
    gave_up: bool = False
    """Whether some agents were stopped because their supervisor gave up."""
    marked: bool = False
    """Whether many agents that rest are still marked as awake."""


class RowReader(Protocol):
    """A store that can be read."""

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Call ``work`` within a transaction that only reads, and return its result."""


def clear_left_behind(store: Store, host: str, shards: Collection[int]) -> None:
    """Settle the rows that earlier hosts of these shards have left. Called before an agent of the shards runs here.

    Raises `StoreUnusable` when rows of budgets have contents that this program never writes.
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
    """Find the agents of a host's shards that have open work, and check that their rows are consistent.

    Raises `HistoryError` when the rows of agent 0 are wrong, and `StoreError` when the store fails.
    """

    def read_all(tx: Transaction) -> Survey:
        work = registry.open_work(tx, host, shards)
        if work.root is None or not work.root.living:
            raise HistoryError(f"Agent 0 is missing or dead. {AGENT_0_REMEDY}")
        rows = registry.boot(tx, host, shards, work.at_work)
        return Survey(work.version, *_judge(tx, rows), work.gave_up, work.marked)

    return store.read(read_all)


def survey_one(store: RowReader, host: str, shards: Collection[int], uuid: str, *, resting: bool) -> Survey:
    """Check the rows of one agent for consistency, and return it in a survey of one agent.

    The survey is empty if the agent is dead, or does not live in these shards of the host.

    Args:
        store: raises `StoreError` when it fails.
        resting: whether to find the agent only when it has no open work or is parked.
    """

    def read_it(tx: Transaction) -> Survey:
        version = tx.ask("tree_version")
        rows = registry.boot(tx, host, shards, (uuid,))
        picked = [row for row in rows if row[16] or not (resting and (row[3] or row[13]))]
        return Survey(version()[0][0], *_judge(tx, picked))

    return store.read(read_it)


def _judge(tx: Transaction, rows: Sequence[Row]) -> tuple[list[Origin], list[Unrestorable]]:
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
            is_interrupted = 0 < turn == interrupted
            cut_offs = 1 + (resumes if resumed_at == heads[uuid] else 0)
            place = (uuid, name, epoch, heads[uuid], turn)
            restored.append(Origin(*place, lifecycle, is_interrupted, waits, labels, cut_offs, parked != 0))
        elif parent is None:
            raise HistoryError(f"Agent 0 ({uuid}) cannot come back: {reason}. {AGENT_0_REMEDY}")
        else:
            unrestorable.append(Unrestorable(uuid, f"could not be restored: {reason}"))
    return restored, unrestorable


def left_cut_off(survey: Survey, resume: bool) -> list[str]:
    """Return the uuids of the agents whose cut-off turns are not resumed at this start.

    Without ``resume`` no turn is resumed; with it, those that were cut off too often are not.
    """
    cut_off = (origin for origin in survey.restored if origin.is_cut_off)
    return [origin.uuid for origin in cut_off if not (resume and origin.cut_offs < MOST_CUT_OFFS)]


def survey_of(imported: Imported) -> Survey:
    """Return a survey of the imported agents that have an open turn. Reads nothing from the store."""
    origins = [
        Origin(
            *(agent.uuid, agent.name, agent.epoch, imported.heads[agent.uuid], agent.turn),
            LifecycleState(_STATUS[agent.status], agent.exit_reason or "", agent.restart),
            labels=set_of(agent.labels),
        )
        for agent in imported.agents
        if agent.living and agent.turn
    ]
    return Survey(imported.version, origins, [])


def _wrong(row: Row, parent_head: int | None) -> str | None:
    """Return the reason why an agent cannot come back; None if it can."""
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
