"""The supervision of a host: what becomes of agents that crash, that cannot start, or that take too long to terminate.

The pure functions of `supervisors` decide; the loop counts restarts and carries the decisions out. It reads the
registry alone, so the actor of the supervising agent is not needed, and it remembers nothing that a restart of the
process would lose:

    restarts      rows: when a supervisor restarted which child, and in which turn the child had crashed
    gave up       status ``stopped`` with that reason: started again with the supervisor, at a boot, or by CONT
    TERM          status ``terminating`` with a deadline, after which the agent is killed, also after a boot

One thread does all this, in the order of events, and waits for each commit; it also follows what other processes have
committed (`RemoteCommands`). So nothing here happens at the same time as anything else here.

While the store does not answer, the loop waits for it, and a start that failed for that reason is tried again without
being counted: an outage ends no agent. Any other failed start is counted, as `supervisors.supervisor` says. A child
that has died before its start is left out, and its siblings are started.

An agent that crashed and was not restarted before the process ended comes back as interrupted, like any other agent.
"""

import logging
import queue
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.actors.threads import Queue, Threads
from ikigai_actors.actors.timers import Timers
from ikigai_actors.agent.messages import Restarted
from ikigai_actors.errors import AgentDead, IkigaiError, StoreUnavailable, StoreUnusable
from ikigai_actors.records import registry
from ikigai_actors.records.deaths import LifecycleChange, WriteDeath, deadlines
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.records.signals import SendSignal
from ikigai_actors.records.supervision import GAVE_UP, Recorded, RecordRestart, Revive, StopChildren, restarts_of
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.system.processes import ProcessTable
from ikigai_actors.system.remote import RemoteCommands
from supervisors import supervisor as otp
from supervisors.causes import Cause
from supervisors.children import Child, RestartType
from supervisors.intensity import backoff, is_poison
from supervisors.signals import Signal, Status
from supervisors.strategies import Strategy

logger = logging.getLogger(__name__)

AGAIN = 0.5
"""Seconds after which prompts are handed over again that were not taken up since the store failed."""

PATIENCE = 30.0
"""Seconds in which an actor that is cut must have heard of it."""


class Failure(NamedTuple):
    """Why an agent needs its supervisor's decision."""

    cause: Cause
    """`Cause.CRASHED`, or `Cause.EXITED` of a permanent agent."""
    reason: str
    restarted: Restarted | None = None
    """The start that failed; None when the agent had started."""


