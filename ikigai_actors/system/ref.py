"""Handles of agents: what a program holds instead of an actor.

    child = root.fork("analyse the schema", name="dba")     # blocks until the fork is committed
    child.prompt("and the indexes?").get(timeout=60)        # a Future of the Reply
    child = await root.ask.fork("analyse the schema")       # the same in an asyncio program

A handle is a uuid and a system: plain, safe to share between threads, valid for dead agents too. What changes an agent
returns after the commit, and takes ``timeout`` in seconds: a `TimedOut` says that the answer did not come in time, not
that nothing happens. Reading works for any agent, the dead too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ikigai_actors.actors.futures import Future, current_acting_agent
from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.arguments import check_choice, check_flag, check_timeout
from ikigai_actors.errors import AgentDead, BadInput
from ikigai_actors.providers.base import Reply
from ikigai_actors.records import registry
from ikigai_actors.records.history import ReplayRange
from ikigai_actors.records.identity import check_name, new_agent_uuid
from ikigai_actors.records.log import read_ranges, read_whole
from ikigai_actors.records.messages import Message
from ikigai_actors.records.registry import AgentRecord, Rename
from ikigai_actors.records.replies import last_outcome
from ikigai_actors.records.settings import check_settings
from ikigai_actors.records.supervision import times_restarted
from ikigai_actors.system.agentlife import AgentLife, AgentLifeCommands
from ikigai_actors.system.agentmail import AgentMail, AgentMailCommands
from ikigai_actors.system.lifecycle import check_policy, tell
from ikigai_actors.text import check_text

if TYPE_CHECKING:
    from ikigai_actors.system.interface import System

RESTART_TYPES = ("permanent", "transient", "temporary")


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent's history means now."""

    inherited: int
    """Messages before the fork point that are visible."""
    own: int
    """Messages of its own that are visible."""
    settings: Mapping[str, Any]
    """The settings in force."""
    marks: tuple[tuple[str, int], ...]
    """Label and position of the marks in force, oldest first."""
    ranges: tuple[ReplayRange, ...]
    """Where the history is stored."""
    usage: Mapping[str, int]
    """Tokens as last reported by a provider; empty when none has."""


class AgentCommands(AgentMailCommands, AgentLifeCommands):
    """The commands of an agent, each as a future: ``await ref.ask.fork(...)``. See `AgentRef` for what they do."""

    __slots__ = ("_ref", "_waits")

    def __init__(self, ref: "AgentRef", waits: bool = False) -> None:
        self._ref = ref
        self._waits = waits  # the caller blocks until the answer is there: when it may not, nothing is asked for

    def prompt(self, text: str) -> Future[Reply]:
        """See `AgentRef.prompt`."""
        check_text(text, "prompt")
        if not text.strip():
            raise BadInput("Expected a prompt, got blank text. Say something.")
        return self._tell(lambda caller: on.Prompt(text, caller), self._future())

    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        model: str | None = None,
        system: str | None = None,
        restart: str = "transient",
        on_orphan: str | None = None,
    ) -> "Future[AgentRef]":
        """See `AgentRef.fork`."""
        if prompt is not None and not check_text(prompt, "prompt").strip():
            raise BadInput("Expected a prompt for the child, got blank text. Leave it out to fork without one.")
        check_choice(restart, "restart", RESTART_TYPES)
        policy = check_policy(on_orphan)
        settings = check_settings(
            {key: value for key, value in (("model", model), ("system", system)) if value is not None}
        )
        child = new_agent_uuid(self._ref.system.random_bytes)
        name = check_name(name) if name is not None else None
        late = f"the fork may still happen: the child is agent {child} then (system.agent finds it)."
        future: Future[AgentRef] = Future(self._ref.uuid, make=self._ref.system.handle, late=late)
        return self._tell(lambda caller: on.Fork(child, name, prompt, settings, restart, caller, policy), future)

    def reply(self) -> Future[Reply]:
        """See `AgentRef.reply`."""
        try:
            return self._tell(on.GetOutcome, self._future())
        except AgentDead:
            outcome = last_outcome(self._ref.system.archive.load(self._ref.uuid).messages)
            if outcome is None:
                raise
        settled = self._future()
        settled.settle(outcome)
        return settled

    def clear(self) -> Future[int]:
        """See `AgentRef.clear`."""
        return self._tell(on.Clear, self._future())

    def mark(self, label: str | None = None) -> Future[int]:
        """See `AgentRef.mark`."""
        text = "" if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.SetMark(text, caller), self._future())

    def rewind(self, label: str | None = None) -> Future[int]:
        """See `AgentRef.rewind`."""
        text = None if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.Rewind(text, caller), self._future())

    def undo(self) -> Future[int]:
        """See `AgentRef.undo`."""
        return self._tell(on.Undo, self._future())

    def configure(self, **settings: Any) -> Future[int]:
        """See `AgentRef.configure`."""
        checked = check_settings(settings)
        return self._tell(lambda caller: on.Configure(checked, caller), self._future())

    def rename(self, name: str | None) -> Future[None]:
        """See `AgentRef.rename`."""
        return self._ref.system.lives.ask(Rename(self._ref.uuid, name), lambda _: None)

    def resume(self) -> Future[bool]:
        """See `AgentRef.resume`."""
        return self._tell(on.Resume, Future())

    def _future(self) -> Future[Any]:
        return Future(self._ref.uuid)

    def _tell(self, command: Any, future: Future[Any]) -> Future[Any]:
        uuid = self._ref.uuid
        if self._waits:
            future.check_wait()
        tell(self._ref.system.actor, uuid, command(future))
        return future


