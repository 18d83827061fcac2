"""Reading and writing files: read, write, edit and glob of anthropic's agent toolset.

They are ``async`` and block all the same, so they run on tool threads, each call on an event loop of its own.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ikigai_actors.calls import Facts, Policy
from ikigai_actors.tools import TIMEOUT, FunctionTool, Result, result_of

if TYPE_CHECKING:
    from anthropic.lib.tools.agent_toolset import AgentToolContext

FACTS = {
    "read": Facts(idempotent=True),
    "glob": Facts(idempotent=True),
    "write": Facts(policy=Policy.ASK),
    "edit": Facts(policy=Policy.ASK),
}
"""The tools that are taken from the toolset. Its bash leaves processes behind, its grep can freeze ours."""


@dataclass(frozen=True, slots=True, eq=False)
class FileTool(FunctionTool):
    """A function of the toolset."""

    context: "AgentToolContext"
    """The directory."""

    @property
    def is_async(self) -> bool:
        """It blocks, so a thread must run it."""
        return False

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Run it on the calling thread; never raises."""
        if self._holds(given := arguments.get("file_path")):
            return Result(f"{self.name}: {given}: not a regular file", True)
        try:
            value = asyncio.run(self.function.call(dict(arguments)))  # type: ignore[arg-type]  # an async tool's
        except BaseException as error:
            return self._failure(error)
        if isinstance(value, str):
            return result_of(value)
        return Result("This file is an image or a PDF, which cannot be shown here. Only text can be read.", True)

    def _holds(self, path: object) -> bool:
        """Whether a path leads to what is no regular file: to open a pipe would wait for its other end for ever."""
        from anthropic.lib.tools.agent_toolset import resolve_path

        try:
            place = resolve_path(self.context, path) if isinstance(path, str) else None
            return place is not None and place.exists() and not place.is_file()
        except (OSError, ValueError):  # the function itself says what is wrong
            return False


def file_tools(directory: Path) -> list[FileTool]:
    """The tools, confined to a directory."""
    from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

    context = AgentToolContext(workdir=directory)
    toolset = beta_agent_toolset_20260401(context)
    return [FileTool(one, TIMEOUT, FACTS[one.name], context) for one in toolset if one.name in FACTS]
