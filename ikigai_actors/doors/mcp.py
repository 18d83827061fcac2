"""``ikigai mcp``: the Model Context Protocol, in both of its eras, for a client by lines or by HTTP.

Written by hand: the usual library takes a second of processor to import, and clients give up early. Its client and its
types are the oracle of the tests. For the same reason the tools are imported when they are first asked for.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ikigai_actors.doors.json_rpc import (
    INTERNAL,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    GivenUp,
    Params,
    RpcError,
    RpcRequest,
)
from ikigai_actors.errors import IkigaiError, NoHost

if TYPE_CHECKING:
    from ikigai_actors.reach.access import Access
    from ikigai_actors.reach.news import NewsFeed
    from ikigai_actors.verbs.act import Act
    from ikigai_actors.verbs.acts.turns import Begun
    from ikigai_actors.verbs.principal import Principal
    from ikigai_actors.verbs.tools import VerbTool

logger = logging.getLogger(__name__)

HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions of the protocol that begin with ``initialize``, the latest first."""

STATELESS = ("2026-07-28",)
"""The versions in which each request says its version."""

UNSUPPORTED_VERSION = -32022

VERSION_KEY, SERVER_KEY = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/serverInfo"

TASKS, CAPABILITIES_KEY = "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/clientCapabilities"
"""The extension by which a call gives a task, and where a client says that it knows it."""

CACHED = {"ttlMs": 0, "cacheScope": "private"}
"""How long a client keeps an answer of the later era."""

PROGRESS = 5.0
"""Seconds between two reports of progress."""

_LOOK = 1.0
"""Seconds between two looks at turns, at most: not all that ends a wait is a message."""

_SETTLES = 0.01
"""Seconds after news until turns are looked at: agents that work hard have some all the time."""

THREADS = 8

OFFERED = (
    "fork", "prompt", "wait", "send", "read_mail", "agents", "history", "diff", "merge", "documents", "signal", "kill",
    "decide", "grant",
)  # fmt: skip
"""The acts that are tools, in the order in which they are listed."""

INSTRUCTIONS = (
    "A tree of durable LLM agents. Each has a history, a mailbox and children; all of that survives crashes. "
    "`fork` makes a child that inherits an agent's whole history, for the price of one row, and prompts it. `fork` and "
    "`prompt` do not wait: they answer with a handle. `wait` takes handles and says how their turns are: done, "
    "failed, asks (a call waits for `decide`), waiting_for_budget (`grant`), or working: wait again. A handle is valid "
    "forever, for every client; after a lost connection or a restart, wait for it again rather than prompt again. Give "
    "each call that changes something a new `key`. If its answer was lost, make the same call with the same key: it is "
    "not done twice. Fork for work that goes on beside yours, for a second opinion on the same history, or to try "
    "something without spoiling it. Do not fork for a question that the same agent can answer next: prompt it. Agents "
    "cost money: kill those that have finished."
)


