"""The actor system: the composition root, and what a program opens.

    with ActorSystem.open("team.db") as system:
        child = system.root.fork("analyse the schema", name="dba")
        print(child.reply(timeout=60).text)

Opening takes these steps: the store, the lock or lease, the schema, the tools, agent 0, the claim of all agents, then
the actors of agents with open work. A host that joins others opens its tools before they know of it. Closing takes
these: nothing new starts, requests and tools are cancelled, accepted commands are written, and the database is
released. An open turn comes back as interrupted, as after ``kill -9``.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ikigai_actors.actors.closing import Closing
from ikigai_actors.actors.futures import may_block
from ikigai_actors.actors.garbage import everything_stays
from ikigai_actors.actors.wait_registry import WaitRegistry
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.blob_cache import BlobCache
from ikigai_actors.agent.boot import (
    RowReader,
    Survey,
    clear_left_behind,
    left_cut_off,
    survey,
    survey_of,
    survey_one,
)
from ikigai_actors.agent.executor import Executor
from ikigai_actors.agent.instruments import Instrument, Instruments
from ikigai_actors.agent.log_eviction import MOST_MESSAGES, LogEviction
from ikigai_actors.agent.log_loader import LogLoader
from ikigai_actors.agent.remote_commands import ListTools, RemoteCaller
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.service_gate import ServiceGates
from ikigai_actors.agent.statistics import AgentStatistics, Counting, SystemStatistics
from ikigai_actors.agent.subscriptions import AS_EVENT, Mailed, StoreTrouble, ToolTrouble
from ikigai_actors.agent.toolbox import Toolbox, finds
from ikigai_actors.agent.turn.calls import Approver
from ikigai_actors.agent.turn.found_tools import found_in
from ikigai_actors.agent.turn.state import Phase, waits_for, waits_for_person, waits_for_program
from ikigai_actors.arguments import check_optional, check_timeout, check_type
from ikigai_actors.errors import (
    BadInput,
    HostElsewhere,
    IkigaiError,
    NoHost,
    ProgramOutdated,
    ProviderError,
    ProviderMissing,
    ProviderUnknown,
    StoreError,
)
from ikigai_actors.programs.provider import Program
from ikigai_actors.providers.base import Provider
from ikigai_actors.providers.limits import Limits
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.providers.prices import PricedModel
from ikigai_actors.providers.stand_in import UNWRITTEN, other_writer
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.registry import AgentRecord, Renamed, ensure_root
from ikigai_actors.records.agents.rules import set_rules_of_root
from ikigai_actors.records.agents.words import called_awaited
from ikigai_actors.records.arrivals.arrivals import Received
from ikigai_actors.records.budgets.amounts import Held, Paused, Settled
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.grants import Served
from ikigai_actors.records.budgets.limits import limit_everybody
from ikigai_actors.records.budgets.spendings import label_root
from ikigai_actors.records.figures import other_writer_in
from ikigai_actors.records.hosts.builds import describe_build, describe_toolsets
from ikigai_actors.records.hosts.liveness import Sign, leave_cut_off
from ikigai_actors.records.hosts.offers import describe_offer
from ikigai_actors.records.hosts.question_steps import SteppedQuestion, waits_text
from ikigai_actors.records.lives.deaths import LifecycleChange
from ikigai_actors.records.lives.membership import GroupSent
from ikigai_actors.records.lives.moves import UNSHARED
from ikigai_actors.records.log.append import AppendCompleted, CallAppended
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.parking import Parked, Unparked, waits_of_parked
from ikigai_actors.records.mail.asked import Woken
from ikigai_actors.records.mail.mail import PROMPT, Mail
from ikigai_actors.records.mail.timers import Fired, Timer
from ikigai_actors.records.mail.words import KeptWord
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.pieces import host_is_needed
from ikigai_actors.records.outbox.deliveries import DeliveryRecorded, Redelivered
from ikigai_actors.records.outbox.subscriptions import SubscriptionChanged
from ikigai_actors.records.transfer.graft import Import, Imported, ImportFile
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.hosts.host import LEASE, Host, new_host
from ikigai_actors.store.hosts.rows import HostRecord, open_hosts
from ikigai_actors.store.hosts.shards import shares
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.slow_opening import says_if_slow
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.configuration import host_paths
from ikigai_actors.system.directory import SystemPart
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.system.host.batches import BatchLink
from ikigai_actors.system.host.park_watch import PARK_AFTER
from ikigai_actors.system.host.rebalancer import BALANCE, LEAVING, Rebalancer
from ikigai_actors.system.host.reply_streams import ReplyStreams
from ikigai_actors.system.host.sleep_watch import SLEEP_AFTER
from ikigai_actors.system.host.supervision import SupervisionLoop
from ikigai_actors.system.host.wait_board import WaitBoard
from ikigai_actors.system.host.whereabouts import Whereabouts
from ikigai_actors.system.options import HostOptions, check_options
from ikigai_actors.system.platform import SYSTEM_PLATFORM, Platform
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.system.remote.client import shown_state, turn_state
from ikigai_actors.system.remote.follower import Follower
from ikigai_actors.system.remote.following import FollowingLoop
from ikigai_actors.system.stored_remotes import StoredRemotes
from ikigai_actors.system.stored_trees import StoredTrees
from ikigai_actors.tools.base import HostPaths, Toolset
from ikigai_actors.tools.fitted import left_out
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.hooks.function import Hook
from ikigai_actors.tools.rules.rule import NewRule, Rule
from supervisors.signals import Status

logger = logging.getLogger(__name__)


def _no_actor(record: AgentRecord, hosts: Iterable[HostRecord]) -> HostElsewhere:
    name = next((host.name for host in hosts if host.id == record.owner), None)
    where = "another host will run soon" if name is None else f"host {name} runs"
    return HostElsewhere(
        f"Agent {record.short} is one that {where}: its actor is not here. Use its handle, or move it."
    )


def _describe(tx: Transaction, host: str, options: HostOptions) -> None:
    """Write what the process of a host runs, in the transaction in which it begins."""
    describe_build(tx, host, options.build, options.toolbox.definitions)
    describe_offer(tx, host, options.offer)


class ActorSystem(System):
    """Runs the agents of one database. Open it with `open`."""

    attached = ""  # this process runs them: see `AttachedSystem`

    def __init__(self, store: Store, host: Host, options: HostOptions) -> None:
        """Make the parts of a system; programs call `open`."""
        threads, clock = options.parts.threads, host.clock
        journal = Journal(
            store,
            host.id,
            clock,
            threads=threads,
            patience=options.patience,
            on_commit=self._on_commit,
            on_posted=lambda: self._supervision.deliveries.note_event(),
            on_trouble=self._tell_trouble,
            on_failure=self._fail,
        )
        wait_registry = self._wait_registry = WaitRegistry(self._called, host.id, clock.now_ms)
        wait_registry.parked_waits = lambda uuids: store.read(lambda tx: waits_of_parked(tx, uuids))
        follower = None if host.name is None else Follower(store, [])
        super().__init__(store, journal, clock, threads, options.parts.random_bytes, host.id, follower, wait_registry)
        publisher, processes = self._publisher, self._processes
        self._streams = ReplyStreams(lambda: self._runtime.executor.requests(), journal, host.id, clock, threads)
        self._keys, self._allowed = options.keys, options.allow_private
        self._link = options.parts.link(options.allow_private, threads)
        batch_link = BatchLink(
            options.providers.batches,
            lambda work, done: self._runtime.executor.attend(work, done),
            lambda: self._random_bytes(16).hex(),
            publisher.publish,
        )
        self._supervision: SupervisionLoop = SupervisionLoop(
            *(
                store,
                journal,
                processes,
                host.id,
                clock,
                threads,
                self._streams.listen,
                self._link,
                batch_link,
                self._secrets,
            ),
            *(options.sleep_after, options.park_after),
        )
        self._supervision.remote_commands.handle(ListTools, self._tell_tools)
        whereabouts = self._whereabouts = Whereabouts(processes)
        if follower is not None:
            follower.whereabouts = whereabouts
        self._wait_board = WaitBoard(
            wait_registry,
            store,
            host.id,
            host.name is not None,
            whereabouts.is_here,
            self._waits_for,
            threads,
        )
        with ExitStack() as undone:
            self._following = FollowingLoop(
                store,
                clock,
                threads,
                self._waits,
                remote=self._remote,
                on_others=self._look_at_others,
                tell=self._publish_news,
                hears_all=lambda: publisher.is_heard_of_agents,
                hears_replies=lambda: publisher.is_heard_of_replies,
                is_here=whereabouts.is_here,
            )
            undone.callback(self._following.close)
            dispatcher = options.parts.dispatcher(options.workers)
            undone.callback(dispatcher.close)
            executor = Executor(
                threads=threads,
                clock=clock,
                tell=lambda name, text: publisher.publish(ToolTrouble(name, text)),
                registry=wait_registry,
                step_aside=dispatcher.step_aside,
            )
            undone.pop_all()
        options.hooks.runs_by(executor.run_hook)
        count_hosts = None if host.name is None else lambda: len(store.read(open_hosts))
        self._runtime: Runtime = Runtime(
            clock=clock,
            host=host,
            journal=journal,
            log_cache=self._ungated_log_cache,
            log_eviction=LogEviction(self._ungated_log_cache, lambda: processes, options.in_memory),
            log_loader=LogLoader(self._ungated_log_cache, threads),
            blobs=BlobCache(lambda hashes: store.read(lambda tx: read_blobs(tx, hashes))),
            executor=executor,
            publisher=publisher,
            instruments=Instruments(
                Counting(), self._supervision.sign_board, self._wait_board, *options.parts.instruments
            ),
            dispatcher=dispatcher,
            providers=options.providers,
            prices=options.prices,
            gates=ServiceGates(options.providers.limits, count_hosts),
            toolbox=options.toolbox,
            waits=self._waits,
            batches=self._supervision.batches,
            approver=options.approver,
            hooks=options.hooks,
            random_bytes=self._random_bytes,
            processes=processes,
            written_by=(
                store.read(lambda tx: other_writer_in(tx, OfflineProvider.name))
                if options.providers.nobody_asked
                else ""
            ),
        )
        self._rebalancer = (
            None
            if host.name is None
            else Rebalancer(
                store,
                host,
                journal,
                processes,
                self._ungated_log_cache,
                self._supervision,
                threads,
                self._fail,
                publisher.publish,
                self._following.catch_up,
            )
        )
        if self._rebalancer is not None:
            host.count = self._rebalancer.count
        host.on_outdated = self._leave
        waiting = ("who waits for words and parked turns", processes.close_waiting)
        self._actors = Closing(threads, lambda: [*((str(actor), actor.close) for actor in processes.shut()), waiting])

    @classmethod
    def open(
        cls,
        database: str | os.PathLike[str] | None = None,
        provider: Provider | str | None = None,
        providers: Mapping[str, Provider] | None = None,
        tools: Iterable[Tool | Toolset] = (),
        *,
        approvals: Approver | str = "deny",
        on_orphan: str | None = None,
        resume: bool | None = None,
        settings: Mapping[str, Any] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        prices: str | os.PathLike[str] | None = None,
        config: str | os.PathLike[str] | None = None,
        limits: Mapping[str, Limits] | None = None,
        join: bool = False,
        name: str | None = None,
        on_wait: Callable[[str], object] | None = None,
        on_renewal: Callable[[], object] | None = None,
        balance: float | None = BALANCE,
        workers: int = 2,
        patience: float = 60.0,
        lease: float = LEASE,
        in_memory: int = MOST_MESSAGES,
        sleep_after: float | None = SLEEP_AFTER,
        park_after: float | None = PARK_AFTER,
        instruments: Iterable[Instrument] = (),
        labels: Mapping[str, str] | None = None,
        rules: Iterable[tuple[str, ...]] = (),
        programs: "Iterable[Program]" = (),
        hooks: "Iterable[Hook]" = (),
        allow_private: Iterable[str] | None = None,
        keys: Sequence[str] | None = None,
        build: str | None = None,
        parts: Platform = SYSTEM_PLATFORM,
    ) -> Self:
        """Open a database and bring its agents back.

        Args:
            database: a path, or a URL: ``sqlite:///file``, ``sqlite:///:memory:``, ``postgresql://…``. None means
                ``$IKIGAI_DATABASE_URL``, and else the default file.
            provider: answers for agents whose settings name no model: a provider, or ``"offline"``, ``"anthropic"``,
                ``"anthropic:model"``, or the name of one that an installed package offers. None means anthropic when
                ``ANTHROPIC_API_KEY`` is set, else offline, which then answers only what it wrote alone
                (`ProviderMissing`). Never stored.
            providers: further providers, by the name that ``model`` settings use.
            tools: tools for models, beside those that every agent has; see `tool` and `Toolset`.
            approvals: decides on calls of tools that ask: a function (see `Approver`); ``"ask"``, a person, through
                `approvals`; ``"deny"`` denies all of them; ``"allow"`` allows all.
            on_orphan: what happens to the children of an agent that dies, for agents that are forked from now on
                without a policy: ``reparent``, ``cascade``, ``stop`` or ``continue``. None leaves the policy as it is.
            resume: whether to go on with the turns that the end of the host before has cut off; None does so. A turn
                that was cut off three times without a new message is left to a person, and one of a temporary agent is
                closed.
            settings: settings for the models of agents that have not set them: ``max_tokens``, ``temperature``,
                ``top_p``, ``stop_sequences``, ``thinking``, ``options``, ``system``. Never stored.
            budget: what all agents together may spend: a `Budget`, or a dict of its arguments. It is stored, and set
                once: when agent 0 is limited already, that stays.
            prices: a file with the prices of models, which count before those of ``config``; None takes ``prices.toml``
                in ``$IKIGAI_HOME``, or else in the user's data directory.
            config: a file ``ikigai.toml``, with providers, the default model, prices and windows; arguments count
                before it. None reads the one that ``$IKIGAI_CONFIG`` names, else that of the current directory, else
                the user's, if there is one; ``""`` reads none.
            limits: by provider, how many requests are under way at once, and begin within a minute, for all agents
                together.
            join: share the agents of a PostgreSQL database with other hosts that join. Each runs a part of them. When
                one ends, the others take its agents: 2 s after its process was killed, or when its lease is over. A
                host that was opened without this is waited for.
            name: of a host that joins, by which it is known: the next host of that name takes its place at once. None
                makes one of the machine's name and the process id.
            on_wait: takes a text that names the host for which this one waits, whenever that changes.
            on_renewal: is called when the lease begins, and after each renewal: a heartbeat for whoever would start
                this process again. It must not wait for anything.
            balance: of a host that joins: seconds between two moves of agents to a host that has fewer. None moves
                agents when this host drains or ends only.
            workers: threads that run agents, 1 or more.
            patience: seconds that the store may be down before the system stops.
            lease: seconds for which this host owns a PostgreSQL database after each renewal.
            in_memory: messages of logs in memory, and what was made of them for models, above which agents drop theirs
                that were idle for longest; these logs are read again when they are needed.
            sleep_after: seconds after which agents that nobody has used give up their actors, while there are a
                thousand of these or more; they are made again when they are needed. None keeps all.
            park_after: seconds after which a program whose turn only waits gives up its actor and its function's frame,
                at once where 256 others have begun to wait since; it replays when what it waits for comes. None keeps
                all.
            instruments: objects whose methods are called when requests, tools, waits, commits and restarts of agents
                begin and end.
            labels: on whose account agent 0 works, as ``{"team": "sales"}``, and all that it forks from now on; at most
                16 short texts, which are stored; see `spending`. None leaves those that it has.
            rules: of agent 0, so for all agents, each as ``(decision, tool)``, perhaps with a pattern and a scope: see
                `AgentRef.set_rule`. They are stored, and those that it has already are not set twice.
            programs: functions that are models of agents, made by `ikigai_actors.programs.program`. Their names are
                ``model`` settings.
            hooks: functions that look at calls before and after they run, made by `ikigai_actors.hooks.hook`. They are
                asked in this order.
            allow_private: networks, each as ``10.0.0.0/8``, to which events may be sent beside public addresses, and
                which accounts at remote servers may name, also without TLS. None takes those in
                ``$IKIGAI_ALLOW_PRIVATE``, with commas between.
            keys: references to the operator's keys, as ``env:NAME``. The first seals accounts at remote MCP servers,
                and any of them opens what it has sealed. None takes those in ``$IKIGAI_KEYS``, with commas between.
            build: a name for this version of the app's code, which ``hosts`` shows: a question about a call that was
                asked by another build is asked again. None makes a digest of the files and definitions of its tools and
                programs, and of the version of ikigai-actors.
            parts: the threads, time, randomness and database of the system; a simulation replaces them
                (`ikigai_actors.testing`).

        Raises:
            StoreInUse: another process runs this database, or a part of it, and this one does not join.
            Fenced: another host of the same name has come while this one waited.
            SystemClosed: another host has ended this one while it opened.
            StoreError: the database cannot be used; the message says what to do.
            BadInput: an argument cannot be used, a rule allows all of bash, which has no fence, or the build has run
                with other tools; nothing was opened.
        """
        options = check_options(
            database, provider, providers, tools, approvals, on_orphan, resume, settings, config, limits, join, name,
            on_wait, on_renewal, balance, workers, patience, lease, in_memory, sleep_after, park_after, parts,
            instruments, budget, prices, labels, rules, programs, hooks, allow_private, build,
            keys,
        )  # fmt: skip
        with says_if_slow(database), ExitStack() as undone:
            store = parts.open_store(database)
            undone.callback(store.close)
            ensure_schema(store, parts.migrations)
            host = new_host(
                store,
                new_agent_uuid(parts.random_bytes),
                parts.clock,
                lease,
                parts.threads,
                name=options.name,
                on_wait=lambda owner: options.on_wait(str(owner)),
                on_renewal=options.on_renewal,
                migrations=parts.migrations,
            )
            undone.callback(host.release)
            host.describe = lambda tx: _describe(tx, host.id, options)
            if host.name is None:
                host.begin()
                host.keep()  # also while tools open and agents boot, which may take longer than the lease
            system = cls(store, host, options)
            undone.pop_all()
            undone.push(system._give_up)
            with system._says_why_it_stopped():
                system._begin(store, options, host_paths(database, config))
            undone.pop_all()
        return system

    @classmethod
    def attach(cls, database: str | os.PathLike[str] | None = None) -> AttachedSystem:
        """Use agents that another process runs, by handles as of `open`.

        Everything can be read, even while no process runs the agents. The agent's host carries out a command once.
        Without a host, the future of the command raises `NoHost`; a prompt then waits for the next host, and any other
        command is dropped.

        Args:
            database: the database, as for `open`; it must exist.

        Raises:
            StoreUnusable: there is no database of this runtime, or it has another version than this program needs.
            StoreError: the database does not answer.
            BadInput: the argument is no path or URL.
        """
        return AttachedSystem.open(database)

    def _begin(self, store: Store, options: HostOptions, paths: HostPaths) -> None:
        """Open the tools, become the host, and bring the agents back."""
        host = self._runtime.host
        self._open_toolsets(options.toolsets, paths)
        self._toolbox.check_rules(options.rules)
        if host.name is None and options.toolsets:  # it has begun before their tools were known
            store.write(lambda tx: describe_toolsets(tx, host.id, options.build, self._toolbox.definitions))
        if host.name is not None:  # from now on others give it agents, and it has the tools for them
            host.begin()
            host.keep()
        with everything_stays():
            ensure_root(store, self._random_bytes, host.clock.now_ms())
            if host.name is not None:
                host.claim()
            own = store.read(lambda tx: shares(tx, host.id)).own
            clear_left_behind(store, host.id, own)
            if options.labels is not None:
                label_root(store, own, options.labels)
            set_rules_of_root(store, options.rules, host.clock.now_ms())
            if options.budget is not None and not limit_everybody(store, options.budget):
                logger.info("Agent 0 has a budget already, which stays as it is. Change it by grant(), or /budget.")
            surveyed = survey(store, host.id, own)
            left = left_cut_off(surveyed, options.resume)
            leave_cut_off(store, host.id, left, host.clock.now_ms())
            if left and options.resume:
                logger.warning("%s turns were cut off again and again, and are left: see ikigai agents", len(left))
            self._boot(surveyed, own, options)
        if options.on_orphan is not None:
            self.root.supervise(on_orphan=options.on_orphan)
        self._processes.go_on(surveyed, left)

    def _boot(self, survey: Survey, own: Mapping[int, int], options: HostOptions) -> None:
        """Start the actors of agents that come back, bury the others, and start every part."""
        self._runtime.host.keep(self._lose, self._tell_trouble)
        alone = self._rebalancer is None
        self._processes.run(self._runtime, self._supervision, self._remote_actor, self._look_at_sleeper, alone=alone)
        self._processes.restore(survey)
        self._processes.serve_shards(own)
        self._supervision.restore(survey)
        if self._rebalancer is not None:
            self._rebalancer.restore(own, options.balance, options.resume)
        self._start()

    def _look_at_sleeper(self, uuid: str, shards: Collection[int], store: RowReader | None) -> Survey:
        """Read the row of an agent that is being woken.

        If hosts share the agents, another host may have run the agent before. Then its log is read again, and
        subscribers get the commits of that host before the agent acts here. An agent with an open turn is not in the
        survey then, because it is about to be taken over with its turn.
        """
        host, shared = self._runtime.host.id, self._rebalancer is not None
        surveyed = survey_one(store or self._ungated_store, host, shards, uuid, resting=shared)
        if shared and surveyed.restored:
            self._ungated_log_cache.forget(uuid)
            self._following.catch_up(frozenset((uuid,)))
        return surveyed

    def _woken(self, record: AgentRecord) -> AgentActor | None:
        if self._rebalancer is not None and (record.owner != self._runtime.host.id or not may_block()):
            return None  # it is asked by a row
        return self._processes.wake(record.uuid)

    def _look_at_others(self, among: frozenset[str] | None) -> None:
        """Check for rows of other processes for this host's agents: for these, or for all if None."""
        self._supervision.look_at_other_processes(among)
        self._runtime.journal.note_others()
        if self._rebalancer is not None:
            self._rebalancer.look_again()

    def _look_at_rows(self) -> None:
        self._supervision.look_at_rows()

    def _on_commit(self, answer: object) -> None:
        """Carry out what a committed unit means for other agents. Never waits.

        ``answer``: the answer of the unit.
        """
        match answer:
            case Rule():
                self._supervision.look_at_rows()
            case AppendCompleted() if answer.unit.rule is not None:
                self._supervision.look_at_rows()
            case AppendCompleted() if answer.unit.cancels:
                self._supervision.look_at_cancelled()
                self._on_commit(answer.answer)
            case CallAppended() | AppendCompleted():
                self._on_commit(answer.answer)
            case Woken():
                self._supervision.look_at_woken()
                self._runtime.waits.changed(answer.agent)
                self._on_commit(answer.answer)
            case Parked() if answer.wake_at is not None:
                self._supervision.look_at_timers()
            case Unparked():
                self._supervision.look_at_rows()  # prompts were left as rows
            case Received():
                self._on_commit(answer.done)
                self._supervision.look_at_rows()
            case LifecycleChange():
                self._processes.follow(answer)
                self._supervision.on_lifecycle_change(answer)
            case Renamed():
                self._processes.renamed(answer)
            case Held() | Paused() | Settled():
                self._processes.notified(answer.notified)
            case Served():
                for uuid, held in answer.held:
                    self._processes.granted(uuid, held)
                for uuid, paused in answer.moved:
                    self._processes.waits_elsewhere(uuid, paused)
                self._processes.notified(answer.notified)
                self._supervision.watch_time()
                if answer.again or answer.due is not None:
                    self._processes.serve((answer.budget,), None if answer.again else answer.due)
            case KeptWord():
                self._kept(answer)
            case Mail(kind=kind) if kind == PROMPT:
                self._supervision.look_at_rows()
            case Imported():
                survey = survey_of(answer)
                self._processes.restore(survey)
                self._supervision.take_over(survey)
            case Mail():
                self._publisher.publish(Mailed(answer))
                self._processes.mailed(answer.recipient, answer.sender)
            case Timer():
                self._supervision.look_at_timers()
            case SubscriptionChanged() | Redelivered():
                self._supervision.deliveries.look_soon()
            case DeliveryRecorded() if answer.notice is not None:
                self._on_commit(answer.notice)
            case SteppedQuestion():
                logger.warning(waits_text(answer), extra=AS_EVENT)
                self._supervision.look_at_rows()
                for mail in answer.mails:
                    self._on_commit(mail)
            case Fired() | GroupSent():
                for mail in answer.mails:
                    self._on_commit(mail)

    def _kept(self, word: KeptWord) -> None:
        """Give an actor a steering message that was just committed, before the sender goes on."""
        is_here = word.entered is not None or self._processes.word(word)
        if not is_here:  # it sleeps, perhaps
            self._supervision.look_at_rows()
        if isinstance(word.receipt, Receipt):
            if not is_here and self._remote is not None:
                self._remote.await_word(word.mail.recipient, word.mail.id, 0, word.receipt)  # it has left meanwhile
            word.receipt.kept.settle(word.mail.id)
            if word.entered is not None:
                word.receipt.settle(word.entered)

    def _open_toolsets(self, toolsets: Sequence[Toolset], paths: HostPaths) -> None:
        """Start the toolsets, before any agent acts: a turn may wait for this host, in a row or in its own log.

        They read by the store itself: a call in flight may still read while the system closes.
        """
        publisher, store, runtime = self._publisher, self._ungated_store, self._runtime
        for toolset in toolsets:

            def tell(text: str, name: str = toolset.name) -> None:
                publisher.publish(ToolTrouble(name, text))

            toolset.host_paths, toolset.trees = paths, StoredTrees(store, runtime.journal, self._clock)
            toolset.remotes = StoredRemotes(
                store, runtime.journal, self._clock, self._toolbox.redefine, self._keys or (), self._allowed
            )
            toolset.read_blobs = lambda hashes: store.read(lambda tx: read_blobs(tx, hashes))
            if unsuitable := self._toolbox.add(runtime.executor.open(toolset, tell)):
                text = left_out(unsuitable)
                logger.warning("%s: %s", toolset.name, text, extra=AS_EVENT)
                tell(text)
            if toolset.copied is not None:
                self._toolbox.copied += (toolset.copied,)

    def statistics(self) -> SystemStatistics:
        """The counters of this host and its agents."""
        self._check_open()
        agents = self._store.read(lambda tx: registry.count_living(tx, self._runtime.host.id))
        return self._processes.statistics(agents, self._ungated_log_cache.read_logs)

    def _statistics_of(self, uuid: str, record: AgentRecord | None = None) -> AgentStatistics:
        """Return the counters of an agent since its actor was started, without its restarts.

        The database is not read for an agent of this host. For an agent of another host, the rows of its log are
        counted, which cover its whole life; with a ``record`` nothing is read, and only what was counted so far is
        returned. The size of the inbox and the times of waiting are then 0.
        """
        self._check_open()
        check_optional(record, AgentRecord, "record", "a row of the registry")
        actor = self._processes.get(check_type(uuid, str, "uuid", "text"))
        if actor is not None:
            status = actor.state.status
            state = self._waits_for(uuid) if status == Status.RUNNING else status.value
            return replace(actor.statistics(), state=state) if state else actor.statistics()
        row = self._store.read(lambda tx: registry.get(tx, uuid)) if record is None else record
        if not row.living:
            raise self._not_here(row)
        known = record is not None
        tally = self._tallies.of(uuid) if known else self._store.read(lambda tx: self._tallies.read(tx, uuid))
        return tally.statistics(self.state_of(row))

    def resume(self) -> list[AgentRef]:
        """Resume every turn that was cut off; return the agents with such turns."""
        self._check_open()
        return [self.handle(uuid) for uuid in self._processes.resume()]

    def _is_idle(self, within: float) -> bool:
        """Whether this host is unused: no other process is attached, no agent is at work, and no timer is due.

        Turns that wait for a person's decision, a grant or CONT wait in the database, and need no host.

        Args:
            within: seconds from now in which no timer is due.
        """
        self._check_open()
        if self._processes.is_at_work():
            return False
        return not self._store.read(lambda tx: host_is_needed(tx, self._runtime.host.id, within))

    def drain(self, timeout: float | None = None) -> None:
        """Give all agents to the other hosts; return when this host runs no agent. It takes no new agents.

        Replies and tools that are in progress have a lease's time to end; the rest is cut off, and goes on elsewhere as
        after a crash. Callers here still get their answers.

        Args:
            timeout: seconds to wait; None waits forever. The agents go on being given away after it.

        Raises:
            NoHost: no other host shares these agents.
            TimedOut: this host still runs some agents.
        """
        self._check_open()
        check_timeout(timeout)
        if self._rebalancer is None:
            raise NoHost(UNSHARED)
        self._rebalancer.drain().get(timeout=timeout)

    def _import(self, file: ImportFile, under: str | None, timeout: float | None) -> str:
        unit = Import(file, under, self._runtime.host.id, self._clock.now_ms(), self._random_bytes)
        imported: Imported = self._writer.perform(unit, timeout)
        return imported.top

    def _parts(self) -> list[SystemPart]:
        runtime, rebalancer, remote = self._runtime, self._rebalancer, self._remote
        supervision, following = self._supervision, self._following
        return [
            SystemPart("the store", self._ungated_store.close),
            SystemPart("what event loops wait for", self._beside.close),
            SystemPart("the host", runtime.host.release),
            SystemPart("the subscribers", self._publisher.close),
            SystemPart("the agents", self._actors.run),
            SystemPart("the dispatcher", runtime.dispatcher.close),
            SystemPart("the supervision loop", supervision.close, supervision.start),
            SystemPart("the replies on their way", self._streams.close),
            *([] if remote is None else [SystemPart("what other hosts were asked", remote.close)]),
            SystemPart("the waits", self._waits.close, self._waits.start),
            SystemPart("what sends to receivers", self._link.close),
            SystemPart("the journal", runtime.journal.close, runtime.journal.start),
            SystemPart("the reader of logs", runtime.log_loader.close, runtime.log_loader.start),
            SystemPart("what runs outside", lambda: runtime.executor.close(runtime.providers)),
            *([] if rebalancer is None else [SystemPart("the share of this host", rebalancer.close, rebalancer.start)]),
            SystemPart("the board of waits", self._wait_board.close),
            SystemPart("the listeners elsewhere", self._streams.stop),  # its last unit is written by the journal
            SystemPart("the watch on other processes", following.close, following.start),
        ]

    def _actor(self, uuid: str) -> AgentActor:
        """The actor of an agent that this host runs. Raises `SystemClosed`, `AgentNotFound` and `AgentDead`."""
        actor = self._target(uuid)
        if not isinstance(actor, AgentActor):
            raise self._store.read(lambda tx: _no_actor(registry.get(tx, uuid), open_hosts(tx)))
        return actor

    def state_of(self, record: AgentRecord) -> str:
        """The state of an agent, in a word or two."""
        self._check_open()
        if check_type(record, AgentRecord, "record", "a row of the registry").status != "running":
            return record.status
        if record.waits_for is not None:  # its actor may not have heard yet
            return Phase.WAITING_FOR_BUDGET.value
        actor = self._processes.get(check_type(record.uuid, str, "record.uuid", "text"))
        if actor is None:
            if record.owner == self._runtime.host.id:
                return turn_state(record, hosted=True)
            if self._rebalancer is None or not self._rebalancer.lives(record.owner):
                return turn_state(record, hosted=False)
            return shown_state(record, self._rebalancer.hosts)
        if (shown := actor.state.shown) is Phase.WAITING_FOR_APPROVAL:
            return waits_for_person(record.asks or ())
        return self._waits_for(record.uuid) or shown.value

    def _abandoned(self) -> int:
        return self._runtime.executor.abandoned

    @property
    def _hooks(self) -> tuple[Hook, ...]:
        return self._runtime.hooks.known

    @property
    def _workspace(self) -> Path | None:
        return self._runtime.executor.workspace

    def _text_of(self, uuid: str, path: str) -> str | None:
        return self._runtime.executor.text_of(uuid, path)

    @property
    def _provider_names(self) -> tuple[str, ...]:
        return self._runtime.providers.names

    def _printed(self, uuid: str) -> dict[str, str]:
        return self._runtime.executor.printed(uuid)

    def _signs(self) -> dict[str, Sign]:
        return {**super()._signs(), **self._processes.signs()}

    def _waits_for(self, uuid: str) -> str:
        """Return in words what an agent waits for: other agents, its service or its program; empty for nothing."""
        if others := waits_for([self._awaited(each) for each in self._wait_registry.awaited_by(uuid)]):
            return others
        if (actor := self._processes.get(uuid)) is None:
            return ""
        if actor.state.phase is Phase.WAITING_FOR_PROGRAM:
            return waits_for_program(actor.state.program)
        wait = actor.state.service_wait
        return "" if wait is None else wait.state

    def _called(self, uuid: str) -> str:
        actor = self._processes.get(uuid)
        if actor is not None:
            return actor.called
        return self._ungated_store.read(lambda tx: registry.get(tx, uuid)).short

    def _awaited(self, uuid: str) -> str:
        if (actor := self._processes.get(uuid)) is not None:
            return called_awaited(uuid, actor.origin.name, interrupted=actor.state.shown is Phase.INTERRUPTED)
        record = self._ungated_store.read(lambda tx: registry.get(tx, uuid))
        return called_awaited(uuid, record.name, interrupted=record.cut_off > 0)

    def _tell_tools(self, _: ListTools, caller: RemoteCaller) -> None:
        """Answer another process with the tools of an agent; the log is read on another thread if needed."""
        self._beside.post(lambda: caller.settle(self.handle(caller.key.agent).tools()), caller)

    @property
    def _toolbox(self) -> Toolbox:
        return self._runtime.toolbox

    @property
    def _default_settings(self) -> Mapping[str, Any]:
        return self._runtime.providers.settings

    @property
    def _default_model(self) -> str:
        return self._runtime.providers.default

    def _window_of(self, model: str | None = None) -> int:
        self._check_open()
        check_optional(model, str, "model", "a model setting")
        try:
            return self._runtime.providers.window(model)
        except (Exception, SystemExit) as error:  # other people's code
            named = model or self._default_model
            raise ProviderError(f"The window of {named} is not known: its provider breaks ({error!r}).") from error

    def _tools_read(self, log: Log) -> Sequence[Mapping[str, Any]]:
        settings = {**self._default_settings, **log.view(log.head).settings}
        try:
            by_reference = self._runtime.providers.asked(settings)[0].refers_to_tools
        except ProviderError:
            by_reference = False
        except (Exception, SystemExit) as error:  # other people's code
            raise ProviderError(f"The tools are not known: the provider breaks ({error!r}).") from error
        tools = found_in(log, log.head) if finds(settings, by_reference) else None
        return self._toolbox.offer(settings, tools, by_reference).read

    def _models_asked(self, settings: Mapping[str, Any], summary: bool) -> tuple[PricedModel, ...]:
        try:
            names = [str(model) for model in self._runtime.providers.asked(settings, summary)]
        except ProviderUnknown as error:
            raise BadInput(str(error)) from error
        except (Exception, SystemExit) as error:  # other people's code
            named = settings.get("model") or self._default_model
            raise BadInput(f"The model {named} cannot be asked: its provider breaks ({error!r}).") from error
        return tuple(PricedModel(name, self._runtime.prices.of_model(name)) for name in names)

    def _refuse_unanswered(self, settings: Mapping[str, Any], writers: Collection[str]) -> None:
        if self._runtime.providers.only_stands_in(settings):
            writer = other_writer(writers)
            if writer or not writers:
                raise ProviderMissing(self._runtime.providers.why_silent(writer) if writer else UNWRITTEN)
        self._models_asked(settings, False)  # a provider that is not registered is `BadInput`
        self._runtime.providers.check_ready(settings)

    @property
    def _stand_in_notice(self) -> str:
        return self._runtime.providers.notice(self._runtime.written_by)

    def _check_model(self, model: str) -> None:
        self._asked_models({"model": check_type(model, str, "model", "a model setting")})

    def _check_new_rule(self, rule: NewRule) -> None:
        self._toolbox.check_rules([rule])

    def _tell_trouble(self, reason: str | None) -> None:
        if self._failure is None:  # else the last word was said
            self._publisher.publish(StoreTrouble(reason))

    def _leave(self, error: ProgramOutdated) -> None:
        """Begin to give the agents to hosts with the newer program, then stop the system. Never waits."""
        logger.warning("%s Until then other hosts run the agents.", error)
        if self._rebalancer is None:
            self._fail(error)
        else:
            self._rebalancer.drain(LEAVING).add_done_callback(lambda drained: self._fail(error))

    def _lose(self, error: IkigaiError) -> None:
        """Stop at once, because the database may belong to another host now. Waits for nothing."""
        self._fail(error)
        if isinstance(error, StoreError):
            self._store.abandon(f"The system stopped: {error}")