class SupervisionLoop:
    """Supervises the agents of one host, on a thread of its own."""

    def __init__(
        self, store: Store, journal: Journal, processes: ProcessTable, host: str, clock: Clock, threads: Threads
    ) -> None:
        self._reader, self._journal, self._processes = RetryingReader(store, threads), journal, processes
        self._host, self._clock = host, clock
        self._remote = RemoteCommands(self._reader, journal, processes)
        self._events: Queue[Callable[[], None] | None] = threads.queue()
        self._timers = Timers[Callable[[], None]]()
        self._failures: dict[str, Failure] = {}  # those that were not decided on yet
        self._expected: dict[str, int] = {}  # the deadlines of agents that terminate
        self._again = False  # whether prompts will be handed over again
        self._closed = False
        self._thread = threads.thread(self._run, "ikigai-supervision")

    def start(self) -> None:
        """Begin, with what a boot has found: deadlines, signals, and a giving up that was cut off."""
        self._thread.start()
        if any(actor.state.standing.ending == GAVE_UP for actor in self._processes):
            self._events.put(lambda: self._journal.perform(Revive(None)))
        self._events.put(self._watch_deadlines)
        self._events.put(self._carry_out_signals)
        self._events.put(self._hand_over_prompts)

    def close(self) -> None:
        """Do nothing any more. Called when the journal is closed, so nothing here waits for it."""
        self._closed = True
        self._reader.close()
        self._events.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def note_crash(self, uuid: str, end: Cause, reason: str) -> None:
        """An agent has crashed, or is permanent and has exited: told before anybody can see that it is down."""
        self._failures[uuid] = Failure(end, reason)

    def crashed(self, uuid: str) -> None:
        """Its actor was made anew and is held."""
        if (failure := self._failures.get(uuid)) is not None:  # else it was restarted with its siblings already
            self._events.put(lambda: self._decide_on_failure(uuid, failure))

    def unstarted(self, uuid: str, restarted: Restarted, error: Exception) -> bool:
        """Decide on an agent that failed to start, because its log could not be read; it is held until then.

        A database that is down or cannot be used at all is no failure of the agent: the same start is tried again, the
        later the more often that was so, and nothing is counted. Any other error is for the agent's supervisor.

        Returns False when the agent has died meanwhile: it need not wait.
        """
        if isinstance(error, StoreUnavailable | StoreUnusable):
            self._events.put(lambda: self._start_later(uuid, restarted))
            return self._processes.hold(uuid)
        failure = Failure(Cause.CRASHED, f"its log could not be read: {error}", restarted)
        self._failures[uuid] = failure  # before it is held: whoever starts it finds both
        self._events.put(lambda: self._decide_on_start(uuid, failure))
        return self._processes.hold(uuid)

    def untaken(self) -> None:
        """An agent could not take up what other processes prompted, since the store failed: hand it over again."""
        self._events.put(self._hand_over_later)

    def signalled(self) -> None:
        """Another process may have sent signals, prompts, or mail, or renamed agents."""
        self._events.put(self._carry_out_signals)
        self._events.put(self._hand_over_prompts)
        self._events.put(self._remote.follow_names)
        self._events.put(self._processes.look_for_mail)

    def expect_end(self, change: LifecycleChange) -> None:
        """Agents were told to terminate: kill them when their time is up."""
        if Status.TERMINATING in change.status.values():
            self._events.put(self._watch_deadlines)

    def _run(self) -> None:
        while not self._closed:
            try:
                event = self._events.get(timeout=self._timers.sleep(self._clock.monotonic()))
            except queue.Empty:
                event = self._timers.take_due(self._clock.monotonic())
            if event is not None:
                self._try(event)

    def _try(self, event: Callable[[], None]) -> None:
        try:
            event()
        except IkigaiError as error:  # dead meanwhile, or the system closes; the registry tells at the next boot
            logger.info("The supervision loop could not finish: %s", error)
        except Exception:  # a defect of ours: the others are still to be kept
            logger.exception("The supervision loop failed")

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.add(self._clock.monotonic() + seconds, action)

    # What a crash leads to

    def _decide_on_failure(self, uuid: str, failure: Failure) -> None:
        if self._failures.get(uuid) is failure:  # else it was started with its siblings meanwhile
            del self._failures[uuid]
            self._decide(uuid, failure)

    def _decide(self, uuid: str, failure: Failure) -> None:
        now = self._clock.now_ms()
        record, supervisor = self._reader.read(lambda tx: with_supervisor(tx, uuid, now))
        if not record.living:
            return
        if record.supervisor_uuid is None:  # nobody is above agent 0: only its turn can be given up
            self._start(uuid, uuid, failure)
            return
        _, decisions = otp.exited(supervisor, uuid, failure.cause, now)
        for decision in decisions:
            self._carry_out(decision, record.supervisor_uuid, uuid, failure)

    def _decide_on_start(self, uuid: str, failure: Failure) -> None:
        if self._failures.get(uuid) is not failure or failure.restarted is None:
            return
        now = self._clock.now_ms()
        record, supervisor = self._reader.read(lambda tx: with_supervisor(tx, uuid, now))
        if record.supervisor_uuid is None or not record.living:
            del self._failures[uuid]
            self._start_later(uuid, failure.restarted)
            return
        _, decisions = otp.unstarted(supervisor, uuid)
        for decision in decisions:
            self._carry_out(decision, record.supervisor_uuid, uuid, failure)

    def _start_later(self, uuid: str, restarted: Restarted) -> None:
        again, wait = restarted._replace(attempt=restarted.attempt + 1), backoff(restarted.attempt) / 1000
        self._at(wait, lambda: self._processes.restart(uuid, again))

    def _carry_out(self, decision: otp.Decision, above: str, failed: str, failure: Failure) -> None:
        match decision:
            case otp.Stop(agent=agent):
                self._cut(agent)
            case otp.Start(children=children):
                for agent in children:
                    with suppress(AgentDead):  # killed meanwhile: the others still wait for their start
                        self._start(agent, above, failure if agent == failed else None)
            case otp.Retry(agent=agent, after=after):
                self._at(after / 1000, lambda: self._decide_on_failure(agent, failure))
            case otp.Bury(agent=agent, cause=cause):
                reason = failure.reason.removeprefix(f"{cause}: ")  # everybody tells the cause before the reason
                told = reason if agent == failed else f"stopped with its sibling {failed}"
                with suppress(AgentDead):
                    self._journal.perform(WriteDeath(agent, self._host, told, self._clock.now_ms(), cause))
            case otp.GiveUp(children=children):
                self._give_up(above, children, failed, failure)

    def _start(self, agent: str, above: str, failure: Failure | None) -> None:
        """Let an agent go on; the one that failed is counted, and a turn that keeps failing is closed."""
        self._restart(agent, above, failure)
        if failure is not None:
            self._journal.perform(Revive(agent))

    def _restart(self, agent: str, above: str, failure: Failure | None) -> None:
        earlier = self._failures.pop(agent, failure)
        if failure is None and earlier is not None and earlier.restarted is None:
            failure = earlier  # one that is taken along has crashed itself meanwhile
        recorded: Recorded = self._journal.perform(
            RecordRestart(
                agent,
                above,
                failed=failure is not None,
                crashed=failure is not None and failure.restarted is None,
                reason=failure.reason if failure is not None else "",
                now=self._clock.now_ms(),
            )
        )
        poison = ""
        if earlier is not None and earlier.restarted is not None:
            poison = earlier.restarted.poison
        elif recorded.turn and failure is not None and is_poison(recorded.crashes):
            poison = (
                f"This turn crashed its agent {recorded.crashes} times, so it was closed. The latest: {failure.reason}"
            )
        self._processes.restart(agent, Restarted(recorded.turn, recorded.status, poison))
        self._hand_over_prompts()  # the actor that is no more had them

    def _give_up(self, supervisor: str, children: tuple[str, ...], failed: str, failure: Failure) -> None:
        """Stop all children, the last one first; then the supervisor has crashed itself.

        They are back at once, but stopped: what they do next waits until the supervisor is restarted.
        """
        self._journal.perform(StopChildren(supervisor))
        for child in children:
            self._cut(child)
            with suppress(AgentDead):  # killed meanwhile
                self._restart(child, supervisor, failure if child == failed else None)
        self._cut(supervisor)
        self._decide(supervisor, Failure(Cause.CRASHED, f"{GAVE_UP}: {failed} failed too often: {failure.reason}"))

    def _cut(self, agent: str) -> None:
        try:
            self._processes.cut(agent).get(timeout=PATIENCE)
        except TimedOut:
            logger.error("Agent %s was to be stopped and did not hear of it within %s s", agent, PATIENCE)

    # Deadlines, and signals and prompts of other processes

    def _watch_deadlines(self) -> None:
        now = self._clock.now_ms()
        for uuid, until in self._reader.read(deadlines).items():
            deadline = now if until is None else until
            if self._expected.get(uuid) != deadline:
                self._expected[uuid] = deadline
                self._at(max(0, deadline - now) / 1000, partial(self._end, uuid))

    def _end(self, uuid: str) -> None:
        """The time of an agent that terminates is over."""
        self._expected.pop(uuid, None)
        record = self._reader.read(lambda tx: registry.get(tx, uuid))
        if record.status == Status.TERMINATING:
            reason = f"{record.exit_reason or 'TERM'}; its turn did not end in time"
            self._journal.perform(SendSignal(uuid, Signal.KILL, self._clock.now_ms(), reason=reason, handled=True))

    def _carry_out_signals(self) -> None:
        if self._remote.carry_out_signals():
            self._watch_deadlines()  # a TERM may be among them

    def _hand_over_later(self) -> None:
        """Once for all agents that could not."""
        if not self._again:
            self._again = True
            self._at(AGAIN, self._hand_over_prompts)

    def _hand_over_prompts(self) -> None:
        self._again = False
        self._remote.hand_over_prompts()


def with_supervisor(tx: Transaction, uuid: str, now: int) -> tuple[AgentRecord, otp.Supervisor]:
    """An agent, and its supervisor as the pure decisions know it, at one moment. Agent 0 is its own."""
    record = registry.get(tx, uuid)
    row = registry.get(tx, record.supervisor_uuid or uuid)
    children = tuple(
        Child(child.uuid, RestartType(child.restart)) for child in registry.children(tx, row.uuid) if child.living
    )
    supervisor = otp.Supervisor(
        children=children,
        strategy=Strategy(row.strategy),
        intensity=row.intensity,
        period=row.period,
        restarts=restarts_of(tx, row.uuid, now - row.period),
        protected=row.parent_uuid is None or not row.living,  # nobody's crash ends orphans together
    )
    return record, supervisor
