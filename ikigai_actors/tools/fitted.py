"""Adapts tools to a form that every service takes. A tool that needs no change is returned as it is."""

import logging
from collections.abc import Mapping
from typing import Any

from ikigai_actors.text import described
from ikigai_actors.tools.function import NAME, FunctionTool, Result, Tool
from ikigai_actors.tools.plain_schema import Plain, Unsuitable, plain
from ikigai_actors.tools.policy import ToolTraits

logger = logging.getLogger(__name__)

_MOST_SHOWN = 10
_LONGEST = 200
"""The most characters of a reason that are shown, since it may quote a server."""


def fitted(tool: Tool) -> Tool:
    """Return a tool with a description and a schema that every service takes. Raises `Unsuitable`."""
    try:
        definition = dict(tool.describe())
    except Unsuitable:
        raise
    except Exception as error:  # other people's code
        logger.info("Tool %s failed to describe itself", tool.name, exc_info=error)
        raise Unsuitable(f"it cannot be described: {described(error)}") from error
    if not isinstance(tool.name, str) or NAME.fullmatch(tool.name) is None:
        raise Unsuitable(f"its name is not 1 to 128 of a-z A-Z 0-9 _ -, but {tool.name!r}")
    maker = getattr(tool, "wrapped", tool)  # a tool of the workspace says what the function that it wraps says
    checked = isinstance(maker, FunctionTool) and (maker is tool or dict(maker.describe()) == definition)
    made = plain(definition.get("input_schema"), checked=checked)
    form = {"name": tool.name, "description": str(definition.get("description") or ""), "input_schema": made.schema}
    return tool if form == definition else _Fitted(tool, form, made)


def left_out(why: Mapping[str, str]) -> str:
    """Return a sentence for a person about the tools that are left out.

    ``why`` has the reasons, by the names of the tools.
    """
    named = [f"{name}, because {_shortened(reason)}" for name, reason in list(why.items())[:_MOST_SHOWN]]
    more = f"; and {len(why) - _MOST_SHOWN} more" if len(why) > _MOST_SHOWN else ""
    return f"Some tools are left out, since no model can be asked with them: {'; '.join(named)}{more}."


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}…"


class _Fitted(Tool):
    def __init__(self, tool: Tool, form: Mapping[str, Any], schema: Plain) -> None:
        self._tool, self._form, self._schema = tool, form, schema

    @property
    def name(self) -> str:
        return self._tool.name

    @property
    def timeout(self) -> float:
        return self._tool.timeout

    @property
    def traits(self) -> ToolTraits:
        return self._tool.traits

    @property
    def is_async(self) -> bool:
        return self._tool.is_async

    def describe(self) -> Mapping[str, Any]:
        return self._form

    def call(self, arguments: Mapping[str, Any]) -> Result:
        return self._tool.call(self._schema.own(arguments))

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        return await self._tool.call_async(self._schema.own(arguments))