class McpDoor:
    """Answers the requests of MCP clients. It remembers nothing of them."""

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
        """Put the parts together.

        Args:
            access: gives what clients reach; waits until that can be said.
            read_only: whether only tools are offered that change nothing.
            tasks: whether clients that know tasks get a task for a turn.
            principal: who asks; None for the user of this machine, who may do everything.
            news: hears the commits of agents; None for a feed of its own.
            pool: the threads that work; None for its own.
        """
        self._access, self._read_only, self._tasks = access, read_only, tasks
        self._principal, self._feed = principal, news
        self._pool = pool or ThreadPoolExecutor(THREADS, thread_name_prefix="ikigai-door")

    @cached_property
    def _news(self) -> "NewsFeed":
        """The commits of agents, heard from the first wait on."""
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
        """Whether the client may call a tool."""
        from ikigai_actors.verbs.principal import has_right

        if tool.reads or self._read_only:
            return tool.reads
        return self._principal is None or has_right(self._principal, tool.needs)

    def _called(self, tool: "Act | VerbTool", given: object) -> Any:
        """The value that a tool gives. A tool that only reads writes nothing."""
        from ikigai_actors.verbs.principal import acting_as

        with acting_as(self._principal, self._reach, reads=tool.reads):
            return tool.call(self._reach, given, by_model=True)

    async def _offered(self) -> "dict[str, Act | VerbTool]":
        """The tools, by name; they are imported on another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: self._tools)

    async def request(self, request: RpcRequest, notify: Callable[[str, Params], object]) -> Any:
        """The result of a request. Raises `RpcError`."""
        meta = request.params.get("_meta")
        asked = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        if asked is not None and asked not in STATELESS:
            told = {"supported": [*STATELESS], "requested": asked}
            raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", told)
        result = await self._result(request, notify, meta if isinstance(meta, dict) else {})
        if asked is None:
            return result
        kept = CACHED if request.method in ("server/discover", "tools/list") else {}
        return {"resultType": "complete", **result, **kept, "_meta": {SERVER_KEY: self._info}}

    def notified(self, request: RpcRequest) -> None:
        """Nothing that a client reports changes anything here."""

    def give_up(self, request: RpcRequest) -> GivenUp:
        """End the request without an answer, as the protocol wants it."""
        return GivenUp.SILENT

    async def _result(
        self, request: RpcRequest, notify: Callable[[str, Params], object], meta: Mapping[str, Any]
    ) -> dict[str, Any]:
        match request.method:
            case "initialize":
                wanted = request.params.get("protocolVersion")
                return {
                    "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[0],
                    "capabilities": {"tools": {}},
                    "serverInfo": self._info,
                    "instructions": INSTRUCTIONS,
                }
            case "server/discover":
                return {
                    "supportedVersions": [*STATELESS],
                    "capabilities": {"tools": {}, **({"extensions": {TASKS: {}}} if self._tasks else {})},
                    "instructions": INSTRUCTIONS,
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.listed() for tool in (await self._offered()).values()]}
            case "tools/call":
                as_task = self._tasks and knows_tasks(meta)
                return await self._call(request.params, notify, meta.get("progressToken"), as_task=as_task)
            case "tasks/get" | "tasks/update" | "tasks/cancel" if self._tasks:
                return await self._about_task(request)
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")

    @cached_property
    def _info(self) -> dict[str, str]:
        return {"name": "ikigai", "title": "ikigai", "version": version("ikigai-actors")}

    async def _about_task(self, request: RpcRequest) -> dict[str, Any]:
        from ikigai_actors.doors import mcp_tasks

        works = {"get": mcp_tasks.task_at, "update": mcp_tasks.answer_task, "cancel": mcp_tasks.cancel_task}
        work = works[request.method.removeprefix("tasks/")]
        told = await asyncio.get_running_loop().run_in_executor(self._pool, work, self._reach, request.params)
        return {**told, "result": _result_of(told["result"])} if "result" in told else told

    async def _call(
        self, params: Params, notify: Callable[[str, Params], object], token: object, *, as_task: bool
    ) -> dict[str, Any]:
        tool, given = (await self._offered()).get(str(params.get("name"))), params.get("arguments", {})
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {params.get('name')!r}. tools/list names those there are.")
        progress = partial(_report, notify, token) if isinstance(token, str | int) else None
        try:
            value = await self._value(tool, given, progress, as_task=as_task)
        except IkigaiError as error:
            again = " Call again with the same key." if isinstance(error, NoHost) else ""
            return {"content": [_text(f"{error}{again}")], "isError": True}
        except Exception:
            logger.exception("Tool %s failed", tool.name)
            return {"content": [_text(INTERNAL)], "isError": True}
        return value if isinstance(value, dict) and value.get("resultType") == "task" else _result_of(value)

    async def _value(
        self,
        tool: "Act | VerbTool",
        given: object,
        progress: Callable[[float, float, str], object] | None,
        *,
        as_task: bool,
    ) -> Any:
        from ikigai_actors.doors.mcp_tasks import task_of
        from ikigai_actors.verbs.acts.turns import Begun

        loop = asyncio.get_running_loop()
        value = await loop.run_in_executor(self._pool, self._called, tool, given)
        if not isinstance(value, Begun):
            return value
        if as_task and value.is_task:
            return await loop.run_in_executor(self._pool, task_of, self._reach, value.handles[0])
        begun, seen = loop.time(), list[dict[str, Any]]()
        reported = begun
        async with self._news.watch() as watch:  # before the first look, so that nothing is missed
            while True:
                seen = await loop.run_in_executor(self._pool, self._look, value, seen)
                over = [is_over(one) for one in seen]
                now = loop.time()
                left = begun + value.seconds - now
                if left <= 0 or self._news.ending.is_set() or (any(over) if value.any else all(over)):
                    return await loop.run_in_executor(self._pool, value.give, seen)
                if progress is not None and now - reported >= PROGRESS:
                    reported = now
                    progress(now - begun, value.seconds, f"{sum(over)} of {len(over)} turns are over")
                if await watch.news(min(left, value.seconds / 16, _LOOK)):
                    await asyncio.sleep(min(left, _SETTLES))

    def _look(self, begun: "Begun", before: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """How the turns are; those that were over at the look before are not read again."""
        turns = self._reach.turns
        known = {place: one for place, one in enumerate(before) if is_over(one)}
        return [known[place] if place in known else turns.look_at(one) for place, one in enumerate(begun.handles)]


def is_over(turn: Mapping[str, Any]) -> bool:
    """Whether nothing more comes of a turn unless somebody does something."""
    return bool(turn["status"] != "working")


def _result_of(value: Any) -> dict[str, Any]:
    """The result of a call."""
    told = value if isinstance(value, dict) else {"result": value}
    return {"content": [_text(json.dumps(told, ensure_ascii=False))], "structuredContent": told, "isError": False}


def knows_tasks(meta: Mapping[str, Any]) -> bool:
    """Whether a client says with a request that it knows tasks."""
    capabilities = meta.get(CAPABILITIES_KEY)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and TASKS in extensions


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _report(notify: Callable[[str, Params], object], token: str | int, done: float, total: float, text: str) -> None:
    told = {"progressToken": token, "progress": round(done, 1), "total": total, "message": text}
    notify("notifications/progress", told)
