"""The directory of a system: finds agents, and sends each command to the process that carries it out.

    directory.agents("running")             # the registry
    directory.tell(uuid, on.Prompt(...))    # to the actor here, or to the host that runs the agent

A process reaches every agent of its database in one of two ways. The actors of those that it runs are in its process
table; a process that is attached has an empty one. All others are remote agents: they are asked by rows, and followed
(`ikigai_actors.system.remote`). A host that shares its agents with nobody has no remote agents.
"""

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, overload

from ikigai_actors import types
from ikigai_actors.actors.beside import Beside
from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.closing import Closing, note_failure
from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.actors.futures import Future, may_block, refuse_to_block
from ikigai_actors.actors.threads import Threads
from ikigai_actors.actors.wait_registry import WaitRegistry
from ikigai_actors.agent.messages import TakeBack
from ikigai_actors.agent.statistics import AgentStatistics, TurnStatistics
from ikigai_actors.agent.subscriptions import (
    CALLBACK,
    Callback,
    DirectSubscription,
    Event,
    Publisher,
    StoreTrouble,
    StreamCut,
    Streamed,
    Subscriber,
    Subscription,
    check_events,
)
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.agent.waits import Waits
from ikigai_actors.arguments import (
    check_callable,
    check_choice,
    check_flag,
    check_mapping,
    check_since,
    check_type,
    shown,
)
from ikigai_actors.errors import AgentDead, BadInput, IkigaiError, NoHost, Repeated, StoreError, SystemClosed
from ikigai_actors.programs.acts import write_act
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import RandomBytes, new_agent_uuid
from ikigai_actors.records.agents.labels import check_label_key, labels_in
from ikigai_actors.records.agents.registry import AgentRecord, Handle
from ikigai_actors.records.budgets.spendings import Spending, spending
from ikigai_actors.records.hosts.liveness import Sign, latest_signs
from ikigai_actors.records.lives.delivery import delivery
from ikigai_actors.records.lives.membership import GroupSent, group_in
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.mail.mail import PROMPT, Mail, Send
from ikigai_actors.records.mail.prompts import WithdrawPrompt
from ikigai_actors.records.mail.schedules import times
from ikigai_actors.records.mail.timers import Timer
from ikigai_actors.records.mail.words import KeepWord
from ikigai_actors.records.messages.replies import last_outcome
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.records.once import KeyedCall, Once, answer_under, left_as
from ikigai_actors.store.base import Store
from ikigai_actors.store.gate import Gate
from ikigai_actors.store.hosts.rows import HostRecord, recent_hosts
from ikigai_actors.store.unit import Unit
from ikigai_actors.store.writer import Writer
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.system.host.processes import ProcessTable
from ikigai_actors.system.kinds import Kinds
from ikigai_actors.system.lifecycle import Lifecycle
from ikigai_actors.system.questions import OpenQuestions
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.system.remote.agents import RemoteActor, RemoteAgents
from ikigai_actors.system.remote.client import Client
from ikigai_actors.system.remote.follower import Follower, News
from ikigai_actors.system.remote.prompted import CutOff, PromptedTurn, end_of_turn
from ikigai_actors.system.remote.publisher import SharedPublisher
from ikigai_actors.system.remote.tallies import RowTallies
from ikigai_actors.system.skills import Skills
from ikigai_actors.tools.rules.rule import NewRule
from supervisors.signals import Status

if TYPE_CHECKING:
    from ikigai_actors.agent.actor import AgentActor
    from ikigai_actors.agent.toolbox import Toolbox
    from ikigai_actors.providers.prices import PricedModel
    from ikigai_actors.system.kept_secrets import KeptSecrets
    from ikigai_actors.system.remote.following import FollowingLoop
    from ikigai_actors.tools.hooks.function import Hook


logger = logging.getLogger(__name__)

E = TypeVar("E", bound=Event)
"""The type of the events that a subscriber asks for."""
S = TypeVar("S", bound=Subscriber)
"""The type of a subscription."""


class SystemPart(NamedTuple):
    """A part of a system, with the functions that start and close it."""

    name: str
    """The name of the part, for errors."""
    close: Callable[[], object]
    start: Callable[[], object] = lambda: None


