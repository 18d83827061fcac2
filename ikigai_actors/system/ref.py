"""Handles of agents: what a program holds instead of an actor.

    child = root.fork("analyse the schema", name="dba")     # blocks until the fork is committed
    child.prompt("and the indexes?").get(timeout=60)        # a Future of the Reply
    child = await root.ask.fork("analyse the schema")       # the same in an asyncio program
    child.signal(Signal.STOP)                               # it pauses after its step; CONT lets it go on
    branch.kill(cascade=True)                               # it and all its descendants, at once
    root.supervise(strategy="rest_for_one", intensity=5, period=60)
    root.send(child, "The schema has changed.")             # returns after the commit
    child.remind("look at the build", every="0 9 * * 1-5", zone="Europe/Berlin", prompt=True)
    [mail.body for mail in child.read_mail(sender=root)]
    root.wait([child], timeout=30)                          # {child: "idle"}

A handle is a uuid and a system: plain, safe to share between threads, valid for dead agents too. What changes an agent
returns after the commit, and takes ``timeout`` in seconds: a `TimedOut` says that the answer did not come in time, not
that nothing happens. Reading works for any agent, the dead too.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypedDict, Unpack, overload

from ikigai_actors.actors.futures import MAY_HAPPEN, Future, current_acting_agent, refuse_to_block
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.actors.wait_graph import Until
from ikigai_actors.agent.remote_commands import Move
from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.merging import RESULT, check_merge
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.agent.waits import Waiter, WaitResult
from ikigai_actors.arguments import check_callable, check_count, check_flag, check_timeout, check_type, shown
from ikigai_actors.attachments import Attachable
from ikigai_actors.errors import AgentDead, BadInput, HostElsewhere, NoHost, ProviderError
from ikigai_actors.providers.base import Reply, Usage
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.registry import AgentRecord, Handle, Rename, Touch, uuid_of
from ikigai_actors.records.budgets.budget import MOST, Budget, BudgetStatus, as_budget, checked_limits, micro_dollars
from ikigai_actors.records.budgets.charges import ChargeAgent
from ikigai_actors.records.budgets.grants import Grant
from ikigai_actors.records.budgets.limits import SetBudget
from ikigai_actors.records.budgets.status import budget_of
from ikigai_actors.records.lives.deaths import LifecycleChange
from ikigai_actors.records.lives.membership import (
    Demonitor,
    GroupSent,
    JoinGroup,
    LeaveGroup,
    MonitorAgent,
    SendToGroup,
    every_group,
    group_in,
)
from ikigai_actors.records.lives.supervision import AdoptChild, times_restarted
from ikigai_actors.records.log.diff import Diff, read_diff
from ikigai_actors.records.log.history import ReplayRange
from ikigai_actors.records.log.lineage import read_ranges, read_whole
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.merge_source import MergedDocument
from ikigai_actors.records.mail.mail import (
    Delete,
    Mail,
    Mailbox,
    Open,
    Read,
    Taken,
    check_mail_id,
    letter,
    sender_of,
    unread_mailbox,
)
from ikigai_actors.records.mail.mail import latest as latest_mail
from ikigai_actors.records.mail.schedules import appointment
from ikigai_actors.records.mail.timers import (
    CancelTimer,
    SetTimer,
    Timer,
    check_timer_id,
    delayed_letter,
    reminder,
    timers_of,
)
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.outputs import as_output, expected, problems
from ikigai_actors.records.messages.replies import OUTPUT, last_outcome
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.records.transfer.export import as_path
from ikigai_actors.records.transfer.graft import ImportFile
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.births import Child, births_of, note_of
from ikigai_actors.system.context import Context, context_of
from ikigai_actors.system.directory import Directory
from ikigai_actors.system.lateness import why_late
from ikigai_actors.system.lifecycle import GRACE, data_of, had_effect, new_children, new_fork, prompt_text, supervision
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.text import check_text
from supervisors.signals import Signal


@dataclass(frozen=True, slots=True)
class Compacted:
    """What came of a compaction."""

    position: int
    """The position of the summary."""
    before: int
    """How many tokens the conversation had, about."""
    after: int
    """How many it has now, about."""
    usage: Usage | None
    """What the summary has cost, when the provider tells it."""


def compacted(told: Mapping[str, Any]) -> Compacted:
    """What came of a compaction, as the agent tells it."""
    usage = told.get("usage")
    return Compacted(told["position"], told["before"], told["after"], None if usage is None else Usage(**usage))


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge."""

    position: int
    """The position of the message ``merge``."""
    head: int
    """The position up to which the child is merged now."""
    text: str
    """What was taken in: a result, a summary, or a selection."""
    documents: tuple[MergedDocument, ...]
    """What the child and those below it have written since, by path; nothing of it was changed."""
    usage: Usage | None
    """What the summary has cost, when the provider tells it."""


def merged(told: Mapping[str, Any]) -> Merged:
    """What came of a merge, as the agent tells it."""
    usage, documents = told.get("usage"), tuple(MergedDocument(**one) for one in told["documents"])
    return Merged(told["position"], told["head"], told["text"], documents, None if usage is None else Usage(**usage))


class ForkOptions(TypedDict, total=False):
    """What all children of a fork have in common; see `AgentRef.fork`."""

    model: str | None
    system: str | None
    restart: str
    on_orphan: str | None
    output: Any
    attach: "Sequence[Attachable]"
    at: int | None
    budget: Budget | Mapping[str, Any] | None


class WaitedForkOptions(ForkOptions, total=False):
    """The same, and how long to wait."""

    timeout: float | None


