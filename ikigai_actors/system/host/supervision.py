"""The supervision of a host: decides about agents that crash, cannot start, or take too long to terminate.

The pure functions of `supervisors` decide; the loop counts restarts and carries the decisions out. It reads the
registry alone, so the actor of the supervising agent is not needed, and it remembers nothing that a restart of the
process would lose:

    restarts      rows: which supervisor restarted which child, when, and in which turn the child had crashed
    gave up       the child's status ``stopped`` with this reason: it starts with the supervisor, at a boot, by CONT
    TERM          the status ``terminating`` with a deadline, after which the agent is killed, even after a new boot

One thread does all this, in the order of events, and waits for each commit; it also fires timers (`DueTimers`), and
sends events to receivers outside (`Deliveries`). So these actions never happen at the same time.
Commands of other processes reach the actors in another way (`RemoteCommands`), and do not wait for this thread.

While the store does not answer, the loop waits for it, and a start that failed for that reason is tried again without
being counted: an outage ends no agent. Any other failed start is counted, as `supervisors.supervisor` says. A child
that has died before its start is left out, and its siblings are started.

An agent that crashed and was not restarted before the process ended comes back as interrupted, like any other agent.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.actors.service import RefusableTask, Worker
from ikigai_actors.actors.threads import Threads
from ikigai_actors.agent.boot import Survey
from ikigai_actors.agent.messages import Restarted
from ikigai_actors.agent.remote_commands import Fail, RemoteCaller, encode
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import AgentDead, Fenced, IkigaiError, StoreUnavailable, StoreUnusable
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.budgets.grants import Serve, time_lines
from ikigai_actors.records.budgets.holds import holds_of, pauses_of
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.lives.deaths import LifecycleChange, WriteDeath, deadlines
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.lives.supervision import (
    GAVE_UP,
    KnownRestarts,
    Recorded,
    RecordRestart,
    RestartsChanged,
    Revive,
    ReviveAll,
    StopChildren,
    restarts_of,
)
from ikigai_actors.records.log.parking import to_be_woken
from ikigai_actors.records.mail.asked import cancelled_of
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.system.host.batches import Batches, BatchLink
from ikigai_actors.system.host.crash_log import note_decision, on_one_line, restarts_so_far, span
from ikigai_actors.system.host.deliveries import Deliveries, ReceiverLink
from ikigai_actors.system.host.due_timers import QUESTIONS, TIMERS, WAITS, DueTimers
from ikigai_actors.system.host.park_watch import ParkWatch
from ikigai_actors.system.host.processes import ProcessTable, Supervision
from ikigai_actors.system.host.remote_commands import RemoteCommands
from ikigai_actors.system.host.sign_board import SignBoard
from ikigai_actors.system.host.sleep_watch import SleepWatch
from ikigai_actors.system.host.stuck_watch import StuckWatch
from ikigai_actors.system.kept_secrets import KeptSecrets
from supervisors import supervisor as otp
from supervisors.causes import Cause
from supervisors.children import RestartType, SupervisedChild
from supervisors.intensity import backoff, is_poison
from supervisors.signals import Signal, Status
from supervisors.strategies import Strategy

if TYPE_CHECKING:
    from ikigai_actors.agent.actor import AgentActor

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 60.0
"""The most seconds between two checks of a budget, or of a wait for a service, since a clock may be set."""

PROMPT_RETRY = 0.5
"""Seconds until prompts of other processes that an actor could not take up, or that could not be read, are tried
again.
"""

RESET_TIMEOUT = 30.0
"""Seconds that an actor has to handle its reset."""


class AgentFailure(NamedTuple):
    """A failure of an agent, on which its supervisor decides: it has crashed, or could not be started."""

    cause: Cause
    """`Cause.CRASHED`, or `Cause.EXITED` of a permanent agent."""
    reason: str
    """For people."""
    restarted: Restarted | None = None
    """The start that failed; None when the agent had started."""
    known: KnownRestarts | None = None
    """The restarts of its supervisor with which it was decided to restart the agent; None where they do not count."""
    error: BaseException | None = None
    """The exception of the agent's own code."""
    line: str = ""
    """The line to log when the agent is restarted, or its supervisor gives up; empty for none."""

    @property
    def why(self) -> str:
        """Return the reason of the failure as text."""
        return on_one_line(self.reason) or "it has exited, and is permanent"


