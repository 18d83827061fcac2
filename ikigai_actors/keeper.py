"""The keeper: what becomes of agents that crash, of those whose time is up, and of signals from other processes.

One thread does it, in order of events, and waits for each commit; so nothing here happens at the same time as anything
else here. It decides from the registry alone (`supervisors` decides; the actor of the supervisor is not needed), and it
remembers nothing that a restart of the process would lose:

    restarts      rows: how often a supervisor restarted whom within its period, and which turn keeps crashing
    gave up       status ``stopped`` with that reason: started again with the supervisor, or by CONT
    TERM          status ``terminating`` with a deadline: killed when it is over, also after a boot
    signals       rows that nobody has handled: their statuses stand in the registry already, what is left is the actors

What a crash of the process leaves: an agent that crashed and was not restarted yet is cut off like any other, and comes
back as interrupted.
"""

import heapq
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from ikigai_actors import registry
from ikigai_actors.actor_messages import Restarted
from ikigai_actors.clock import Clock
from ikigai_actors.deaths import Aftermath, Bury, Cause, SendSignal
from ikigai_actors.errors import IkigaiError
from ikigai_actors.journal import Journal
from ikigai_actors.population import Population
from ikigai_actors.registry import AgentRecord
from ikigai_actors.restarts import GAVE_UP, GiveUp, Recorded, RecordRestart, Revive, restarts_of
from ikigai_actors.store.base import Store, Transaction
from supervisors import supervisor as otp
from supervisors.children import Child, Exit, RestartType
from supervisors.intensity import backoff, is_poison
from supervisors.signals import Signal, Status
from supervisors.strategies import Strategy

logger = logging.getLogger(__name__)

CAUSES = {
    Exit.CRASH: Cause.CRASHED,
    Exit.GIVE_UP: Cause.GAVE_UP,
    Exit.NORMAL: Cause.EXITED,
    Exit.SHUTDOWN: Cause.TERMINATED,
}
"""How an agent died that its supervisor buries."""

PATIENCE = 30.0
"""Seconds in which an actor that is cut must have heard of it."""


