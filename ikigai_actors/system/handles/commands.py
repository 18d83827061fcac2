"""Every command of an agent, once: a future, with its whole docstring.

    mast = await agent.fork("Plan the mast.", name="mast")   # an `AsyncAgentRef`: each gives a future
    mast = agent.fork("Plan the mast.", name="mast")         # an `AgentRef` waits for it

A command leaves in one of two ways. What the agent does itself goes to its actor, here or by its host (`_tell`). What
is a row of the database goes to the writer (`_write`). Arguments are checked before anything leaves, and raise then;
any other error comes from the future.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from ikigai_actors.actors.futures import MAY_HAPPEN, Future, may_block, refuse_to_block
from ikigai_actors.actors.wait_graph import Until
from ikigai_actors.actors.wait_registry import acting_code
from ikigai_actors.agent.remote_commands import Move
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.ways import RESULT, check_merge
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.arguments import check_choice, check_count, check_flag, check_timeout, check_type
from ikigai_actors.attachments import Attachable
from ikigai_actors.errors import AgentDead, BadInput, NameTaken
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.registry import Handle, Rename, uuid_of
from ikigai_actors.records.agents.rules import AddRule, RemoveRule
from ikigai_actors.records.budgets.budget import MOST, Budget, BudgetStatus, as_budget, checked_limits, micro_dollars
from ikigai_actors.records.lives.delivery import delivery
from ikigai_actors.records.lives.membership import Demonitor, JoinGroup, LeaveGroup, MonitorAgent
from ikigai_actors.records.mail.mail import PERSON, Delete, Mail, Open, Read, check_mail_id
from ikigai_actors.records.mail.timers import CancelTimer, check_timer_id, reminder
from ikigai_actors.records.messages.replies import OUTPUT, last_outcome
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.births import Child, births_of, note_of
from ikigai_actors.system.handles.base import BaseRef, H
from ikigai_actors.system.handles.outcomes import Compacted, Merged, compacted, merged
from ikigai_actors.system.lateness import why_late
from ikigai_actors.system.lifecycle import (
    GRACE,
    data_of,
    had_effect,
    labels_over,
    new_children,
    new_fork,
    prompt_text,
    supervision,
)
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.text import check_text
from ikigai_actors.tools.rules.rule import NewRule, Rule, Scope, check_rule
from supervisors.signals import Signal

if TYPE_CHECKING:
    from ikigai_actors.records.lives.deaths import LifecycleChange

T = TypeVar("T")


class ForkOptions(TypedDict, total=False):
    """What all children of a fork have in common, and how long to wait; see `Commands.fork`."""

    model: str | None
    system: str | None
    restart: str
    on_orphan: str | None
    output: Any
    attach: Sequence[Attachable]
    at: int | None
    budget: Budget | Mapping[str, Any] | None
    labels: Mapping[str, str] | None
    timeout: float | None


class Commands(BaseRef[H]):
    """The commands of an agent, each as a future. ``timeout`` is how many seconds the future is waited for."""

    __slots__ = ()

    _waits = False
    """Whether the caller blocks until the answer is there. Where it may not, nothing is asked for."""

    # Turns

    @overload
    def prompt(
        self,
        text: str,
        *,
        output: type[T],
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
    ) -> Future[Reply[T]]: ...

    @overload
    def prompt(
        self,
        text: str,
        *,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
    ) -> Future[Reply]: ...

    def prompt(
        self,
        text: str,
        *,
        output: Any = None,
        attach: Sequence[Attachable] = (),
        labels: Mapping[str, str] | None = None,
    ) -> Future[Reply[Any]]:
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
            labels: on whose account this turn works, and the agents that it forks, as ``{"user": "ann"}``. They go over
                the agent's own labels, 16 together at most; see `ActorSystem.spending`.

        Returns:
            A future of the `Reply`. It raises `ProviderError` when the model could not answer, `OutputError` when it
            gave no value that fits, and `TurnInterrupted` when the turn was ended.

        Raises:
            BadInput: the text is blank, or cannot be stored; output is no type that has a schema; something to attach
                cannot be read, is too large, or of a type that no model takes.
            AgentDead: the agent is dead.
            InboxFull: 10,000 commands wait for it; the future raises it, or the call.
        """
        return self._prompting(text, output, attach, labels)()

    def _prompting(
        self, text: str, output: Any, attach: Sequence[Attachable], labels: Mapping[str, str] | None
    ) -> Callable[[], Future[Reply]]:
        """Check and read what a prompt needs; give the function that sends it. Raises what `prompt` does."""
        prompt_text(text)
        data, blobs = data_of(output, attach)
        if labels is not None and (over := labels_over(self.system._labels_of(self.uuid), labels)):
            data = {**data, "labels": over}
        future = self._reply_of(output)
        command = on.Prompt(text, future, data=data, blobs=blobs)
        return lambda: self._go(lambda: self.system._tell(self.uuid, command), future, checks=False)

    def steer(self, text: str, now: bool = False, key: str | None = None) -> Receipt:
        """Give the agent a word within the turn that it is in: its model reads it before its next request.

        The word is committed when this returns; on an event loop, soon. It survives every crash and enters the history
        once, as a message of kind ``steer``: behind the results of the calls in progress, or behind a reply that would
        have ended the turn, which then goes on. A ``wait`` ends for it. An agent without a turn opens one with it; an
        interrupted agent reads it when it resumes, a stopped one after CONT. Words keep their order.

        Args:
            text: the word: not blank, and at most 64 KiB in UTF-8.
            now: whether to cut off the request to the model that is in flight, or the calls that run, instead of
                waiting for their end. What was received of the reply stays.
            key: 1 to 200 printable characters that name this word for the agent. A repeated call with the same key
                gives the word of the first one, wherever that is now: for when an answer may be lost on its way.

        Returns:
            A future of `Steered`: the position of the message, the turn that it is part of, and whether it ``opened``
            that turn. It raises `AgentDead` when the agent dies without reading it, and `InboxFull` when 1,000 words
            wait for the agent. ``withdraw()`` takes an unread word back and returns whether it did; the future then
            raises `Withdrawn`.

        Raises:
            BadInput: the text is blank, too long, or cannot be stored; the key is none. The future raises it where the
                key names another word.
            AgentDead: the agent is dead.
        """
        return self.system._steer(self.uuid, text, now, key)

    @overload
    def reply(self, timeout: float | None = None, *, output: type[T]) -> Future[Reply[T]]: ...

    @overload
    def reply(self, timeout: float | None = None, *, output: Any = None) -> Future[Reply]: ...

    def reply(self, timeout: float | None = None, *, output: Any = None) -> Future[Reply[Any]]:
        """The outcome of the turn in progress, or else of the agent's latest one; also of a dead agent.

        Args:
            timeout: seconds to wait; None waits forever.
            output: the type that the turn was asked for, of which ``Reply.output`` is to be. None takes the type that
                the fork asked for which gave this handle, and else leaves it as JSON has it.

        Raises:
            OutputError: the turn gave no value of this type.
            ProviderError, TurnInterrupted: that was the outcome. A turn that a crash cut off counts as interrupted.
            NoTurn: there was no turn yet.
            AgentDead: it died before its latest turn had an outcome, or without a turn.
        """
        if output is not None:
            from ikigai_actors.records.messages.outputs import expected

            expected(output)
        future = self._reply_of(output, timeout)

        def ask() -> None:
            try:
                self.system._tell(self.uuid, on.GetOutcome(future))
            except AgentDead:
                outcome = self.system._log_cache.find_in(self.uuid, lambda log: last_outcome(log.newest_first()))
                if outcome is None:
                    raise
                future.settle(outcome)

        return self._go(ask, future)

    def resume(self, timeout: float | None = None) -> Future[bool]:
        """Go on with the latest turn, when a crash cut it off or an error of the provider ended it.

        The history is sent to the model again, including all of that turn; `reply` then waits for the outcome.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            Whether there was such a turn. There is none after a later message, a clear or a rewind.
        """
        return self._tell(on.Resume, Future(timeout=timeout))

    # Children

    @overload
    def fork(
        self,
        prompt: str | None = None,
        *,
        name: str | None = None,
        exist_ok: bool = False,
        **how: Unpack[ForkOptions],
    ) -> Future[H]: ...

    @overload
    def fork(
        self,
        *,
        prompts: Sequence[str | None],
        names: Sequence[str | None] | None = None,
        **how: Unpack[ForkOptions],
    ) -> Future[list[H]]: ...

    @overload
    def fork(
        self,
        prompt: str | None = None,
        *,
        count: int,
        names: Sequence[str | None] | None = None,
        **how: Unpack[ForkOptions],
    ) -> Future[list[H]]: ...

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
        attach: Sequence[Attachable] = (),
        at: int | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        exist_ok: bool = False,
        timeout: float | None = None,
    ) -> Future[H] | Future[list[H]]:
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
            labels: on whose account the child works, and all that descend from it, as ``{"team": "sales"}``. They go
                over the labels in force here, with those of the turn in progress, 16 together at most; see
                `ActorSystem.spending`.
            exist_ok: whether the living child that has this name is returned as it is, if there is one: nothing else
                of the call counts then. Of several programs that ask at once one makes the child, and all get it.
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
        random_bytes = self.system._random_bytes
        children = new_children(
            lambda: new_agent_uuid(random_bytes), prompt, name, count=count, prompts=prompts, names=names
        )
        fork = new_fork(
            children,
            model=model,
            system=system,
            restart=restart,
            on_orphan=on_orphan,
            output=output,
            attach=attach,
            at=at,
            budget=budget,
            labels=labels,
        )
        if check_flag(exist_ok, "exist_ok"):
            if (called := children[0].name) is None or count is not None or prompts is not None:
                raise BadInput("Expected the name of one child together with exist_ok; got none, or several children.")
            check_timeout(timeout)
            return self._beside(lambda: self._found_or_born(called, fork, children, output, timeout), timeout)
        if count is None and prompts is None:
            return self._tell(fork, self._births(timeout, children, lambda uuid: self._ref(uuid, output)))
        made = [self._ref(child.uuid, output) for child in children]
        return self._tell(fork, self._births(timeout, children, lambda _: made))

    def fork_many(
        self, children: Sequence[Child], *, note: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Future[list[H]]:
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
            NotABoundary: a step is in progress at a position; the error names the nearest ones that would do.
            HistoryPruned: a history was deleted.
            AgentNotFound, AmbiguousAgent: there is no such agent, or several.
            AgentDead, AgentStopped: this agent does not fork.
            BudgetExceeded: a budget allows no more agents.
        """
        told = note_of({} if note is None else note)
        check_timeout(timeout)

        def bear() -> Future[list[H]]:
            births = births_of(self.system, children)
            made = [self._ref(birth.uuid) for birth in births]
            born = self._births(timeout, births, lambda _: made)
            return self._tell(lambda caller: on.ForkTrials(told, births, caller), born)

        return self._beside(bear, timeout)

    def _found_or_born(
        self,
        name: str,
        fork: Callable[[on.Caller], on.Fork],
        children: Sequence[on.NewChild],
        output: Any,
        timeout: float | None,
    ) -> Future[H]:
        """The living child of this name, or a new one. Of several births the database lets one: the others find it."""

        def taken(error: BaseException) -> object:
            return error.holder if isinstance(error, NameTaken) and self.uuid in error.above else error

        born = self._births(timeout, children, lambda uuid: self._ref(uuid, output), taken)
        if (there := self.system._store.read(lambda tx: registry.child_named(tx, self.uuid, name))) is None:
            return self._tell(fork, born)
        born.settle(there.uuid)
        return born

    def _births(
        self,
        timeout: float | None,
        born: Sequence[on.NewChild | on.TrialBirth],
        make: Callable[[Any], Any],
        rescue: Callable[[BaseException], object] | None = None,
    ) -> Future[Any]:
        what, who = ("the fork", "the child") if len(born) == 1 else ("the forks", "the first child")
        late = f"{what} may still happen: {who} is agent {born[0].uuid} then (system.agent finds it)."
        return self._future(timeout, make, late=late, until=Until.STEP, rescue=rescue)

    # History

    def note(self, data: Mapping[str, Any], timeout: float | None = None) -> Future[int]:
        """Write a note into the log: what programs know of it, and no model sees.

        Args:
            data: any dict that JSON can hold.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the note: a message of kind ``note``, whose ``data`` it is.

        Raises:
            BadInput: JSON cannot hold it, or it has a name that the book of an experiment has.
        """
        if not (told := note_of(data)):
            raise BadInput("Expected a note to say something; got an empty dict.")
        return self._tell(lambda caller: on.ForkTrials(told, (), caller), self._future(timeout))

    def clear(self, timeout: float | None = None) -> Future[int]:
        """Start over, with the settings in force.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the clear.
        """
        return self._tell(on.Clear, self._future(timeout))

    def mark(self, label: str | None = None, timeout: float | None = None) -> Future[int]:
        """Set a mark to come back to.

        Args:
            label: its name; labels may repeat, and the latest counts. None for no name.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the mark.
        """
        text = "" if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.SetMark(text, caller), self._future(timeout))

    def rewind(self, label: str | None = None, timeout: float | None = None) -> Future[int]:
        """Go back to a mark, an inherited one too. Settings stay as they are.

        Args:
            label: the latest mark with this label; None is the latest mark.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the rewind.

        Raises:
            MarkNotFound: there is no such mark.
        """
        text = None if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.Rewind(text, caller), self._future(timeout))

    def undo(self, timeout: float | None = None) -> Future[int]:
        """Take back the latest prompt of the history, an inherited one too, and everything after it.

        This rewinds the history to before that prompt: conversation and marks become what they were. Settings stay, and
        so does what tools did to the world. The call waits for a turn in progress.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the rewind.

        Raises:
            NoTurn: there is no prompt to take back.
        """
        return self._tell(on.Undo, self._future(timeout))

    def compact(
        self, focus: str | None = None, text: str | None = None, timeout: float | None = None
    ) -> Future[Compacted]:
        """Let its model write a summary, which replaces what was said: the next request is that much smaller.

        What was said latest stays verbatim, and so does the prompt of an open turn; nothing is deleted, and `uncompact`
        brings all of it back. In a turn it happens before the next request to the model.

        Args:
            focus: what matters most; None for no preference.
            text: a summary that you have written, or mended; no model is asked then. Right after a summary it takes
                the place of that one.
            timeout: seconds to wait; None waits forever.

        Returns:
            What came of it.

        Raises:
            BadInput: the text is about as long as what it replaces.
            NothingToCompact: so little was said that a summary would save nothing.
            ProviderError: the model gave no summary, or code answers for it and no ``compact_model`` is set.
            TurnInterrupted: it was interrupted.
        """
        if text is not None and focus is not None:
            raise BadInput(
                "Expected one of focus, for the model that writes a summary, and text, the summary itself; got both."
            )
        if text is not None and not check_text(text, "text").strip():
            raise BadInput("Expected text to be a summary; got a blank one.")
        asked, summary = "" if focus is None else check_text(focus, "focus"), text or ""
        future = self._future(timeout, compacted, until=Until.STEP)
        return self._tell(lambda caller: on.Compact(asked, caller, summary), future)

    def uncompact(self, timeout: float | None = None) -> Future[int]:
        """Take off the latest summary: what it stood for is shown again, byte for byte, with what was said since.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of that in the log.

        Raises:
            NothingToUncompact: no summary is in force.
        """
        return self._tell(on.Uncompact, self._future(timeout))

    def merge(
        self, child: Handle | str, how: str = RESULT, positions: Sequence[int] = (), timeout: float | None = None
    ) -> Future[Merged]:
        """Take in what an agent below this one has said: its model sees it from now on, as a quotation of that agent.

        Once for each head of the child: it can be merged again when it has said more, and only that comes then.
        Documents are shared, so they are named alone, and conflicts with them. A busy agent does it after its turn.

        Args:
            child: an agent that this one has forked or supervises, directly or not, dead or alive; a handle, or a text
                as in `send`.
            how: ``result`` takes in the result with which it has exited, or else its latest answer; ``summary`` has its
                model write what it has done, which this agent pays for; ``pick`` quotes some of its messages.
            positions: for ``pick``, the positions of these messages.
            timeout: seconds to wait; None waits forever.

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
        picked = check_merge(how, positions)
        check_timeout(timeout)

        def take() -> Future[Merged]:
            uuid = uuid_of(self.system._store, child)
            return self._tell(lambda caller: on.Merge(uuid, how, picked, caller), self._future(timeout, merged))

        return self._beside(take, timeout)

    def merge_files(
        self, child: Handle | str | None = None, how: str | None = None, timeout: float | None = None
    ) -> Future[list[str]]:
        """Take over what a child has changed in the files of a workspace with ``on_fork="overlay"`` or ``"worktree"``.

        Either all of it or nothing. It can be merged again when it has changed more, and only that comes then. A busy
        agent does it after its turn, and both agents' running calls end first.

        Args:
            child: an agent whose files began as those of this one, or of a child of it, dead or alive; a handle, or a
                text as in `send`.
                None writes what this agent has changed to the directory itself.
            how: ``apply`` for files in layers, ``branch`` for worktrees: git merges the branch of the child, with what
                it has not committed, into the branch of this agent. None for what it is.
            timeout: seconds to wait; None waits forever.

        Returns:
            The paths of what differs from before, beneath the directory.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
            NotBelow: they did not begin so.
            FilesConflict: both have changed the same files. Nothing was merged.
            BadInput: one of the two has no files of its own, or there is no workspace.
        """
        check_timeout(timeout)
        if how is not None:
            check_choice(how, "how", ("apply", "branch"))

        def take() -> Future[list[str]]:
            uuid = self.uuid if child is None else uuid_of(self.system._store, child)
            return self._tell(lambda caller: on.MergeFiles(uuid, caller, how or ""), self._future(timeout))

        return self._beside(take, timeout)

    def configure(self, /, *, timeout: float | None = None, **settings: Any) -> Future[int]:
        """Change settings. Children that are forked later inherit them.

        Args:
            timeout: seconds to wait; None waits forever.
            settings: ``model``, ``system``, ``max_tokens``, ``temperature`` and others, see
                `ikigai_actors.records.messages.settings`; None removes one.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: a setting is unknown, or its value is wrong.
        """
        checked = check_settings(settings)
        return self._tell(lambda caller: on.Configure(checked, caller), self._future(timeout))

    # Life

    def rename(self, name: str | None, timeout: float | None = None) -> Future[None]:
        """Give the agent a name, or another one. Returns after the commit.

        Later requests to its model, and the screens, show the new name. The old name finds no agent any more, and
        another agent may take it.

        Args:
            name: the new name, unique among the living; empty or None takes the name away.
            timeout: seconds to wait; None waits forever.

        Raises:
            NameTaken, BadInput: the agent cannot have this name.
            AgentDead: the agent is dead, and keeps its name.
        """
        return self._write(Rename(self.uuid, name), timeout, lambda _: None)

    def signal(
        self,
        signal: Signal,
        timeout: float | None = None,
        *,
        cascade: bool = False,
        reason: str = "",
        grace: float = GRACE,
    ) -> Future[bool]:
        """Send a signal, which overtakes all waiting commands. Returns, after the commit, whether it had an effect.

        Args:
            signal: ``INT`` ends the turn in progress; ``STOP`` pauses the agent after its step, ``CONT`` lets it go on;
                ``TERM`` lets it finish its turn and die; ``KILL`` ends it at once.
            timeout: seconds to wait; None waits forever.
            cascade: whether it hits all descendants too, in one transaction.
            reason: why; the registry shows it for every agent that dies of the signal.
            grace: seconds after which TERM becomes KILL.

        Raises:
            AgentDead: it is dead already.
            AgentStopped: it is terminating, and cannot be paused.
            RootProtected: agent 0 cannot be killed or terminated.
        """
        self._check_wait(timeout)
        if signal == Signal.INT:
            check_text(reason, "reason")
            check_flag(cascade, "cascade")
            return self._beside(lambda: self.system._lifecycle.interrupt(self.uuid, cascade=cascade), timeout)
        return self._signal(signal, had_effect, timeout, cascade=cascade, reason=reason, grace=grace)

    def kill(self, *, cascade: bool = False, reason: str = "", timeout: float | None = None) -> Future[list[H]]:
        """End the agent at once. Its orphan policy decides about the agents that it supervised.

        Args:
            cascade: whether all its descendants die too.
            reason: why, for the registry.
            timeout: seconds to wait; None waits forever.

        Returns:
            After the commit, the agents that died, leaves first. Raises what `signal` does.
        """

        def dead(aftermath: "LifecycleChange") -> list[H]:
            return [self._ref(uuid) for uuid in aftermath.dead]

        self._check_wait(timeout)
        return self._signal(Signal.KILL, dead, timeout, cascade=cascade, reason=reason)

    def _signal(
        self, signal: Signal, make: "Callable[[LifecycleChange], Any]", timeout: float | None, **how: Any
    ) -> Future[Any]:
        return self.system._lifecycle.signal(self.uuid, signal, make, **how).within(timeout)

    def exit(self, result: str = "", timeout: float | None = None) -> Future[None]:
        """End the agent after its turn: the normal end. A permanent agent is restarted.

        Args:
            result: a text that its supervisor gets by mail.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentDead: the agent is dead.
            RootProtected: agent 0 cannot exit.
        """
        text = check_text(result, "result")
        return self._tell(lambda caller: on.ExitNow(text, caller), self._future(timeout))

    def supervise(
        self,
        *,
        strategy: str | None = None,
        intensity: int | None = None,
        period: float | None = None,
        on_orphan: str | None = None,
        timeout: float | None = None,
    ) -> Future[None]:
        """Say how the agent supervises its children. Returns after the commit; None leaves a setting as it is.

        Args:
            strategy: which siblings a restart takes along: ``one_for_one``, ``one_for_all`` or ``rest_for_one``.
            intensity: how many restarts of its children are allowed within a period, before it gives up.
            period: seconds.
            on_orphan: what happens to its children when it dies: ``reparent``, ``cascade``, ``stop`` or ``continue``.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: a setting makes no sense; or children that are to be restarted together live on several hosts.
            AgentDead: the agent is dead.
        """
        if (strategy, intensity, period, on_orphan) == (None, None, None, None):
            raise BadInput("Expected strategy, intensity, period or on_orphan; got none of them.")
        return self._write(supervision(self.uuid, strategy, intensity, period, on_orphan), timeout, lambda _: None)

    def adopt(self, child: Handle | str, timeout: float | None = None) -> Future[None]:
        """Supervise another agent from now on. If it is stopped, it goes on. Its lineage stays.

        Args:
            child: the other agent: a handle, or a text as in `send`.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: the child is above this agent, or is this agent; or it would be restarted together with its
                new siblings, and lives on another host.
            AgentDead, AgentNotFound, AmbiguousAgent: one of the two is dead, or cannot be found.
        """
        from ikigai_actors.records.lives.supervision import AdoptChild

        unit = about(child, AdoptChild, lambda uuid: AdoptChild(uuid, self.uuid))
        return self._write(unit, timeout, lambda _: None)

    def move(self, host: str, timeout: float | None = None) -> Future[None]:
        """Let another host run the agent, and those of its descendants that live on the same host. Its host does so.

        Replies and tools that are in progress have a lease's time to end; the rest is cut off, and goes on there as
        after a crash. Callers still get their answers.

        Args:
            host: the name of the other host; see `ActorSystem.hosts`.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: it is restarted together with its siblings, so only their supervisor can be moved.
            RootProtected: agent 0 cannot be moved.
            NoHost: no host of that name takes agents, or the hosts share none.
        """
        check_type(host, str, "host", "the name of a host")
        future = self._future(timeout)
        return self._go(lambda: self.system._remote_agent(self.uuid).deliver(Move(host, future)), future)

    # Budgets

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
    ) -> Future[BudgetStatus]:
        """Grant more of what the agent's nearest budget limits; those who wait for it go on, in order.

        Args:
            tokens: how many more tokens; the others in the same way, see `Budget`.
            usd: how many more dollars.
            agents: how many more agents may live.
            agents_ever: how many more agents may ever be born.
            seconds: how much longer requests may be made.
            requests_per_minute: how many more requests may be made in a minute.
            timeout: seconds to wait; None waits forever.

        Returns:
            What the budget grants now, and whose it is.

        Raises:
            AgentNotFound: there is no such agent.
            BadInput: the budget does not limit that, or a value is no amount.
        """
        more = Budget(tokens, usd, agents, agents_ever, seconds, requests_per_minute).limits()
        if not any(more.values()):
            raise BadInput("Expected what to grant, e.g. grant(tokens=100_000) or grant(usd=5); got nothing.")
        from ikigai_actors.records.budgets.grants import Grant

        return self._write(Grant(self.uuid, more), timeout, lambda served: served.status)

    def set_budget(self, budget: Budget | Mapping[str, Any], *, timeout: float | None = None) -> Future[BudgetStatus]:
        """Set how much the agent's own budget grants in all; make it where the agent has none.

        Those who wait for it go on, in order. Of tokens and dollars it grants at least what is spent and held. A new
        limit counts from now on, for the agent and all that descend from it.

        Args:
            budget: the limits, e.g. ``{"usd": 5}``; what it does not name stays as it is. ``strict`` is set where a
                budget is made.
            timeout: seconds to wait; None waits forever.

        Returns:
            What the budget grants now.

        Raises:
            AgentNotFound: there is no such agent.
            BadInput: an agent that descends from this one has a budget of its own, above which none can be put; or a
                value is no amount.
        """
        limits = checked_limits(as_budget(budget))
        from ikigai_actors.records.budgets.limits import SetBudget

        return self._write(SetBudget(self.uuid, limits), timeout, lambda served: served.status)

    def charge(self, *, usd: float = 0, tokens: int = 0, timeout: float | None = None) -> Future[None]:
        """Charge the agent for what a tool costs, before the tool acts: ``current_agent().charge(usd=0.02)``.

        Under a strict budget that must fit. Else it is recorded whatever is left, and the next request waits.

        Args:
            usd: dollars.
            tokens: tokens, where the tool asks a model itself.
            timeout: seconds to wait; None waits forever.

        Raises:
            BudgetExceeded: a budget above the agent is strict, and too little is left. Nothing is recorded.
            AgentDead: the agent is dead.
        """
        amounts = check_count(tokens, "tokens", most=MOST), micro_dollars(usd)
        from ikigai_actors.records.budgets.charges import ChargeAgent

        return self._write(ChargeAgent(self.uuid, *amounts), timeout, lambda _: None)

    # Mail, groups, timers

    def send(
        self,
        recipient: Handle | str,
        body: str,
        timeout: float | None = None,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        zone: str | None = None,
    ) -> Future[int]:
        """Send a mail as this agent; return, after the commit, its number in the recipient's mailbox.

        Mails of one sender arrive in the order in which they were sent. One that is sent later arrives then, even if
        this agent has died; until then it is a timer of the recipient, whose number is returned.

        ``"group:reviewers"`` is a group: all who are members at the commit get it, but this agent and those whose
        mailboxes are full. Then the number of those is returned that did.

        Args:
            recipient: a handle, or a uuid, name, or unique prefix of a uuid; or a group.
            body: the text, at most 64 KiB in UTF-8, and not blank.
            timeout: seconds to wait; None waits forever.
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
        now = self.system._clock.now_ms()
        unit = delivery(self.uuid, recipient, body, now, at=at, after=after, zone=zone)
        return self._write(unit, timeout, lambda sent: sent.id)

    def open_mail(self, number: int, timeout: float | None = None) -> Future[Mail]:
        """Read one mail by its number, read before or not. It counts as read from now on.

        Args:
            number: its number in this mailbox.
            timeout: seconds to wait; None waits forever.

        Raises:
            MailNotFound: there is no such mail.
        """
        return self._write(Open(self.uuid, check_mail_id(number), self.system._clock.now_ms()), timeout)

    def read_mail(self, sender: Handle | str | None = None, timeout: float | None = None) -> Future[list[Mail]]:
        """Read its unread mail, oldest first, and mark it as read in the same commit.

        Args:
            sender: only mail of this agent (a handle or text, as in `send`); ``""`` is a person outside of any agent.
                None reads all.
            timeout: seconds to wait; None waits forever.

        Returns:
            The mails.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called as the sender is.
        """
        now = self.system._clock.now_ms()
        if sender is None or (isinstance(sender, str) and sender == PERSON):
            unit: Unit = Read(self.uuid, now, sender)
        else:
            unit = about(sender, Read, lambda uuid: Read(self.uuid, now, uuid))
        return self._write(unit, timeout, lambda taken: list(taken.mails))

    def delete_mail(self, number: int, timeout: float | None = None) -> Future[None]:
        """Delete one mail for good. Its number is not given again.

        Args:
            number: its number in this mailbox.
            timeout: seconds to wait; None waits forever.

        Raises:
            MailNotFound: there is no such mail.
        """
        return self._write(Delete(self.uuid, check_mail_id(number)), timeout, lambda _: None)

    def join(self, group: str, timeout: float | None = None) -> Future[bool]:
        """Join a group, which need not be made before; return, after the commit, whether the agent was no member.

        It leaves with its death.

        Args:
            group: its name.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: that is no name: a group has names as agents have.
            AgentDead: the agent is dead.
            GroupFull: the group has 1,000 members.
        """
        return self._write(JoinGroup(self.uuid, group, self.system._clock.now_ms()), timeout)

    def leave(self, group: str, timeout: float | None = None) -> Future[bool]:
        """Leave a group; return, after the commit, whether the agent was a member.

        Args:
            group: its name.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: that is no name.
        """
        return self._write(LeaveGroup(self.uuid, group), timeout)

    def monitor(self, watched: Handle | str, timeout: float | None = None) -> Future[None]:
        """Let this agent hear of the death of another one, by mail of kind ``exit``, as a supervisor does.

        Of one that is dead already it hears at once. Of the same death it hears once.

        Args:
            watched: a handle, or a uuid, name, or unique prefix of a uuid.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
            AgentDead: this agent is dead.
            BadInput: it is this agent itself.
        """
        now = self.system._clock.now_ms()
        unit = about(watched, MonitorAgent, lambda uuid: MonitorAgent(uuid, self.uuid, now))
        return self._write(unit, timeout, lambda _: None)

    def demonitor(self, watched: Handle | str, timeout: float | None = None) -> Future[bool]:
        """Let this agent hear no more of the death of another one; return whether it would have.

        Args:
            watched: as in `monitor`.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several, are called so.
        """
        return self._write(about(watched, Demonitor, lambda uuid: Demonitor(uuid, self.uuid)), timeout)

    def set_rule(
        self, decision: str, tool: str, pattern: str = "", *, scope: str = Scope.BELOW, timeout: float | None = None
    ) -> Future[Rule]:
        """Give the agent a rule: calls of a tool are allowed, asked about, or denied.

        Of the rules that fit a call, those of the agent and of all above it in the tree of supervisors, any that denies
        beats any that asks, and that beats any that allows. Where none fits, the tool's own policy decides. A rule
        binds every call that begins after it is committed, on every host.

        Args:
            decision: ``allow``, ``ask`` or ``deny``.
            tool: the name of the tool; ``*`` in it is any text, as in ``git__*``.
            pattern: which calls it fits; empty for all. For bash the words of a command, as ``"git log *"``: ``*`` is
                any one word, and as the last one any further words. Only a command of plain words can be allowed so;
                a denial looks at whatever the text may run, and is no fence. For tools of files a path beneath the
                directory: ``*`` is any text within a name, ``**`` any names. Other tools have no patterns: a rule with
                one fits every call that it denies or asks about, and allows none.
            scope: ``below``: the agent and all below it; ``self``: the agent alone.
            timeout: seconds to wait; None waits forever.

        Returns:
            The rule, with its number; one that the agent has already is not set twice.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: it is no rule, or the agent has 200; or it allows all of bash, which runs here without the fence
                that it was to have.
        """
        new = NewRule(*check_rule(decision, tool, pattern, scope))
        self.system._check_new_rule(new)
        return self._write(AddRule(self.uuid, new, self.system._clock.now_ms()), timeout)

    def remove_rule(self, number: int, timeout: float | None = None) -> Future[Rule]:
        """Take back a rule of the agent; return it.

        Args:
            number: its number among the rules of the agent.
            timeout: seconds to wait; None waits forever.

        Raises:
            RuleNotFound: the agent itself has no such rule.
        """
        number = check_count(number, "the number of a rule", least=1)
        return self._write(RemoveRule(self.uuid, number, self.system._clock.now_ms()), timeout)

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
    ) -> Future[int]:
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
            timeout: seconds to wait; None waits forever.

        Returns:
            After the commit, the number of the timer among those of the agent.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: not one of ``at``, ``after`` and ``every`` is given; the time is over, or more than ten years
                ahead; there is no such zone; or the text cannot be sent.
            TooManyTimers: it has 100 timers.
        """
        check_flag(prompt, "prompt")
        now = self.system._clock.now_ms()
        unit = reminder(self.uuid, text, now, prompt=prompt, at=at, after=after, every=every, zone=zone)
        return self._write(unit, timeout, lambda timer: timer.id)

    def cancel_timer(self, number: int, timeout: float | None = None) -> Future[None]:
        """Cancel one of its timers.

        Args:
            number: the number of the timer, as `remind` and `send` return it.
            timeout: seconds to wait; None waits forever.

        Raises:
            TimerNotFound: there is no such timer; it may have fired.
        """
        return self._write(CancelTimer(self.uuid, check_timer_id(number)), timeout, lambda _: None)

    def wait(
        self, agents: Sequence[H | str] | None = None, timeout: float | None = None
    ) -> Future[dict[H | str, WaitResult]]:
        """Wait for mail, or until each of some agents has sent mail, has nothing to do, or has ended.

        An agent has nothing to do (``idle``) when no turn is open and no prompt waits; one whose turn was cut off and
        not resumed is not idle. A result that was once found for an agent stays, while others are waited for. ``mail``
        comes before any other result. No thread polls meanwhile.

        Args:
            agents: handles, or texts as in `send`. None waits for mail of anybody.
            timeout: seconds to wait; 0 looks once, None waits forever.

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
        check_timeout(timeout)
        if self._waits:
            refuse_to_block()
        if agents is None:
            return self._wait(None, timeout)
        return self._beside(lambda: self._wait(agents, timeout), cancels=True)

    def _wait(self, agents: Sequence[H | str] | None, timeout: float | None) -> Future[dict[H | str, WaitResult]]:
        future, waiter = self.system._waits.prepare_by_name(self.uuid, agents, timeout, self.system._store, self._ref)
        if not self._waits:
            waiter.begin()
            return future
        try:
            waiter.begin()  # in here: Ctrl-C may come right after it
            future.get()
        finally:
            waiter.cancel()
        return future

    # The ways out

    def _tell(self, command: Callable[[Future[Any]], object], future: Future[Any]) -> Future[Any]:
        """Let the agent carry out a command, which settles the future."""
        return self._go(lambda: self.system._tell(self.uuid, command(future)), future)

    def _go(self, act: Callable[[], object], future: Future[T], checks: bool = True) -> Future[T]:
        """Do what settles the future. For an agent of another process that is a row, written beside an event loop."""
        if self._waits:
            if checks:
                future.check_wait()
            act()
        elif self.system._here(self.uuid) is not None or may_block():
            act()
        else:
            self.system._beside.post(act, future)
        return future

    def _beside(
        self, ask: Callable[[], Future[T]], timeout: float | None = None, *, cancels: bool = False
    ) -> Future[T]:
        """Ask for something that is first looked up: beside an event loop, if it is not that of an agent's code."""
        if self._waits or may_block() or acting_code.get(None) is not None:
            return ask().within(timeout)
        return self.system._beside.forward(ask, cancels=cancels).within(timeout)

    def _write(self, unit: Unit, timeout: float | None, make: Callable[[Any], Any] | None = None) -> Future[Any]:
        """Commit a unit; the future gives what ``make`` makes of its answer."""
        self.system._check_open()
        return self.system._writer.ask(unit, make, timeout=timeout, waits=self._waits)

    def _check_wait(self, timeout: float | None) -> None:
        """Raise `BadInput` and `WouldDeadlock` before something is sent whose future knows nothing of them."""
        if self._waits:
            refuse_to_block()
        check_timeout(timeout)

    def _future(
        self,
        timeout: float | None,
        make: Callable[[Any], Any] | None = None,
        *,
        late: str = MAY_HAPPEN,
        until: Until = Until.TURN,
        rescue: Callable[[BaseException], object] | None = None,
    ) -> Future[Any]:
        """A future of what the agent does; a time-out says why it has not been done."""
        why = partial(why_late, self.system, self.uuid)
        return Future(self.uuid, make, late=late, until=until, why=why, timeout=timeout, rescue=rescue)

    def _reply_of(self, output: Any, timeout: float | None = None) -> Future[Reply]:
        """A future of a reply whose output is of this type.

        None is the type for which the handle's fork has asked, if the output fits it; else JSON.
        """

        def typed(reply: Reply) -> Reply:
            from ikigai_actors.records.messages.outputs import as_output, expected, problems

            wanted = self._output if output is None else output
            is_of_another_turn = output is None and (
                reply.stop_reason != OUTPUT or problems(expected(wanted), reply.output) != []
            )
            return reply if is_of_another_turn else replace(reply, output=as_output(wanted, reply.output))

        return self._future(timeout, None if output is None and self._output is None else typed)