class SupervisionLoop(Worker, Supervision):
    """Supervises the agents of one host, on a thread of its own."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        processes: ProcessTable,
        host: str,
        clock: Clock,
        threads: Threads,
        listen: Callable[[float], object],
        link: ReceiverLink,
        batch_link: BatchLink,
        secrets: KeptSecrets,
        sleep_after: float | None = None,
        park_after: float | None = None,
    ) -> None:
        """Make the loop of a host; `start` starts its thread.

        Args:
            store: where the registry and the rows of other processes are read.
            journal: commits restarts and deaths.
            host: the id of the host.
            clock: for deadlines, and for the times of restarts.
            listen: see `RemoteCommands`.
            link: sends to receivers outside.
            batch_link: asks services about batches.
            secrets: opens the secrets of subscriptions.
            sleep_after: seconds after which agents sleep that nobody has used; None for never.
            park_after: seconds after which programs are parked that only wait; None for never.
        """
        super().__init__("ikigai-supervision", threads, clock)
        self._reader, self._journal, self._processes = RetryingReader(store, threads), journal, processes
        self._host = host
        self.remote_commands = RemoteCommands(
            store, journal, processes, clock, threads, self.retry_prompts, host, listen
        )
        """The remote commands of other processes for the agents of this host."""
        self.remote_commands.handle(Fail, self._decide_as_asked)

        self.deliveries = Deliveries(self._reader, journal, host, clock, link, secrets, self.post, self.after)
        """Sends events of the agents of this host to receivers outside."""
        self.batches = Batches(self._reader, journal, host, clock, batch_link, self.post, self.after)
        """Lets requests of the agents of this host wait for batches."""
        self._due_timers = DueTimers(TIMERS, self._reader, journal, host, clock, self.post, self.after)
        self._due_questions = DueTimers(QUESTIONS, self._reader, journal, host, clock, self.post, self.after)
        self._due_waits = DueTimers(WAITS, self._reader, journal, host, clock, self.post, self.after)
        self._park_watch = ParkWatch(processes, clock, self.post, self.after, park_after)
        self._stuck_watch = StuckWatch(processes, journal, clock, self.after)
        self._sleep_watch = SleepWatch(processes, journal, host, self.after, sleep_after)
        self.sign_board = SignBoard(processes, journal, host, clock, self.post, self.after)
        """Publishes heartbeats to other processes."""
        self._failures: dict[str, AgentFailure] = {}  # by uuid: the supervisor has not decided yet
        self._deadlines: dict[str, int] = {}  # by uuid, of agents that terminate: those that have a timer
        self._time_lines: dict[str, int] = {}  # by owner of a budget whose time has a timer
        self._to_serve: set[str] = set()  # budgets, by their owners, that will be looked at
        self._retrying = False  # whether a timer will hand over prompts again
        self._looks_at_woken = False  # whether a look is on its way

    def restore(self, survey: Survey) -> None:
        """Schedule restarts, deadlines and timers of the agents that a boot has found, once the thread is started."""
        self.remote_commands.version = survey.version
        self.take_over(survey)

    def take_over(self, survey: Survey) -> None:
        """Schedule the restarts, deadlines and timers of agents that this host has just begun to run.

        These include a supervisor that gave up and whose own restart was cut off. Changes and prompts that other
        processes have committed since the survey are given to the actors.
        """
        if survey.gave_up:
            self.post(lambda: self._journal.perform(ReviveAll(self._host, self._clock.now_ms())))
        if survey.marked:
            self.post(self._sleep_watch.clear_marks)
        self.serve({origin.paused.budget for origin in survey.restored if origin.paused is not None})
        self.post(self._watch_deadlines)
        self.watch_time()
        self.deliveries.look_soon()
        self.batches.look_soon()
        self.look_at_cancelled()
        self.look_at_woken()
        self.post(lambda: self._follow_others(survey.version))
        self.look_at_timers()

    def stop(self) -> None:
        """Stop after the event in progress. The journal must be closed, so that no commit is waited for."""
        self._reader.close()
        super().stop()

    def note_failure(self, uuid: str, cause: Cause, reason: str, error: BaseException | None) -> None:
        self._failures[uuid] = AgentFailure(cause, reason, error=error)

    def on_crash(self, uuid: str) -> None:
        if (failure := self._failures.get(uuid)) is not None:  # else it was restarted with its siblings already
            self.post(lambda: self._decide_on_failure(uuid, failure))

    def on_failed_start(self, uuid: str, restarted: Restarted, error: Exception) -> bool:
        # A database that is down or cannot be used at all is no failure of the agent: the start is tried again, after
        # growing pauses, and is not counted.
        if isinstance(error, StoreUnavailable | StoreUnusable):
            self.post(lambda: self._start_later(uuid, restarted))
            return self._processes.hold(uuid)
        failure = AgentFailure(Cause.CRASHED, f"its log could not be read: {error}", restarted)
        self._failures[uuid] = failure  # before `hold`: `_restart` of a sibling finds both
        self.post(lambda: self._decide_on_failed_start(uuid, failure))
        return self._processes.hold(uuid)

    def retry_prompts(self) -> None:
        self.post(self._retry_prompts_later)

    def serve(self, budgets: Iterable[str], due: int | None = None) -> None:
        for budget in budgets:
            if due is not None:
                self.post(partial(self._serve_later, budget, due))
            elif budget not in self._to_serve:
                self._to_serve.add(budget)
                self.post(partial(self._serve, budget))

    def watch_time(self) -> None:
        self.post(self._watch_time)

    def look_at_other_processes(self, among: Collection[str] | None = None) -> None:
        """Give the actors the changes that other processes may have committed.

        Changes, prompts and remote commands are given at once; mail, grants and timers are checked soon.

        ``among``: the uuids of the agents that may have new mail; None if they are not known.
        """
        self._follow_others()
        self.post(lambda: self._processes.look_for_mail(among))
        self.post(self._look_for_grants)
        self.watch_time()
        self.look_at_timers()
        self.look_at_cancelled()
        self.look_at_woken()
        self.deliveries.look_soon()
        self.batches.look_soon()

    def look_at_rows(self) -> None:
        """Give the actors the prompts and the rules that are in the database as rows. Never waits."""
        self.post(self._follow_others)

    def look_at_cancelled(self) -> None:
        """End the turns of agents here that programs have asked for and cancelled since. Never waits."""
        self.post(self._end_cancelled)

    def _end_cancelled(self) -> None:
        for unit in self._reader.read(lambda tx: cancelled_of(tx, self._host)):
            with suppress(AgentDead, Fenced):
                turn: int = self._journal.perform(unit)
                if turn and (actor := self._wake(unit.agent)) is not None:
                    actor.actor_inbox.put_urgent(on.Interrupt(Future(), turn=turn))

    def look_at_woken(self) -> None:
        """Let parked agents go on whose waits are over. Never waits."""
        if not self._looks_at_woken:
            self._looks_at_woken = True
            self.post(self._wake_parked)

    def look_at_changes(self, since: int) -> None:
        """Give the actors all changes since a version of the tree of agents, even changes that they got before.

        Never waits.
        """
        self.post(partial(self._follow_others, since))

    def look_at_woken_later(self) -> None:
        self.post(lambda: self.after(PROMPT_RETRY, self.look_at_woken))

    def _wake_parked(self) -> None:
        self._looks_at_woken = False  # before: what is committed meanwhile is looked for again
        for uuid in self._reader.read(lambda tx: to_be_woken(tx, self._host)):
            self._processes.awaken(uuid, self._reader)

    def begins_wait(self, uuid: str) -> None:
        self._park_watch.begins(uuid)

    def ends_wait(self, uuid: str) -> None:
        self._park_watch.ends(uuid)

    def look_at_timers(self) -> None:
        """Check which timers and questions are due next, and which waits are over. Never waits."""
        self.post(self._due_timers.fire_due)
        self.post(self._due_questions.fire_due)
        self.post(self._due_waits.fire_due)

    def look_at_questions(self) -> None:
        """Schedule the next step of the questions to people. Never waits."""
        self.post(self._due_questions.fire_due)

    def watch(self, uuid: str) -> None:
        self.post(lambda: self._stuck_watch.begin(uuid))

    def await_service(self, uuid: str, at: int) -> None:
        self.post(lambda: self._await_service(uuid, at))

    def crowded(self) -> None:
        if not self._sleep_watch.looks:
            self.post(self._sleep_watch.begin)

    def hand_on(self, uuid: str, message: object) -> None:
        caller = getattr(message, "caller", None)

        def refuse(error: IkigaiError) -> None:
            if caller is not None:
                caller.settle(error)

        def give() -> None:
            try:
                self._processes.give(uuid, message, self._reader)
            except IkigaiError as error:
                refuse(error)

        self.add(RefusableTask(give, refuse))

    def on_lifecycle_change(self, change: LifecycleChange) -> None:
        """Schedule the deadlines of agents that a commit terminates, and check the budgets of agents that it ended."""
        self.serve(change.freed)
        self.look_at_woken()
        if self._processes.asking:
            self.look_at_rows()  # an agent that has another supervisor has other rules
        if Status.TERMINATING in change.status.values():
            self.post(self._watch_deadlines)

    # What a crash leads to

    def _decide_on_failure(self, uuid: str, failure: AgentFailure) -> None:
        if self._failures.get(uuid) is failure:  # else it was started with its siblings meanwhile
            del self._failures[uuid]
            self._decide(uuid, failure)

    def _decide(self, uuid: str, failure: AgentFailure) -> None:
        now = self._clock.now_ms()
        record, above, supervisor = self._reader.read(lambda tx: read_supervisor(tx, uuid, now))
        if not record.living:
            return
        if record.supervisor_uuid is None:  # agent 0 has no supervisor: it is always started
            self._start(uuid, uuid, failure._replace(line=f"{record.short} restarted: {failure.why}"))
            return
        after, decisions = otp.exited(supervisor, uuid, failure.cause, now)
        if supervisor.strategy is Strategy.ONE_FOR_ONE:  # else all its children live on one host, which is this one
            failure = failure._replace(known=KnownRestarts(now - supervisor.period, supervisor.restarts))
        line = f"{record.short} restarted by {above.short}: {failure.why} ({restarts_so_far(after)})"
        if any(isinstance(decision, otp.GiveUp) for decision in decisions):
            often = f"more than {supervisor.intensity} in {span(supervisor.period)}"
            line = f"{above.short} gave up: {record.short} failed too often ({often}): {failure.why}"
        failure = failure._replace(line=line)
        try:
            for decision in decisions:
                self._carry_out(decision, above.uuid, uuid, failure)
        except RestartsChanged:
            self._decide(uuid, failure)

    def _decide_on_failed_start(self, uuid: str, failure: AgentFailure) -> None:
        if self._failures.get(uuid) is not failure or failure.restarted is None:
            return
        now = self._clock.now_ms()
        record, _, supervisor = self._reader.read(lambda tx: read_supervisor(tx, uuid, now))
        if record.supervisor_uuid is None or not record.living:
            del self._failures[uuid]
            self._start_later(uuid, failure.restarted)
            return
        _, decisions = otp.unstarted(supervisor, uuid)
        if not any(isinstance(decision, otp.Retry) for decision in decisions):
            del self._failures[uuid]  # it is buried: nobody comes back to this start
        for decision in decisions:
            self._carry_out(decision, record.supervisor_uuid, uuid, failure)
            if isinstance(decision, otp.Retry):
                note_decision(f"{record.short} starts again in {span(decision.after)}: {failure.why}")

    def _start_later(self, uuid: str, restarted: Restarted) -> None:
        next_attempt = restarted._replace(attempt=restarted.attempt + 1)
        self.after(backoff(restarted.attempt) / 1000, lambda: self._processes.restart(uuid, next_attempt))

    def _carry_out(self, decision: otp.Decision, supervisor: str, failed: str, failure: AgentFailure) -> None:
        match decision:
            case otp.Stop(agent=agent):
                self._wake(agent)  # else a prompt may begin something before its start
                self._reset(agent)
            case otp.Start(children=children):
                for agent in children:
                    if self._wake(agent) is None:  # killed meanwhile, or another host's
                        continue
                    with suppress(AgentDead):  # its siblings still wait for their start
                        self._start(agent, supervisor, failure if agent == failed else None)
            case otp.Retry(agent=agent, after=after):
                self.after(after / 1000, lambda: self._decide_on_failure(agent, failure))
            case otp.Bury(agent=agent, cause=cause):
                reason = failure.reason.removeprefix(f"{cause}: ")  # a reader is shown "cause: reason"
                if agent != failed:
                    reason = f"stopped with its sibling {failed}"
                with suppress(AgentDead, Fenced):
                    name = self._called(agent)
                    self._journal.perform(WriteDeath(agent, self._host, reason, self._clock.now_ms(), cause))
                    if agent == failed:
                        note_decision(f"{name} is dead: {cause}: {on_one_line(reason)}", failure.error, logging.ERROR)
            case otp.GiveUp(children=children):
                note_decision(failure.line, failure.error, logging.ERROR)
                self._give_up(supervisor, children, failed, failure._replace(known=None, line=""))

    def _start(self, agent: str, supervisor: str, failure: AgentFailure | None) -> None:
        """Restart an agent, and let the children go on that its own failure had stopped.

        Args:
            supervisor: counts the restart.
            failure: why the agent itself failed; None when the restart of a sibling takes it along.
        """
        self._restart(agent, supervisor, failure)
        if failure is not None:
            self._journal.perform(Revive(agent, self._clock.now_ms()))

    def _restart(self, agent: str, supervisor: str, failure: AgentFailure | None) -> None:
        """Count a restart if the agent itself has failed, and let the agent go on.

        A turn in which the agent keeps crashing is closed.
        """
        known = None if failure is None else failure.known
        earlier = self._failures.get(agent, failure)
        if failure is None and earlier is not None and earlier.restarted is None:
            # Taken along by a sibling, it had crashed itself meanwhile.
            failure = earlier._replace(line=f"{self._called(agent)} restarted with a sibling: {earlier.why}")
        recorded: Recorded = self._journal.perform(
            RecordRestart(
                agent,
                supervisor,
                failed=failure is not None,
                crashed=failure is not None and failure.restarted is None,
                reason=failure.reason if failure is not None else "",
                now=self._clock.now_ms(),
                known=known,
            )
        )
        if self._failures.get(agent) is earlier:  # else it has failed again
            self._failures.pop(agent, None)
        if failure is not None and failure.line:
            note_decision(failure.line, failure.error)
        poison = ""
        if earlier is not None and earlier.restarted is not None:
            poison = earlier.restarted.poison
        elif recorded.turn and failure is not None and is_poison(recorded.crashes):
            poison = (
                f"This turn crashed its agent {recorded.crashes} times, so it was closed. The latest: {failure.reason}"
            )
        self._processes.restart(agent, Restarted(recorded.turn, recorded.status, poison))
        self._follow_others()  # the actor before this one had their prompts

    def _give_up(self, supervisor: str, children: tuple[str, ...], failed: str, failure: AgentFailure) -> None:
        """Stop all children of a supervisor, the last one first; the supervisor itself then counts as crashed.

        The children are restarted at once, but their status is ``stopped``: they go on when the supervisor does.
        """
        self._journal.perform(StopChildren(supervisor, self._clock.now_ms()))
        for child in children:
            if self._processes.get(child) is None:  # it sleeps, or is another host's, which follows its new status
                continue
            self._reset(child)
            with suppress(AgentDead):  # killed meanwhile
                self._restart(child, supervisor, failure if child == failed else None)
        reason = f"{GAVE_UP}: {self._called(failed)} failed too often: {failure.reason}"
        if self._wake(supervisor) is not None:
            self._has_given_up(supervisor, reason)
        else:  # another host's, which decides on it
            kind, body = encode(Fail(reason, Future()))
            self._journal.perform(AddRemoteCommand(supervisor, kind, body, self._clock.now_ms()))

    def _called(self, agent: str) -> str:
        actor = self._processes.get(agent)  # None where another host runs it
        return words_of(agent) if actor is None else actor.called

    def _has_given_up(self, supervisor: str, reason: str) -> None:
        """Decide on a supervisor that has given up, as on an agent that has crashed."""
        self._reset(supervisor)
        self._decide(supervisor, AgentFailure(Cause.CRASHED, reason))

    def _decide_as_asked(self, fail: Fail, caller: RemoteCaller) -> None:
        """Decide on a supervisor of this host that has given up, at the request of another host. Never waits."""

        def decide() -> None:
            try:
                self._has_given_up(caller.key.agent, fail.reason)
            except IkigaiError as error:
                caller.settle(error)
            else:
                caller.settle(None)

        self.post(decide)

    def _wake(self, agent: str) -> "AgentActor | None":
        """Return the actor of an agent, after waking the agent if it sleeps. Waits for the database."""
        return self._processes.wake(agent, self._reader)

    def _reset(self, agent: str) -> None:
        try:
            self._processes.reset(agent).get(timeout=RESET_TIMEOUT)
        except TimedOut:
            logger.error("Agent %s was to be stopped and did not stop within %s s", agent, RESET_TIMEOUT)

    # Budgets

    def _serve(self, budget: str) -> None:
        """Let the agents that wait for a budget go on, in order, as far as the budget allows."""
        self._to_serve.discard(budget)  # before: what is freed meanwhile is looked at again
        self._journal.perform(Serve(budget))

    def _serve_later(self, budget: str, due: int) -> None:
        """Schedule a check of a budget for the time ``due`` of the database's clock."""
        wait = min(max(0, due - self._clock.now_ms()) / 1000, _LOOK_AGAIN)
        self.after(wait, lambda: self.serve((budget,)))

    def _await_service(self, uuid: str, at: int) -> None:
        """Schedule the next request of an agent that waits for its service; does nothing if the wait has ended."""
        waits, left = self._processes.service_due(uuid, at), at - self._clock.now_ms()
        if waits and left > 0:
            self.after(min(left / 1000, _LOOK_AGAIN), partial(self._await_service, uuid, at))

    def _watch_time(self) -> None:
        now = self._clock.now_ms()
        for budget, line in self._reader.read(lambda tx: time_lines(tx, self._host)).items():
            if self._time_lines.get(budget) != line:
                self._time_lines[budget] = line
                self.after(max(0, line - now) / 1000, partial(self._tell_of_time, budget, line))

    def _tell_of_time(self, budget: str, line: int) -> None:
        """Notify the owner of a budget whose time is nearly over; check again if the database's clock is slower."""
        if self._time_lines.get(budget) == line:
            del self._time_lines[budget]
            self._serve(budget)
            self.after(1, self._watch_time)

    def _look_for_grants(self) -> None:
        """Let requests go on whose budget another process has raised; update the others' budgets."""
        if waiting := self._processes.paused():
            held_for, paused_for = self._reader.read(lambda tx: (holds_of(tx, waiting), pauses_of(tx, waiting)))
            for uuid, held in held_for.items():
                self._processes.granted(uuid, held)
            for uuid, paused in paused_for.items():
                self._processes.waits_elsewhere(uuid, paused)

    # Deadlines, and what other processes have committed

    def _watch_deadlines(self) -> None:
        now = self._clock.now_ms()
        for uuid, until in self._reader.read(lambda tx: deadlines(tx, self._host)).items():
            if self._wake(uuid) is None:  # another host's by now
                continue
            deadline = now if until is None else until
            if self._deadlines.get(uuid) != deadline:
                self._deadlines[uuid] = deadline
                self.after(max(0, deadline - now) / 1000, partial(self._kill_overdue, uuid))

    def _kill_overdue(self, uuid: str) -> None:
        """Kill an agent whose deadline is over, if it still terminates."""
        self._deadlines.pop(uuid, None)
        record = self._reader.read(lambda tx: registry.get(tx, uuid))
        if record.status == Status.TERMINATING and record.owner == self._host:
            reason = f"{record.exit_reason or 'TERM'}; its turn did not end in time"
            self._journal.perform(SendSignal(uuid, Signal.KILL, self._clock.now_ms(), reason=reason))

    def _follow_others(self, since: int | None = None) -> None:
        """Give the actors the changes of other processes; with ``since``, all changes after that version."""
        if self.remote_commands.follow(since):
            self.post(self._watch_deadlines)  # a TERM may be among them

    def _retry_prompts_later(self) -> None:
        """Schedule one further attempt for all prompts that agents could not take up."""
        if not self._retrying:
            self._retrying = True
            self.after(PROMPT_RETRY, self._retry_prompts)

    def _retry_prompts(self) -> None:
        self._retrying = False
        self._follow_others()


def read_supervisor(tx: Transaction, uuid: str, now: int) -> tuple[AgentRecord, AgentRecord, otp.Supervisor]:
    """Return the rows of an agent and of its supervisor, and the supervisor in the form of the pure functions.

    Agent 0 is its own supervisor.
    """
    record = registry.get(tx, uuid)
    row = registry.get(tx, record.supervisor_uuid or uuid)
    children = tuple(
        SupervisedChild(child.uuid, RestartType(child.restart)) for child in registry.living_children(tx, row.uuid)
    )
    supervisor = otp.Supervisor(
        children=children,
        strategy=Strategy(row.strategy),
        intensity=row.intensity,
        period=row.period,
        restarts=restarts_of(tx, row.uuid, now - row.period),
        protected=row.parent_uuid is None or not row.living,  # the dead cannot crash: orphans do not end together
    )
    return record, row, supervisor
