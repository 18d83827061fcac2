"""The groups of an agent, and the agents that it monitors."""

from ikigai_actors.actors.futures import Future
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Handle
from ikigai_actors.records.lives.membership import Demonitor, JoinGroup, LeaveGroup, MonitorAgent
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase


class GroupCommands(CommandBase[H]):
    """The groups of an agent, and the agents that it monitors."""

    __slots__ = ()

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
        return self._write(LeaveGroup(self.uuid, group, self.system._clock.now_ms()), timeout)

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
