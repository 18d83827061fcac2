# The names that this package hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.tools.a2a import A2aAgent as A2aAgent
from ikigai_actors.tools.base import HostPaths as HostPaths
from ikigai_actors.tools.base import Toolset as Toolset
from ikigai_actors.tools.effect_keys import CurrentCall as CurrentCall
from ikigai_actors.tools.effect_keys import current_call as current_call
from ikigai_actors.tools.fence.policy import Fence as Fence
from ikigai_actors.tools.function import FunctionTool as FunctionTool
from ikigai_actors.tools.function import Result as Result
from ikigai_actors.tools.function import Tool as Tool
from ikigai_actors.tools.function import ToolError as ToolError
from ikigai_actors.tools.function import tool as tool
from ikigai_actors.tools.mcp.server import McpServer as McpServer
from ikigai_actors.tools.policy import Policy as Policy
from ikigai_actors.tools.policy import ToolTraits as ToolTraits
from ikigai_actors.tools.rules.rule import Rule as Rule
from ikigai_actors.tools.workspace import Workspace as Workspace

__all__: list[str]
