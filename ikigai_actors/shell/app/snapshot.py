"""Snapshots: the registry and the host at one moment, for the bars and screens.

They are read on a thread of their own: a slow database delays the bars, never the keyboard. Reading takes only a share
of the time, so a system of 100,000 agents stays free for its work.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from ikigai_actors.actors.service import Service
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.agent.turn.calls import PendingCall, Progress
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.errors import AgentDead, HistoryError, IkigaiError, SystemClosed
from ikigai_actors.providers.base import Usage
from ikigai_actors.providers.prices import Prices
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.records.lives.supervision import restart_counts
from ikigai_actors.records.log.scrollback import Scrollback
from ikigai_actors.records.mail.mail import NewPrompt, waiting_prompts
from ikigai_actors.records.spending import Expenses, in_all
from ikigai_actors.shell.text.naming import shown_name_in
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.rows import host_names, owners
from ikigai_actors.system.conversation import Questions
from ikigai_actors.system.handles.ref import System

_PERIOD = 0.5
"""Seconds between two snapshots when nothing happens."""

SHORTEST = 0.1
"""Seconds between two snapshots, whatever happens; more when reading takes long."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment, seen from one agent."""

    current: AgentRecord
    state: str
    """The state of the agent, with the names of the tools that run."""
    parent: AgentRecord | None
    """The agent that supervises it."""
    previous: AgentRecord | None
    """The living sibling before it, or the last one before the first. None when there is none."""
    following: AgentRecord | None
    children: int
    """The living children."""
    model: str
    """Its setting; empty for the default."""
    tokens: Usage | None
    """The tokens of this agent since it was born; None while they are being summed up. The next field is that of all
    agents.
    """
    all_tokens: Usage | None
    questions: Mapping[int, PendingCall]
    """Calls that wait for the person."""
    cost: float | None = None
    """Dollars for the tokens of this agent; None without a price. The next field is that of all agents."""
    all_cost: float | None = None
    budget: BudgetStatus | None = None
    """The nearest budget above it that limits something."""
    above: tuple[AgentRecord, ...] = ()
    """Its supervisors, the nearest first."""
    waiting: tuple[NewPrompt, ...] = ()
    """The prompts and words of people that it has not taken up."""
    heir: AgentRecord | None = None
    """Its nearest living ancestor, when it is dead."""
    attached: str = ""
    """The process that runs the agents, when it is another one."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of the agents in sight, and of those with questions, by uuid."""
    everybody: tuple[AgentRecord, ...] = ()
    """The whole registry, when it was asked for."""
    statistics: Mapping[str, AgentStatistics] = field(default_factory=dict)
    """By uuid, for all living agents; when asked for."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """How often each agent was restarted, by uuid; when asked for."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The names of the hosts, by id, where there are several; when asked for."""
    signs: Mapping[str, Sign] = field(default_factory=dict)
    """The latest signs of life of those that are in a turn, by uuid; when asked for."""
    printed: Mapping[str, str] = field(default_factory=dict)
    """The end of what its running calls have printed, by the id of the call."""
    abandoned: int = 0
    """Threads of tools that go on past the time of their calls; when asked for, and this process runs the agents."""

    @property
    def works(self) -> bool:
        """Whether the agent is in a turn, or cannot begin one."""
        return self.state not in (Phase.IDLE, Phase.UNLOADED)


