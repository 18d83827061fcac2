"""Apps: functions that give the arguments of `ActorSystem.open`, and the files that define them."""

from collections.abc import Callable, Mapping
from typing import Any

from ikigai_actors.system.options import check_programs, check_tools
from ikigai_actors.tools.builds import build_of


def with_build(arguments: Mapping[str, Any], app: Callable[..., Any]) -> dict[str, Any]:
    """Arguments of `ActorSystem.open` that a function has made, with a build to which its file belongs, too.

    Raises `BadInput` for tools and programs that are none.
    """
    if arguments.get("build") is not None:
        return dict(arguments)
    tools = check_tools(arguments.get("tools", ()))
    programs = [*check_programs(arguments.get("programs", ())).values()]
    build = build_of(tools, [app, *(program.function for program in programs)])
    return {**arguments, "tools": tools, "programs": programs, "build": build.id}