class AgentCommands:
    """The commands of an agent, each as a future: ``await ref.ask.fork(...)``.

    `AgentRef` has the same methods: they take the same arguments, do the same, and wait. An error comes from the
    future, and from the call itself for an argument that cannot be used.

    Both forms are written out, since a caller lives by what an editor, ``help`` and a type checker say of a method: its
    arguments and what it gives. Typed Python makes neither form of the other, for no signature adds ``timeout`` to
    another one, or takes the `Future` off its value (PEP 612). So nothing but signatures stands twice: a method of
    `AgentRef` waits for the future of the one here, or both use the same unit. That they take the same arguments is
    held by a test.
    """

    __slots__ = ("_ref", "_waits")

    def __init__(self, ref: "AgentRef", waits: bool = False) -> None:
        self._ref = ref
        self._waits = waits  # the caller blocks until the answer is there: when it may not, nothing is asked for

    def prompt(self, text: str, *, output: Any = None, attach: "Sequence[Attachable]" = ()) -> Future[Reply]:
        """Open a turn. The future gives the `Reply`."""
        return self._ref.prompt(text, output=output, attach=attach)

    def steer(self, text: str, *, now: bool = False) -> Receipt:
        """Tell the agent something within its turn. The future gives a `Steered`."""
        return self._ref.steer(text, now=now)

    @overload
    def fork(
        self, prompt: str | None = None, *, name: str | None = None, **how: Unpack[ForkOptions]
    ) -> "Future[AgentRef]": ...

    @overload
    def fork(
        self,
        *,
        prompts: Sequence[str | None],
        names: Sequence[str | None] | None = None,
        **how: Unpack[ForkOptions],
    ) -> "Future[list[AgentRef]]": ...

    @overload
    def fork(
        self,
        prompt: str | None = None,
        *,
        count: int,
        names: Sequence[str | None] | None = None,
        **how: Unpack[ForkOptions],
    ) -> "Future[list[AgentRef]]": ...

    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        count: int | None = None,
        prompts: Sequence[str | None] | None = None,
        names: Sequence[str | None] | None = None,
        model: str | None = None,
        system: str | None = None,
        restart: str = "transient",
        on_orphan: str | None = None,
        output: Any = None,
        attach: "Sequence[Attachable]" = (),
        at: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
    ) -> "Future[AgentRef] | Future[list[AgentRef]]":
        """Make a child, or several. The future gives its handle, or theirs."""
        random_bytes, handle = self._ref.system.random_bytes, self._ref.system.handle
        children = new_children(
            lambda: new_agent_uuid(random_bytes), prompt, name, count=count, prompts=prompts, names=names
        )
        how: ForkOptions = {"model": model, "system": system, "restart": restart, "on_orphan": on_orphan}
        how |= {"output": output, "attach": attach, "at": at, "budget": budget}
        fork = new_fork(children, **how)
        first = children[0].uuid
        late = f"the fork may still happen: the child is agent {first} then (system.agent finds it)."
        if count is None and prompts is None:
            forked: Future[AgentRef] = _future_of(
                self._ref, make=lambda uuid: _asked(handle(uuid), output), late=late, until=Until.STEP
            )
            return self._tell(fork, forked)
        late = f"the forks may still happen: the first child is agent {first} then (system.agent finds it)."
        made = [_asked(handle(child.uuid), output) for child in children]
        return self._tell(fork, _future_of(self._ref, make=lambda _: made, late=late, until=Until.STEP))

    def fork_many(
        self, children: Sequence[Child], *, note: Mapping[str, Any] | None = None
    ) -> "Future[list[AgentRef]]":
        """Make children of any histories. The future gives their handles, in order."""
        births, told = births_of(self._ref.system, children), note_of({} if note is None else note)
        made = [self._ref.system.handle(birth.uuid) for birth in births]
        late = f"the forks may still happen: the first child is agent {births[0].uuid} then (system.agent finds it)."
        forked: Future[list[AgentRef]] = _future_of(self._ref, make=lambda _: made, late=late, until=Until.STEP)
        return self._tell(lambda caller: on.ForkTrials(told, births, caller), forked)

    def note(self, data: Mapping[str, Any]) -> Future[int]:
        """Write a note into the log. The future gives its position."""
        if not (told := note_of(data)):
            raise BadInput("Expected a note to say something; got an empty dict.")
        return self._tell(lambda caller: on.ForkTrials(told, (), caller), self._future())

    def reply(self, *, output: Any = None) -> Future[Reply]:
        """The outcome of the turn in progress, or else of the latest one."""
        if output is not None:
            expected(output)
        try:
            return self._tell(on.GetOutcome, _reply_of(self._ref, output))
        except AgentDead:
            outcome = self._ref.system.log_cache.find_in(self._ref.uuid, lambda log: last_outcome(log.newest_first()))
            if outcome is None:
                raise
        settled = _reply_of(self._ref, output)
        settled.settle(outcome)
        return settled

    def clear(self) -> Future[int]:
        """Begin anew. The future gives the position of the clear."""
        return self._tell(on.Clear, self._future())

    def mark(self, label: str | None = None) -> Future[int]:
        """Set a mark. The future gives its position."""
        text = "" if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.SetMark(text, caller), self._future())

    def rewind(self, label: str | None = None) -> Future[int]:
        """Go back to a mark. The future gives the position of the rewind."""
        text = None if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.Rewind(text, caller), self._future())

    def compact(self, focus: str | None = None, text: str | None = None) -> "Future[Compacted]":
        """Summarise what was said, by its model or by a text. The future gives what came of it."""
        if text is not None:
            return self._summarise_by(text, focus)
        asked = "" if focus is None else check_text(focus, "focus")
        future: Future[Compacted] = _future_of(self._ref, make=compacted, until=Until.STEP)
        return self._tell(lambda caller: on.Compact(asked, caller), future)

    def _summarise_by(self, text: str, focus: str | None) -> "Future[Compacted]":
        if focus is not None:
            raise BadInput("Expected one of focus, for the model that writes a summary, and text, the summary itself.")
        if not check_text(text, "text").strip():
            raise BadInput("Expected text to be a summary; got a blank one.")
        future: Future[Compacted] = _future_of(self._ref, make=compacted, until=Until.STEP)
        return self._tell(lambda caller: on.Compact("", caller, text), future)

    def uncompact(self) -> Future[int]:
        """Take off the latest summary. The future gives the position of that."""
        return self._tell(on.Uncompact, self._future())

    def merge(self, child: Handle | str, how: str = RESULT, positions: Sequence[int] = ()) -> "Future[Merged]":
        """Take in what another agent has said. The future gives what came of it."""
        picked = check_merge(how, positions)
        uuid = uuid_of(self._ref.system.store, child)
        future: Future[Merged] = _future_of(self._ref, make=merged)
        return self._tell(lambda caller: on.Merge(uuid, how, picked, caller), future)

    def undo(self) -> Future[int]:
        """Take back the latest prompt. The future gives the position of the rewind."""
        return self._tell(on.Undo, self._future())

    def configure(self, **settings: Any) -> Future[int]:
        """Change settings. The future gives the position of the change."""
        checked = check_settings(settings)
        return self._tell(lambda caller: on.Configure(checked, caller), self._future())

    def rename(self, name: str | None) -> Future[None]:
        """Give the agent another name, or with None no name."""
        return self._ref.system.writer.ask(Rename(self._ref.uuid, name), lambda _: None)

    def resume(self) -> Future[bool]:
        """Go on with the latest turn. The future gives whether there was one to go on with."""
        return self._tell(on.Resume, Future())

    def signal(self, signal: Signal, *, cascade: bool = False, reason: str = "", grace: float = GRACE) -> Future[bool]:
        """Send a signal. The future gives whether it had an effect."""
        lifecycle, uuid = self._ref.system.lifecycle, self._ref.uuid
        if signal == Signal.INT:
            check_text(reason, "reason")
            return lifecycle.interrupt(uuid, cascade=check_flag(cascade, "cascade"))
        return lifecycle.signal(uuid, signal, had_effect, cascade=cascade, reason=reason, grace=grace)

    def kill(self, *, cascade: bool = False, reason: str = "") -> "Future[list[AgentRef]]":
        """End the agent at once. The future gives the agents that died, leaves first."""
        handle = self._ref.system.handle

        def dead(aftermath: LifecycleChange) -> "list[AgentRef]":
            return [handle(uuid) for uuid in aftermath.dead]

        return self._ref.system.lifecycle.signal(self._ref.uuid, Signal.KILL, dead, cascade=cascade, reason=reason)

    def exit(self, result: str = "") -> Future[None]:
        """End the agent after its turn."""
        return self._tell(lambda caller: on.ExitNow(check_text(result, "result"), caller), self._future())

    def move(self, host: str) -> Future[None]:
        """Have another host run the agent. The future is settled after the commit."""
        check_type(host, str, "host", "the name of a host")
        future = self._future()
        if self._waits:
            future.check_wait()
        self._ref.system.remote(self._ref.uuid).deliver(Move(host, future))
        return future

    def send(
        self,
        recipient: Handle | str,
        body: str,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        zone: str | None = None,
    ) -> Future[int]:
        """Send a mail, now or later. The future gives its number in the recipient's mailbox, or that of its timer."""
        return self._ref.system.writer.ask(_letter(self._ref, recipient, body, at, after, zone), lambda sent: sent.id)

    def remind(
        self,
        text: str,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        every: str | None = None,
        zone: str | None = None,
        prompt: bool = False,
    ) -> Future[int]:
        """Remind the agent of something later. The future gives the number of the timer."""
        unit = _reminder(self._ref, text, prompt, at=at, after=after, every=every, zone=zone)
        return self._ref.system.writer.ask(unit, lambda timer: timer.id)

    def join(self, group: str) -> Future[bool]:
        """Join a group. The future gives whether the agent was no member."""
        return self._ref.system.writer.ask(JoinGroup(self._ref.uuid, group, self._ref.system.clock.now_ms()))

    def leave(self, group: str) -> Future[bool]:
        """Leave a group. The future gives whether the agent was a member."""
        return self._ref.system.writer.ask(LeaveGroup(self._ref.uuid, group))

    def cancel_timer(self, number: int) -> Future[None]:
        """Cancel a timer of the agent. The future is settled after the commit."""
        return self._ref.system.writer.ask(CancelTimer(self._ref.uuid, check_timer_id(number)))

    def read_mail(self, sender: Handle | str | None = None) -> Future[list[Mail]]:
        """Read the unread mail, and mark it as read. The future gives the mails, oldest first."""
        return self._ref.system.writer.ask(_reading(self._ref, sender), lambda taken: list(taken.mails))

    def wait(
        self, agents: "Sequence[AgentRef | str] | None" = None, timeout: float | None = None
    ) -> "Future[dict[AgentRef | str, WaitResult]]":
        """Wait for mail or agents. The future gives the reasons, by agent. Cancelling its `await` ends the wait."""
        future, waiter = _wait(self._ref, agents, timeout)
        waiter.begin()
        return future

    def _future(self) -> Future[Any]:
        return _future_of(self._ref)

    def _tell(self, command: Any, future: Future[Any]) -> Future[Any]:
        if self._waits:
            future.check_wait()
        self._ref.system.tell(self._ref.uuid, command(future))
        return future


