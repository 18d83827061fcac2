"""The readings of an agent: the methods of a handle that change nothing.

agent.record, agent.state                # an `AgentRef` reads on the calling thread
await agent.record, await agent.state    # an `AsyncAgentRef` reads on another thread; the event loop goes on
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.arguments import check_count, check_flag, check_timeout
from ikigai_actors.errors import HostElsewhere, ProviderError
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord, Handle, uuid_of
from ikigai_actors.records.agents.rules import rules_for
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.records.log.diff import Diff, read_diff
from ikigai_actors.records.log.history import ReplayRange
from ikigai_actors.records.log.lineage import read_ranges, read_whole
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.mail.mail import Mail, Mailbox, sender_of, unread_mailbox
from ikigai_actors.records.mail.mail import latest as latest_mail
from ikigai_actors.records.mail.schedules import appointment
from ikigai_actors.records.mail.timers import Timer, timers_of
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.system.context import Context, context_of
from ikigai_actors.system.handles.base import BaseRef, H
from ikigai_actors.tools.rules.rule import Rule

if TYPE_CHECKING:
    pass


class Readings(BaseRef[H]):
    """The methods of a handle that read data of an agent, dead or alive."""

    __slots__ = ()

    @property
    def record(self) -> AgentRecord:
        """The row of the agent in the registry, as it is now."""
        return self.system._store.read(lambda tx: registry.get(tx, self.uuid))

    @property
    def name(self) -> str | None:
        """The agent's name; None if it has none."""
        return self.record.name

    @property
    def parent(self) -> H | None:
        """The agent from which this one was forked; None for agent 0."""
        return self._handle(self.record.parent_uuid)

    @property
    def supervisor(self) -> H | None:
        """The agent that supervises this one; None for agent 0."""
        return self._handle(self.record.supervisor_uuid)

    def children(self) -> list[H]:
        """The living agents that this one supervises, in the order of their creation, adopted agents last."""
        records = self.system._store.read(lambda tx: registry.living_children(tx, self.uuid))
        return [self._ref(record.uuid) for record in records]

    @property
    def state(self) -> str:
        """The state of the agent in words: ``idle``, ``waiting for the model``, ``waits for b``, ``dead`` and so on."""
        return self.system.state_of(self.record)

    @property
    def budget(self) -> BudgetStatus | None:
        """The nearest budget that limits the agent, its own or an ancestor's; None if there is none."""
        self.system._check_open()
        return self.system._store.read(lambda tx: budget_of(tx, self.uuid))

    def statistics(self) -> AgentStatistics:
        """The counters of the agent: what it is doing, what it has done, and how often it was restarted.

        The counts begin with the start of the agent's actor on this host. For an agent of another process, the rows of
        its log are counted, over its whole life. Raises `AgentDead`.
        """
        counted = self.system._statistics_of(self.uuid)
        from ikigai_actors.records.lives.supervision import times_restarted

        return replace(counted, restarts=self.system._store.read(lambda tx: times_restarted(tx, self.uuid)))

    def history(self, all: bool = False) -> list[Message]:  # noqa: A002 - the interface names it so
        """The messages of the agent's history, inherited ones first.

        Args:
            all: whether to return every message that was ever written; otherwise those that clears and rewinds have
                left.

        Raises:
            HistoryError: the rows of the history have faults.
        """
        if check_flag(all, "all"):
            return self.system._store.read(lambda tx: read_whole(tx, self.uuid))
        return self.system._log_cache.find_in(self.uuid, lambda log: list(log.visible()))

    def diff(self, other: Handle | str) -> Diff:
        """Compare the agent's history with another agent's: where they part, and the messages of each after that.

        Args:
            other: a handle, or a uuid, name, or unique prefix of a uuid; dead or alive.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
            HistoryError: the rows of a history have faults.
        """
        self.system._check_open()
        uuid = uuid_of(self.system._store, other)
        return self.system._store.read(lambda tx: read_diff(tx, self.uuid, uuid))

    def tools(self) -> list[Mapping[str, Any]]:
        """The descriptions of the tools that the agent's model is offered now, as Messages-API dicts.

        Tools that the model would first have to find with ``find_tools`` are left out. Raises `ProviderError` for a
        wrong setting.
        """
        return list(self.system._tools_read(self.system._log_cache.load(self.uuid)))

    def ranges(self) -> tuple[ReplayRange, ...]:
        """The ranges of positions in the logs of the agent and its ancestors that make up the history, oldest first."""
        return self.system._store.read(lambda tx: read_ranges(tx, self.uuid))

    def context(self) -> Context:
        """The context of the agent now: counts, settings, marks, ranges, tokens."""
        ranges, system = self.ranges(), self.system

        def tools_of(log: Log) -> Sequence[Mapping[str, Any]] | None:
            with suppress(HostElsewhere, ProviderError):
                return system._tools_read(log)
            return None

        def read(log: Log) -> Context:
            return context_of(log, ranges, system._default_settings, system._window_of, tools_of)

        return system._log_cache.find_in(self.uuid, read)

    def check_mail(self, timeout: float | None = None) -> Mailbox:
        """Count the unread mail: how many mails, from which senders, and how the oldest ones begin.

        Marks nothing as read.

        Args:
            timeout: seconds to wait.
        """

        def look() -> Mailbox:
            return self.system._store.read(lambda tx: unread_mailbox(tx, self.uuid))

        return look() if check_timeout(timeout) is None else self.system._beside.read(look).get(timeout=timeout)

    def mails(self, sender: Handle | str | None = None, latest: int | None = None) -> list[Mail]:
        """All mail of the agent, read or not, oldest first. Marks nothing as read.

        Args:
            sender: only mail of this agent, as in `read_mail`.
            latest: the number of the latest mails to return; None for all.
        """
        store = self.system._store
        known = sender_of(store, sender)
        if latest is not None:
            check_count(latest, "latest")
        return store.read(lambda tx: latest_mail(tx, self.uuid, known, latest))

    def rules(self) -> list[Rule]:
        """The rules in force for the agent: its own, and those of all agents above it in the tree of supervisors."""
        return list(self.system._store.read(lambda tx: rules_for(tx, self.uuid)))

    def timers(self) -> list[Timer]:
        """The timers of the agent, the next to fire first: its reminders, and mail that others will send it later."""
        return self.system._store.read(lambda tx: timers_of(tx, self.uuid))

    def next_times(
        self,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        every: str | None = None,
        zone: str | None = None,
        count: int = 5,
    ) -> list[datetime]:
        """Compute when a timer with these arguments of `remind` would fire. No timer is set.

        Args:
            at: as for `remind`, like the next three arguments.
            after: seconds from now.
            every: the schedule.
            zone: the time zone.
            count: the most times to return, from 1 to 1,000.

        Returns:
            The times in the zone, the next first; fewer than ``count`` if the timer fires less often.

        Raises:
            BadInput: as for `remind`.
        """
        self.system._check_open()
        when = appointment(self.system._clock.now_ms(), at=at, after=after, every=every, zone=zone)
        return when.times(count)

    def _handle(self, uuid: str | None) -> H | None:
        return None if uuid is None else self._ref(uuid)
