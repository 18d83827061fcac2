"""An attached system: a second look at a database whose agents another process runs.

    with AttachedSystem.open("team.db") as system:
        print(system.attached)                                  # who runs the agents
        system.agent("dba").prompt("and now?").get(timeout=60)  # by mail; the host takes it up

It has the interface of an `ActorSystem`, as far as handles and shells use it, and works through the database alone, by
a `Client`: it reads everything; prompts go as mail of kind ``prompt``, mail and signals as rows, documents as versions.
What an agent must do itself (fork, clear, mark, rewind, configure, resume, exit, decide on approvals, move) is a row
of ``requests``, which the host carries out once and answers. Messages are told when they are committed, so a reply
comes whole. What only the host's memory holds stays there: its tools (`HostElsewhere`), and the settings at hand.

One thread follows the host (`ikigai_actors.system.remote.following`), and settles the futures of prompts and
requests. When the host goes away, that is told (`HostChanged`), and futures that wait end with `NoHost`: a prompt that
was not taken up yet stays in the database, and the next host answers it; a request is withdrawn. Nothing here takes
over; a system that is opened anew does.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.closing import Closing, note_failure
from ikigai_actors.actors.forked import OfOneProcess
from ikigai_actors.actors.futures import refuse_to_block
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.statistics import AgentStatistics, TurnStatistics
from ikigai_actors.agent.subscriptions import (
    CALLBACK,
    Callback,
    Publisher,
    StoreTrouble,
    Subscription,
)
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.agent.waits import Waits
from ikigai_actors.arguments import check_callable, check_choice, check_optional, check_type
from ikigai_actors.errors import AgentDead, NoHost, SystemClosed
from ikigai_actors.providers.base import NO_TOKENS, Usage
from ikigai_actors.records.documents import Documents
from ikigai_actors.records.host_waits import published_state
from ikigai_actors.records.log_cache import LogCache
from ikigai_actors.records.mail import Mail, letter
from ikigai_actors.records.messages import Kind
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.records.replies import reply_of
from ikigai_actors.store.base import Store
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.gate import Gate
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.writer import DirectWriter
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.system.host_events import host_events
from ikigai_actors.system.lifecycle import Lifecycle
from ikigai_actors.system.ref import AgentRef
from ikigai_actors.system.remote.agents import RemoteActor, RemoteAgents
from ikigai_actors.system.remote.client import Client, shown_state, turn_state
from ikigai_actors.system.remote.follower import Follower, News
from ikigai_actors.system.remote.following import FollowingLoop
from supervisors.signals import Status


@dataclass(slots=True)
class _Seen:
    """What was seen of one agent since this process was attached."""

    turn: int = 0
    since: int = 0
    turns: int = 0
    steps: int = 0
    tokens: Usage = NO_TOKENS


class AttachedSystem(OfOneProcess):
    """Looks at the agents of one database, that another process runs. Open it with `open`."""

    def __init__(self, store: Store) -> None:
        """Put the parts together; use `open`."""
        clock = self.clock = clock_of(store, SystemClock())
        self._store, self._log_cache = store, LogCache(store, is_here=lambda uuid: False)
        self.random_bytes = os.urandom
        gate = self.store = Gate(store, self.check_open)
        self._client = Client(gate, clock, self._on_commit)
        writer = self.writer = DirectWriter(self._client.write)
        self.documents = Documents(gate, writer.perform, clock.now_ms)
        # Of those that run elsewhere the rows tell whether they rest.
        waits = self.waits = Waits(store, clock, lambda uuid: True, SYSTEM_THREADS)
        self._publisher = Publisher(SYSTEM_THREADS)
        asking = Client(store, clock, self._on_commit)  # also while this closes: what was asked is written
        remote = self._remote = RemoteAgents(store, asking, self._publisher.publish, Follower(store))
        self._following = FollowingLoop(
            store, clock, SYSTEM_THREADS, waits, remote=remote, tell=self._tell, on_trouble=self._tell_trouble
        )
        self.lifecycle = Lifecycle(gate, writer, clock, None, self.here)
        self.approvals = Approvals(gate, self._log_cache, self.target)
        self._seen: dict[str, _Seen] = {}
        self._trouble = False
        self._closing = threading.Event()
        self._parts = Closing(
            SYSTEM_THREADS,
            lambda: [
                ("the watch on the host", self._following.close),
                ("the waits", waits.close),
                ("the futures", remote.close),
                ("the subscribers", self._publisher.close),
                ("the store", store.close),
            ],
        )

    @classmethod
    def open(cls, database: str | os.PathLike[str] | None = None) -> Self:
        """Look at a database that is there; see `ActorSystem.open` for its place.

        Raises `StoreError` when it cannot be used, and `BadInput` for a place that is none.
        """
        with ExitStack() as undone:
            store = open_existing(database)
            undone.callback(store.close)
            system = cls(store)
            undone.push(system._give_up)
            system._begin()
            undone.pop_all()
        return system

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the system; what that raises does not hide an error of the block."""
        if error is None:
            self.close()
        else:
            self._give_up(kind, error, traceback)

    def _give_up(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        note_failure(self.close, error)

    @property
    def host(self) -> HostRecord | None:
        """Who runs the agents, as seen at the last look: the latest of several; None when nobody does."""
        return self._remote.host

    @property
    def owners(self) -> Sequence[HostRecord]:
        """Who runs the agents, as seen at the last look, the latest first."""
        return self._remote.hosts

    @property
    def attached(self) -> str:
        """How a person knows who runs the agents."""
        match self._remote.hosts:
            case []:
                return "attached, no host"
            case [host]:
                return f"attached to pid {host.pid}"
            case hosts:
                return f"attached to {len(hosts)} hosts"

    @property
    def toolbox(self) -> Toolbox:
        """Which tools there are only the host knows: raises `HostElsewhere`."""
        self.check_open()
        raise self._remote.elsewhere()

    @property
    def root(self) -> AgentRef:
        """Agent 0."""
        record = self._client.root()
        if record is None:
            raise NoHost("There are no agents yet: the process that makes the first one was not done. Start again.")
        return self.handle(record.uuid)

    def agent(self, text: str) -> AgentRef:
        """The agent with this uuid, name, or unique prefix of a uuid (4 characters or more).

        Raises:
            AgentNotFound, AmbiguousAgent: the text finds no agent, or several.
        """
        check_type(text, str, "agent", "a uuid, the beginning of one, or a name")
        return self.handle(self._client.find(text).uuid)

    def agents(self, status: str | None = None) -> list[AgentRecord]:
        """The registry, oldest first, the dead too; or only agents with a status."""
        if status is not None:
            check_choice(status, "status", [*Status])
        return self._client.agents(status)

    def hosts(self) -> list[HostRecord]:
        """The hosts that run the agents, and those that did within the last hour; in the order of their start."""
        return self._client.hosts()

    def handle(self, uuid: str) -> AgentRef:
        """The handle of an agent whose uuid is known; nothing is looked up."""
        self.check_open()
        return AgentRef(self, check_type(uuid, str, "uuid", "text"))

    def here(self, uuid: str) -> AgentActor | None:
        """None: no agent has its actor here. Raises `SystemClosed`."""
        self.check_open()
        check_type(uuid, str, "uuid", "text")
        return None

    def target(self, uuid: str) -> RemoteActor:
        """What stands for the actor of an agent. Raises `SystemClosed`, `AgentNotFound` and `AgentDead`."""
        record = self._client.get(check_type(uuid, str, "uuid", "text"))
        if not record.living:
            raise AgentDead(f"Agent {record.short} is {record.status}: {record.exit_reason or 'no reason'}.", uuid)
        return self._remote.actor(uuid)

    def remote(self, uuid: str) -> RemoteActor:
        """What asks the host that runs an agent. Raises `SystemClosed`."""
        self.check_open()
        return self._remote.actor(check_type(uuid, str, "uuid", "text"))

    def state_of(self, record: AgentRecord) -> str:
        """What an agent is doing, as far as rows tell."""
        self.check_open()
        return shown_state(check_type(record, AgentRecord, "record", "a row of the registry"), self._remote.hosts)

    def check_open(self) -> None:
        """Raise `SystemClosed` when the system was closed."""
        if self._closing.is_set():
            raise SystemClosed("The system is closed; open it again.")

    @property
    def log_cache(self) -> LogCache:
        """The logs that are in use. Raises `SystemClosed`."""
        self.check_open()
        return self._log_cache

    @property
    def default_settings(self) -> Mapping[str, Any]:
        """Only the host knows."""
        return {}

    def touch(self, agent: AgentRef) -> None:
        """Remember that a person looked at an agent: a shell begins there next time."""
        check_type(agent, AgentRef, "agent", "a handle")
        refuse_to_block()
        self._client.touch(agent.uuid)

    def send(self, recipient: AgentRef | str, body: str, timeout: float | None = None) -> int:
        """Send a mail for a person outside of any agent; return its number. Raises as `AgentRef.send` does."""
        unit = letter(self.store, None, recipient, body, self.clock.now_ms())
        mail: Mail = self.writer.perform(unit, timeout)
        return mail.id

    def subscribe(self, callback: Callback) -> Subscription:
        """Call back for each event of the host.

        These are the messages (`Message`) and deaths (`Died`) that it commits, a change of the host (`HostChanged`),
        the end of one of several (`HostEnded`), and trouble with the store (`StoreTrouble`).
        """
        self.check_open()
        return self._publisher.subscribe(check_callable(callback, "callback", CALLBACK))

    def statistics(self) -> TurnStatistics:
        """What was done in other processes: turns, steps and tokens are those seen since this process was attached."""
        self.check_open()
        seen, tokens = list(self._seen.values()), NO_TOKENS
        for each in seen:
            tokens = tokens + each.tokens
        return TurnStatistics(
            turns=sum(each.turns for each in seen),
            steps=sum(each.steps for each in seen),
            tokens=tokens,
            read_logs=self._log_cache.read_logs,
            waits=len(self.waits),
        )

    def statistics_of(self, uuid: str, record: AgentRecord | None = None) -> AgentStatistics:
        """What an agent is doing, and has done since this process was attached, as far as rows tell. Reads nothing.

        0 stands for what no row tells: the inbox and the times it waited, which only its host knows, and its restarts.
        """
        self.check_open()
        check_optional(record, AgentRecord, "record", "a row of the registry")
        seen = self._seen.get(check_type(uuid, str, "uuid", "text")) or _Seen()
        waits = published_state(self._remote.hosts, uuid) if seen.turn else ""
        state = waits or turn_state(seen.turn, self.host is not None)
        return AgentStatistics(state, seen.since, 0, seen.turns, seen.steps, seen.tokens, 0, 0, 0)

    def close(self) -> None:
        """Look no more; the agents go on. Closes as `ActorSystem.close` does, whatever goes wrong with a part."""
        if self.forked:  # all of it is the parent's
            return
        self._closing.set()
        self._parts.run()

    # Following the host

    def _begin(self) -> None:
        self.waits.start()
        self._following.start()

    def _tell(self, news: News, before: Sequence[HostRecord]) -> None:
        """Tell the subscribers what was committed since the latest look, when ``before`` ran the agents."""
        self._note(news)
        publish = self._publisher.publish
        for message in news.messages:
            publish(message)
        for death in news.died:
            publish(death)
        for renamed in news.renamed:
            publish(renamed)
        for event in host_events(before, news.hosts):
            publish(event)

    def _note(self, news: News) -> None:
        """Count what was seen."""
        for uuid, turn in news.turns.items():
            seen = self._seen.setdefault(uuid, _Seen())
            if turn != seen.turn:
                seen.turn, seen.since = turn, self.clock.now_ms()
        for message in news.messages:
            seen = self._seen.setdefault(message.agent_uuid, _Seen())
            if message.kind == Kind.USER:
                seen.turns += 1
            elif message.kind == Kind.ASSISTANT:
                seen.steps += 1
                seen.tokens += reply_of(message).usage or NO_TOKENS

    def _on_commit(self, answer: object) -> None:
        """Something was written here, which the watch does not tell of."""
        self.waits.look_again()

    def _tell_trouble(self, reason: str | None) -> None:
        if (reason is None) == self._trouble:
            self._trouble = reason is not None
            self._publisher.publish(StoreTrouble(reason))