class AgentRef:
    """The handle of one agent."""

    __slots__ = ("_output", "system", "uuid")

    def __init__(self, system: "System", uuid: str) -> None:
        """Use `ActorSystem.agent` or `AgentRef.fork`."""
        self.system = system
        self.uuid = uuid
        self._output: Any = None

    def __repr__(self) -> str:
        return f"<AgentRef {self.uuid}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentRef) and (other.uuid, other.system) == (self.uuid, self.system)

    def __hash__(self) -> int:
        return hash(self.uuid)

    @property
    def ask(self) -> AgentCommands:
        """The same commands as futures, for ``await``."""
        return AgentCommands(self)

    def _within(self, timeout: float | None) -> AgentCommands:
        """The commands for a method that waits so many seconds. Raises `BadInput` before anything is sent."""
        check_timeout(timeout)
        return AgentCommands(self, waits=True)

    def prompt(self, text: str, *, output: Any = None, attach: "Sequence[Attachable]" = ()) -> Future[Reply]:
        """Open a turn: the agent answers the text.

        A prompt to a busy agent waits for the end of its turn. One to a stopped agent waits for CONT, in the database:
        it survives this process, and is taken up once.

        Args:
            text: the prompt; not blank.
            output: a type of which the turn must give a value, as ``Reply.output``: a pydantic model, a dataclass, any
                type that pydantic knows, or a JSON schema as a dict. The model is told what is wrong with a value that
                does not fit, twice at most. None for an answer in words.
            attach: pictures, PDFs and sounds for the model: paths of files, bytes, or what `attachment` gives; 20 MB
                together at most. They are read now, and stored once for all agents.

        Returns:
            A future of the `Reply`. It raises `ProviderError` when the model could not answer, `OutputError` when it
            gave no value that fits, and `TurnInterrupted` when the turn was ended.

        Raises:
            BadInput: the text is blank, or cannot be stored; output is no type that has a schema; something to attach
                cannot be read, is too large, or of a type that no model takes.
            AgentDead: the agent is dead.
            InboxFull: 10,000 commands wait for it; the future raises it, or the call.
        """
        prompt_text(text)
        data, blobs = data_of(output, attach)
        future = _reply_of(self, output)
        self.system.tell(self.uuid, on.Prompt(text, future, data=data, blobs=blobs))
        return future

    def steer(self, text: str, *, now: bool = False) -> Receipt:
        """Tell the agent something within the turn that it is in: its model reads it before its next request.

        The word is committed when this returns; on an event loop, soon. It survives every crash and enters the history
        once, as a message of kind ``steer``: behind the results of the calls in progress, or behind a reply that would
        have ended the turn, which then goes on. A ``wait`` ends for it. An agent without a turn opens one with it; an
        interrupted agent reads it when it resumes, a stopped one after CONT. Words keep their order.

        Args:
            text: the word: not blank, and at most 64 KiB in UTF-8.
            now: whether to cut off the request to the model that is in flight, or the calls that run, instead of
                waiting for their end. What was received of the reply stays.

        Returns:
            A future of `Steered`: the position of the message, the turn that it stands in, and whether it ``opened``
            that turn. It raises `AgentDead` when the agent dies without reading it, and `InboxFull` when 1,000 words
            wait for the agent. ``withdraw()`` takes an unread word back and returns whether it did; the future then
            raises `Withdrawn`.

        Raises:
            BadInput: the text is blank, too long, or cannot be stored.
            AgentDead: the agent is dead.
        """
        return self.system.steer(self.uuid, text, now)

    @overload
    def fork(
        self, prompt: str | None = None, *, name: str | None = None, **how: Unpack[WaitedForkOptions]
    ) -> "AgentRef": ...

    @overload
    def fork(
        self,
        *,
        prompts: Sequence[str | None],
        names: Sequence[str | None] | None = None,
        **how: Unpack[WaitedForkOptions],
    ) -> "list[AgentRef]": ...

    @overload
    def fork(
        self,
        prompt: str | None = None,
        *,
        count: int,
        names: Sequence[str | None] | None = None,
        **how: Unpack[WaitedForkOptions],
    ) -> "list[AgentRef]": ...

    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        count: int | None = None,
        prompts: Sequence[str | None] | None = None,
        names: Sequence[str | None] | None = None,
        model: str | None = None,
        system: str | None = None,
        restart: str = "transient",
        on_orphan: str | None = None,
        output: Any = None,
        attach: "Sequence[Attachable]" = (),
        at: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> "AgentRef | list[AgentRef]":
        """Make a child that inherits this agent's history and settings; return its handle after the commit.

        A busy agent forks at its next step boundary. The cost is the same whatever the history. With ``count`` or
        ``prompts`` it makes several children in one unit, all or none, and returns their handles in order.

        Args:
            prompt: the child's first prompt, which it answers at once; None lets it wait for one. With ``count`` that
                of every child.
            name: a name for the child, unique among the living.
            count: how many children, 1 to 10,000.
            prompts: in place of ``count``, a list of the first prompts, one for each child.
            names: their names, one for each child; None is no name.
            model: its ``model`` setting, ``provider:model``; None inherits.
            system: its system prompt; None inherits.
            restart: when its supervisor restarts it: after a crash or an exit (``permanent``), after a crash
                (``transient``), or never (``temporary``).
            on_orphan: what happens to the child's own children when it dies: ``reparent``, ``cascade``, ``stop`` or
                ``continue``; None inherits.
            output: a type of which its first turn must give a value, as in `prompt`; ``reply()`` of the handle gives
                it. When its model calls ``exit`` in that turn, the result must be such a value, and comes as JSON by
                mail, for `read_output`.
            attach: what goes with the prompt, as in `prompt`.
            at: the last position of the history that the child inherits; None is the end of it. What came later is
                nothing to the child, but the settings are those of now. A prompt without an answer at this position
                is inherited as well: mostly one wants the position before it. A busy agent forks at once then.
            budget: the most that the child and all that descend from it may spend: a `Budget`, or a dict of its
                arguments; with ``count`` each child has one. None for no other limits than those of this agent, which
                hold for the child in any case.
            timeout: seconds to wait. The fork may still happen later; the `TimedOut` names the child.

        Raises:
            NameTaken, BadInput: the child cannot have this name.
            NotABoundary: a step is in the midst at this position; the error names the nearest ones that would do.
            AgentDead, AgentStopped: this agent does not fork.
            BudgetExceeded: a budget allows no more agents.
            InboxFull: 10,000 commands wait for it.
            WouldWaitForItself: called by the agent's own code, during its turn: let that return ``[ToolCall("fork",
                {...})]`` instead.
            WouldDeadlock: called by the code of an agent for which this one waits.
        """
        how: dict[str, Any] = {"count": count, "prompts": prompts, "names": names, "model": model, "system": system}
        how |= {"restart": restart, "on_orphan": on_orphan, "output": output, "attach": attach, "at": at}
        how["budget"] = budget
        forked: Future[Any] = self._within(timeout).fork(prompt, name=name, **how)
        made: AgentRef | list[AgentRef] = forked.get(timeout=timeout)
        return made

    def fork_many(
        self, children: Sequence[Child], *, note: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> "list[AgentRef]":
        """Make children that go on from any histories, and are supervised by this agent, in one unit, all or none.

        Those whose histories they inherit are neither asked nor written, and may be dead. A child has the settings of
        now of the agent whose history it inherits, as with `fork`; one in which nothing happens outside (setting
        ``effects``) those of then. It is under the budgets of this agent, and is never restarted.

        Args:
            children: 1 to 1,000 of them.
            note: why, as in `note`, in this agent's log before the births; None for no note.
            timeout: seconds to wait. The forks may still happen later; the `TimedOut` names the first child.

        Raises:
            BadInput: an argument cannot be used, or nothing waits for an answer where a child is to go on.
            NotABoundary: a step is in the midst at a position; the error names the nearest ones that would do.
            HistoryPruned: a history was deleted.
            AgentNotFound, AmbiguousAgent: there is no such agent, or several.
            AgentDead, AgentStopped: this agent does not fork.
            BudgetExceeded: a budget allows no more agents.
        """
        return self._within(timeout).fork_many(children, note=note).get(timeout=timeout)

    def note(self, data: Mapping[str, Any], timeout: float | None = None) -> int:
        """Write a note into the log: what programs know of it, and no model sees.

        Args:
            data: any dict that JSON can hold.
            timeout: seconds to wait; None waits for ever.

        Returns:
            The position of the note: a message of kind ``note``, whose ``data`` it is.

        Raises:
            BadInput: JSON cannot hold it, or it has a name that the book of an experiment has.
        """
        return self._within(timeout).note(data).get(timeout=timeout)

    def reply(self, timeout: float | None = None, *, output: Any = None) -> Reply:
        """The outcome of the turn in progress, or else of the agent's latest one; also of a dead agent.

        Args:
            timeout: seconds to wait; None waits for ever.
            output: the type that the turn was asked for, of which ``Reply.output`` is to be. None takes the type that
                the fork asked for which gave this handle, and else leaves it as JSON has it.

        Raises:
            OutputError: the turn gave no value of this type.
            ProviderError, TurnInterrupted: that was the outcome. A turn that a crash cut off counts as interrupted.
            NoTurn: there was no turn yet.
            AgentDead: it died before its latest turn had an outcome, or without a turn.
        """
        return self._within(timeout).reply(output=output).get(timeout=timeout)

    def clear(self, timeout: float | None = None) -> int:
        """Begin anew, with the settings in force.

        Args:
            timeout: seconds to wait; None waits for ever.

        Returns:
            The position of the clear.
        """
        return self._within(timeout).clear().get(timeout=timeout)

    def mark(self, label: str | None = None, timeout: float | None = None) -> int:
        """Set a mark to come back to.

        Args:
            label: its name; labels may repeat, and the latest counts. None for no name.
            timeout: seconds to wait; None waits for ever.

        Returns:
            The position of the mark.
        """
        return self._within(timeout).mark(label).get(timeout=timeout)

    def rewind(self, label: str | None = None, timeout: float | None = None) -> int:
        """Go back to a mark, an inherited one too. Settings stay as they are.

        Args:
            label: the latest mark with this label; None is the latest mark.
            timeout: seconds to wait; None waits for ever.

        Returns:
            The position of the rewind.

        Raises:
            MarkNotFound: there is no such mark.
        """
        return self._within(timeout).rewind(label).get(timeout=timeout)

    def undo(self, timeout: float | None = None) -> int:
        """Take back the latest prompt of the history, an inherited one too, and everything after it.

        This rewinds the history to before that prompt: conversation and marks become what they were. Settings stay, and
        so does what tools did to the world. The call waits for a turn in progress.

        Args:
            timeout: seconds to wait; None waits for ever.

        Returns:
            The position of the rewind.

        Raises:
            NoTurn: there is no prompt to take back.
        """
        return self._within(timeout).undo().get(timeout=timeout)

    def compact(self, focus: str | None = None, text: str | None = None, timeout: float | None = None) -> "Compacted":
        """Have its model write a summary, which stands for what was said: the next request is that much smaller.

        What was said latest stays verbatim, and so does the prompt of an open turn; nothing is deleted, and `uncompact`
        brings all of it back. In a turn it happens before the next request to the model.

        Args:
            focus: what matters most; None for no preference.
            text: a summary that you have written, or mended; no model is asked then. Right after a summary it takes
                the place of that one.
            timeout: seconds to wait; None waits for ever.

        Returns:
            What came of it.

        Raises:
            BadInput: the text is about as long as what it stands for.
            NothingToCompact: so little was said that a summary would save nothing.
            ProviderError: the model gave no summary, or code answers for it and no ``compact_model`` is set.
            TurnInterrupted: it was interrupted.
        """
        return self._within(timeout).compact(focus, text).get(timeout=timeout)

    def uncompact(self, timeout: float | None = None) -> int:
        """Take off the latest summary: what it stood for is shown again, byte for byte, with what was said since.

        Args:
            timeout: seconds to wait; None waits for ever.

        Returns:
            The position of that in the log.

        Raises:
            NothingToUncompact: no summary is in force.
        """
        return self._within(timeout).uncompact().get(timeout=timeout)

    def merge(
        self,
        child: Handle | str,
        how: str = RESULT,
        positions: Sequence[int] = (),
        timeout: float | None = None,
    ) -> "Merged":
        """Take in what an agent below this one has said: its model sees it from now on, as a quotation of that agent.

        Once for each head of the child: it can be merged again when it has said more, and only that comes then.
        Documents are shared, so they are named alone, and conflicts with them. A busy agent does it after its turn.

        Args:
            child: an agent that this one has forked or supervises, directly or not, dead or alive; a handle, or a text
                as in `send`.
            how: ``result`` takes in the result with which it has exited, or else its latest answer; ``summary`` has its
                model write what it has done, which this agent pays for; ``pick`` quotes some of its messages.
            positions: for ``pick``, the positions of these messages.
            timeout: seconds to wait; None waits for ever.

        Returns:
            What came of it.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
            NotBelow: this agent has neither forked nor supervises it.
            TurnOpen: a turn of it is open.
            AlreadyMerged: it has said nothing since it was merged.
            NothingToMerge: it has said nothing of that kind.
            HeadMoved: it has gone on meanwhile; merge it again.
            BadInput: a position that cannot be picked.
            ProviderError: its model gave no summary.
            BudgetExceeded: a budget of this agent has no room for the summary.
            TurnInterrupted: it was interrupted.
        """
        return self._within(timeout).merge(child, how, positions).get(timeout=timeout)

    def configure(self, *, timeout: float | None = None, **settings: Any) -> int:
        """Change settings. Children that are forked later inherit them.

        Args:
            timeout: seconds to wait; None waits for ever.
            settings: ``model``, ``system``, ``max_tokens``, ``temperature`` and others, see
                `ikigai_actors.records.messages.settings`; None removes one.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: a setting is unknown, or its value is wrong.
        """
        return self._within(timeout).configure(**settings).get(timeout=timeout)

    def rename(self, name: str | None, timeout: float | None = None) -> None:
        """Give the agent a name, or another one. Returns after the commit.

        Later requests to its model, and the screens, show the new name. The old name finds no agent any more, and
        another agent may take it.

        Args:
            name: the new name, unique among the living; empty or None takes the name away.
            timeout: seconds to wait; None waits for ever.

        Raises:
            NameTaken, BadInput: the agent cannot have this name.
            AgentDead: the agent is dead, and keeps its name.
        """
        self._within(timeout).rename(name).get(timeout=timeout)

    def resume(self, timeout: float | None = None) -> bool:
        """Go on with the latest turn, when a crash cut it off or an error of the provider ended it.

        The history is sent to the model again, including all of that turn; `reply` then waits for the outcome.

        Args:
            timeout: seconds to wait; None waits for ever.

        Returns:
            Whether there was such a turn. There is none after a later message, a clear or a rewind.
        """
        return self._within(timeout).resume().get(timeout=timeout)

    def signal(
        self,
        signal: Signal,
        timeout: float | None = None,
        *,
        cascade: bool = False,
        reason: str = "",
        grace: float = GRACE,
    ) -> bool:
        """Send a signal, which overtakes all waiting commands. Returns, after the commit, whether it had an effect.

        Args:
            signal: ``INT`` ends the turn in progress; ``STOP`` pauses the agent after its step, ``CONT`` lets it go on;
                ``TERM`` lets it finish its turn and die; ``KILL`` ends it at once.
            timeout: seconds to wait; None waits for ever.
            cascade: whether it hits all descendants too, in one transaction.
            reason: why; the registry shows it for every agent that dies of the signal.
            grace: seconds after which TERM becomes KILL.

        Raises:
            AgentDead: it is dead already.
            AgentStopped: it is terminating, and cannot be paused.
            RootProtected: agent 0 cannot be killed or terminated.
        """
        refuse_to_block()
        check_timeout(timeout)
        return self.ask.signal(signal, cascade=cascade, reason=reason, grace=grace).get(timeout=timeout)

    def kill(self, *, cascade: bool = False, reason: str = "", timeout: float | None = None) -> "list[AgentRef]":
        """End the agent at once. Its orphan policy decides about the agents that it supervised.

        Args:
            cascade: whether all its descendants die too.
            reason: why, for the registry.
            timeout: seconds to wait; None waits for ever.

        Returns:
            After the commit, the agents that died, leaves first. Raises what `signal` does.
        """
        refuse_to_block()
        check_timeout(timeout)
        return self.ask.kill(cascade=cascade, reason=reason).get(timeout=timeout)

    def exit(self, result: str = "", timeout: float | None = None) -> None:
        """End the agent after its turn: the normal end. A permanent agent is restarted.

        Args:
            result: a text that its supervisor gets by mail.
            timeout: seconds to wait; None waits for ever.

        Raises:
            AgentDead: the agent is dead.
            RootProtected: agent 0 cannot exit.
        """
        self._within(timeout).exit(result).get(timeout=timeout)

    def supervise(
        self,
        *,
        strategy: str | None = None,
        intensity: int | None = None,
        period: float | None = None,
        on_orphan: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Say how the agent supervises its children. Returns after the commit; None leaves a setting as it is.

        Args:
            strategy: which siblings a restart takes along: ``one_for_one``, ``one_for_all`` or ``rest_for_one``.
            intensity: how many restarts of its children are allowed within a period, before it gives up.
            period: seconds.
            on_orphan: what happens to its children when it dies: ``reparent``, ``cascade``, ``stop`` or ``continue``.
            timeout: seconds to wait; None waits for ever.

        Raises:
            BadInput: a setting makes no sense; or children that are to be restarted together live on several hosts.
            AgentDead: the agent is dead.
        """
        if (strategy, intensity, period, on_orphan) == (None, None, None, None):
            raise BadInput("Expected strategy, intensity, period or on_orphan; got none of them.")
        self.system.writer.perform(supervision(self.uuid, strategy, intensity, period, on_orphan), timeout)

    def grant(
        self,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        agents: int | None = None,
        agents_ever: int | None = None,
        seconds: float | None = None,
        requests_per_minute: int | None = None,
        timeout: float | None = None,
    ) -> BudgetStatus:
        """Grant more of what the agent's nearest budget limits; those who wait for it go on, in order.

        Args:
            tokens: how many more tokens; the others likewise, see `Budget`.
            usd: how many more dollars.
            agents: how many more agents may live.
            agents_ever: how many more agents may ever be born.
            seconds: how much longer requests may be made.
            requests_per_minute: how many more requests may be made in a minute.
            timeout: seconds to wait; None waits for ever.

        Returns:
            What the budget grants now, and whose it is.

        Raises:
            AgentNotFound: there is no such agent.
            BadInput: the budget does not limit that, or a value is no amount.
        """
        system = self.system
        system.check_open()
        check_timeout(timeout)
        more = Budget(tokens, usd, agents, agents_ever, seconds, requests_per_minute).limits()
        if not any(more.values()):
            raise BadInput("Expected what to grant, e.g. grant(tokens=100_000) or grant(usd=5); got nothing.")
        nearest = self.budget
        if nearest is None:
            raise BadInput(f"No budget limits agent {self.uuid}: there is nothing to grant.")
        system.writer.perform(Grant(nearest.owner, more), timeout)
        return self._limited()

    def set_budget(self, budget: Budget | Mapping[str, Any], *, timeout: float | None = None) -> BudgetStatus:
        """Set how much the agent's own budget grants in all; make it where the agent has none.

        Those who wait for it go on, in order. Of tokens and dollars it grants at least what is spent and held. A new
        limit counts from now on, for the agent and all that descend from it.

        Args:
            budget: the limits, e.g. ``{"usd": 5}``; what it does not name stays as it is. ``strict`` is set where a
                budget is made.
            timeout: seconds to wait; None waits for ever.

        Returns:
            What the budget grants now.

        Raises:
            AgentNotFound: there is no such agent.
            BadInput: an agent that descends from this one has a budget of its own, above which none can be put; or a
                value is no amount.
        """
        self.system.check_open()
        check_timeout(timeout)
        self.system.writer.perform(SetBudget(self.uuid, checked_limits(as_budget(budget))), timeout)
        return self._limited()

    def _limited(self) -> BudgetStatus:
        found = self.budget
        assert found is not None  # limits stay
        return found

    def charge(self, *, usd: float = 0, tokens: int = 0, timeout: float | None = None) -> None:
        """Charge the agent for what a tool costs, before the tool acts: ``current_agent().charge(usd=0.02)``.

        Under a strict budget that must fit. Else it is recorded whatever is left, and the next request waits.

        Args:
            usd: dollars.
            tokens: tokens, where the tool asks a model itself.
            timeout: seconds to wait; None waits for ever.

        Raises:
            BudgetExceeded: a budget above the agent is strict, and too little is left. Nothing is recorded.
            AgentDead: the agent is dead.
        """
        self.system.check_open()
        check_timeout(timeout)
        amounts = check_count(tokens, "tokens", most=MOST), micro_dollars(usd)
        self.system.writer.perform(ChargeAgent(self.uuid, *amounts), timeout)

    @property
    def budget(self) -> BudgetStatus | None:
        """The nearest budget above the agent that limits something, its own or an ancestor's; None without one."""
        self.system.check_open()
        return self.system.store.read(lambda tx: budget_of(tx, self.uuid))

    def adopt(self, child: Handle | str, timeout: float | None = None) -> None:
        """Supervise another agent from now on. If it is stopped, it goes on. Its lineage stays.

        Args:
            child: the other agent: a handle, or a text as in `send`.
            timeout: seconds to wait; None waits for ever.

        Raises:
            BadInput: the child stands above this agent, or is this agent; or it would be restarted together with its
                new siblings, and lives on another host.
            AgentDead, AgentNotFound, AmbiguousAgent: one of the two is dead, or cannot be found.
        """
        unit = AdoptChild(uuid_of(self.system.store, child), self.uuid)
        self.system.writer.perform(unit, timeout)

    def move(self, host: str, timeout: float | None = None) -> None:
        """Have another host run the agent, and those of its descendants that live on the same host. Its host does so.

        Replies and tools that are in progress have a lease's time to end; what is not done by then is cut off, and goes
        on there as after a crash. Callers still get their answers.

        Args:
            host: the name of the other host; see `ActorSystem.hosts`.
            timeout: seconds to wait; None waits for ever.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: it is restarted together with its siblings, so only their supervisor can be moved.
            RootProtected: agent 0 cannot be moved.
            NoHost: no host of that name takes agents, or the hosts share none.
        """
        self._within(timeout).move(host).get(timeout=timeout)

    def send(
        self,
        recipient: Handle | str,
        body: str,
        timeout: float | None = None,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        zone: str | None = None,
    ) -> int:
        """Send a mail as this agent; return, after the commit, its number in the recipient's mailbox.

        Mails of one sender arrive in the order in which they were sent. One that is sent later arrives then, even if
        this agent is dead by then; until then it is a timer of the recipient, whose number is returned.

        ``"group:reviewers"`` is a group: all who are members at the commit get it, but this agent and those whose
        mailboxes are full. Then the number of those is returned that did.

        Args:
            recipient: a handle, or a uuid, name, or unique prefix of a uuid; or a group.
            body: the text, at most 64 KiB in UTF-8, and not blank.
            timeout: seconds to wait; None waits for ever.
            at: when it is sent, as in `remind`.
            after: so many seconds from now on it is sent. Without either it is sent now.
            zone: as in `remind`.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
            AgentDead: the recipient is dead, or this agent is.
            BadInput: the body cannot be sent, or not at that time.
            MailboxFull: the recipient has 10,000 unread mails.
            GroupEmpty: nobody else is in the group.
            TooManyTimers: the recipient has 100 timers.
        """
        sent: Mail | Timer | GroupSent = self.system.writer.perform(
            _letter(self, recipient, body, at, after, zone), timeout
        )
        return sent.id

    def join(self, group: str, timeout: float | None = None) -> bool:
        """Join a group, which need not be made before; return, after the commit, whether the agent was no member.

        It leaves with its death.

        Args:
            group: its name.
            timeout: seconds to wait; None waits for ever.

        Raises:
            BadInput: that is no name: a group has names as agents have.
            AgentDead: the agent is dead.
            GroupFull: the group has 1,000 members.
        """
        return bool(self.system.writer.perform(JoinGroup(self.uuid, group, self.system.clock.now_ms()), timeout))

    def leave(self, group: str, timeout: float | None = None) -> bool:
        """Leave a group; return, after the commit, whether the agent was a member.

        Args:
            group: its name.
            timeout: seconds to wait; None waits for ever.

        Raises:
            BadInput: that is no name.
        """
        return bool(self.system.writer.perform(LeaveGroup(self.uuid, group), timeout))

    def monitor(self, watched: Handle | str, timeout: float | None = None) -> None:
        """Have this agent hear of the death of another one, by mail of kind ``exit``, as a supervisor does.

        Of one that is dead already it hears at once. Of the same death it hears once.

        Args:
            watched: a handle, or a uuid, name, or unique prefix of a uuid.
            timeout: seconds to wait; None waits for ever.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
            AgentDead: this agent is dead.
            BadInput: it is this agent itself.
        """
        uuid, now = uuid_of(self.system.store, watched), self.system.clock.now_ms()
        self.system.writer.perform(MonitorAgent(uuid, self.uuid, now), timeout)

    def demonitor(self, watched: Handle | str, timeout: float | None = None) -> bool:
        """Have this agent hear no more of the death of another one; return whether it would have.

        Args:
            watched: as in `monitor`.
            timeout: seconds to wait; None waits for ever.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
        """
        return bool(self.system.writer.perform(Demonitor(uuid_of(self.system.store, watched), self.uuid), timeout))

    def remind(
        self,
        text: str,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        every: str | None = None,
        zone: str | None = None,
        prompt: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Remind the agent of something later, once or again and again, whichever host runs it then.

        It gets a mail (of kind ``notice``) or a prompt. What is missed while no host runs comes once, as soon as one
        does, and says how much that was. While the latest one of a schedule is unread no other one is added. The timer
        ends with the agent.

        Args:
            text: of what; at most 64 KiB in UTF-8, and not blank.
            at: when, once: a `datetime`, or a text such as ``"2026-11-26 09:00"`` or ``"09:00"``; by the clocks of the
                zone, unless it says of which.
            after: so many seconds from now on, once.
            every: again and again, in five fields as of cron: ``"0 9 * * 1-5"`` is at nine on workdays; or each time
                that so much has passed, as ``"36h"``: a whole number of ``s``, ``m``, ``h``, ``d`` or ``w``.
            zone: whose clocks are meant, by its IANA name, such as ``"Europe/Berlin"``; None is the zone of this
                machine.
            prompt: whether it is a prompt, which begins a turn when the agent is idle. Mail waits until it is read.
            timeout: seconds to wait; None waits for ever.

        Returns:
            After the commit, the number of the timer among those of the agent.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: not one of ``at``, ``after`` and ``every`` is given; the time is over, or more than ten years
                ahead; there is no such zone; or the text cannot be sent.
            TooManyTimers: it has 100 timers.
        """
        unit = _reminder(self, text, prompt, at=at, after=after, every=every, zone=zone)
        timer: Timer = self.system.writer.perform(unit, timeout)
        return timer.id

    def next_times(
        self,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        every: str | None = None,
        zone: str | None = None,
        count: int = 5,
    ) -> list[datetime]:
        """When a timer would fire that `remind` would set now. Nothing is set.

        Args:
            at: as for `remind`, and so are the next three.
            after: seconds from now on.
            every: a schedule.
            zone: whose clocks are meant.
            count: how many times, at most; from 1 to 1,000.

        Returns:
            The times by the clocks of the zone, the next one first; fewer where it fires no more often.

        Raises:
            BadInput: as for `remind`.
        """
        self.system.check_open()
        when = appointment(self.system.clock.now_ms(), at=at, after=after, every=every, zone=zone)
        return when.times(count)

    def timers(self) -> list[Timer]:
        """Its timers, those that fire first in front: its reminders, and mail that others will send it."""
        return self.system.store.read(lambda tx: timers_of(tx, self.uuid))

    def cancel_timer(self, number: int, timeout: float | None = None) -> None:
        """Cancel one of its timers.

        Args:
            number: the number of the timer, as `remind` and `send` return it.
            timeout: seconds to wait; None waits for ever.

        Raises:
            TimerNotFound: there is no such timer; it may have fired.
        """
        self.system.writer.perform(CancelTimer(self.uuid, check_timer_id(number)), timeout)

    def check_mail(self, timeout: float | None = None) -> Mailbox:
        """Its unread mail: how many mails, from whom, and how the oldest begin. Marks nothing as read.

        Args:
            timeout: seconds to wait.
        """

        def look() -> Mailbox:
            return self.system.store.read(lambda tx: unread_mailbox(tx, self.uuid))

        if check_timeout(timeout) is None:
            return look()
        found: Future[Mailbox] = Future()

        def run() -> None:
            try:
                found.settle(look())
            except Exception as error:  # whatever it is, the caller is told
                found.settle(error)

        current_threads().thread(run, "ikigai-check-mail").start()  # nothing ends a read of the database
        return found.get(timeout=timeout)

    def read_mail(self, sender: Handle | str | None = None, timeout: float | None = None) -> list[Mail]:
        """Read its unread mail, oldest first, and mark it as read in the same commit.

        Args:
            sender: only mail of this agent (a handle or text, as in `send`); ``""`` is a person outside of any agent.
                None reads all.
            timeout: seconds to wait; None waits for ever.

        Returns:
            The mails.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called as the sender is.
        """
        reading = _reading(self, sender)
        taken: Taken = self.system.writer.perform(reading, timeout)
        return list(taken.mails)

    def wait(
        self, agents: "Sequence[AgentRef | str] | None" = None, timeout: float | None = None
    ) -> "dict[AgentRef | str, WaitResult]":
        """Wait for mail, or until each of some agents has sent mail, has nothing to do, or has ended.

        An agent has nothing to do (``idle``) when no turn is open and no prompt waits; one whose turn was cut off and
        not resumed is not idle. A result that was once found for an agent stays, while others are waited for. ``mail``
        comes before any other result. No thread polls meanwhile.

        Args:
            agents: handles, or texts as in `send`. None waits for mail of anybody.
            timeout: seconds to wait; 0 looks once, None waits for ever.

        Returns:
            Why the wait ended, by agent as it was given: ``mail`` (unread, in this agent's mailbox), ``idle``,
            ``stopped``, ``budget``, ``dead``, ``unknown``; or ``timeout``. If ``agents`` was None, the senders of
            unread mail: handles, and ``""`` for a person outside of any agent; ``dead`` for an agent whose only mail is
            its exit; empty when no mail came in time.

        Raises:
            BadInput: an agent or the timeout makes no sense.
            AmbiguousAgent: a prefix is that of several.
            AgentDead: this agent is dead, so nobody sends it mail any more.
            WouldWaitForItself: called by the code of an agent that would wait for its own turn.
            WouldDeadlock: called by the code of an agent for which one of these waits.
        """
        refuse_to_block()
        future, waiter = _wait(self, agents, timeout)
        try:
            waiter.begin()  # in here: Ctrl-C may come right behind it
            return future.get()
        finally:
            waiter.cancel()

    def open_mail(self, number: int, timeout: float | None = None) -> Mail:
        """Read one mail by its number, read before or not. It counts as read from now on.

        Args:
            number: its number in this mailbox.
            timeout: seconds to wait; None waits for ever.

        Raises:
            MailNotFound: there is no such mail.
        """
        opening = Open(self.uuid, check_mail_id(number), self.system.clock.now_ms())
        mail: Mail = self.system.writer.perform(opening, timeout)
        return mail

    def delete_mail(self, number: int, timeout: float | None = None) -> None:
        """Delete one mail for good. Its number is not given again.

        Args:
            number: its number in this mailbox.
            timeout: seconds to wait; None waits for ever.

        Raises:
            MailNotFound: there is no such mail.
        """
        self.system.writer.perform(Delete(self.uuid, check_mail_id(number)), timeout)

    def mails(self, sender: Handle | str | None = None, latest: int | None = None) -> list[Mail]:
        """All its mail, read or not, oldest first. Marks nothing as read.

        Args:
            sender: only mail of this agent, as in `read_mail`.
            latest: only so many, the latest ones.
        """
        store = self.system.store
        known = sender_of(store, sender)
        if latest is not None:
            check_count(latest, "latest")
        return store.read(lambda tx: latest_mail(tx, self.uuid, known, latest))

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
        """The agent that supervises it; None for agent 0."""
        return self._handle(self.record.supervisor_uuid)

    def children(self) -> "list[AgentRef]":
        """The living agents that it supervises, in order of creation, adopted ones last."""
        records = self.system.store.read(lambda tx: registry.children(tx, self.uuid))
        return [self.system.handle(record.uuid) for record in records if record.living]

    @property
    def state(self) -> str:
        """``idle``, ``waiting for the model``, ``waits for b``, ``interrupted``; or ``stopped``, ``dead`` and so on."""
        return self.system.state_of(self.record)

    def statistics(self) -> AgentStatistics:
        """What it is doing, what it has done, and how often it was ever restarted.

        Counted since its actor was started on this host. Of an agent of another process its whole life is counted, by
        the rows of its log. Raises `AgentDead`.
        """
        counted = self.system.statistics_of(self.uuid)
        return replace(counted, restarts=self.system.store.read(lambda tx: times_restarted(tx, self.uuid)))

    def settings_at_hand(self) -> Mapping[str, Any] | None:
        """The settings in force, if they are in memory. Reads nothing.

        None when the log was not needed yet, or is in another process.
        """
        actor = self.system.here(self.uuid)
        if actor is None or actor.state.phase is Phase.UNLOADED:
            return None
        return actor.state.view.settings

    def history(self, all: bool = False) -> list[Message]:  # noqa: A002 - the interface names it so
        """Its messages, inherited ones first.

        Args:
            all: every message that was ever written; else as clears and rewinds leave the history.

        Raises:
            HistoryError: its rows are wrong.
        """
        if check_flag(all, "all"):
            return self.system.store.read(lambda tx: read_whole(tx, self.uuid))
        return self.system.log_cache.find_in(self.uuid, lambda log: list(log.visible()))

    def diff(self, other: Handle | str) -> Diff:
        """Where its history and another agent's part, and what each has that the other has not.

        Args:
            other: a handle, or a uuid, name, or unique prefix of a uuid; dead or alive.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
            HistoryError: rows are wrong.
        """
        self.system.check_open()
        uuid = uuid_of(self.system.store, other)
        return self.system.store.read(lambda tx: read_diff(tx, self.uuid, uuid))

    def tools(self) -> list[Mapping[str, Any]]:
        """The descriptions of its tools that its model gets, as Messages-API dicts.

        Raises `ProviderError` for a wrong setting.
        """
        log = self.system.log_cache.load(self.uuid)
        return list(self.system.toolbox.describe(log.view(log.head).settings))

    def ranges(self) -> tuple[ReplayRange, ...]:
        """Where its history is stored, oldest first."""
        return self.system.store.read(lambda tx: read_ranges(tx, self.uuid))

    def context(self) -> Context:
        """The meaning of its history now: counts, settings, marks, ranges, tokens."""
        ranges, system = self.ranges(), self.system

        def tools_of(settings: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
            with suppress(HostElsewhere, ProviderError):
                return system.toolbox.describe(settings)
            return None

        def found(log: Log) -> Context:
            return context_of(log, ranges, system.default_settings, system.window_of, tools_of)

        return system.log_cache.find_in(self.uuid, found)

    def _handle(self, uuid: str | None) -> "AgentRef | None":
        return None if uuid is None else self.system.handle(uuid)


def _asked(ref: AgentRef, output: Any) -> AgentRef:
    """A new handle of an agent, of which a value of this type was asked: `reply` gives it. None for any answer."""
    ref._output = output
    return ref


def _reply_of(ref: AgentRef, output: Any) -> Future[Reply]:
    """A future of a reply whose output is of this type.

    None is the type for which the handle's fork has asked, if the output fits it; else JSON.
    """

    def typed(reply: Reply) -> Reply:
        wanted = ref._output if output is None else output
        is_of_another_turn = output is None and (
            reply.stop_reason != OUTPUT or problems(expected(wanted), reply.output) != []
        )
        return reply if is_of_another_turn else replace(reply, output=as_output(wanted, reply.output))

    return _future_of(ref, make=None if output is None and ref._output is None else typed)


def _future_of(
    ref: AgentRef,
    make: Callable[[Any], Any] | None = None,
    late: str = MAY_HAPPEN,
    until: Until = Until.TURN,
) -> Future[Any]:
    """A future of what an agent does; a time-out says why it has not been done."""
    return Future(ref.uuid, make, late=late, until=until, why=lambda: why_late(ref.system, ref.uuid))


def _letter(
    ref: AgentRef,
    recipient: Handle | str,
    body: str,
    at: datetime | str | None,
    after: float | None,
    zone: str | None,
) -> Unit:
    store, now = ref.system.store, ref.system.clock.now_ms()
    if (group := group_in(recipient)) is not None:
        if at is not None or after is not None:
            raise BadInput("Expected an agent for a mail that is sent later: a group may have other members by then.")
        return SendToGroup(group, ref.uuid, body, now)
    if at is None and after is None:
        if zone is not None:
            raise BadInput(
                f"Expected at or after with a zone; got zone alone, {shown(zone)}: a mail is sent now without."
            )
        return letter(store, ref.uuid, recipient, body, now)
    return delayed_letter(store, ref.uuid, recipient, body, now, at=at, after=after, zone=zone)


def _reminder(ref: AgentRef, text: str, prompt: bool, **when: Any) -> SetTimer:
    check_flag(prompt, "prompt")
    return reminder(ref.uuid, text, ref.system.clock.now_ms(), prompt=prompt, **when)


def _reading(ref: AgentRef, sender: Handle | str | None) -> Read:
    return Read(ref.uuid, ref.system.clock.now_ms(), sender_of(ref.system.store, sender))


def _wait(
    ref: AgentRef, agents: Sequence[AgentRef | str] | None, timeout: float | None
) -> tuple[Future[dict[AgentRef | str, WaitResult]], Waiter]:
    system = ref.system
    return system.waits.prepare_by_name(ref.uuid, agents, timeout, system.store, system.handle)


def current_agent() -> AgentRef:
    """The agent that the calling code works for, in a provider or a tool. Raises `NoCurrentAgent` elsewhere."""
    agent: AgentRef = current_acting_agent()
    return agent


class System(Directory):
    """What handles and shells use of a system: an `ActorSystem`, or an `AttachedSystem`."""

    @property
    def root(self) -> AgentRef:
        """Agent 0, from which all others descend."""
        record = self.store.read(registry.root)
        if record is None:
            raise NoHost("There are no agents yet: the process that makes the first one was not done. Start again.")
        return self.handle(record.uuid)

    def agent(self, text: str) -> AgentRef:
        """The agent with this uuid, name, or unique prefix of a uuid (4 characters or more).

        Raises:
            AgentNotFound, AmbiguousAgent: the text finds no agent, or several.
        """
        check_type(text, str, "agent", "a uuid, the beginning of one, or a name")
        return self.handle(self.store.read(lambda tx: registry.find(tx, text)).uuid)

    def groups(self) -> dict[str, list[AgentRef]]:
        """The groups that have members, and these, in the order in which they have joined."""
        found = self.store.read(every_group)
        return {name: [self.handle(uuid) for uuid in uuids] for name, uuids in found.items()}

    def handle(self, uuid: str) -> AgentRef:
        """The handle of an agent whose uuid is known; nothing is looked up."""
        self.check_open()
        return self._handle(check_type(uuid, str, "uuid", "text"))

    def _handle(self, uuid: str) -> AgentRef:
        return AgentRef(self, uuid)

    def import_(
        self,
        file: str | os.PathLike[str],
        under: Handle | str | None = None,
        *,
        documents: str = "refuse",
        stopped: bool = False,
        go: bool = False,
        notice: Callable[[str], object] = lambda text: None,
        timeout: float | None = None,
    ) -> AgentRef:
        """Bring the agents of a file that `export` has made under an agent; all of them, or none.

        Their histories, settings, marks, mail and documents are what they were; turns that were open are cut off. An
        agent in which such a turn or an unread prompt waits comes stopped. Who has a uuid that is here gets another
        one, so importing twice makes a copy; a name that is taken gets ``-2``. No budget comes along: those above
        ``under`` count the agents from now on. No right comes along either: a policy ``allow`` of the file does not
        count, nor an approval in an open turn, and the agents may use no tool that ``under`` may not use.

        Args:
            file: the file.
            under: a handle, or a uuid, name, or unique prefix of a uuid; None is agent 0.
            documents: what becomes of a document that is here with other texts: ``refuse`` refuses the file, ``keep``
                leaves it as it is, ``append`` adds the versions of the file.
            stopped: whether all of the agents come stopped, and begin nothing until the signal CONT.
            go: whether none comes stopped for what waits in it: unread prompts are answered at once.
            notice: hears, before the import, what the file would begin, and which models and tools it names; a line at
                a time.
            timeout: seconds to wait for the commit; None waits for ever.

        Returns:
            The agent that was exported with all below it.

        Raises:
            ImportRefused: the file is damaged, newer than this program, or does not fit to what is here.
            AgentNotFound, AmbiguousAgent, AgentDead: ``under`` is no agent that lives.
            BudgetExceeded: a budget above it allows so many agents no more.
            HostElsewhere: another process runs that agent: import there.
            BadInput: an argument cannot be used, or the file cannot be read.
        """
        self.check_open()
        check_timeout(timeout)
        uuid = None if under is None else uuid_of(self.store, under)
        check_callable(notice, "notice", "a function of a text")
        looked = ImportFile.of(as_path(file), documents, stopped, go)
        for line in looked.lines():
            notice(line)
        return self.handle(self._import(looked, uuid, timeout))

    def _import(self, file: ImportFile, under: str | None, timeout: float | None) -> str:
        """Import a file under an agent; return the uuid of its top."""
        raise HostElsewhere("Another process runs the agents, and only that one imports: type /import FILE there.")

    def move(self, agent: AgentRef | str, host: str, timeout: float | None = None) -> None:
        """Have another host run an agent; see `AgentRef.move`.

        Args:
            agent: a handle, or a uuid, name, or unique prefix of a uuid.
            host: the name of the other host.
            timeout: seconds to wait; None waits for ever.

        Raises:
            AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
            IkigaiError: what `AgentRef.move` raises.
        """
        self.handle(uuid_of(self.store, agent)).move(host, timeout)

    def touch(self, agent: AgentRef) -> None:
        """Remember that a person looked at an agent: a shell begins there next time."""
        check_type(agent, AgentRef, "agent", "a handle")
        self.writer.perform(Touch(agent.uuid, self.clock.now_ms()))