class AgentRef(AgentMail, AgentLife):
    """The handle of one agent."""

    __slots__ = ("system", "uuid")

    def __init__(self, system: "System", uuid: str) -> None:
        """Use `ActorSystem.agent` or `AgentRef.fork`."""
        self.system = system
        self.uuid = uuid

    def __repr__(self) -> str:
        return f"<AgentRef {self.uuid}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentRef) and (other.uuid, other.system) == (self.uuid, self.system)

    def __hash__(self) -> int:
        return hash(self.uuid)

    @property
    def ask(self) -> AgentCommands:
        """The same commands as futures, to be awaited."""
        return AgentCommands(self)

    @property
    def _now(self) -> AgentCommands:
        """The same commands for methods that wait."""
        return AgentCommands(self, waits=True)

    def _within(self, timeout: float | None) -> AgentCommands:
        """The commands for a method that waits so long. Raises `BadInput` before anything is asked for."""
        check_timeout(timeout)
        return self._now

    def prompt(self, text: str) -> Future[Reply]:
        """Open a turn: the agent answers the text.

        A prompt to a busy agent waits for the end of its turn. One to a stopped agent waits for CONT, in the database:
        it survives this process, and is taken up once. The future gives the `Reply`; it raises `ProviderError`
        when the model could not answer, and `TurnInterrupted` when the turn was ended.

        Raises:
            BadInput: the text is blank, or cannot be stored.
            AgentDead: the agent is dead.
            InboxFull: 10,000 commands wait for it; the future raises it, or the call.
        """
        return self.ask.prompt(text)

    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        model: str | None = None,
        system: str | None = None,
        restart: str = "transient",
        on_orphan: str | None = None,
        timeout: float | None = None,
    ) -> "AgentRef":
        """Make a child that inherits this agent's history and settings; return its handle after the commit.

        A busy agent forks at its next step boundary. The cost is the same whatever the history.

        Args:
            prompt: the child's first prompt, which it answers at once; None lets it wait for one.
            name: a name for the child, unique among the living.
            model: its ``model`` setting, ``provider:model``; None inherits.
            system: its system prompt; None inherits.
            restart: what its supervisor restarts it after: a crash or an exit (``permanent``), a crash
                (``transient``), or nothing (``temporary``).
            on_orphan: what becomes of the child's own children when it dies: ``reparent``, ``cascade``, ``stop`` or
                ``continue``; None inherits.
            timeout: seconds to wait. The fork may still happen later; the `TimedOut` names the child.

        Raises:
            NameTaken, BadInput: the name cannot be had.
            AgentDead, AgentStopped: this agent does not fork.
            InboxFull: 10,000 commands wait for it.
            WouldWaitForItself: called by the agent's own code, during its turn: let that return
                ``[ToolCall("fork", {...})]`` instead.
        """
        commands = self._within(timeout)
        forked = commands.fork(prompt, name=name, model=model, system=system, restart=restart, on_orphan=on_orphan)
        return forked.get(timeout=timeout)

    def reply(self, timeout: float | None = None) -> Reply:
        """The outcome of the turn in progress, or else of the agent's latest one; of a dead agent too.

        Raises:
            ProviderError, TurnInterrupted: that was the outcome. A turn that a crash cut off counts as interrupted.
            NoTurn: there was no turn yet.
            AgentDead: it died before its latest turn had an outcome, or without a turn.
        """
        return self._within(timeout).reply().get(timeout=timeout)

    def clear(self, timeout: float | None = None) -> int:
        """Begin anew, with the settings in force. Returns the position of the clear."""
        return self._within(timeout).clear().get(timeout=timeout)

    def mark(self, label: str | None = None, timeout: float | None = None) -> int:
        """Set a mark to come back to. Labels may repeat: the latest counts. Returns its position."""
        return self._within(timeout).mark(label).get(timeout=timeout)

    def rewind(self, label: str | None = None, timeout: float | None = None) -> int:
        """Go back to the latest mark, or the latest with this label, inherited ones too; settings stay as they are.

        Returns the position of the rewind. Raises `MarkNotFound`.
        """
        return self._within(timeout).rewind(label).get(timeout=timeout)

    def undo(self, timeout: float | None = None) -> int:
        """Take back the latest prompt of the history, an inherited one too, and all that was said since.

        It is a rewind to where the history stood before that prompt: conversation and marks are as they were, settings
        and what tools did to the world stay as they are. A turn in progress is waited for.

        Args:
            timeout: seconds to wait.

        Returns:
            The position of the rewind.

        Raises:
            NoTurn: there is no prompt to take back.
        """
        return self._within(timeout).undo().get(timeout=timeout)

    def configure(self, *, timeout: float | None = None, **settings: Any) -> int:
        """Change settings (``model``, ``system``, ``max_tokens``, ``temperature``: `ikigai_actors.records.settings`).
        None removes one. Children inherit them.

        Returns the position of the change. Raises `BadInput` for an unknown setting or a wrong value.
        """
        return self._within(timeout).configure(**settings).get(timeout=timeout)

    def rename(self, name: str | None, timeout: float | None = None) -> None:
        """Give the agent a name, or another one; what it is told and shown by follows. Returns after the commit.

        Who looks for the old name finds nobody, and another agent may have it.

        Args:
            name: the new name, unique among the living; empty or None takes the name away.
            timeout: seconds to wait.

        Raises:
            NameTaken, BadInput: the name cannot be had.
            AgentDead: the agent is dead, and keeps its name.
        """
        self._within(timeout).rename(name).get(timeout=timeout)

    def resume(self, timeout: float | None = None) -> bool:
        """Go on with the latest turn, when a crash cut it off or an error of the provider ended it.

        The history is sent to the model again, with all that the turn had come to; `reply` then waits for the outcome.

        Returns:
            Whether there was such a turn. There is none when something was said since, or the history was cleared or
            rewound.
        """
        return self._within(timeout).resume().get(timeout=timeout)

    @property
    def record(self) -> AgentRecord:
        """Its row of the registry, read now."""
        return self.system.store.read(lambda tx: registry.get(tx, self.uuid))

    @property
    def name(self) -> str | None:
        """Its name, if it has one."""
        return self.record.name

    @property
    def parent(self) -> "AgentRef | None":
        """The agent it was forked from; None for agent 0."""
        return self._handle(self.record.parent_uuid)

    @property
    def supervisor(self) -> "AgentRef | None":
        """The agent that looks after it; None for agent 0."""
        return self._handle(self.record.supervisor_uuid)

    def children(self) -> "list[AgentRef]":
        """The living agents that it supervises, in order of creation, adopted ones last."""
        records = self.system.store.read(lambda tx: registry.children(tx, self.uuid))
        return [self.system.handle(record.uuid) for record in records if record.living]

    @property
    def state(self) -> str:
        """``idle``, ``waiting for the model``, ``interrupted``; or ``stopped``, ``terminating``, ``dead``."""
        return self.system.state_of(self.record)

    def statistics(self) -> AgentStatistics:
        """What it is doing, and has done since its actor was started on this host, or since this process was attached
        to another one's; and how often it was ever restarted. Raises `AgentDead`.
        """
        counted = self.system.statistics_of(self.uuid)
        return replace(counted, restarts=self.system.store.read(lambda tx: times_restarted(tx, self.uuid)))

    def settings_at_hand(self) -> Mapping[str, Any] | None:
        """The settings in force, if they are at hand; None when its log was not needed yet. Reads nothing."""
        state = self.system.actor(self.uuid).state
        return state.view.settings if state.phase is not Phase.UNLOADED else None

    def history(self, all: bool = False) -> list[Message]:  # noqa: A002 - the interface names it so
        """Its messages, inherited ones first: as clears and rewinds leave them, or ``all`` that were ever written.

        Raises `HistoryError` when its rows are wrong.
        """
        if check_flag(all, "all"):
            return self.system.store.read(lambda tx: read_whole(tx, self.uuid))
        return list(self.system.archive.load(self.uuid).visible())

    def tools(self) -> list[Mapping[str, Any]]:
        """What its model is told of its tools, as Messages-API dicts. Raises `ProviderError` for a wrong setting."""
        log = self.system.archive.load(self.uuid)
        return list(self.system.toolbox.describe(log.view(log.head).settings))

    def ranges(self) -> tuple[ReplayRange, ...]:
        """Where its history is stored, oldest first."""
        return self.system.store.read(lambda tx: read_ranges(tx, self.uuid))

    def context(self) -> Context:
        """What its history means now: counts, settings, marks, ranges, tokens."""
        log = self.system.archive.load(self.uuid)
        head = log.head
        view, visible = log.view(head), list(log.visible(head))
        used: object = next((message.data["usage"] for message in reversed(visible) if "usage" in message.data), {})
        return Context(
            inherited=sum(message.id <= log.fork for message in visible),
            own=sum(message.id > log.fork for message in visible),
            settings=dict(view.settings),
            marks=tuple((mark.label, mark.id) for mark in view.all_marks()),
            ranges=self.ranges(),
            usage=dict(used) if isinstance(used, Mapping) else {},
        )

    def _handle(self, uuid: str | None) -> "AgentRef | None":
        return None if uuid is None else self.system.handle(uuid)


def current_agent() -> AgentRef:
    """The agent on whose behalf the calling code runs: inside a FunctionProvider or a tool. Raises `NoCurrentAgent`."""
    agent: AgentRef = current_acting_agent()
    return agent
