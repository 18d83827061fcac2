"""The built-in calls about groups and monitors: join_group, leave_group, monitor."""

from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import WHICH_AGENT, Argument, BuiltinCall, Given, text
from ikigai_actors.errors import AgentError, AgentNotFound
from ikigai_actors.records.agents import registry
from ikigai_actors.records.lives.membership import GROUP_PREFIX, JoinGroup, LeaveGroup, MonitorAgent
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, TreeLock


class JoinGroupCall(BuiltinCall):
    """Join a group."""

    name = "join_group"
    description = (
        f"Join a group of agents by its name. Mail to {GROUP_PREFIX}NAME reaches all who are members when it is sent. "
        "Groups need not be made; you leave yours when you end."
    )
    arguments: ClassVar = {"group": Argument("string", "Its name.", required=True)}

    def act(self, agent: str, given: Given, now: int) -> JoinGroup:
        return JoinGroup(agent, text(given, "group"), now)

    def check(self, given: Given) -> None:
        super().check(given)
        JoinGroup("", text(given, "group"), 0)

    def to_model(self, answer: bool) -> str:
        return "Joined." if answer else "You were a member already."


class LeaveGroupCall(BuiltinCall):
    """Leave a group."""

    name = "leave_group"
    description = "Leave a group that you have joined."
    arguments: ClassVar = {"group": Argument("string", "Its name.", required=True)}

    def act(self, agent: str, given: Given, now: int) -> LeaveGroup:
        return LeaveGroup(agent, text(given, "group"))

    def check(self, given: Given) -> None:
        super().check(given)
        LeaveGroup("", text(given, "group"))

    def to_model(self, answer: bool) -> str:
        return "Left." if answer else "You were no member."


class MonitorCall(BuiltinCall):
    """Hear of the death of another agent."""

    name = "monitor"
    description = (
        "Get mail of kind exit, with its result, when another agent ends that is not your child; at once if it is "
        "dead. When a child of yours ends, you get it without this call."
    )
    arguments: ClassVar = {"agent": Argument("string", f"The agent to monitor. {WHICH_AGENT}", required=True)}

    def act(self, agent: str, given: Given, now: int) -> "MonitorCalled":
        return MonitorCalled(text(given, "agent"), agent, now)

    def to_model(self, answer: Mail | None) -> str:
        return "You will get mail when it ends." if answer is None else f"It is dead: mail {answer.id} reports it."


CALLS = (JoinGroupCall(), LeaveGroupCall(), MonitorCall())


class MonitorCalled(Addressed):
    """Let an agent hear of the death of one that is given by uuid, name or prefix; see `MonitorAgent`."""

    tree = TreeLock.SHARED
    concerns_others = True

    def __init__(self, called: str, watcher: str, now: int) -> None:
        self._called, self._watcher, self._now = called, watcher, now
        self._watched: str | None = None
        self._refusal: AgentError | None = None

    def look_up(self, tx: Transaction) -> None:
        self._watched = self._refusal = None
        try:
            self._watched = registry.find(tx, self._called).uuid
        except AgentError as refusal:
            self._refusal = refusal

    @property
    def touches(self) -> tuple[str, ...]:
        return () if self._watched is None else (self._watched, self._watcher)

    def write(self, tx: Transaction, locked: LockedRows) -> Mail | None:
        if self._watched is None:
            raise self._refusal or AgentNotFound(f"Nobody is called {self._called!r}.", self._called)
        return MonitorAgent(self._watched, self._watcher, self._now).write(tx, locked)
