"""The lives of handles: signals, the normal end, and how an agent looks after its children.

    child.signal(Signal.STOP)            # it pauses after its step; CONT lets it go on
    child.signal(Signal.TERM)            # it finishes its turn, then dies
    branch.kill(cascade=True)            # it and all its descendants, at once
    child.exit("the answer is 42")       # its supervisor gets the result by mail
    root.supervise(strategy="rest_for_one", intensity=5, period=60)

All of it is in the registry before a call returns, and survives a restart.
"""

from typing import TYPE_CHECKING

from ikigai_actors.actors.futures import Future, refuse_to_block
from ikigai_actors.agent.turn import events as on
from ikigai_actors.arguments import check_flag, check_timeout
from ikigai_actors.errors import BadInput
from ikigai_actors.records.deaths import Aftermath
from ikigai_actors.records.registry import Handle, uuid_of
from ikigai_actors.system.lifecycle import GRACE, had_effect, supervision, tell
from ikigai_actors.text import check_text
from supervisors.signals import Signal

if TYPE_CHECKING:
    from ikigai_actors.system.interface import System
    from ikigai_actors.system.ref import AgentRef


class AgentLifeCommands:
    """The commands about lives, each as a future: ``await ref.ask.signal(...)``. See `AgentLife`."""

    __slots__ = ()

    _ref: "AgentRef"

    def signal(self, signal: Signal, *, cascade: bool = False, reason: str = "", grace: float = GRACE) -> Future[bool]:
        """See `AgentLife.signal`."""
        lifecycle, uuid = self._ref.system.lifecycle, self._ref.uuid
        if signal is Signal.INT:
            check_text(reason, "reason")
            return lifecycle.interrupt(uuid, cascade=check_flag(cascade, "cascade"))
        return lifecycle.signal(uuid, signal, had_effect, cascade=cascade, reason=reason, grace=grace)

    def kill(self, *, cascade: bool = False, reason: str = "") -> "Future[list[AgentRef]]":
        """See `AgentLife.kill`."""
        handle = self._ref.system.handle

        def dead(aftermath: Aftermath) -> "list[AgentRef]":
            return [handle(uuid) for uuid in aftermath.dead]

        return self._ref.system.lifecycle.signal(self._ref.uuid, Signal.KILL, dead, cascade=cascade, reason=reason)

    def exit(self, result: str = "") -> Future[None]:
        """See `AgentLife.exit`."""
        told: Future[None] = Future(self._ref.uuid)
        command = on.ExitNow(check_text(result, "result"), told)
        tell(self._ref.system.actor, self._ref.uuid, command)
        return told


class AgentLife:
    """The part of an `AgentRef` that is about lives."""

    __slots__ = ()

    system: "System"
    uuid: str

    def signal(
        self,
        signal: Signal,
        timeout: float | None = None,
        *,
        cascade: bool = False,
        reason: str = "",
        grace: float = GRACE,
    ) -> bool:
        """Send a signal, which overtakes all that waits. Returns, after the commit, whether it had an effect.

        Args:
            signal: ``INT`` ends the turn in progress; ``STOP`` pauses the agent after its step, ``CONT`` lets it go
                on; ``TERM`` lets it finish its turn and die; ``KILL`` ends it at once.
            timeout: seconds to wait.
            cascade: it hits all descendants too, in one transaction.
            reason: why; it stands in the registry when somebody dies of it.
            grace: seconds after which TERM becomes KILL.

        Raises:
            AgentDead: it is dead already.
            AgentStopped: it is terminating, and cannot be paused.
            RootProtected: agent 0 is neither killed nor terminated.
        """
        refuse_to_block()
        check_timeout(timeout)
        return self._commands.signal(signal, cascade=cascade, reason=reason, grace=grace).get(timeout=timeout)

    def kill(self, *, cascade: bool = False, reason: str = "", timeout: float | None = None) -> "list[AgentRef]":
        """End the agent at once; returns, after the commit, who died, leaves first. Raises as `signal` does.

        Its orphan policy decides about the agents that it supervised; with ``cascade`` all its descendants die too.
        """
        refuse_to_block()
        check_timeout(timeout)
        return self._commands.kill(cascade=cascade, reason=reason).get(timeout=timeout)

    def exit(self, result: str = "", timeout: float | None = None) -> None:
        """End the agent, after its turn: the normal end. Its supervisor gets the result by mail.

        A permanent agent is restarted. Raises `AgentDead`, and `RootProtected` for agent 0.
        """
        check_timeout(timeout)
        Future[None](self.uuid).check_wait()
        self._commands.exit(result).get(timeout=timeout)

    def supervise(
        self,
        *,
        strategy: str | None = None,
        intensity: int | None = None,
        period: float | None = None,
        on_orphan: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Say how the agent looks after its children; what is left out stays as it is. Returns after the commit.

        Args:
            strategy: whom a restart takes along: ``one_for_one``, ``one_for_all`` or ``rest_for_one``.
            intensity: how many restarts of its children are allowed within a period, before it gives up.
            period: seconds.
            on_orphan: what becomes of its children when it dies: ``reparent``, ``cascade``, ``stop`` or ``continue``.
            timeout: seconds to wait.

        Raises:
            BadInput: a setting makes no sense.
            AgentDead: the agent is dead.
        """
        if (strategy, intensity, period, on_orphan) == (None, None, None, None):
            raise BadInput("Expected strategy, intensity, period or on_orphan; got none of them.")
        self.system.writer.perform(supervision(self.uuid, strategy, intensity, period, on_orphan), timeout)

    def adopt(self, child: Handle | str, timeout: float | None = None) -> None:
        """Look after another agent from now on; if it is stopped, it goes on. Its lineage stays as it is.

        Raises:
            BadInput: the child stands above this agent, or is it.
            AgentDead, AgentNotFound, AmbiguousAgent: one of the two is not there.
        """
        self.system.check_open()
        self.system.lifecycle.adopt(uuid_of(self.system.store, child), self.uuid, timeout)

    @property
    def _commands(self) -> AgentLifeCommands:
        return self.system.handle(self.uuid).ask
