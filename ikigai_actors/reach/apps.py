"""Apps: functions that return the arguments of `ActorSystem.open`, and the files that define them."""

from collections.abc import Callable, Mapping
from typing import Any

from ikigai_actors.system.options import check_programs, check_tools
from ikigai_actors.tools.builds import build_of


def with_build(arguments: Mapping[str, Any], app: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of `ActorSystem.open` that an app has made, with a build that includes the app's file.

    Raises `BadInput` for invalid tools and programs.
    """
    if arguments.get("build") is not None:
        return dict(arguments)
    tools = check_tools(arguments.get("tools", ()))
    programs = [*check_programs(arguments.get("programs", ())).values()]
    build = build_of(tools, [app, *(program.function for program in programs)])
    return {**arguments, "tools": tools, "programs": programs, "build": build.id}
