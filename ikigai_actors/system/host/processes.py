"""The process table: the actors of the agents that this host runs, and what births, deaths and signals mean for them.

The registry decides which agents live; the table follows it. After each committed unit (`LifecycleChange`) it ends the
actors of dead agents, whose effects are cancelled, and sends the other actors the new status of their agents.

An agent without open work sleeps until a command for it comes: it has no actor, and a boot costs nothing for it.
`ProcessTable.get` finds only existing actors, and never waits. `ProcessTable.wake` makes the actor of a sleeping agent.

An agent that crashes gets its next actor at once, as after a boot, and the callers of the old actor wait for the new
one. But the new actor is held, and does nothing, until the supervisor has decided
(`ikigai_actors.system.host.supervision`).
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ikigai_actors.actors.futures import Future, may_block
from ikigai_actors.agent.messages import (
    Awaken,
    Dead,
    Departed,
    Finish,
    Handover,
    InterruptPrompt,
    NewMail,
    Reset,
    Restarted,
    RulesRead,
)
from ikigai_actors.agent.statistics import SystemStatistics, total, total_by_model
from ikigai_actors.agent.succession import Heir, Predecessor, Processes, Successor
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import WORKING, LifecycleState, Phase, State
from ikigai_actors.errors import AgentDead, IkigaiError, SystemClosed
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.agents.registry import Died, Renamed, StatusSet
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.hosts.changes import AgentChange
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.records.hosts.offers import TurnNeed
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_unit import Birth
from ikigai_actors.records.mail.words import KeptWord
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.steered import Steered, steered_in
from ikigai_actors.system.receipts import Receipt
from ikigai_actors.tools.rules.rule import Rules
from supervisors.causes import Cause
from supervisors.signals import Status

if TYPE_CHECKING:
    from ikigai_actors.agent.actor import AgentActor
    from ikigai_actors.agent.boot import Origin, RowReader, Survey
    from ikigai_actors.agent.runtime import Runtime
    from ikigai_actors.records.lives.deaths import LifecycleChange
    from ikigai_actors.records.lives.exit_mails import End
    from ikigai_actors.store.journal import CommitResult

logger = logging.getLogger(__name__)

CROWD = 1_000
"""The number of actors from which on unused agents go to sleep."""


class LookAt(Protocol):
    """A function that reads the row of an agent that may sleep."""

    def __call__(self, uuid: str, shards: Collection[int], store: "RowReader | None", /) -> "Survey":
        """Return a survey with the agent if it lives in one of these shards; else an empty one. Raises `StoreError`."""


class _Look:
    """A read of an agent's row in progress, and whether a commit changed the row meanwhile."""

    __slots__ = ("is_late",)

    def __init__(self) -> None:
        self.is_late = False  # whether the row may have changed since


class _Sleeper(Successor):
    """Takes messages that still come to an actor that fell asleep: it wakes the agent, and passes them on."""

    def __init__(self, uuid: str, hand_on: Callable[[str, object], object]) -> None:
        self._uuid, self._hand_on = uuid, hand_on

    def take_over(self, message: object) -> None:
        self._hand_on(self._uuid, message)


class Supervision(Protocol):
    """The supervision, as the process table uses it: decides about agents that fail, and schedules later work."""

    def note_failure(self, uuid: str, cause: Cause, reason: str, error: BaseException | None) -> None:
        """Note that an agent has crashed, or has exited and is permanent.

        Called before other threads can see the agent's next actor.
        """

    def on_crash(self, uuid: str) -> None:
        """Decide whether an agent that has crashed is restarted. Its next actor handles no message until then."""

    def on_failed_start(self, uuid: str, restarted: Restarted, error: Exception) -> bool:
        """Keep back a restarted agent whose log could not be read, and decide what follows.

        Return False if the agent has died.
        """

    def retry_prompts(self) -> None:
        """Schedule a further attempt to give actors the prompts and remote commands that no agent has taken up."""

    def watch_time(self) -> None:
        """Schedule the notices to owners of budgets with a time limit again, because limits may be new. Never waits."""

    def serve(self, budgets: Iterable[str], due: int | None = None) -> None:
        """Schedule a check of budgets, given by their owners: soon, or at a time in milliseconds since 1970.

        Never waits.
        """

    def await_service(self, uuid: str, at: int) -> None:
        """Let an agent repeat its model request at a time in milliseconds since 1970. Never waits."""

    def look_at_questions(self) -> None:
        """Schedule the next step of the questions to people, because there may be a new question. Never waits."""

    def watch(self, uuid: str) -> None:
        """Watch whether an agent sends heartbeats. Never waits."""

    def hand_on(self, uuid: str, message: object) -> None:
        """Wake an agent, and give the message to its actor. Never waits."""

    def begins_wait(self, uuid: str) -> None:
        """Note that a program only waits from now on. Never waits."""

    def ends_wait(self, uuid: str) -> None:
        """Note that a program no longer waits. Never waits."""

    def look_at_changes(self, since: int) -> None:
        """Give the actors all changes in the registry since a version of the tree of agents. Never waits."""

    def look_at_woken_later(self) -> None:
        """Schedule another look at parked agents that must go on. Never waits."""

    def crowded(self) -> None:
        """Note that the host has many actors, so unused agents go to sleep after some time. Returns at once."""


