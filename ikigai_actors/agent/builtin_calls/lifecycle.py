"""The built-in calls about the lives and names of agents: exit, kill, rename."""

from collections.abc import Mapping
from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import WHICH_AGENT, Argument, BuiltinCall, Given, text
from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import depart
from ikigai_actors.agent.turn.typed import EXIT, begin_exit
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.agents.registry import Rename, Renamed
from ikigai_actors.records.lives.deaths import LifecycleChange
from ikigai_actors.records.lives.signals import SignalByAgent
from ikigai_actors.tools.policy import ToolTraits


class ExitCall(BuiltinCall):
    """The call ``exit``: end the calling agent. The result goes to its supervisor."""

    name = EXIT
    description = (
        "End yourself: your work is done. Your supervisor gets the result by mail. Nothing comes after this call."
    )
    arguments: ClassVar = {"result": Argument("string", "What you found or did.")}

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        if state.output is not None:
            return begin_exit(state, call, now)
        self.check(call.input)
        return depart(state, text(call.input, "result"), now, call)


class KillCall(BuiltinCall):
    """The call ``kill``: end another agent."""

    name = "kill"
    description = "End another agent at once, whatever it does. Not yourself, and none of your supervisors."
    arguments: ClassVar = {
        "agent": Argument("string", WHICH_AGENT, required=True),
        "reason": Argument("string", "Why."),
        "cascade": Argument("boolean", "End all its descendants too."),
    }

    def act(self, agent: str, arguments: Given, now: int) -> SignalByAgent:
        return SignalByAgent(
            text(arguments, "agent"), agent, now, text(arguments, "reason"), bool(arguments.get("cascade"))
        )

    def to_model(self, answer: LifecycleChange) -> str:
        dead = len(answer.dead)
        return "Killed." if dead == 1 else f"Killed, and {dead - 1} agents with it."


class RenameCall(BuiltinCall):
    """The call ``rename``: give the calling agent another name."""

    name = "rename"
    description = (
        "Give yourself a name, or another one, by which people and other agents know you; without a name yours is "
        "taken away."
    )
    arguments: ClassVar = {"name": Argument("string", "Your new name, unique among living agents.")}

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        if name := arguments.get("name"):
            check_name(name)

    def act(self, agent: str, arguments: Given, now: int) -> Rename:
        return Rename(agent, text(arguments, "name"), now)

    def to_model(self, answer: Renamed) -> str:
        return "You have no name any more." if answer.name is None else f"Your name is {answer.name} now."


CALLS = (ExitCall(), KillCall(), RenameCall())
