"""Snapshots of the registry and the host, for the bars and screens of the shell.

Snapshots are read on a separate thread, so a slow database delays the bars, but never the keyboard. Reading is limited
to a share of the time, so it does not slow down a system of 100,000 agents.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import MappingProxyType
from typing import NamedTuple

from ikigai_actors.actors.service import Service
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.agent.turn.calls import PendingCall, Progress
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.errors import AgentDead, HistoryError, IkigaiError, SystemClosed
from ikigai_actors.providers.base import Usage
from ikigai_actors.providers.prices import MICRO
from ikigai_actors.reach.conversation import Questions, Words
from ikigai_actors.reach.views import check_open, label_of, scrollback_of
from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.lists import MOST_LISTED, Census
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.records.lives.supervision import restart_counts
from ikigai_actors.records.mail.prompts import NewPrompt, waiting_prompts
from ikigai_actors.records.spending import Expenses, branch_spendings, in_all
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import host_names, owners
from ikigai_actors.system.handles.ref import System

_PERIOD = 0.5
"""Seconds between two snapshots when nothing happens."""

SHORTEST = 0.1
"""The least seconds between two snapshots; more when reading takes long."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the database at one moment, as seen from the current agent."""

    current: AgentRecord
    state: str
    """The state of the current agent, with the names of its running tools."""
    parent: AgentRecord | None
    """The agent that supervises the current agent."""
    previous: AgentRecord | None
    """The living sibling before the current agent; for the first, the last one. None when there is none."""
    following: AgentRecord | None
    children: int
    """The number of living children of the current agent."""
    model: str
    """The setting ``model`` of the current agent; empty for the default."""
    tokens: Usage | None
    """The tokens of the current agent since its birth, as services have counted them; None while they are summed up."""
    questions: Mapping[int, PendingCall]
    """Calls that wait for the person."""
    cost: float | None = None
    """The dollars that the agent has spent, by its row; None for none, or without a price."""
    all_cost: float | None = None
    """The dollars that all agents have spent; None unless a list is shown."""
    is_most: bool = False
    """Whether this is an upper limit of the agent's spending, with the reserved cost of a request that no service has
    counted. The next field is the same for all agents.
    """
    all_is_most: bool = False
    budget: BudgetStatus | None = None
    """The nearest budget with limits above the agent; None for none."""
    above: tuple[AgentRecord, ...] = ()
    """The supervisors, the nearest first."""
    waiting: tuple[NewPrompt, ...] = ()
    """The prompts and steering messages of people that the current agent has not taken up."""
    commands: tuple[str, ...] = ()
    """The lines of commands, sent from this process, that wait for the end of the agent's turn."""
    heir: AgentRecord | None = None
    """If the agent is dead, its nearest living ancestor; else None."""
    attached: str = ""
    """The process that runs the agents, if it is another one; else empty."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of the shown agents, and of those with questions, by uuid."""
    listed: tuple[AgentRecord, ...] = ()
    """The agents of the shown list, oldest first; of very many, those that `Wish` selects."""
    wish: "Wish | None" = None
    """The filter of the person."""
    hits: frozenset[str] = frozenset()
    """The uuids of the listed agents that the database has found by the text of the wish."""
    is_cut: bool = False
    """Whether there are more matches than the list contains."""
    census: Census | None = None
    """The numbers of agents; None unless a list is shown."""
    hidden: Mapping[str, int] = field(default_factory=dict)
    """For each agent of a tree, the number of living children that are not listed, by uuid."""
    branches: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The spending of whole branches, by uuid; empty unless asked for."""
    statistics: Mapping[str, AgentStatistics] = field(default_factory=dict)
    """The statistics of all living agents of the list, by uuid."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How many times each listed agent was restarted, by uuid."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The names of the hosts, by id, if there are several; empty unless asked for."""
    signs: Mapping[str, Sign] = field(default_factory=dict)
    """The latest heartbeats of agents in a turn, by uuid; empty unless asked for."""
    printed: Mapping[str, str] = field(default_factory=dict)
    """The latest output of running calls of the current agent, by the id of the call."""
    abandoned: int = 0
    """The number of tool threads that run on after their calls; 0 unless asked for and this process runs the agents."""

    @property
    def rest(self) -> int:
        """Return the number of living agents that are not in the list."""
        return 0 if self.census is None else max(0, self.census.living - sum(record.living for record in self.listed))

    @property
    def waits(self) -> int:
        """Return the number of texts and commands that wait for the current agent."""
        return len(self.waiting) + len(self.commands)

    @property
    def works(self) -> bool:
        """Return whether the current agent is in a turn, or cannot begin one."""
        return self.state not in (Phase.IDLE, Phase.UNLOADED)


@dataclass(frozen=True, slots=True)
class Wish:
    """The selection of agents that a person wants to see in a list."""

    tree: bool = False
    """Whether to include the first agents of each level of the tree, and all agents above those listed."""
    text: str = ""
    """The text by which further agents are listed: those with it in their name."""
    opened: Mapping[str, int] = field(default_factory=dict)
    """The number of first children that are listed, for each agent that the person has opened, by uuid."""
    kept: frozenset[str] = frozenset()
    """The uuids of further agents that stay in the list."""
    branches: bool = False
    """Whether to include the spending of whole branches."""


class Snapshots(Service):
    """A service that takes snapshots on its own thread, one after another."""

    def __init__(
        self, system: System, questions: Questions, words: Words, current: str, deliver: Callable[[Snapshot], None],
        failed: Callable[[IkigaiError], None], spent: Expenses,
    ) -> None:  # fmt: skip
        """Prepare the thread, without starting it.

        Args:
            questions: gives questions their numbers.
            words: has the commands that wait.
            current: the uuid of the first current agent.
            deliver: is called with each snapshot, on this thread.
            failed: is called when the system is closed.
            spent: sums up the tokens of all agents.
        """
        super().__init__("ikigai-snapshots")
        self._system, self._questions, self._deliver, self._failed = system, questions, deliver, failed
        self._words = words
        self._spent = spent
        self._current: str = current
        self._wish: Wish | None = None
        self._models: dict[str, str] = {}
        self._due = self._hurry = False

    def focus(self, uuid: str, wish: Wish | None) -> None:
        """Set the current agent, and the selection of others; None for no list."""
        if (uuid, wish) != (self._current, self._wish):
            self._current, self._wish = uuid, wish
            self.poke(hurry=True)

    def poke(self, hurry: bool = False) -> None:
        """Take a snapshot soon, because something has changed.

        With ``hurry``, take it at once, because a person waits.
        """
        with self._changed:
            self._due, self._hurry = True, hurry or self._hurry
            self._changed.notify()

    def run(self) -> None:
        while not self._stopped:
            self._due = self._hurry = False
            began = monotonic()
            try:
                self._deliver(self._take(self._current, self._wish))
            except IkigaiError:  # others report trouble with the store; a death is seen next time
                if (closed := self._closed()) is not None:
                    self._failed(closed)
                    return
            if self.awaits(lambda: self._hurry, max(SHORTEST, 3 * (monotonic() - began))):
                self.awaits(lambda: self._due, _PERIOD)

    def _closed(self) -> SystemClosed | None:
        try:
            check_open(self._system)
        except SystemClosed as error:
            return error
        except IkigaiError:
            return None
        return None

    def _take(self, uuid: str, wish: Wish | None) -> Snapshot:
        system = self._system
        questions = self._questions.open()
        asking = frozenset(question.agent for question in questions.values())
        view = system._store.read(lambda tx: _read(tx, uuid, wish, asking))
        record, above, beside, listed = view.record, view.above, view.beside, view.listed
        heir = next((each for each in above if each.living), None) if not record.living else None
        near = {each.uuid: each.short for each in (record, *above, *filter(None, beside), *view.below)}
        self._spent.read(system._store, rows_too=wish is not None)
        sums = self._spent.sums(uuid)
        return Snapshot(
            current=record,
            state=self._state(record),
            parent=above[0] if above else None,
            above=tuple(above),
            previous=beside.previous,
            following=beside.following,
            children=view.children,
            model=self._model(record),
            tokens=in_all(sums.own) if sums is not None else None,
            cost=record.spent_usd / MICRO or None,
            all_cost=self._spent.charged.usd / MICRO or None,
            is_most=self._spent.is_most(uuid, record.spent_tokens),
            all_is_most=self._spent.is_most(None, self._spent.charged.tokens),
            budget=view.budget,
            waiting=view.waiting,
            commands=tuple(self._words.commands(uuid)),
            printed=system._printed(uuid),
            questions=questions,
            heir=heir,
            attached=system.attached,
            names={**near, **listed.labels}
            | {asked: label_of(system, asked) for asked in asking - listed.labels.keys()},
            listed=tuple(listed.records),
            wish=wish,
            hits=listed.hits,
            is_cut=listed.is_cut,
            census=listed.census,
            hidden=listed.hidden,
            branches=listed.branches,
            statistics=self._statistics(listed.records),
            restarts=listed.restarts,
            hosts=listed.hosts,
            signs=system._signs() if wish is not None else {},
            abandoned=self._system._abandoned() if wish is not None else 0,
        )

    def _state(self, record: AgentRecord) -> str:
        state = self._system.state_of(record)
        if state == Phase.RUNNING_TOOLS:
            actor = self._system._target(record.uuid)
            calls = actor.state.calls if isinstance(actor, AgentActor) else ()
            names = [call.name for call in calls if call.progress is Progress.RUNNING]
            return f"runs {', '.join(names)}" if names else state
        if state == Phase.COMPACTING:
            actor = self._system._target(record.uuid)
            compaction = actor.state.compaction if isinstance(actor, AgentActor) else None
            return f"summarising {compaction.plan.messages:,} messages" if compaction is not None else state
        return state

    def _model(self, record: AgentRecord) -> str:
        """Return the model setting of an agent.

        For an agent of this process whose log its actor has not read, the database is read once, because a change of
        the setting makes the actor read the log. For an agent of another process the database is read each time.
        """
        if record.living and (at_hand := self._system._settings_at_hand(record.uuid)) is not None:
            return str(at_hand.get("model", ""))
        if record.uuid not in self._models or self._system.attached:
            try:
                settings = scrollback_of(self._system, record.uuid).settings()
            except HistoryError:
                settings = {}
            self._models[record.uuid] = str(settings.get("model", ""))
        return self._models[record.uuid]

    def _statistics(self, records: Sequence[AgentRecord]) -> dict[str, AgentStatistics]:
        statistics = {}
        for record in records:
            if record.living:
                try:
                    statistics[record.uuid] = self._system._statistics_of(record.uuid, record)
                except AgentDead:
                    continue
        return statistics


class _Listed(NamedTuple):
    """The agents of a list at one moment, with further data for the list; empty if no list is shown."""

    records: Sequence[AgentRecord] = ()
    labels: Mapping[str, str] = MappingProxyType({})
    hits: frozenset[str] = frozenset()
    is_cut: bool = False
    census: Census | None = None
    hidden: Mapping[str, int] = MappingProxyType({})
    restarts: Mapping[str, int] = MappingProxyType({})
    hosts: Mapping[str, str] = MappingProxyType({})
    branches: Mapping[str, tuple[int, int]] = MappingProxyType({})


class _Rows(NamedTuple):
    """The rows of the current agent and its neighbours, read at one moment."""

    record: AgentRecord
    above: list[AgentRecord]
    """The supervisors, the nearest first."""
    beside: lists.Siblings
    below: list[AgentRecord]
    """The children; of many the newest, and some others."""
    children: int
    """The number of living children."""
    budget: BudgetStatus | None
    waiting: tuple[NewPrompt, ...]
    listed: _Listed


def _read(tx: Transaction, uuid: str, wish: Wish | None, asking: frozenset[str]) -> _Rows:
    """Read an agent, its neighbours, and the agents of a list; ``asking`` are the agents with questions."""
    record = registry.get(tx, uuid)
    return _Rows(
        record,
        registry.ancestors(tx, uuid),
        lists.siblings(tx, record),
        lists.supervised(tx, uuid),
        lists.count_children(tx, [uuid]).get(uuid, 0),
        budget_of(tx, uuid),
        waiting_prompts(tx, uuid) if record.living else (),
        _Listed() if wish is None else _read_list(tx, wish, frozenset((uuid, *asking))),
    )


def _read_list(tx: Transaction, wish: Wish, first: frozenset[str]) -> _Listed:
    hits = lists.called_so(tx, wish.text, MOST_LISTED + 1) if wish.text else []
    is_cut = len(hits) > MOST_LISTED
    chosen = {record.uuid: record for record in (*lists.latest_used(tx, first=first | wish.kept), *hits[:MOST_LISTED])}
    if wish.tree:
        if (top := registry.root(tx)) is not None:
            chosen |= {record.uuid: record for record in (top, *lists.breadth_first(tx, top.uuid))}
        chosen |= {
            child.uuid: child for uuid, most in wish.opened.items() for child in lists.some_children(tx, uuid, most)
        }
    records = [*chosen.values()]
    records = lists.with_those_above(tx, records) if wish.tree else registry.oldest_first(records)
    uuids = [record.uuid for record in records]
    return _Listed(
        records,
        lists.labels_of(tx, records),
        frozenset(record.uuid for record in hits[:MOST_LISTED]),
        is_cut,
        lists.census(tx),
        _hidden(tx, records) if wish.tree else {},
        restart_counts(tx, uuids),
        host_names(owners(tx)),
        branch_spendings(tx, records) if wish.branches else {},
    )


def _hidden(tx: Transaction, records: Sequence[AgentRecord]) -> dict[str, int]:
    seen = Counter(record.supervisor_uuid for record in records if record.living)
    counted = lists.count_children(tx, [record.uuid for record in records])
    return {uuid: number - seen[uuid] for uuid, number in counted.items() if number > seen[uuid]}
