"""``ikigai mcp``: the Model Context Protocol, in its old and new versions, for a client by lines or by HTTP.

The package ``mcp`` speaks the protocol: versions, handshakes, validation, cancelled calls and reports of progress. The
tools are ours, and are imported when they are first asked for. The package has no batches, which 2025-03-26 alone
wants; no client is known that sends one.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParams,
    TextContent,
    Tool,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from ikigai_actors.doors.json_rpc import INTERNAL
from ikigai_actors.errors import IkigaiError, NoHost
from ikigai_actors.reach.turns import DONE, FAILED

if TYPE_CHECKING:
    from ikigai_actors.doors.mcp_forms import WaitForms
    from ikigai_actors.reach.access import Access
    from ikigai_actors.reach.news import NewsFeed
    from ikigai_actors.verbs.act import Act
    from ikigai_actors.verbs.acts.turns import Begun
    from ikigai_actors.verbs.principal import Principal
    from ikigai_actors.verbs.tools import VerbTool

logger = logging.getLogger(__name__)

TASKS, CAPABILITIES_KEY = "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/clientCapabilities"
"""The name of the extension for tasks, and the key under which a client lists its capabilities."""

PROGRESS = 5.0
"""Seconds between two reports of progress."""

_LOOK = 1.0
"""The most seconds between two checks of turns, because a wait may end without a message."""

_SETTLES = 0.01
"""Seconds from the first news until turns are checked, so that busy agents do not cause a check for each event."""

THREADS = 8

OFFERED = (
    "fork", "prompt", "wait", "send", "read_mail", "agents", "history", "diff", "merge", "documents", "signal", "kill",
    "decide", "grant",
)  # fmt: skip
"""The names of the acts that are offered as tools, in order."""

INSTRUCTIONS = (
    "A tree of durable LLM agents. Each has a history, a mailbox and children; all of that survives crashes. `fork` "
    "makes a child that inherits an agent's whole history, for the price of one row, and prompts it. `fork` and "
    "`prompt` do not wait: they answer with a handle. `wait` takes handles and says how their turns are: done, "
    "failed, asks (a call waits for `decide`, or a person is asked something), waiting_for_budget (`grant`), or "
    "working: wait again. A handle is valid forever, for every client; after a lost connection or a restart, wait for "
    "it again rather than prompt again. Give each call that changes something a new `key`. If its answer was lost, "
    "make the same call with the same key: it is not done twice. Fork for work that goes on beside yours, for a "
    "second opinion on the same history, or to try something without spoiling it. Do not fork for a question that the "
    "same agent can answer next: prompt it. Agents "
    "cost money: kill those that have finished."
)


ReportProgress = Callable[[float, float, str], Awaitable[object]]


class TaskParams(RequestParams, extra="allow"):
    """The parameters of a request about a task."""


class McpDoor:
    """Answers the calls of MCP clients. It keeps no state of the clients."""

    def __init__(
        self,
        access: "Callable[[], Access]",
        *,
        read_only: bool = False,
        tasks: bool = False,
        principal: "Principal | None" = None,
        news: "NewsFeed | None" = None,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        """Make the door.

        Args:
            access: returns the agents in reach; waits until the database is there.
            read_only: whether only tools are offered that change nothing.
            tasks: whether clients that support tasks get a task for a turn.
            principal: the principal that asks; None for the user of this machine, who has all rights.
            news: the feed of agents' commits; None makes one.
            pool: the threads for work; None makes them.
        """
        self._access, self._read_only, self._tasks = access, read_only, tasks
        self._principal, self._feed = principal, news
        self._pool = pool or ThreadPoolExecutor(THREADS, thread_name_prefix="ikigai-door")
        self.server: Server[Any] = Server(
            "ikigai", version=version("ikigai-actors"), title="ikigai", instructions=INSTRUCTIONS
        )
        """The server of the package ``mcp``, which speaks the protocol."""
        self.server.add_request_handler("tools/list", PaginatedRequestParams, self._list)
        self.server.add_request_handler("tools/call", CallToolRequestParams, self._call)
        if tasks:
            self.server.extensions[TASKS] = {}
            for name in ("get", "update", "cancel"):
                self.server.add_request_handler(f"tasks/{name}", TaskParams, self._about_task)

    @cached_property
    def _news(self) -> "NewsFeed":
        """Return the feed of agents' commits, which is opened at the first wait."""
        from ikigai_actors.reach.news import NewsFeed

        return self._feed or NewsFeed(lambda: self._reach.system)

    @cached_property
    def _reach(self) -> "Access":
        return self._access()

    @cached_property
    def _tools(self) -> "dict[str, Act | VerbTool]":
        from ikigai_actors.verbs.acts import ACTS
        from ikigai_actors.verbs.tools import tools_for_models

        offered: dict[str, Act | VerbTool] = {name: ACTS[name] for name in OFFERED}
        offered |= tools_for_models()
        return {name: tool for name, tool in offered.items() if self._may(tool)}

    def _may(self, tool: "Act | VerbTool") -> bool:
        from ikigai_actors.verbs.principal import has_right

        if tool.reads or self._read_only:
            return tool.reads
        return self._principal is None or has_right(self._principal, tool.needs)

    def _called(self, tool: "Act | VerbTool", arguments: object) -> Any:
        """Call a tool, and return its value. A tool that only reads writes no rows."""
        from ikigai_actors.verbs.principal import acting_as

        with acting_as(self._principal, self._reach, reads=tool.reads):
            return tool.call(self._reach, arguments, by_model=True)

    async def _on_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    async def _offered(self) -> "dict[str, Act | VerbTool]":
        """Return the tools by name. The tools are imported on another thread."""
        tools: dict[str, Act | VerbTool] = await self._on_thread(lambda: self._tools)
        return tools

    async def _list(self, context: ServerRequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        offered = (await self._offered()).values()
        return ListToolsResult(tools=[Tool.model_validate(tool.listed()) for tool in offered])

    async def _about_task(self, context: ServerRequestContext, params: TaskParams) -> dict[str, Any]:
        from ikigai_actors.doors import mcp_tasks

        works = {"get": mcp_tasks.task_at, "update": mcp_tasks.answer_task, "cancel": mcp_tasks.cancel_task}
        work = works[context.method.removeprefix("tasks/")]
        try:
            task: dict[str, Any] = await self._on_thread(work, self._reach, params.model_extra or {})
        except IkigaiError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        if "result" not in task:
            return task
        return {**task, "result": _result_of(task["result"]).model_dump(by_alias=True, exclude_none=True)}

    async def _call(
        self, context: ServerRequestContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult | dict[str, Any]:
        tool = (await self._offered()).get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name!r}. tools/list names those there are.")
        as_task = self._tasks and context.protocol_version in MODERN_PROTOCOL_VERSIONS and knows_tasks(context.meta)
        try:
            value = await self._value(tool, params, context, as_task=as_task)
        except IkigaiError as error:
            again = " Call again with the same key." if isinstance(error, NoHost) else ""
            return _error_of(f"{error}{again}")
        except Exception:
            logger.exception("Tool %s failed", tool.name)
            return _error_of(INTERNAL)
        if isinstance(value, InputRequiredResult) or (isinstance(value, dict) and value.get("resultType") == "task"):
            return value
        return _result_of(value)

    async def _value(
        self, tool: "Act | VerbTool", params: CallToolRequestParams, context: ServerRequestContext, *, as_task: bool
    ) -> Any:
        from ikigai_actors.doors.mcp_tasks import task_of
        from ikigai_actors.verbs.acts.turns import Begun

        value = await self._on_thread(self._called, tool, params.arguments or {})
        if not isinstance(value, Begun):
            return value
        if as_task and value.is_task:
            return await self._on_thread(task_of, self._reach, value.handles[0])
        forms = await self._forms(params, context) if tool.reads and not self._read_only else None
        try:
            return await self._over(value, forms, context.session.report_progress)
        finally:
            if forms is not None:
                forms.close()

    async def _forms(self, params: CallToolRequestParams, context: ServerRequestContext) -> "WaitForms | None":
        """Return the forms that the client can show while a call waits; None if it shows none."""
        from ikigai_actors.doors.mcp_forms import WaitForms

        forms = WaitForms(self._reach, self._principal, context, self._on_thread)
        if not forms.can_show:
            return None
        await forms.take_answers(params.input_responses or {})
        return forms

    async def _over(self, value: "Begun", forms: "WaitForms | None", progress: ReportProgress) -> Any:
        """Wait for the turns of a call, or for its time-out; return the answer, or forms that the client must show."""
        loop = asyncio.get_running_loop()
        begun, seen = loop.time(), list[dict[str, Any]]()
        reported = begun
        async with self._news.watch() as watch:  # before the first look, so that nothing is missed
            while True:
                showing = frozenset[str]() if forms is None else forms.showing()
                seen = await self._on_thread(self._look, value, seen)
                if forms is not None:
                    if (to_show := await forms.show_new(seen)) is not None:
                        return to_show
                    showing |= forms.showing()
                over = [is_over(turn) and not _asks_by(turn, showing) for turn in seen]
                now = loop.time()
                left = begun + value.seconds - now
                if left <= 0 or self._news.ending.is_set() or (any(over) if value.any else all(over)):
                    return await self._on_thread(value.give, seen)
                if now - reported >= PROGRESS:
                    reported = now
                    await progress(round(now - begun, 1), value.seconds, f"{sum(over)} of {len(over)} turns are over")
                if await watch.news(min(left, value.seconds / 16, _LOOK)):
                    await asyncio.sleep(min(left, _SETTLES))

    def _look(self, begun: "Begun", before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the states of the turns; turns that had ended at the previous look are not read again."""
        turns = self._reach.turns
        known = {place: turn for place, turn in enumerate(before) if turn["status"] in (DONE, FAILED)}
        return [known[place] if place in known else turns.look_at(handle) for place, handle in enumerate(begun.handles)]


def is_over(turn: Mapping[str, Any]) -> bool:
    """Return whether the turn stays as it is unless somebody acts."""
    return bool(turn["status"] != "working")


def _asks_by(turn: Mapping[str, Any], showing: Collection[str]) -> bool:
    """Return whether a turn waits for a question that the client's user sees now."""
    return any(question.get("question") in showing for question in turn.get("asks", ()))


def _result_of(value: Any) -> CallToolResult:
    content = value if isinstance(value, dict) else {"result": value}
    text = TextContent(text=json.dumps(content, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=content, is_error=False)


def _error_of(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def knows_tasks(meta: Mapping[str, Any] | None) -> bool:
    """Return whether a request says that the client supports tasks."""
    capabilities = (meta or {}).get(CAPABILITIES_KEY)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and TASKS in extensions
