"""The built-in call about budgets: grant."""

from typing import ClassVar

from ikigai_actors.agent.builtin_calls.base import WHICH_AGENT, Argument, BuiltinCall, Given, text
from ikigai_actors.errors import BadInput
from ikigai_actors.records.budgets.budget import Budget, amount_text
from ikigai_actors.records.budgets.grants import GrantByAgent, Served


class GrantCall(BuiltinCall):
    """The call ``grant``: raise the budget of an agent below the calling one."""

    name = "grant"
    description = (
        "Raise the budget of an agent that descends from you, where it has one of its own: the agents that "
        "wait for it go on. The total for all of you stays the same."
    )
    arguments: ClassVar = {
        "agent": Argument("string", WHICH_AGENT, required=True),
        "tokens": Argument("integer", "How many more tokens it may use."),
        "usd": Argument("number", "How many more dollars it may spend."),
    }

    def check(self, arguments: Given) -> None:
        super().check(arguments)
        if not any(_more(arguments).limits().values()):
            raise BadInput("grant needs tokens, or usd: how much more, above 0.")

    def act(self, agent: str, arguments: Given, now: int) -> GrantByAgent:
        return GrantByAgent(text(arguments, "agent"), agent, _more(arguments).limits())

    def to_model(self, answer: Served) -> str:
        granted = " and ".join(amount_text(unit, amount) for unit, amount in answer.granted)
        going = f", and {len(answer.held)} that waited for it go on" if answer.held else ""
        return f"The budget of {answer.budget} grants {granted} in all now{going}."


def _more(arguments: Given) -> Budget:
    return Budget(tokens=arguments.get("tokens"), usd=arguments.get("usd"))


CALLS = (GrantCall(),)
