"""What `ActorSystem.open` makes of its arguments: who answers, what can be called, who decides on calls."""

import inspect
from collections.abc import Iterable

from ikigai_actors.agent.turn.calls import Approver
from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.policy import Policy


def choose_approver(approvals: Approver | str) -> tuple[Policy, Approver | None]:
    """What becomes of calls that ask, and the function that decides on them. Raises `BadInput`."""
    if callable(approvals):
        return Policy.ASK, approvals
    try:
        return Policy(approvals), None
    except ValueError as error:
        raise BadInput(
            f"Expected approvals to be a function, 'ask', 'deny' or 'allow'; got {shown(approvals)}."
        ) from error


def check_tools(tools: object) -> list[Tool | Toolset]:
    """The tools as a list. Raises `BadInput` for what is none."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise BadInput(f"Expected tools to be a list of tools; got {shown(tools)}.")
    given = [*tools]
    for one in given:
        if inspect.isclass(one) or not (isinstance(one, Toolset) or all(hasattr(one, part) for part in _OF_A_TOOL)):
            remedy = " Put @tool on the function, or write tool(function)." if inspect.isroutine(one) else ""
            raise BadInput(f"Expected each of tools to be a tool or a toolset; got {shown(one)}.{remedy}")
    return given


_OF_A_TOOL = ("name", "timeout", "traits", "is_async", "describe", "call", "call_async")