class Keeper:
    """Keeps the agents of one host alive, as far as they are to live."""

    def __init__(self, store: Store, journal: Journal, population: Population, host: str, clock: Clock) -> None:
        self._store, self._journal, self._population = store, journal, population
        self._host, self._clock = host, clock
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ikigai-keeper", daemon=True)

    def start(self) -> None:
        """Begin, with the deadlines that a boot has found."""
        self._thread.start()
        self._events.put(self._watch_deadlines)
        self._events.put(self._handle_signals)

    def close(self) -> None:
        """Do nothing any more. Called when the journal is closed, so nothing here waits for it."""
        self._closed = True
        self._events.put(None)
        self._thread.join()

    def crashed(self, uuid: str, end: Exit, reason: str) -> None:
        """An agent has crashed, or is permanent and has exited; its actor was made anew and is held."""
        self._events.put(lambda: self._decide(uuid, end, reason))

    def unstarted(self, uuid: str, restarted: Restarted) -> None:
        """A restart could not read the agent's log: it is tried again, the later the more often that was so."""
        again, wait = restarted._replace(attempt=restarted.attempt + 1), backoff(restarted.attempt) / 1000
        self._events.put(lambda: self._at(wait, lambda: self._population.restart(uuid, again)))

    def signalled(self) -> None:
        """Another process may have sent signals."""
        self._events.put(self._handle_signals)

    def expect_end(self, aftermath: Aftermath) -> None:
        """Agents were told to terminate: kill them when their time is up."""
        if Status.TERMINATING in aftermath.status.values():
            self._events.put(self._watch_deadlines)

    def _run(self) -> None:
        while not self._closed:
            wait = max(0.0, self._due[0][0] - self._clock.monotonic()) if self._due else None
            try:
                event = self._events.get(timeout=wait)
            except queue.Empty:
                _, _, event = heapq.heappop(self._due)
            if event is not None:
                self._try(event)

    def _try(self, event: Callable[[], None]) -> None:
        try:
            event()
        except IkigaiError as error:  # dead meanwhile, or the system closes; the registry tells at the next boot
            logger.info("The keeper could not finish: %s", error)
        except Exception:  # a defect of ours: the others are still to be kept
            logger.exception("The keeper failed")

    def _at(self, seconds: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self._clock.monotonic() + seconds, self._count, action))

    def _perform(self, unit: Any) -> Any:
        answer = self._journal.perform(unit)
        self._population.happened(answer)
        return answer

    # What a crash leads to

    def _decide(self, uuid: str, end: Exit, reason: str) -> None:
        record = self._store.read(lambda tx: registry.get(tx, uuid))
        above = record.supervisor_uuid
        if not record.living:
            return
        if above is None:  # nobody is above agent 0: only its turn can be given up
            self._start(uuid, uuid, end, reason)
            return
        now = self._clock.now_ms()
        supervisor = self._store.read(lambda tx: supervisor_of(tx, above, now))
        _, decisions = otp.exited(supervisor, uuid, end, now)
        for decision in decisions:
            self._carry_out(decision, above, uuid, end, reason)

    def _carry_out(self, decision: otp.Decision, above: str, failed: str, end: Exit, reason: str) -> None:
        match decision:
            case otp.Stop(agent=agent):
                self._cut(agent)
            case otp.Start(children=children):
                for agent in children:
                    self._start(agent, above, end if agent == failed else None, reason)
            case otp.Bury(agent=agent, reason=why):
                told = reason if agent == failed else f"stopped with its sibling {failed}"
                cause = CAUSES.get(why, Cause.KILLED)
                self._perform(Bury(agent, self._host, told, self._clock.now_ms(), cause))
            case otp.GiveUp(children=children):
                self._give_up(above, children, f"{GAVE_UP}: {failed} failed too often: {reason}")
            case otp.Retry():
                pass  # a start that fails is told by `unstarted`

    def _start(self, agent: str, above: str, end: Exit | None, reason: str) -> None:
        """Let an agent go on; the one that failed is counted, and a turn that keeps failing is closed."""
        recorded: Recorded = self._perform(
            RecordRestart(agent, above, end.value if end else "", reason, self._clock.now_ms())
        )
        poison = ""
        if recorded.turn and end is not None and is_poison(recorded.crashes):
            poison = f"This turn crashed its agent {recorded.crashes} times, so it was closed. The latest: {reason}"
        self._population.restart(agent, Restarted(recorded.turn, recorded.status, poison))
        if end is not None:
            self._perform(Revive(agent))

    def _give_up(self, supervisor: str, children: tuple[str, ...], reason: str) -> None:
        """Stop all children, the last one first; then the supervisor has crashed itself."""
        self._perform(GiveUp(children))
        for child in children:
            self._cut(child)
            row = self._store.read(lambda tx, child=child: registry.get(tx, child))  # type: ignore[misc]
            self._population.restart(child, Restarted(row.turn, Status(row.status)))
        self._cut(supervisor)
        self._decide(supervisor, Exit.CRASH, reason)

    def _cut(self, agent: str) -> None:
        if not self._population.cut(agent).wait(PATIENCE):
            logger.error("Agent %s was to be stopped and did not hear of it within %s s", agent, PATIENCE)

    # Deadlines, and signals of other processes

    def _watch_deadlines(self) -> None:
        now = self._clock.now_ms()
        for record in self._store.read(lambda tx: registry.every(tx, Status.TERMINATING.value)):
            left = max(0, (record.deadline or now) - now) / 1000
            self._at(left, lambda uuid=record.uuid: self._end(uuid))  # type: ignore[misc]

    def _end(self, uuid: str) -> None:
        """The time of an agent that terminates is over."""
        record = self._store.read(lambda tx: registry.get(tx, uuid))
        if record.status == Status.TERMINATING:
            reason = f"{record.exit_reason or 'TERM'}; its turn did not end in time"
            self._perform(SendSignal(uuid, Signal.KILL, self._clock.now_ms(), reason=reason, handled=True))

    def _handle_signals(self) -> None:
        """Carry out what other processes sent: the registry has it already, what is left is the actors."""
        signals = self._store.read(lambda tx: tx.run("new_signals"))
        for agent, number, signal, spread, turn in signals:
            self._carry_out_signal(agent, signal, bool(spread), turn)
            self._mark_handled(agent, number)
        if signals:
            self._watch_deadlines()

    def _carry_out_signal(self, agent: str, signal: str, spread: bool, turn: int) -> None:
        hit = self._store.read(lambda tx: whom(tx, agent, spread))
        self._population.catch_up(hit)
        if signal == Signal.INT:
            for record in hit:
                self._population.interrupt(record.uuid, turn if record.uuid == agent else record.turn)

    def _mark_handled(self, agent: str, number: int) -> None:
        self._store.write(lambda tx: tx.run("handle_signals", agent=agent, id=number))


def supervisor_of(tx: Transaction, uuid: str, now: int) -> otp.Supervisor:
    """A supervisor as the pure decisions know it, from the registry."""
    row = registry.get(tx, uuid)
    children = tuple(
        Child(child.uuid, RestartType(child.restart)) for child in registry.children(tx, uuid) if child.living
    )
    return otp.Supervisor(
        children=children,
        strategy=Strategy(row.strategy),
        intensity=row.intensity,
        period=row.period,
        restarts=restarts_of(tx, uuid, now - row.period),
        protected=row.parent_uuid is None,
    )


def whom(tx: Transaction, agent: str, spread: bool) -> list[AgentRecord]:
    """Whom a signal may have hit, the dead too."""
    return [registry.get(tx, agent), *(registry.descendants(tx, agent) if spread else [])]
