"""Tools that look at the tree of agents.

The tools change nothing, so they run like any other tool, and run again after a crash.
"""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import IkigaiError
from ikigai_actors.system.handles.ref import AgentRef, current_agent
from ikigai_actors.tools.function import Result, Tool, result_of
from ikigai_actors.tools.policy import ToolTraits


class ListAgents(Tool):
    """The tool ``agents``: shows a model its own agent, the supervisor, and the agents that its agent supervises."""

    name = "agents"
    timeout = 30.0
    traits = ToolTraits(idempotent=True, read_only=True, deferred=True)
    is_async = False

    def describe(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "description": "Say who you are, who supervises you, and which living children you have, in which state.",
            "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        }

    def call(self, arguments: Mapping[str, Any]) -> Result:
        if arguments:
            return Result("agents takes no arguments.", True)
        me = current_agent()
        try:
            above = me.supervisor
            family = {
                "you": _who(me),
                "supervisor": _who(above) if above is not None else None,
                "children": [_who(child) for child in me.children()],
            }
        except IkigaiError as error:
            return Result(str(error), True)
        return result_of(family)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Satisfy the interface of a tool. The runtime never calls this, because `is_async` is False."""
        return self.call(arguments)


def _who(agent: AgentRef) -> dict[str, str | None]:
    record = agent.record
    return {"agent": agent.uuid, "name": record.name, "state": agent.system.state_of(record)}