class Directory(OfOneProcess, ABC):
    """The agents of a database, and the ways to send them commands. The base of `ActorSystem` and `AttachedSystem`."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        threads: Threads,
        random_bytes: RandomBytes,
        host: str | None,
        remote: Follower | None,
        wait_registry: WaitRegistry | None = None,
    ) -> None:
        """Set up the parts that `ActorSystem` and `AttachedSystem` share.

        Args:
            writer: commits what handles write.
            clock: gives the times that are stored.
            threads: makes threads.
            random_bytes: the source of randomness, for uuids.
            host: the id of the host that this process runs; None in a process that runs no agents.
            remote: follows the agents that other processes run; None if no other process runs agents.
            wait_registry: records which of this host's agents wait for which others.
        """
        self._ungated_store, self._threads = store, threads
        self._beside = Beside(threads)
        """Does what may wait for the database, for those who must not."""
        self._store: Store = Gate(store, self._check_open)
        """The database. Raises `SystemClosed` when the system is closed."""
        self._writer = writer
        """Commits units of writes."""
        self._clock = clock
        """The clock of the system."""
        self._random_bytes = random_bytes
        """The source of chance for uuids: a function from a count to this many bytes."""
        self._processes = ProcessTable(self._handle)
        self._ungated_log_cache = LogCache(store, lambda uuid: remote is None or self._processes.get(uuid) is not None)
        self._publisher = Publisher(threads)
        self._remote: RemoteAgents | None = None
        if remote is not None:
            self._publisher = shared = SharedPublisher(threads)
            who = host or new_agent_uuid(random_bytes)
            self._remote = RemoteAgents(store, Client(store, clock, self._on_commit), shared, remote, who)
        self._waits = Waits(store, clock, self._processes.is_idle, threads, wait_registry, end_of_turn)
        """Waits for mail and for the end of agents."""
        self._lifecycle = Lifecycle(self._store, writer, clock, host, self._here)
        """Sends signals."""
        self.kinds = Kinds()
        """The kinds of agents on the disk of this process."""
        self.skills = Skills(self._store, lambda: self._workspace or Path.cwd())
        """The skills on the disk of this process, and those in documents."""
        self.approvals = Approvals(self._store, self._ungated_log_cache, self._tell)
        """The calls that wait for a person's decision."""
        self.questions = OpenQuestions(self._store, self.approvals)
        """All that waits for a person, and the answers."""
        self._following: FollowingLoop  # each kind makes its own
        self._tallies = RowTallies()
        self._closing = Closing(threads, lambda: [(part.name, part.close) for part in reversed(self._parts())])
        self._keys: Sequence[str] | None = None
        """References to the operator's keys; None for those of the environment."""
        self._closed = False
        self._failure: IkigaiError | None = None
        self._failing = threading.Lock()

    @cached_property
    def documents(self) -> "types.Documents":
        """The documents that all agents share."""
        from ikigai_actors.records.documents import Documents

        return Documents(self._store, self._writer.perform, self._clock.now_ms, self._perform_once, write_act)

    @cached_property
    def endpoints(self) -> "types.Endpoints":
        """The endpoints by which events from outside reach agents."""
        from ikigai_actors.system.endpoints import Endpoints

        return Endpoints(self._store, self._writer.perform, self._clock.now_ms, self._secrets)

    @cached_property
    def subscriptions(self) -> "types.Subscriptions":
        """The subscriptions by which receivers outside get events."""
        from ikigai_actors.system.subscriptions import Subscriptions

        return Subscriptions(self._store, self._writer.perform, self._clock.now_ms, self._random_bytes, self._secrets)

    @cached_property
    def _secrets(self) -> "KeptSecrets":
        from ikigai_actors.system.kept_secrets import KeptSecrets
        from ikigai_actors.system.secrets import key_references

        return KeptSecrets(lambda: key_references(self._keys))

    # What differs

    @property
    @abstractmethod
    def attached(self) -> str:
        """The host that runs the agents, when it is another process; empty when this one does."""

    @property
    @abstractmethod
    def _toolbox(self) -> "Toolbox":
        """The tools that agents may use. Raises `HostElsewhere` if only another process has the tools."""

    @property
    @abstractmethod
    def _default_settings(self) -> Mapping[str, Any]:
        """The default settings of agents; empty if only another process has them."""

    @property
    @abstractmethod
    def _default_model(self) -> str:
        """The model of agents without a ``model`` setting; empty if only another process has this default."""

    @property
    @abstractmethod
    def _stand_in_notice(self) -> str:
        """Return the notice that only the offline provider answers, though nobody chose it; else an empty text."""

    @abstractmethod
    def _window_of(self, model: str | None = None) -> int:
        """Return the context window of a model in tokens, by ``ikigai.toml``; 0 if this process does not know it.

        Args:
            model: as a ``model`` setting; None for an agent that has none.
        """

    @abstractmethod
    def _tools_read(self, log: "Log") -> "Sequence[Mapping[str, Any]]":
        """The descriptions of the tools that the model of the agent with this log reads now.

        Raises:
            HostElsewhere: only another process has the tools.
            ProviderError: a setting is wrong, or its provider is missing or fails.
        """

    def _asked_models(self, settings: Mapping[str, Any], summary: bool = False) -> "tuple[PricedModel, ...]":
        """The models of an agent with these settings, in the order in which they are tried.

        Args:
            settings: the settings of the agent.
            summary: whether the models are for a summary.

        Returns:
            The models; empty when only another process knows.

        Raises:
            BadInput: one of the models cannot be asked.
        """
        self._check_open()
        asked = check_mapping(settings, "settings", "a dict of settings")
        named = check_settings({name: asked.get(name) for name in ("model", "compact_model")})
        return self._models_asked(named, check_flag(summary, "summary"))

    @abstractmethod
    def _models_asked(self, settings: Mapping[str, Any], summary: bool) -> "tuple[PricedModel, ...]":
        """Return the models of `_asked_models`, whose arguments are checked already."""

    def _check_answered(self, settings: Mapping[str, Any], writers: Collection[str]) -> None:
        """Raise `ProviderMissing` if no model could answer with these settings, or only the offline provider.

        The offline provider may answer if somebody has chosen it, or if it wrote the whole record.

        Args:
            settings: the settings of the agent that is asked.
            writers: the models that wrote the record, as ``provider:model``; empty when the record has no reply.
        """
        self._check_open()
        asked = check_mapping(settings, "settings", "a dict of settings")
        if isinstance(writers, str) or not isinstance(writers, Collection):
            raise BadInput(f"Expected writers to be a list of models; got {shown(writers)}.")
        self._refuse_unanswered(asked, [check_type(writer, str, "each of writers", "a model") for writer in writers])

    @abstractmethod
    def _refuse_unanswered(self, settings: Mapping[str, Any], writers: Collection[str]) -> None:
        """Do the check of `_check_answered`; its arguments are checked already."""

    @abstractmethod
    def _check_model(self, model: str) -> None:
        """Raise `BadInput` when a ``model`` setting names a provider that is not registered.

        A process that does not know the providers checks nothing.
        """

    def _check_new_rule(self, rule: NewRule) -> None:
        """Raise `BadInput` if a rule allows too much. Checks nothing in a process that does not have the tools."""

    @abstractmethod
    def state_of(self, record: AgentRecord) -> str:
        """The state of an agent for people, in a word or two."""

    def _abandoned(self) -> int:
        """Return the number of tool threads of this process that still run after the time-out of their calls."""
        return 0

    @property
    def _hooks(self) -> "tuple[Hook, ...]":
        return ()

    @property
    def _workspace(self) -> Path | None:
        """The directory of the workspace; None without one, or where another process has it."""
        return None

    def _text_of(self, uuid: str, path: str) -> str | None:
        """Return the text of a file as an agent sees it; None if this process cannot read the agent's files."""
        return None

    @property
    def _provider_names(self) -> tuple[str, ...]:
        """The names of the providers that are registered here; none where another process has them."""
        return ()

    def _printed(self, uuid: str) -> dict[str, str]:
        """Return the latest output of an agent's running calls, by call id; empty if another host runs the agent."""
        return {}

    def _signs(self) -> dict[str, Sign]:
        self._check_open()
        return self._store.read(latest_signs)

    @abstractmethod
    def statistics(self) -> TurnStatistics:
        """The counters of all agents."""

    @abstractmethod
    def _statistics_of(self, uuid: str, record: AgentRecord | None = None) -> AgentStatistics:
        """Return the counters of an agent, without its restarts. With a ``record`` no row is read."""

    def _look_at_rows(self) -> None:
        """Have this process notice the rows that it wrote for agents which it runs itself. Never waits."""

    @abstractmethod
    def _parts(self) -> Sequence[SystemPart]:
        """The parts, in the order in which they start. They are closed in the opposite order."""

    @abstractmethod
    def _on_commit(self, answer: object) -> None:
        """Carry out what a committed unit of this process means for other agents. Never waits.

        ``answer``: the answer of the unit.
        """

    @abstractmethod
    def _handle(self, uuid: str) -> object:
        """Return the handle of an agent, even while the system closes."""

    # Open and closed

    def _start(self) -> None:
        """Start every part. If a part fails to start, `close` closes all parts, also those that were not started."""
        for part in self._parts():
            part.start()

    def _check_open(self) -> None:
        """Raise `SystemClosed` when the system was closed, or has stopped. Handles call this first."""
        if self._failure is not None:
            raise SystemClosed(f"The system stopped: {self._failure}") from self._failure
        if self._closed:
            raise SystemClosed("The system is closed; open it again.")

    @contextmanager
    def _says_why_it_stopped(self) -> Iterator[None]:
        """In a ``with`` block, raise the error that has stopped the system in place of later errors."""
        try:
            yield
        except IkigaiError:
            if self._failure is not None:
                self._check_open()
            raise

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        from ikigai_actors.system.notebook import mime_bundle

        return mime_bundle(self, repr(self))

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the system. If the block has failed, an error of closing is added to that error as a note."""
        if error is None:
            self.close()
        else:
            self._give_up(kind, error, traceback)

    def _give_up(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        note_failure(self.close, error)

    def _fail(self, error: IkigaiError) -> None:
        """Stop the system with an error: the store is lost, belongs to another host, or needs another program version.

        The agents are not marked as crashed or dead.
        """
        with self._failing:
            if self._failure is not None:
                return
            self._failure = error
        if not self._publisher.is_heard:
            logger.error("The system stopped: %s", error)
        self._publisher.publish(StoreTrouble(str(error), final=True))
        closing = self._threads.thread(lambda: note_failure(self.close, error), "ikigai-closing")
        closing.daemon = False  # a process that ends waits for it
        closing.start()

    def close(self) -> None:
        """Close every part in order, even if one of them fails. At the end the database is free.

        A second call closes only the parts that failed to close in the first. If a subscriber calls this while another
        thread closes the system, the call returns at once. In a process forked from this one (`os.fork`), the call does
        nothing.

        Raises:
            Exception: the first error of a part; the others are in its notes, and in the log.
            WouldDeadlock: called by a provider or tool on the event loop.
        """
        if self._forked:  # all of it is the parent's
            return
        refuse_to_block()
        self._closed = True
        self._closing.run()

    # Which agents exist

    def agents(self, status: str | None = None) -> list[AgentRecord]:
        """The records of all agents, the dead too, oldest first; or only of agents with a status.

        The agents go on while this reads them in parts. For very many agents use `iter_agents`.
        """
        return sorted(self.iter_agents(status), key=lambda record: (record.created_at, record.born))

    def iter_agents(self, status: str | None = None, below: Handle | str | None = None) -> Iterator[AgentRecord]:
        """Iterate over the records of agents, in no order, while the agents go on.

        The records are read in batches of a thousand.

        Args:
            status: only agents with this status; None for all, the dead too.
            below: a handle, or a uuid, name, or unique prefix of a uuid: only agents below that one in the tree of
                supervisors.

        Returns:
            An iterator; each thousand is read when it is needed. Raises `StoreError` then.

        Raises:
            BadInput: there is no such status.
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        """
        self._check_open()
        if status is not None:
            check_choice(status, "status", [*Status])
        if below is None:
            return self._pages(status)
        top = registry.uuid_of(self._store, below)
        uuids = self._store.read(lambda tx: (registry.get(tx, top), registry.uuids_below(tx, top))[1])
        return self._pages_of(uuids, status)

    def _pages(self, status: str | None) -> Iterator[AgentRecord]:
        latest = ""
        while page := self._store.read(partial(registry.after, uuid=latest, status=status)):
            yield from page
            latest = page[-1].uuid

    def _pages_of(self, uuids: Sequence[str], status: str | None) -> Iterator[AgentRecord]:
        for start in range(0, len(uuids), registry.AGENTS_AT_ONCE):
            page = self._store.read(partial(registry.some, uuids=uuids[start : start + registry.AGENTS_AT_ONCE]))
            yield from (record for record in page if status in (None, record.status))

    def spending(self, by: str | None = None, since: datetime | float | str | None = None) -> dict[str, Spending]:
        """The costs of requests to models, by the agents that caused them.

            with ActorSystem.open("team.db", labels={"team": "sales"}) as system:
                system.root.prompt("Draft an offer.", labels={"user": "ann"}).get()
                system.spending(by="user")                  # {"ann": Spending(tokens=…, usd=…, requests=1)}

        A request counts for the labels of its agent, or of the turn, if its prompt had labels: of those that the turn
        has forked, too. Tokens are those that the service has counted. Dollars are computed with the prices at the time
        of the request. Requests without counted tokens, such as one that a crash has cut off, are left out, and so are
        the costs of tools (`AgentRef.charge`).

        Args:
            by: the key of a label; None for one sum of all.
            since: only requests that ended from then on: a `datetime` with its zone, seconds since 1970, or a text such
                as ``"36h"`` or ``"2026-11-26T08:00+00:00"``. None counts all.

        Returns:
            The amounts by the value of the label. The key ``""`` has the amount of requests without this label.

        Raises:
            BadInput: ``by`` cannot be a label's key, or ``since`` is no time in the past.
        """
        key = "" if by is None else check_label_key(by)
        start = check_since(since, self._clock.now_ms())
        return self._store.read(lambda tx: spending(tx, key, start))

    def _labels_of(self, uuid: str) -> Mapping[str, str]:
        """Return the labels of an agent, from memory if this process runs it. Raises `AgentNotFound`."""
        if (actor := self._here(uuid)) is not None:
            return labels_in(actor.origin.labels)
        return self._store.read(lambda tx: registry.get(tx, uuid)).labels

    def hosts(self) -> list[HostRecord]:
        """The hosts that run the agents, and those that did so within the last hour, in the order of their start."""
        return self._store.read(recent_hosts)

    @property
    def _log_cache(self) -> LogCache:
        """The logs that are in use. Raises `SystemClosed`."""
        self._check_open()
        return self._ungated_log_cache

    @overload
    def subscribe(self, callback: Callable[[E], object], only: tuple[type[E], ...]) -> Subscription: ...

    @overload
    def subscribe(self, callback: Callback, only: tuple[type, ...] = ()) -> Subscription: ...

    def subscribe(self, callback: Callable[[Any], object], only: tuple[type, ...] = ()) -> Subscription:
        """Call back for each event, in order, on a separate thread, until the subscription is closed.

        The events of all agents of the database, in whatever process they run, are: each message that is committed from
        now on (`Message`), once; deaths (`Died`) and new names (`Renamed`); and the pieces of replies that models are
        writing (`Streamed`). Pieces of the replies of another process's agents come a few times a second. The first one
        has all text so far. If that process ends in the middle of a reply, a `StreamCut` comes. A reply that ends very
        soon comes as its message alone. Events of this process are: mail that it has sent (`Mailed`), a prompt that
        waits for the signal CONT (`PromptKept`), and trouble with the store, tools or batches (`StoreTrouble`,
        `ToolTrouble`, `BatchTrouble`). Events of other hosts are: a host has ended (`HostEnded`), or the tools of hosts
        differ (`HostsDiffer`). In an attached system a `HostChanged` says that another process runs the agents now.

        Args:
            callback: takes an event. It may block.
            only: the types of events to receive; empty for all. A host that shares its agents reads the commits of
                other hosts only while somebody asks for events of agents. Other processes write pieces of replies into
                the database only while somebody asks for `Streamed`.
        """
        self._check_open()
        check_callable(callback, "callback", CALLBACK)
        check_events(only)
        return self._begin_subscription(lambda: self._publisher.subscribe(callback, only=only))

    def _listen(self, callback: Callback, only: tuple[type, ...]) -> DirectSubscription:
        """Subscribe a callback that never waits. The publishing thread calls it, unlike that of `subscribe`."""
        self._check_open()
        check_events(only)
        return self._begin_subscription(lambda: self._publisher.listen(callback, only))

    def _begin_subscription(self, begin: Callable[[], S]) -> S:
        subscription = self._following.begin_subscription(begin)
        with suppress(StoreError):  # then the loop begins with it as soon as the database answers
            self._following.follow_as_heard()
        return subscription

    def _publish_news(self, news: News, before: Sequence[HostRecord]) -> None:
        """Publish the events of ``news``.

        ``before``: the hosts that ran the agents at the previous look.
        """
        self._tallies.note(news, self._clock.now_ms())
        events: list[Event] = [*news.messages, *news.died, *news.renamed, *news.statuses]
        for reply in news.replies:
            events += [StreamCut(reply.agent)] if reply.cut else []
            events += [Streamed(reply.agent, text, kind, reply.at) for kind, text in reply.pieces]
        for event in events:
            self._publisher.publish(event)

    def export(
        self,
        agent: Handle | str,
        file: str | os.PathLike[str],
        *,
        from_clear: bool = False,
        notice: Callable[[str], object] = lambda text: None,
    ) -> "types.Exported":
        """Write an agent and all below it, by lineage or supervision, to a new file; see `System.import_`.

        The file has JSON lines with agents, messages, mail, documents and attachments, but no budgets, signals or
        restarts. The data is read in one snapshot, while the agents go on. The file is written completely or not at
        all.

        Args:
            agent: a handle, or a uuid, name, or unique prefix of a uuid.
            file: the new file, which only its user may read.
            from_clear: leave out inherited messages that the agents cannot see because a clear followed them.
            notice: a function that is called before the file is written, with a line of text, if there are such
                messages and they are not left out.

        Returns:
            How much was written.

        Raises:
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
            HistoryPruned: the messages of the agent were deleted.
            BadInput: there is a file at that path already, or it cannot be written.
        """
        from ikigai_actors.arguments import as_path
        from ikigai_actors.records.transfer.export import export_file

        self._check_open()
        check_callable(notice, "notice", "a function of a text")
        check_flag(from_clear, "from_clear")
        uuid = registry.uuid_of(self._store, agent)
        return export_file(
            self._store, uuid, as_path(file), now=self._clock.now_ms(), from_clear=from_clear, notice=notice
        )

    def verify(
        self, what: "Handle | str | os.PathLike[str] | None" = None, since: "str | os.PathLike[str] | None" = None
    ) -> "types.Verified":
        """Verify that histories are as they were written: compare each message with its hash.

        The hash of a message covers the message and the history before it. The check reads one snapshot, while the
        agents go on. Somebody who can write to the database can also recompute hashes; to detect that, compare with a
        checkpoint that is kept elsewhere.

        Args:
            what: a handle, uuid, name, or unique prefix of a uuid of the agent whose history is verified; or a file
                that `export` has made; None verifies all logs.
            since: a file that `checkpoint` has made. Each log must continue from where it was at the checkpoint.

        Returns:
            How many messages were compared, and each problem with its position.

        Raises:
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
            HistoryPruned: its messages were deleted.
            BadInput: a file cannot be read, is none of these, or the checkpoint is of another database.
        """
        from ikigai_actors.records.transfer.verify import verify_named

        self._check_open()
        return verify_named(self._store, what, since)

    def checkpoint(
        self, file: "str | os.PathLike[str]", previous: "str | os.PathLike[str] | None" = None
    ) -> "types.Checkpointed":
        """Write the hashes of all histories to a new file, to be kept where no host of the database can reach it.

        The file has about 100 bytes for each agent. `verify` compares the histories with it later.

        Args:
            file: the new file, which only its user may read.
            previous: an earlier checkpoint. The histories are verified against it first, and the new file names those
                that have gone on since.

        Returns:
            The number of logs in the file, and the SHA-256 of the file.

        Raises:
            HistoryError: a history is not as the earlier checkpoint has it; nothing is written.
            BadInput: a file cannot be read or written, or the earlier one is of another database.
        """
        from ikigai_actors.arguments import as_path
        from ikigai_actors.records.proof.checkpoint import write_checkpoint

        self._check_open()
        earlier = None if previous is None else as_path(previous)
        return write_checkpoint(self._store, as_path(file), self._clock.now_ms(), earlier)

    # Carrying out

    def _here(self, uuid: str) -> "AgentActor | None":
        """The actor of an agent, when this process runs it; else None. Reads nothing. Raises `SystemClosed`."""
        self._check_open()
        return self._processes.get(check_type(uuid, str, "uuid", "text"))

    def _settings_at_hand(self, uuid: str) -> Mapping[str, Any] | None:
        """The settings of an agent in force, if they are in memory. Reads nothing.

        None when the log was not needed yet, or is in another process.
        """
        actor = self._here(uuid)
        return None if actor is None or actor.state.phase is Phase.UNLOADED else actor.state.view.settings

    def _remote_agent(self, uuid: str) -> RemoteActor:
        """Return the remote agent of an agent, which sends commands as rows to the host that runs the agent.

        Raises `NoHost` in a host that shares its agents with nobody, and `SystemClosed`.
        """
        self._check_open()
        return self._remote_actor(check_type(uuid, str, "uuid", "text"))

    def _remote_actor(self, uuid: str) -> RemoteActor:
        if self._remote is None:
            from ikigai_actors.records.lives.moves import UNSHARED

            raise NoHost(UNSHARED)
        return self._remote.actor(uuid)

    def _target(self, uuid: str) -> "AgentActor | RemoteActor":
        """The target of an agent's commands: its actor here, or its remote agent, which asks the host that runs it.

        Raises `SystemClosed`, `AgentNotFound` and `AgentDead`.
        """
        self._check_open()
        if type(uuid) is not str:
            check_type(uuid, str, "uuid", "text")
        actor = self._processes.get(uuid)
        if actor is not None:
            return actor
        record = self._store.read(lambda tx: registry.get(tx, uuid))
        if record.living and (actor := self._woken(record)) is not None:
            return actor
        if self._remote is None or not record.living:
            raise self._not_here(self._store.read(lambda tx: registry.get(tx, uuid)))
        return self._remote.actor(uuid)

    def _woken(self, record: AgentRecord) -> "AgentActor | None":
        """Wake an agent that sleeps, and return its actor; None if this process does not run the agent."""
        return None

    def _not_here(self, record: AgentRecord) -> AgentDead:
        reason = record.exit_reason or "not run by this host"
        return AgentDead(f"Agent {record.short} is {record.status}: {reason}.", record.uuid)

    def _tell(self, uuid: str, command: object) -> "AgentActor | RemoteActor":
        """Send a command to an agent; return the actor or remote agent that got the command.

        If the actor has ended and the agent has a new actor, the new actor gets the command.

        Raises:
            AgentDead: no actor of the agent takes commands.
            IkigaiError: an error of `_target`.
        """
        self._check_open()
        if not hasattr(command, "caller"):
            raise BadInput(f"Expected a command of an agent; got {shown(command)}.")
        before = None
        while (latest := self._target(uuid)) is not before:
            if latest.deliver(command):
                return latest
            before = latest
        raise AgentDead(f"Agent {uuid} is dead, or no longer runs on this host.", uuid)

    def _ask_outcome(self, uuid: str, caller: Future[Any]) -> None:
        """Settle ``caller`` with the outcome of an agent's turn in progress, or else of its latest turn.

        If the agent is dead, or dies before it has answered, its log has the outcome, if there is one.

        Raises the errors of `_tell`.
        """

        def read() -> Any:
            return self._log_cache.find_in(uuid, lambda log: last_outcome(log.newest_first()))

        def look(error: BaseException) -> None:
            if isinstance(error, AgentDead):
                self._beside.read(read).add_done_callback(partial(take, error))
            else:
                caller.settle(error)

        def take(error: AgentDead, outcome: Future[Any]) -> None:
            if (unread := outcome.exception()) is not None:  # the system is closed, or its database is out of reach
                caller.settle(unread)
            else:
                caller.settle(error if outcome.get() is None else outcome.get())

        caller.doubted = look
        try:
            self._tell(uuid, on.GetOutcome(caller))
        except AgentDead:
            caller.doubted = None
            if (outcome := read()) is None:
                raise
            caller.settle(outcome)

    def _take_back(self, uuid: str, command: Future[Any]) -> bool:
        """Drop a command of this process, given by its future, unless its agent has begun to carry it out.

        Return whether the command still waited; its future then raises `Withdrawn`. Raises the errors of `_tell`.
        """
        waited = Future[bool]()
        self._tell(uuid, TakeBack(command, waited))
        return waited.get()

    def _write_once(
        self,
        unit: Unit,
        call: KeyedCall,
        make: Callable[[Any], Any],
        timeout: float | None = None,
        *,
        waits: bool = False,
    ) -> Future[Any]:
        """Commit a unit once under a key; return a future of ``make(answer)``. The answer must be a JSON value."""

        def gave(done: Any) -> dict[str, Any]:
            timer = {"timer": [done.agent_uuid, done.id]} if isinstance(done, Timer) else {}
            return {**timer, "value": make(done)}

        once = Once(unit, call, self._clock.now_ms(), gave)
        asked = self._writer.ask(once, make, timeout=timeout, waits=waits)
        outer = Future[Any](timeout=timeout)
        outer.keyed = call, itemgetter("value")
        asked.add_done_callback(outer.become)
        return outer

    def _perform_once(self, unit: Unit, call: KeyedCall, timeout: float | None) -> Any:
        """Commit a unit once under a key, and return the unit's answer, which must be a JSON value."""
        return self._write_once(unit, call, lambda done: done, timeout, waits=True).get()

    def _prompt_once(self, call: KeyedCall, command: on.Prompt) -> None:
        """Store a prompt as mail, once under a key; its caller gets the outcome of the turn.

        The prompt is committed when this returns, unless this thread may not wait.
        """
        uuid, caller = call.scope, command.caller

        def follow(mail: int) -> None:
            self._end_of_prompt(uuid, mail, caller)

        def left(asked: Future[Any]) -> None:
            match asked.exception():
                case None:
                    mail = asked.get().id
                    if (actor := self._processes.get(uuid)) is not None:  # before an INT that comes right behind it
                        actor.actor_inbox.put_urgent(on.Prompt(command.text, Future(), mail, data=command.data))
                    follow(mail)
                case Repeated() as repeated:
                    follow(repeated.gave["mail"])
                case error:
                    caller.settle(error)

        if (known := self._store.read(lambda tx: answer_under(tx, call))) is not None:
            follow(known["mail"])
            return
        self._target(uuid)  # raises where nobody ever takes it up
        now = self._clock.now_ms()
        send = Send(uuid, None, command.text, now, PROMPT, command.data, command.blobs)
        asked = self._writer.ask(Once(send, call, now, lambda mail: left_as(mail.id)))
        if may_block():
            with suppress(IkigaiError):
                asked.get()
            left(asked)
        else:
            asked.add_done_callback(left)

    def _end_of_prompt(self, uuid: str, mail: int, caller: Future[Any]) -> None:
        """Settle ``caller`` with the outcome of the turn that the prompt in this mail opens, even if it is over."""

        def ended(end: object) -> None:
            if isinstance(end, CutOff):
                self._beside.post(lambda: self._ask_outcome(uuid, caller), caller)
            else:
                caller.settle(end)

        self._waits.probe(uuid, PromptedTurn(uuid, mail, self._nobody_answers).current_end, ended)

    def _nobody_answers(self) -> IkigaiError | None:
        """Return an error if no process runs the agents, so that no prompt is answered; None while one does."""
        return None

    def _steer(self, uuid: str, text: str, now: bool = False, key: str | None = None) -> "Receipt":
        """Send a steering message; see `AgentRef.steer`."""
        receipt = Receipt(uuid, lambda mail: bool(self._writer.perform(WithdrawPrompt(uuid, mail))))
        at_once = check_flag(now, "now")
        call = None if key is None else KeyedCall(key, "steer", {"text": text, "now": at_once}, uuid, uuid, text)
        word = KeepWord(uuid, text, self._clock.now_ms(), at_once=at_once, call=call, receipt=receipt)
        if call is not None and (entered := self._store.read(lambda tx: word.entered(tx))) is not None:
            receipt.kept.settle(entered[0])
            receipt.settle(entered[1])
            return receipt
        actor = self._target(uuid)
        if isinstance(actor, RemoteActor):
            actor.steer(word, receipt)
        else:
            self._writer.ask(word).add_done_callback(receipt.refuse)
            if may_block():
                receipt.wait_until_kept()
        return receipt

    def send(
        self,
        recipient: Handle | str,
        body: str,
        timeout: float | None = None,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        zone: str | None = None,
        key: str | None = None,
    ) -> int:
        """Send a mail on behalf of a person, who is no agent; now or later.

        Args:
            recipient: a handle, or a uuid, name, or unique prefix of a uuid; or a group, as ``"group:reviewers"``.
            body: the text, at most 64 KiB in UTF-8, and not blank.
            timeout: seconds to wait; None waits forever.
            at: the time to send it, as in `AgentRef.remind`; so are the next two arguments. Without any of them it is
                sent now.
            after: the seconds until it is sent.
            zone: the time zone of ``at``, by its IANA name.
            key: as in `AgentRef.send`; the key identifies the mail for the recipient.

        Returns:
            After the commit, the number of the mail in the recipient's mailbox. For mail that is sent later it is the
            number of the recipient's timer, and for mail to a group the number of members that got it. Raises the
            errors of `AgentRef.send`.
        """
        unit = delivery(None, recipient, body, self._clock.now_ms(), at=at, after=after, zone=zone)
        if key is not None:
            to = str(getattr(recipient, "uuid", recipient))
            arguments = {"to": to, "body": body, **times(at, after, zone)}
            call = KeyedCall(key, "send", arguments, self._mailbox_of(to), about=body)
            number: int = self._write_once(unit, call, lambda sent: sent.id, timeout, waits=True).get()
            return number
        sent: Mail | Timer | GroupSent = self._writer.perform(unit, timeout)
        return sent.id

    def _mailbox_of(self, recipient: str) -> str:
        """Return the uuid of the recipient; empty if the recipient is a group. Raises the errors of `uuid_of`."""
        return "" if group_in(recipient) is not None else registry.uuid_of(self._store, recipient)
