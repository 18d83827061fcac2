"""The built-in calls about groups and monitors: join_group, leave_group, monitor."""

from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import WHICH_AGENT, Argument, BuiltinCall, Given, text
from ikigai_actors.records.agents.called import about
from ikigai_actors.records.lives.membership import GROUP_PREFIX, JoinGroup, LeaveGroup, MonitorAgent
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.store.unit import Unit


class JoinGroupCall(BuiltinCall):
    """The call ``join_group``: join a group."""

    name = "join_group"
    description = (
        f"Join a group of agents by its name. Mail to {GROUP_PREFIX}NAME reaches all who are members when it is sent. "
        "Groups need not be made; you leave yours when you end."
    )
    arguments: ClassVar = {"group": Argument("string", "Its name.", required=True)}

    def act(self, agent: str, arguments: Given, now: int) -> JoinGroup:
        return JoinGroup(agent, text(arguments, "group"), now)

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        JoinGroup("", text(arguments, "group"), 0)

    def to_model(self, answer: bool) -> str:
        return "Joined." if answer else "You were a member already."


class LeaveGroupCall(BuiltinCall):
    """The call ``leave_group``: leave a group."""

    name = "leave_group"
    description = "Leave a group that you have joined."
    arguments: ClassVar = {"group": Argument("string", "Its name.", required=True)}

    def act(self, agent: str, arguments: Given, now: int) -> LeaveGroup:
        return LeaveGroup(agent, text(arguments, "group"), now)

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        LeaveGroup("", text(arguments, "group"), 0)

    def to_model(self, answer: bool) -> str:
        return "Left." if answer else "You were no member."


class MonitorCall(BuiltinCall):
    """The call ``monitor``: get a mail when another agent dies."""

    name = "monitor"
    description = (
        "Get mail of kind exit, with its result, when another agent ends that is not your child; at once if it is "
        "dead. When a child of yours ends, you get it without this call."
    )
    arguments: ClassVar = {"agent": Argument("string", f"The agent to monitor. {WHICH_AGENT}", required=True)}

    def act(self, agent: str, arguments: Given, now: int) -> Unit:
        return about(text(arguments, "agent"), MonitorAgent, lambda uuid: MonitorAgent(uuid, agent, now))

    def to_model(self, answer: Mail | None) -> str:
        return "You will get mail when it ends." if answer is None else f"It is dead: mail {answer.id} reports it."


CALLS = (JoinGroupCall(), LeaveGroupCall(), MonitorCall())