class Snapshots(Service):
    """Takes snapshots, one after another."""

    def __init__(
        self, system: System, questions: Questions, current: str, deliver: Callable[[Snapshot], None],
        failed: Callable[[IkigaiError], None], prices: Prices, spent: Expenses,
    ) -> None:  # fmt: skip
        """Prepare; `start` begins.

        Args:
            questions: gives the questions their numbers.
            current: uuid of the agent to begin with.
            deliver: takes each snapshot, on the thread of the snapshots.
            failed: called when the system is closed.
            prices: the prices of tokens.
            spent: the tokens of all agents; summed up here, and kept up to date elsewhere.
        """
        super().__init__("ikigai-snapshots")
        self._system, self._questions, self._deliver, self._failed = system, questions, deliver, failed
        self._prices, self._spent = prices, spent
        self._current, self._everybody = current, False
        self._models: dict[str, str] = {}
        self._due = self._hurry = False

    def focus(self, uuid: str, everybody: bool) -> None:
        """Set the agent that snapshots are seen from, and whether they have the whole registry."""
        if (uuid, everybody) != (self._current, self._everybody):
            self._current, self._everybody = uuid, everybody
            self.poke(hurry=True)

    def poke(self, hurry: bool = False) -> None:
        """Take a snapshot soon: something has changed; with ``hurry`` at once, since a person waits for it."""
        with self._changed:
            self._due, self._hurry = True, hurry or self._hurry
            self._changed.notify()

    def run(self) -> None:
        while not self._stopped:
            self._due = self._hurry = False
            began = monotonic()
            try:
                self._deliver(self._take(self._current, self._everybody))
            except IkigaiError:  # others report trouble with the store; a death is seen next time
                if (closed := self._closed()) is not None:
                    self._failed(closed)
                    return
            if self.awaits(lambda: self._hurry, max(SHORTEST, 3 * (monotonic() - began))):
                self.awaits(lambda: self._due, _PERIOD)

    def _closed(self) -> SystemClosed | None:
        """Why the system gives no answers any more; None when it does."""
        try:
            self._system._check_open()
        except SystemClosed as error:
            return error
        except IkigaiError:
            return None
        return None

    def _take(self, uuid: str, everybody: bool) -> Snapshot:
        system = self._system
        found = system._store.read(lambda tx: _read(tx, uuid, everybody))
        record, above, family, all_of_them = found.record, found.above, found.family, found.everybody
        row = [each for each in family if each.living or each.uuid == uuid]
        place = next((index for index, each in enumerate(row) if each.uuid == uuid), 0)
        alone = len(row) < 2
        questions = self._questions.open()
        heir = next((each for each in above if each.living), None) if not record.living else None
        statistics = self._statistics(all_of_them)
        label = shown_name_in(system._store)
        near = {each.uuid: each.short for each in (record, *above, *family, *found.below)}
        self._spent.read(system._store)
        sums = self._spent.sums(uuid)
        return Snapshot(
            current=record,
            state=self._state(record),
            parent=above[0] if above else None,
            above=tuple(above),
            previous=None if alone else row[place - 1],
            following=None if alone else row[(place + 1) % len(row)],
            children=sum(each.living for each in found.below),
            model=self._model(record),
            tokens=in_all(sums.own) if sums is not None else None,
            all_tokens=in_all(sums.everybody) if sums is not None else None,
            cost=self._prices.cost(sums.own) if sums is not None else None,
            all_cost=self._prices.cost(sums.everybody) if sums is not None else None,
            budget=found.budget,
            waiting=found.waiting,
            printed=system._printed(uuid),
            questions=questions,
            heir=heir,
            attached=system.attached,
            names=near
            | registry.shown_names(all_of_them)
            | {one.agent: label(one.agent) for one in questions.values()},
            everybody=tuple(all_of_them),
            statistics=statistics,
            restarts=found.restarts,
            hosts=found.hosts,
            signs=system._signs() if everybody else {},
            abandoned=self._system._abandoned() if everybody else 0,
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
        """The model setting of an agent.

        The database is asked once for an agent whose log its actor has not read: a change of the setting makes the
        actor read it. It is asked each time for an agent of another process.
        """
        if record.living and (at_hand := self._system._settings_at_hand(record.uuid)) is not None:
            return str(at_hand.get("model", ""))
        if record.uuid not in self._models or self._system.attached:
            try:
                settings = Scrollback(self._system._store, record.uuid).settings()
            except HistoryError:
                settings = {}
            self._models[record.uuid] = str(settings.get("model", ""))
        return self._models[record.uuid]

    def _statistics(self, records: list[AgentRecord]) -> dict[str, AgentStatistics]:
        found = {}
        for record in records:
            if record.living:
                try:
                    found[record.uuid] = self._system._statistics_of(record.uuid, record)
                except AgentDead:
                    continue
        return found


class _Rows(NamedTuple):
    """The registry at one moment."""

    record: AgentRecord
    above: list[AgentRecord]
    """Its supervisors, the nearest first."""
    family: list[AgentRecord]
    """Its siblings, with itself."""
    below: list[AgentRecord]
    """Its children."""
    everybody: list[AgentRecord]
    """All agents; empty when they were not asked for, as the next two."""
    restarts: Mapping[str, int]
    hosts: Mapping[str, str]
    budget: BudgetStatus | None = None
    waiting: tuple[NewPrompt, ...] = ()


def _read(tx: Transaction, uuid: str, everybody: bool) -> _Rows:
    """Read an agent and those around it; on request also all agents, with their restarts and hosts."""
    record, above = registry.get(tx, uuid), registry.ancestors(tx, uuid)
    family = registry.children(tx, record.supervisor_uuid) if record.supervisor_uuid is not None else [record]
    near, waiting = registry.children(tx, uuid), waiting_prompts(tx, uuid) if record.living else ()
    rows = _Rows(record, above, family, near, [], {}, {}, budget_of(tx, uuid), waiting)
    if not everybody:
        return rows
    return rows._replace(everybody=registry.every(tx), restarts=restart_counts(tx), hosts=host_names(owners(tx)))