class ProcessTable(Processes):
    """The process table of a host: its actors, by the uuids of their agents."""

    def __init__(self, handle: Callable[[str], object]) -> None:
        """Make an empty table; `run` sets the parts that actors need, and `restore` makes the actors.

        Args:
            handle: makes the handle of an agent whose uuid is known.
        """
        self._handle = handle
        self._actors: dict[str, AgentActor] = {}
        self._held: set[str] = set()  # the agents whose actors are held until `restart`
        self._last_status: dict[str, Status] = {}  # what actors were sent last, without `Status.RUNNING`
        self._looks: dict[str, list[_Look]] = {}  # at the rows of agents that are being woken
        self._shards: Collection[int] = ()  # whose agents may be woken
        self._slept: list[str] = []  # since `take_slept`
        self._changed_here: set[str] = set()  # names and statuses, since `begin_look`
        self.on_change: Callable[[str], object] = lambda uuid: None
        """Called with an agent that has no actor here, when somebody has changed it."""
        self._closed = False
        self.changes = 0
        """Counts births and deaths, as far as this process has heard of them."""
        self._lock = threading.RLock()  # of those above: the journal, the supervision loop and the workers change them
        self._asking: set[str] = set()  # the agents that have asked about calls in their turns
        self._lacking: dict[str, None] = {}  # the agents whose turns have waited for what this process lacks
        self._receipts: dict[str, dict[int, list[Receipt]]] = {}  # of words that wait, by agent and mail
        self._parked: dict[str, tuple[Origin, tuple[Any, ...]]] = {}  # with who waits for the outcome of a parked turn
        self._runtime: Runtime | None = None
        self._supervision: Supervision | None = None

    def run(
        self,
        runtime: "Runtime",
        supervision: Supervision,
        remote: Callable[[str], Heir],
        look_at: LookAt,
        *,
        alone: bool = True,
    ) -> None:
        """Set the parts that actors need. Called before any other method.

        Args:
            runtime: the parts of the system.
            supervision: decides about agents that fail.
            remote: returns the object that takes over from the actor of an agent which has moved to another host.
            look_at: reads the row of an agent that is woken.
            alone: whether no other host runs agents of this database.
        """
        self._runtime, self._supervision, self._remote, self._look_at = runtime, supervision, remote, look_at
        self._alone = alone

    def serve_shards(self, shards: Collection[int]) -> None:
        """Set the shards whose agents may be woken here. Agents of other shards keep the actors that they have."""
        with self._lock:
            if shards != self._shards:
                self._shards = frozenset(shards)
                for uuid in self._looks:
                    self._has_changed(uuid)

    def serves(self, shard: int | None) -> bool:
        """Return whether the agents of a shard may be woken here."""
        return shard in self._shards

    def wake(self, uuid: str, store: "RowReader | None" = None) -> "AgentActor | None":
        """Return the actor of an agent, which is made if the agent sleeps; None if this host does not run the agent.

        The row of the agent is read. If a commit changes the agent meanwhile, its row is read again.

        Args:
            store: where to read; None for the store of the system.

        Raises:
            StoreError: the row cannot be read.
            SystemClosed: no more actors are made.
        """
        while (actor := self._actors.get(uuid)) is None:
            with self._looking(uuid) as look:
                survey = self._look_at(uuid, self._shards, store)
                with self._lock:
                    if look.is_late:
                        continue
                    if self._closed:
                        raise SystemClosed("The system is closed; open it again.")
                    for agent in survey.restored:
                        self._restore(agent)
            if not survey.restored:
                for origin in survey.unrestorable:
                    self.bury(origin.uuid, origin.reason)
                return None
        return actor

    @contextmanager
    def _looking(self, uuid: str) -> "Iterator[_Look]":
        look = _Look()
        with self._lock:
            self._looks.setdefault(uuid, []).append(look)
        try:
            yield look
        finally:
            with self._lock:
                self._looks[uuid].remove(look)
                if not self._looks[uuid]:
                    del self._looks[uuid]

    def _has_changed(self, uuid: str) -> None:
        """Note that a commit changed an agent that is being woken: its row is read again."""
        for look in self._looks.get(uuid, ()):
            look.is_late = True

    def shut(self) -> "list[AgentActor]":
        """Stop making actors; return the existing ones."""
        with self._lock:
            self._closed = True
            return list(self._actors.values())

    def restore(self, survey: "Survey") -> None:
        """Make the actors of the agents that a survey has found, and bury those that cannot come back."""
        for agent in survey.restored:
            self._restore(agent)
        for origin in survey.unrestorable:
            self.bury(origin.uuid, origin.reason)

    def _restore(self, agent: "Origin") -> None:
        with self._lock:
            if agent.uuid in self._actors:  # it was born into the shard after that was taken
                return
            _, callers = self._parked.pop(agent.uuid, (agent, ()))
            left = Handover(agent.head, agent.turn, agent.lifecycle, callers, paused=agent.paused) if callers else None
            actor = self._actors[agent.uuid] = self._new_actor(agent, left)
            self._note_crowd()
            if agent.lifecycle.status is not Status.RUNNING:
                self._last_status[agent.uuid] = agent.lifecycle.status
        if agent.is_parked:  # its turn was not cut off: it goes on, before all that waits for its end
            actor.actor_inbox.put_urgent(Restarted(agent.turn, agent.lifecycle.status, born=True))
        if agent.lifecycle.status is Status.TERMINATING:
            actor.actor_inbox.put_urgent(on.StatusChanged(agent.lifecycle.status, agent.lifecycle.ending))
        if agent.interrupted:
            actor.actor_inbox.put_urgent(on.Interrupt(Future(), turn=agent.turn))

    def finish(self, uuid: str, finished: Callable[[], object]) -> None:
        """Stop an agent from starting requests and tool calls; call ``finished`` when the running ones have ended.

        If the agent ends or crashes first, ``finished`` is never called.
        """
        actor = self._actors.get(uuid)
        if actor is None:
            finished()
        else:
            actor.actor_inbox.put_urgent(Finish(finished))

    def leave(self, uuid: str) -> Future[None]:
        """End the actor of an agent that another host runs from now on.

        The future is settled when the actor has ended.
        """
        done: Future[None] = Future()
        with self._lock:
            self._has_changed(uuid)
            actor, held = self._actors.get(uuid), uuid in self._held
            self._held.discard(uuid)
            origin, callers = self._parked.pop(uuid, (None, ()))
        if origin is not None:
            self._remote(uuid).inherit(Handover(origin.head, origin.turn, origin.lifecycle, callers))
        if actor is None:
            done.settle(None)
        else:
            (actor.actor_inbox.release if held else actor.actor_inbox.put_urgent)(Departed(done))
        return done

    def sleep(self, old: Predecessor) -> Successor | None:
        with self._lock:
            if (successor := self._take_out(old)) is not None:
                self._slept.append(old.origin.uuid)
        return successor

    def park(self, old: Predecessor, callers: Iterable[Any]) -> Successor | None:
        waiting = tuple(callers)
        with self._lock:
            if (successor := self._take_out(old)) is not None and waiting:
                self._parked[old.origin.uuid] = old.origin, waiting
        return successor

    def _take_out(self, old: Predecessor) -> Successor | None:
        """Remove an actor that is about to end from the table; return its heir, or None when it must not end.

        Called with the lock held.
        """
        uuid = old.origin.uuid
        assert self._supervision is not None
        actor = self._actors.get(uuid)
        if actor is not old or actor is None or uuid in self._held or uuid in self._receipts:
            return None
        if not actor.actor_inbox.empty():
            return None
        del self._actors[uuid]
        self._last_status.pop(uuid, None)
        return _Sleeper(uuid, self._supervision.hand_on)

    def begins_wait(self, uuid: str) -> None:
        assert self._supervision is not None
        self._supervision.begins_wait(uuid)

    def ends_wait(self, uuid: str) -> None:
        assert self._supervision is not None
        self._supervision.ends_wait(uuid)

    def was_stopped(self, uuid: str, changed: int) -> None:
        assert self._supervision is not None
        with self._lock:
            self._last_status[uuid] = Status.STOPPED  # CONT may have come, when the actor was not known to be stopped
        self._supervision.look_at_changes(changed - 1)

    def look_at_woken(self) -> None:
        assert self._supervision is not None
        self._supervision.look_at_woken_later()

    def awaken(self, uuid: str, store: "RowReader") -> None:
        """Let a parked agent go on, because its wait is over. Raises `StoreError`."""
        if (actor := self._actors.get(uuid)) is not None:
            actor.actor_inbox.put_urgent(Awaken())
        else:
            self.wake(uuid, store)

    def take_slept(self) -> list[str]:
        """Return the uuids of the agents that have fallen asleep since the last call."""
        with self._lock:
            slept, self._slept = self._slept, []
        return slept

    def drop(self, old: Predecessor) -> None:
        uuid = old.origin.uuid
        with self._lock:
            if self._actors.get(uuid) is old:
                del self._actors[uuid]
                self._last_status.pop(uuid, None)

    def depart(self, old: Predecessor, handover: Handover) -> Successor:
        uuid = old.origin.uuid
        self.drop(old)
        with self._lock:
            receipts = self._receipts.pop(uuid, {})
        self._parts.log_cache.forget(uuid)
        heir = self._remote(uuid)
        heir.inherit(
            replace(handover, receipts=tuple((mail, caller) for mail, some in receipts.items() for caller in some))
        )
        return heir

    def __len__(self) -> int:
        return len(self._actors)

    def __iter__(self) -> "Iterator[AgentActor]":
        return iter(list(self._actors.values()))

    def uuids(self) -> list[str]:
        """Return the uuids of agents with actors, and of parked agents with callers in this process."""
        return [*self._actors, *self._parked]

    def get(self, uuid: str) -> "AgentActor | None":
        """Return the actor of an agent; None when it sleeps, or this host does not run it. Reads nothing."""
        return self._actors.get(uuid)

    def is_idle(self, uuid: str) -> bool:
        """Return whether an agent has nothing to do, according to memory.

        True for an agent without an actor, since only agents without open work sleep.
        """
        actor = self._actors.get(uuid)
        return actor is None or actor.is_idle

    def handle(self, uuid: str) -> object:
        return self._handle(uuid)

    def expect(self, birth: Birth) -> None:
        from ikigai_actors.agent.boot import Origin
        from ikigai_actors.records.log.append import FIRST_EPOCH

        lifecycle = LifecycleState(restart=birth.restart)
        child = Origin(
            birth.uuid, birth.name, FIRST_EPOCH, birth.messages[-1].id, birth.turn, lifecycle, labels=birth.labels
        )
        actor = self._new_actor(child)
        actor.actor_inbox.held = True
        self._actors[birth.uuid] = actor
        self._note_crowd()

    def _note_crowd(self) -> None:
        if len(self._actors) >= CROWD:
            assert self._supervision is not None
            self._supervision.crowded()

    def spawn(self, birth: Birth, log: Log | None) -> None:
        self.changes += 1
        if (actor := self._actors.get(birth.uuid)) is not None:
            actor.begin(log)
        if birth.budget is not None and birth.budget.seconds:
            assert self._supervision is not None
            self._supervision.watch_time()

    def forget(self, birth: Birth) -> None:
        self._actors.pop(birth.uuid).actor_inbox.set()

    def bury(self, uuid: str, reason: str) -> None:
        from ikigai_actors.records.lives.deaths import WriteDeath
        from ikigai_actors.store.journal import Committed

        def done(result: "CommitResult") -> None:
            if isinstance(result, Committed):
                logger.error("Agent %s is dead: %s", uuid, reason)
            else:  # agent 0 is refused, and stays
                logger.error("Agent %s could not be buried (%s): %s", uuid, result.error, reason)

        runtime = self._parts
        runtime.journal.submit(WriteDeath(uuid, runtime.host.id, reason, runtime.clock.now_ms(), Cause.DAMAGED), done)

    def follow(self, change: "LifecycleChange") -> None:
        """Give the actors the changes that a committed unit made to their agents: births, deaths, new statuses.

        Never waits.
        """
        self._end_actors(change.dead)
        with self._lock:
            self._changed_here.update(change.status)
        for uuid, status in change.status.items():
            self._send_status(uuid, status, change.reason)
            self._parts.waits.changed(uuid)
            if status is Status.STOPPED and change.dead and (actor := self._actors.get(uuid)) is not None:
                logger.warning("%s paused: its supervisor died, whose policy is stop", actor.called)
        self.notified(change.notified)

    def notified(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Notify actors of mail that the runtime has written. Never waits.

        ``pairs``: the uuid of the recipient, and of the agent about which the mail is.
        """
        for recipient, about in pairs:
            self.mailed(recipient, about)

    def renamed(self, change: Renamed) -> None:
        """Give an actor its agent's new name, which this process has committed, and publish the event."""
        with self._lock:
            self._changed_here.add(change.agent_uuid)
            self._name(change)

    def _name(self, change: Renamed) -> None:
        with self._lock:
            self._has_changed(change.agent_uuid)
            if (actor := self._actors.get(change.agent_uuid)) is not None:
                actor.rename(change.name)
        self._parts.publisher.publish(change)

    def mailed(self, recipient: str, sender: str | None) -> None:
        """End the waits for a committed mail, and notify the recipient's actor if its agent wants notices.

        Never waits.
        """
        self._parts.waits.mailed(recipient, sender)
        if (actor := self._actors.get(recipient)) is not None and actor.wants_news:
            actor.actor_inbox.put_urgent(NewMail())

    def prompt(
        self, uuid: str, mail: int, text: str, data: Mapping[str, Any] = NO_DATA, interrupted: bool = False
    ) -> None:
        """Give an actor a prompt that another process has stored as mail, and wake the agent if it sleeps.

        A prompt that is given several times is answered once. Raises `StoreError`.
        """
        if (actor := self.wake(uuid)) is not None:
            actor.actor_inbox.put_urgent(on.Prompt(text, Future(), mail, data=data, interrupted=interrupted))

    def word(self, word: KeptWord) -> bool:
        """Give an actor a steering message that was just committed; return False without an actor. Never waits."""
        uuid, mail = word.mail.recipient, word.mail.id
        with self._lock:
            actor = self._actors.get(uuid)
            if isinstance(word.receipt, Receipt) and (actor is not None or self._alone):
                self._receipts.setdefault(uuid, {}).setdefault(mail, []).append(word.receipt)
        if actor is not None:
            actor.actor_inbox.put_urgent(on.Prompt(word.mail.body, Future(), mail, data=word.data))
        return actor is not None

    def entered(self, message: Message) -> None:
        if (steered_mail := steered_in(message)) is not None:
            mail, steered = steered_mail
            self._settle(message.agent_uuid, steered, mail)

    def leaves_words(self, uuid: str, error: IkigaiError) -> None:
        self._settle(uuid, error)

    def close_waiting(self) -> None:
        """Settle with `SystemClosed` the callers of parked turns and of stored steering messages."""
        for uuid in tuple(self._parked):
            self._answer_parked(uuid, SystemClosed("The system was closed before this was answered; the turn goes on."))
        for uuid in tuple(self._receipts):
            self._settle(uuid, SystemClosed("The system was closed before the word was read; the next one reads it."))

    def _answer_parked(self, uuid: str, error: IkigaiError) -> None:
        """Settle with an error the callers that wait for the outcome of a parked turn."""
        _, callers = self._parked.pop(uuid, (None, ()))
        for caller in callers:
            caller.settle(error)

    def _settle(self, uuid: str, value: Steered | IkigaiError, mail: int | None = None) -> None:
        """Settle the receipt of one steering message by its mail number, or, for None, of all of an agent's."""
        with self._lock:
            waiting = self._receipts.get(uuid, {})
            settled = [waiting.pop(number) for number in ([*waiting] if mail is None else [mail]) if number in waiting]
            if not waiting:
                self._receipts.pop(uuid, None)
        for receipt in (caller for waiting_ones in settled for caller in waiting_ones):
            receipt.settle(value)

    def command(self, uuid: str, command: on.Command) -> bool:
        """Give an actor a command of another process, and wake the agent if it sleeps.

        Return False when this host does not run the agent.
        """
        if (actor := self.wake(uuid)) is None:
            return False
        actor.actor_inbox.put_urgent(command)
        return True

    def give(self, uuid: str, message: object, store: "RowReader") -> None:
        """Put a message first in the inbox of an agent's actor, here or at the remote agent; wake the agent.

        Raises `AgentDead` when no actor of the agent takes messages any more, and `StoreError`.
        """
        actor = self.wake(uuid, store)
        if actor is not None:
            actor.take_over(message)
        elif self._alone:
            raise AgentDead(f"Agent {uuid} is dead, or no longer runs on this host.", uuid)
        else:
            self._remote(uuid).take_over(message)

    def resume_cut_off(self, uuid: str) -> None:
        """Resume the turn of an agent, if the turn was cut off."""
        if (actor := self._actors.get(uuid)) is not None and actor.state.phase is Phase.INTERRUPTED:
            actor.deliver(on.Resume(Future()))

    def asks(self, uuid: str) -> None:
        with self._lock:
            self._asking.add(uuid)

    @property
    def asking(self) -> bool:
        """Whether some agent may wait for approval of a call; it may be True after the last question is answered."""
        return bool(self._asking)

    def look_at_rules(self, rules_for: Callable[[Collection[str]], Mapping[str, Rules]]) -> None:
        """Give the actors that wait for approvals the rules that are in force now.

        ``rules_for`` reads the rules of some agents. Raises `StoreError`.
        """
        with self._lock:
            self._asking = {agent for agent in self._asking if agent in self._actors and self._actors[agent].state.turn}
            asking = list(self._asking)
        for uuid, rules in rules_for(asking).items() if asking else ():
            if (actor := self._actors.get(uuid)) is not None and rules != (actor.state.rules or ()):
                actor.actor_inbox.put_urgent(RulesRead(rules))

    def lacks(self, uuid: str) -> None:
        with self._lock:
            self._lacking[uuid] = None

    def lacking(self) -> list[str]:
        """The agents whose turns wait for hooks or programs that this process lacks."""
        if not self._lacking:
            return []
        with self._lock:
            open_turns = {state.uuid: state for state in self._in_turns(self._lacking)}
            self._lacking = dict.fromkeys(open_turns)
        return [uuid for uuid, state in open_turns.items() if state.lacks]

    def needs(self, agents: Iterable[str]) -> list[TurnNeed]:
        """Return the hooks and programs that the open turns of these agents need, as far as they have actors here."""
        is_program = self._parts.toolbox.is_program
        return [
            TurnNeed(
                tuple(state.view.settings.get("hooks") or ()),
                (state.view.settings["model"],) if state.program or is_program(state.view.settings) else (),
            )
            for state in self._in_turns(agents)
        ]

    def _in_turns(self, agents: Iterable[str]) -> list[State]:
        actors = (self._actors.get(uuid) for uuid in agents)
        return [actor.state for actor in actors if actor is not None and actor.state.turn]

    def look_for_mail(self, among: Collection[str] | None) -> None:
        """Notify actors that other processes may have sent mail.

        ``among``: only the actors of these agents; None for all.
        """
        for actor in self if among is None else filter(None, map(self._actors.get, among)):
            if actor.wants_news:
                actor.actor_inbox.put_urgent(NewMail())

    def begin_look(self) -> None:
        """Note that the registry is about to be read. Commits of this host after this are not in the rows."""
        with self._lock:
            self._changed_here.clear()

    def catch_up(self, change: AgentChange) -> bool:
        """Give the actor of an agent the changes that another process may have made to the agent's row.

        Returns False, and does nothing, if this host has changed the agent since `begin_look`: the row must be read
        again, or a former name would come back, and an agent that was stopped would go on.
        """
        uuid = change.uuid
        with self._lock:
            self._has_changed(uuid)
            actor = self._actors.get(uuid)
        if actor is None and not self._alone:
            self.on_change(uuid)  # so that the next look at the log publishes it
            return True
        if change.end is not None:
            self._end_actors({uuid: change.end})
            return True
        with self._lock:
            if uuid in self._changed_here:
                return False
            self._send_status(uuid, change.status, change.reason)
            if actor is None or actor.origin.name != change.name:
                self._name(Renamed(uuid, change.name))
        if actor is not None and change.interrupted:
            actor.actor_inbox.put_urgent(on.Interrupt(Future(), turn=change.interrupted))
        if actor is not None and change.prompt:
            actor.actor_inbox.put_urgent(InterruptPrompt(change.prompt))
        return True

    def replace_actor(
        self, old: Predecessor, handover: Handover, cause: Cause | None, reason: str, error: BaseException | None
    ) -> "AgentActor":
        assert self._supervision is not None  # `run` comes before anything can happen
        if cause is None:
            return self._make_successor(old, handover)
        self._supervision.note_failure(old.origin.uuid, cause, reason, error)
        successor = self._make_successor(old, handover)
        self._supervision.on_crash(old.origin.uuid)
        return successor

    def on_failed_start(self, uuid: str, restarted: Restarted, error: Exception) -> bool:
        assert self._supervision is not None
        return self._supervision.on_failed_start(uuid, restarted, error)

    def retry_prompts(self) -> None:
        assert self._supervision is not None
        self._supervision.retry_prompts()

    def serve(self, budgets: Iterable[str], due: int | None = None) -> None:
        assert self._supervision is not None
        self._supervision.serve(budgets, due)

    def look_at_questions(self) -> None:
        assert self._supervision is not None
        self._supervision.look_at_questions()

    def watch(self, uuid: str) -> None:
        assert self._supervision is not None
        self._supervision.watch(uuid)

    def await_service(self, uuid: str, at: int) -> None:
        assert self._supervision is not None
        self._supervision.await_service(uuid, at)

    def service_due(self, uuid: str, at: int) -> bool:
        """Let an agent repeat the request that waits for its service until this time; False if no request does."""
        actor = self._actors.get(uuid)
        wait = actor.state.service_wait if actor is not None else None
        if actor is None or wait is None or wait.until != at:
            return False
        if self._parts.clock.now_ms() >= at:
            actor.actor_inbox.put_urgent(on.ServiceDue(actor.state.request))
        return True

    def granted(self, uuid: str, held: Held) -> None:
        """Let the request of an agent go on that has waited for a budget. Does nothing if the wait has ended.

        Never waits.
        """
        if (actor := self._actors.get(uuid)) is not None:
            actor.actor_inbox.put_urgent(on.Granted(held))

    def waits_elsewhere(self, uuid: str, paused: Paused) -> None:
        """Give an agent the budget for which its request waits now. Never waits; does nothing if it is the same."""
        actor = self._actors.get(uuid)
        known = actor.state.hold if actor is not None else None
        if actor is None or not isinstance(known, Paused):
            return
        if (known.budget, known.unit, known.due) != (paused.budget, paused.unit, paused.due):
            actor.actor_inbox.put_urgent(on.WaitsElsewhere(paused))
            self._parts.waits.changed(uuid)
            if paused.again_at is not None:
                self.serve((paused.budget,), paused.again_at)

    def paused(self) -> list[str]:
        """Return the uuids of agents whose requests wait for budgets, according to memory."""
        return [actor.origin.uuid for actor in self if isinstance(actor.state.hold, Paused)]

    def reset(self, uuid: str) -> Future[None]:
        """Replace an agent's actor by a new one, which is held until `restart`. The future is settled after that."""
        done: Future[None] = Future()
        actor = self._actors.get(uuid)
        if actor is None or uuid in self._held:
            done.settle(None)
        else:
            actor.actor_inbox.put_urgent(Reset(done))
        return done

    def hold(self, uuid: str) -> bool:
        """Note that the actor of an agent is held until `restart`; return False when the agent is dead."""
        with self._lock:
            if known := uuid in self._actors:
                self._held.add(uuid)
        return known

    def restart(self, uuid: str, restarted: Restarted) -> None:
        """Let a held actor go on. Does nothing to an actor that is not held, because its `Reset` is still pending."""
        with self._lock:
            held = uuid in self._held
            self._held.discard(uuid)
            actor = self._actors.get(uuid)
        if actor is not None and held:
            actor.actor_inbox.release(restarted)

    def resume(self, among: Collection[str] | None = None, by: on.Resumption = on.Resumption.PERSON) -> list[str]:
        """Resume the cut-off turns of all agents, or of the agents ``among``; return the uuids of the agents."""
        actors = self if among is None else [actor for uuid in among if (actor := self._actors.get(uuid)) is not None]
        cut_off = [actor for actor in actors if actor.state.turn and actor.state.shown is Phase.INTERRUPTED]
        if cut_off and may_block():
            self._parts.providers.load()  # a crash while a client loads would spend what is held for its requests
        return [actor.origin.uuid for actor in cut_off if actor.deliver(on.Resume(Future(), by))]

    def go_on(self, survey: "Survey", left: Collection[str]) -> None:
        """Resume the cut-off turns of the agents in a survey, except those in ``left``."""
        due = [origin.uuid for origin in survey.restored if origin.is_cut_off and origin.uuid not in frozenset(left)]
        if due:
            self.resume(due, on.Resumption.HOST)

    def working(self) -> int:
        """Return the number of agents with a turn that goes on here."""
        return sum(actor.state.phase in WORKING for actor in self)

    def signs(self) -> dict[str, Sign]:
        """Return the latest heartbeats of the working agents, by uuid."""
        return {actor.origin.uuid: actor.tally.sign() for actor in self if actor.state.phase in WORKING}

    def is_at_work(self) -> bool:
        """Return whether any agent has work in progress that will end without a person."""
        return any(actor.state.goes_on for actor in self)

    def statistics(self, agents: int, read_logs: int) -> SystemStatistics:
        """Return the counters of this host; ``agents`` is the number of its agents, ``read_logs`` that of logs read."""
        actors = list(self)
        tallies = [actor.tally for actor in actors]
        return SystemStatistics(
            agents=agents,
            awake=len(actors),
            working=sum(actor.state.phase in WORKING for actor in actors),
            ready=self._parts.dispatcher.ready,
            inbox=sum(actor.waiting for actor in actors),
            turns=sum(tally.turns for tally in tallies),
            steps=sum(tally.steps for tally in tallies),
            tokens=total(tallies),
            journal=self._parts.journal.statistics(),
            journal_lag=max((tally.commit_age() for tally in tallies), default=0.0),
            read_logs=read_logs,
            waits=len(self._parts.waits),
            models=total_by_model(tallies),
            pending=sum(actor.backlog.volatile for actor in actors),
            kept=sum(actor.backlog.durable for actor in actors),
            queued=self._parts.gates.waiting,
            put_off=sum(actor.state.is_put_off for actor in actors),
            abandoned=self._parts.executor.abandoned,
        )

    def _make_successor(self, old: Predecessor, handover: Handover) -> "AgentActor":
        """Make the next actor of an agent, which is held until `restart`."""
        new = self._new_actor(old.origin, handover)
        new.actor_inbox.held = True
        uuid = old.origin.uuid
        with self._lock:
            new.rename(old.origin.name)  # it may have another name since it crashed
            if known := self._actors.get(uuid) is old:
                self._actors[uuid] = new
                self._held.add(uuid)
        if not known:  # it was buried meanwhile
            new.close_with(AgentDead(f"Agent {uuid} is dead, or no longer runs on this host.", uuid))
        return new

    def _end_actors(self, dead: "Mapping[str, End]") -> None:
        """End the actors of agents that died, and the waits for these agents."""
        with self._lock:
            self.changes += len(dead)
            known = (self._actors, self._looks, self._receipts, self._parked)
            here = [uuid for uuid in dead if any(uuid in some for some in known)]
        for uuid in here:
            self._end_actor(uuid, dead[uuid])
        if self._parts.publisher.is_heard_of_agents:
            for uuid, end in dead.items():
                self._parts.publisher.publish(Died(uuid, end.cause, end.reason))
        for uuid in dead:
            self._parts.waits.changed(uuid)

    def _end_actor(self, uuid: str, end: "End") -> None:
        with self._lock:
            self._has_changed(uuid)
            actor, held = self._actors.pop(uuid, None), uuid in self._held
            self._held.discard(uuid)
            self._last_status.pop(uuid, None)
        if actor is not None:  # before whoever has killed it gets the answer
            actor.revoke()
        name = actor.called if actor is not None else called(uuid, None)
        dead = Dead(f"Agent {name} is dead: {end.cause}: {end.reason}")
        if actor is None:  # else a message that has entered a history may have to be noted first
            self.leaves_words(uuid, AgentDead(dead.exit_message, uuid))
        self._answer_parked(uuid, AgentDead(dead.exit_message, uuid))
        if actor is not None:
            (actor.actor_inbox.release if held else actor.actor_inbox.put_urgent)(dead)

    def _send_status(self, uuid: str, status: Status, reason: str) -> None:
        """Send an actor the status of its agent, unless the actor got this status last.

        Called with the lock held, so that the statuses arrive in the order in which they were noted.
        """
        self._parts.publisher.publish(StatusSet(uuid, status.value))
        with self._lock:
            self._has_changed(uuid)
            actor = self._actors.get(uuid)
            if actor is None or self._last_status.get(uuid, Status.RUNNING) is status:
                return
            if status is Status.RUNNING:
                del self._last_status[uuid]
            else:
                self._last_status[uuid] = status
            actor.actor_inbox.put_urgent(on.StatusChanged(status, reason))

    @property
    def _parts(self) -> "Runtime":
        assert self._runtime is not None  # `run` comes before anything can happen
        return self._runtime

    def _new_actor(self, origin: "Origin", handover: Handover | None = None) -> "AgentActor":
        from ikigai_actors.agent.actor import AgentActor  # an attached process makes none, and loads nothing that runs

        return AgentActor(self._parts, origin, handover)
