"""The commands for the groups of an agent, and for monitoring other agents."""

from ikigai_actors.actors.futures import Future
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.agents.registry import Handle
from ikigai_actors.records.lives.membership import Demonitor, JoinGroup, LeaveGroup, MonitorAgent
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase


class GroupCommands(CommandBase[H]):
    """The commands for the groups of an agent, and for monitoring other agents."""

    __slots__ = ()

    def join(self, group: str, timeout: float | None = None) -> Future[bool]:
        """Join a group. The first member makes the group.

        Return, after the commit, whether the agent was no member before.

        An agent that dies leaves its groups.

        Args:
            group: the name of the group.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: the name cannot be used. The rules are those for names of agents.
            AgentDead: the agent is dead.
            GroupFull: the group has 1,000 members.
        """
        return self._write(JoinGroup(self.uuid, group, self.system._clock.now_ms()), timeout)

    def leave(self, group: str, timeout: float | None = None) -> Future[bool]:
        """Leave a group; return, after the commit, whether the agent was a member.

        Args:
            group: the name of the group.
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: the name cannot be that of a group.
        """
        return self._write(LeaveGroup(self.uuid, group, self.system._clock.now_ms()), timeout)

    def monitor(self, watched: Handle | str, timeout: float | None = None) -> Future[None]:
        """Notify this agent when another agent dies, by a mail of kind ``exit``, such as supervisors get.

        If the other agent is dead already, the mail comes at once. There is one mail for each death.

        Args:
            watched: the other agent: a handle, or a uuid, name, or unique prefix of a uuid.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
            AgentDead: this agent is dead.
            BadInput: the agent would monitor itself.
        """
        now = self.system._clock.now_ms()
        unit = about(watched, MonitorAgent, lambda uuid: MonitorAgent(uuid, self.uuid, now))
        return self._write(unit, timeout, lambda _: None)

    def demonitor(self, watched: Handle | str, timeout: float | None = None) -> Future[bool]:
        """End a `monitor` of another agent. Return whether there was one.

        Args:
            watched: as in `monitor`.
            timeout: seconds to wait; None waits forever.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
        """
        return self._write(about(watched, Demonitor, lambda uuid: Demonitor(uuid, self.uuid)), timeout)
