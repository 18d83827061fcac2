"""The commands that rename, signal, end, supervise and move an agent."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ikigai_actors.actors.futures import Future, may_block
from ikigai_actors.agent.remote_commands import Move
from ikigai_actors.agent.turn import events as on
from ikigai_actors.arguments import check_choice, check_flag, check_seconds, check_type
from ikigai_actors.errors import BadInput, SystemClosed
from ikigai_actors.programs.acts import VerbAct, program_frame
from ikigai_actors.programs.frames import refuse_in_program
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Handle, Rename
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase
from ikigai_actors.system.lifecycle import GRACE, had_effect, supervision
from ikigai_actors.text import check_text
from supervisors.signals import Signal

if TYPE_CHECKING:
    from ikigai_actors.records.lives.deaths import LifecycleChange


class LifeCommands(CommandBase[H]):
    """The commands that rename, signal, end, supervise and move an agent."""

    __slots__ = ()

    def rename(self, name: str | None, timeout: float | None = None) -> Future[None]:
        """Rename the agent. Returns after the commit.

        Later requests to its model, and the screens, show the new name. The old name finds no agent any more, and
        another agent may take it.

        Args:
            name: the new name, unique among the living; empty or None takes the name away.
            timeout: seconds to wait; None waits forever.

        Raises:
            NameTaken, BadInput: the agent cannot have this name.
            AgentDead: the agent is dead, and keeps its name.
        """
        return self._write(Rename(self.uuid, name, self.system._clock.now_ms()), timeout, lambda _: None)

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
            signal: ``INT`` ends the turn in progress. Without such a turn, it ends the turn of the oldest prompt that
                was sent before the signal, and no model is asked. ``STOP`` pauses the agent after its step, and
                ``CONT`` lets it go on. ``TERM`` lets the agent finish its turn and die. ``KILL`` ends it at once.
            timeout: seconds to wait; None waits forever.
            cascade: whether the signal goes to all descendants too, in one transaction.
            reason: the reason, which the registry shows for every agent that dies of the signal.
            grace: seconds after which TERM becomes KILL.

        Raises:
            AgentDead: the agent is dead already.
            AgentStopped: the agent is terminating, and cannot be paused.
            RootProtected: agent 0 cannot be killed or terminated.
        """
        if (frame := program_frame("signal", timeout=timeout)) is not None:
            name = Signal(check_choice(signal, "signal", tuple(Signal))).value
            asked = {"agent": self.uuid, "signal": name, "cascade": check_flag(cascade, "cascade") or None}
            limit = round(check_seconds(grace, "grace") * 1000)
            return VerbAct(frame, "signal", {**asked, "reason": check_text(reason, "reason") or None, "grace": limit})
        self._check_wait(timeout)
        if signal == Signal.INT:
            check_text(reason, "reason")
            check_flag(cascade, "cascade")
            return self._interrupt(timeout, cascade)
        return self._signal(signal, had_effect, timeout, cascade=cascade, reason=reason, grace=grace)

    def _interrupt(self, timeout: float | None, cascade: bool) -> Future[bool]:
        """Send INT, in order with the other commands of this caller; return a future of whether it ended a turn."""
        lifecycle, begun = self.system._lifecycle, None
        if self._waits or may_block() or self.system._beside.is_idle:
            with suppress(SystemClosed):  # the future raises it
                begun = lifecycle.interrupt_here(self.uuid)
        return self._beside(lambda: lifecycle.interrupt(self.uuid, cascade=cascade, begun=begun), timeout)

    def kill(self, *, cascade: bool = False, reason: str = "", timeout: float | None = None) -> Future[list[H]]:
        """Kill the agent at once. Its orphan policy decides what happens to the agents that it supervised.

        Once the call has returned, this host begins no request and no tool of the dead. What was on its way is
        cancelled; only code on a thread runs to its end. Another host follows as soon as it reads of the death.

        Args:
            cascade: whether all its descendants die too.
            reason: the reason, for the registry.
            timeout: seconds to wait; None waits forever.

        Returns:
            After the commit, the agents that died, leaves first. Raises the errors of `signal`.
        """
        if (frame := program_frame("kill", timeout=timeout)) is not None:
            asked = {"agent": self.uuid, "cascade": check_flag(cascade, "cascade") or None, "reason": reason or None}
            return VerbAct(frame, "kill", asked, lambda died: [self._ref(uuid) for uuid in died])

        def dead(aftermath: "LifecycleChange") -> list[H]:
            return [self._ref(uuid) for uuid in aftermath.dead]

        self._check_wait(timeout)
        return self._signal(Signal.KILL, dead, timeout, cascade=cascade, reason=reason)

    def _signal(
        self, signal: Signal, make: "Callable[[LifecycleChange], Any]", timeout: float | None, **how: Any
    ) -> Future[Any]:
        return self.system._lifecycle.signal(self.uuid, signal, make, **how).within(timeout)

    def exit(self, result: str = "", timeout: float | None = None) -> Future[None]:
        """End the agent normally, after its turn. A permanent agent is restarted.

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
        """Set how the agent supervises its children. Returns after the commit. Arguments that are None change nothing.

        Args:
            strategy: which siblings a restart takes along: ``one_for_one``, ``one_for_all`` or ``rest_for_one``.
            intensity: how many restarts of its children are allowed within a period, before the agent gives up.
            period: the length of the period, in seconds.
            on_orphan: what happens to its children when it dies: ``reparent``, ``cascade``, ``stop`` or ``continue``.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: a setting makes no sense; or children that would be restarted together live on several hosts.
            AgentDead: the agent is dead.
        """
        if (strategy, intensity, period, on_orphan) == (None, None, None, None):
            raise BadInput("Expected strategy, intensity, period or on_orphan; got none of them.")
        return self._write(
            supervision(self.uuid, self.system._clock.now_ms(), strategy, intensity, period, on_orphan),
            timeout,
            lambda _: None,
        )

    def adopt(self, child: Handle | str, timeout: float | None = None) -> Future[None]:
        """Become the supervisor of another agent. If that agent is stopped, it goes on. Its lineage stays.

        Args:
            child: the other agent: a handle, or a text as in `send`.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: the child is above this agent, or is this agent; or it would be restarted together with its
                new siblings, and lives on another host.
            AgentDead, AgentNotFound, AmbiguousAgent: one of the two is dead, or cannot be found.
        """
        from ikigai_actors.records.lives.supervision import AdoptChild

        now = self.system._clock.now_ms()
        unit = about(child, AdoptChild, lambda uuid: AdoptChild(uuid, self.uuid, now))
        return self._write(unit, timeout, lambda _: None)

    def move(self, host: str, timeout: float | None = None) -> Future[None]:
        """Move the agent to another host, with those of its descendants that live on the same host.

        Replies and tools in progress may take as long as a lease to end. After that they are cut off, and the turns go
        on at the other host as after a crash. Callers still get their answers.

        Args:
            host: the name of the other host; see `ActorSystem.hosts`.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: the agent is restarted together with its siblings, so only their supervisor can be moved.
            RootProtected: agent 0 cannot be moved.
            NoHost: no host of that name takes agents, or the hosts share none.
        """
        check_type(host, str, "host", "the name of a host")
        future = self._future(timeout)
        refuse_in_program()
        return self._go(lambda: self.system._remote_agent(self.uuid).deliver(Move(host, future)), future)
