"""An attached system: read and command the agents of a database while another process runs them.

    with AttachedSystem.open("team.db") as system:
        print(system.attached)                                  # who runs the agents
        system.agent("dba").prompt("and now?").get(timeout=60)  # by mail; the host takes it up

An attached system has the part of the interface of an `ActorSystem` that handles and shells use. It works through the
database alone, by a `Client`. It can read everything. It writes prompts as mail of kind ``prompt``, mail and signals as
rows, and documents as versions. Commands that an agent must carry out itself (fork, clear, mark, rewind, configure,
resume, exit, decide on approvals, move) are rows of ``requests``. The host carries each command out once, and answers
it. Subscribers get messages when they are committed. They get pieces of replies as the host writes them
(`ikigai_actors.records.messages.pieces`), which the host does only while somebody subscribes. The code of the host's
tools cannot be used from here (`HostElsewhere`), and the default settings of the host cannot be read.

One thread follows the host (`ikigai_actors.system.remote.following`), and settles the futures of prompts and of remote
commands. When the host goes away, subscribers get a `HostChanged`, and waiting futures raise `NoHost`. A prompt that no
agent has taken up yet stays in the database, and the next host answers it. A remote command is withdrawn. An attached
system never becomes the host; open an `ActorSystem` for that.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.remote_commands import ListTools
from ikigai_actors.agent.statistics import AgentStatistics, TurnStatistics
from ikigai_actors.agent.subscriptions import (
    StoreTrouble,
)
from ikigai_actors.arguments import check_optional, check_type
from ikigai_actors.errors import IkigaiError
from ikigai_actors.providers.base import NO_TOKENS
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.log import Log
from ikigai_actors.store.base import Store
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.writer import DirectWriter
from ikigai_actors.system.directory import SystemPart
from ikigai_actors.system.handles.ref import System
from ikigai_actors.system.host_events import DifferenceWatch, host_events
from ikigai_actors.system.remote.client import Client, shown_state
from ikigai_actors.system.remote.follower import Follower, News
from ikigai_actors.system.remote.following import FollowingLoop
from ikigai_actors.system.remote.tallies import RowTallies

if TYPE_CHECKING:
    from ikigai_actors.agent.toolbox import Toolbox
    from ikigai_actors.providers.prices import PricedModel


class AttachedSystem(System):
    """Gives access to the agents of a database that another process runs. Open it with `open`."""

    _default_settings: Mapping[str, Any] = {}  # only the host knows
    _default_model = ""  # the same
    _stand_in_notice = ""  # the same

    def __init__(self, store: Store) -> None:
        """Use a store; programs call `open` instead."""
        clock = clock_of(store, SystemClock())
        writer = DirectWriter(lambda unit: self._client.write(unit), lambda act, future: self._beside.post(act, future))
        super().__init__(store, writer, clock, SYSTEM_THREADS, os.urandom, None, Follower(store, attached=True))
        assert self._remote is not None
        self._others, self._client = self._remote, Client(self._store, clock, self._on_commit)
        self._following = FollowingLoop(
            store,
            clock,
            self._threads,
            self._waits,
            remote=self._others,
            tell=self._publish_news,
            on_trouble=self._tell_trouble,
            on_outdated=self._fail,
            hears_replies=lambda: self._publisher.is_heard_of_replies,
            is_used=lambda: self._publisher.is_heard,
        )
        self._trouble = False
        self._differences = DifferenceWatch(store)

    def _parts(self) -> list[SystemPart]:
        return [
            SystemPart("the store", self._ungated_store.close),
            SystemPart("what event loops wait for", self._beside.close),
            SystemPart("the subscribers", self._publisher.close),
            SystemPart("the futures", self._others.close),
            SystemPart("the waits", self._waits.close, self._waits.start),
            SystemPart("the watch on the host", self._following.close, self._following.start),
        ]

    @classmethod
    def open(cls, database: str | os.PathLike[str] | None = None) -> Self:
        """Attach to an existing database; see `ActorSystem.open` for the argument.

        Raises `StoreError` when the database cannot be used, and `BadInput` when the argument is no path or URL.
        """
        with ExitStack() as undone:
            store = open_existing(database)
            undone.callback(store.close)
            store.reserve()
            system = cls(store)
            undone.push(system._give_up)
            system._start()
            undone.pop_all()
        return system

    @property
    def _host(self) -> HostRecord | None:
        """The host that runs the agents, as seen at the last look; the latest of several, None if there is none."""
        return self._others.host

    @property
    def _owners(self) -> Sequence[HostRecord]:
        """The hosts that run the agents, as seen at the last look, the latest first."""
        return self._others.hosts

    @property
    def attached(self) -> str:
        """A description, for a person, of the host that runs the agents."""
        match self._others.hosts:
            case []:
                return "attached, no host"
            case [host]:
                return f"attached to pid {host.pid}"
            case hosts:
                return f"attached to {len(hosts)} hosts"

    @property
    def _toolbox(self) -> "Toolbox":
        """Raise `HostElsewhere`, since only the host knows its tools."""
        self._check_open()
        raise self._others.refusal()

    def _tools_of(self, uuid: str) -> Future[list[Mapping[str, Any]]]:
        offered = Future[list[Mapping[str, Any]]]()
        self._remote_agent(uuid).deliver(ListTools(offered))
        return offered

    def state_of(self, record: AgentRecord) -> str:
        """The state of an agent for people, read from the database."""
        self._check_open()
        return shown_state(check_type(record, AgentRecord, "record", "a row of the registry"), self._others.hosts)

    def _window_of(self, model: str | None = None) -> int:
        self._check_open()
        check_optional(model, str, "model", "a model setting")
        return 0  # only the host knows

    def _tools_read(self, log: Log) -> Sequence[Mapping[str, Any]]:
        self._check_open()
        raise self._others.refusal()

    def _models_asked(self, settings: Mapping[str, Any], summary: bool) -> "tuple[PricedModel, ...]":
        return ()  # only the host knows

    def _refuse_unanswered(self, settings: Mapping[str, Any], writers: Collection[str]) -> None:
        """Do nothing: only the host knows whether a model can answer, and refuses the trials itself."""

    def _check_model(self, model: str) -> None:
        self._check_open()
        check_type(model, str, "model", "a model setting")  # only the host knows more

    def statistics(self) -> TurnStatistics:
        """Counters of the agents' work. Turns, steps and tokens are counted since this process was attached."""
        self._check_open()
        seen, tokens = self._tallies.every(), NO_TOKENS
        for each in seen:
            tokens += each.tokens
        return TurnStatistics(
            turns=sum(each.ended for each in seen),
            steps=sum(each.steps for each in seen),
            tokens=tokens,
            read_logs=self._ungated_log_cache.read_logs,
            waits=len(self._waits),
        )

    def _statistics_of(self, uuid: str, record: AgentRecord | None = None) -> AgentStatistics:
        """The counters of an agent over its whole life, according to the rows.

        With a ``record`` nothing is read, and only work since this process was attached counts. The size of the inbox,
        the times of waiting and the restarts are 0, because only the agent's host knows them.
        """
        self._check_open()
        check_type(uuid, str, "uuid", "text")
        if (known := check_optional(record, AgentRecord, "record", "a row of the registry")) is not None:
            return self._tallies.of(uuid).statistics(self.state_of(known))
        life = RowTallies()  # no part of what was seen since
        row, tally = self._store.read(lambda tx: (registry.get(tx, uuid), life.read(tx, uuid)))
        return tally.statistics(self.state_of(row))

    # Following the host

    def _publish_news(self, news: News, before: Sequence[HostRecord]) -> None:
        super()._publish_news(news, before)
        for event in (*host_events(before, news.hosts), *self._differences.compare(news.hosts)):
            self._publisher.publish(event)

    def _on_commit(self, answer: object) -> None:
        """Note that this process has written rows, since its own watch of the database does not report these."""
        self._waits.look_again()

    def _nobody_answers(self) -> IkigaiError | None:
        return self._others.silence()

    def _tell_trouble(self, reason: str | None) -> None:
        if (reason is None) == self._trouble:
            self._trouble = reason is not None
            self._publisher.publish(StoreTrouble(reason))
