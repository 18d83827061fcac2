"""One run of an MCP server: its process from start to end, and its answers to calls.

One task enters and leaves the client, because anyio requires the same task for both. Other tasks only make calls. The
task ends when the server ends, when `Run.stop` is called, or when the task is cancelled. Then every process of the
server has ended, except those that left the server's session.

Only `Run._connect` makes the streams of the client. A server with another transport needs another `_connect`, and
nothing else. Importing this module imports the package ``mcp``, which takes about a second.
"""

import asyncio
import logging
import math
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import anyio
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    JSONRPCNotification,
    JSONRPCResponse,
    RequestParamsMeta,
)
from mcp.types import Tool as Listed
from mcp.types.methods import parse_server_notification, parse_server_result
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from ikigai_actors.text import described
from ikigai_actors.tools.base import HostPaths, Tell
from ikigai_actors.tools.effect_keys import acting_call
from ikigai_actors.tools.fence.enclosure import Enclosure, open_enclosure
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.function import Result, ToolError, cut
from ikigai_actors.tools.mcp.lines import UNREADABLE_LINE, Heard
from ikigai_actors.tools.mcp.process import ServerProcess, server_environment
from ikigai_actors.tools.mcp.results import mended, result_of_call
from ikigai_actors.tools.plain_schema import Unsuitable
from ikigai_actors.tools.policy import Policy, ToolTraits

logger = logging.getLogger(__name__)

_LAST_WORDS = 3
"""The number of last lines of a server's standard error that are reported when it ends."""
_LINE = 2_000
"""The number of bytes that are kept of a line of a server's standard error."""

_CallTool = Callable[[str, dict[str, Any]], Awaitable[Result]]
"""A function that calls a tool by the server's name for it. Raises ``ToolError``."""


def enclose(fence: Fence, paths: HostPaths | None, env: Mapping[str, str], tell: Tell) -> Enclosure | None:
    """Make the fence of a server, which starts in a private home. Blocks.

    Args:
        fence: the rights that a person gives the server.
        paths: the host's own files.
        env: environment variables in addition to the few that every server gets.
        tell: takes sentences for a person about the fence.

    Raises:
        BadInput: the fence cannot be made.
    """
    return open_enclosure(fence, paths, None, server_environment({}), env, tell)


class NotServing(Exception):
    """Raised if the server did not start; the text has the reason."""


class Run:
    """One run of a server. It belongs to one event loop."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        start_timeout: float,
        line_limit: int,
        on_end: Callable[["Run"], None],
        enclosure: Enclosure | None = None,
    ) -> None:
        """Start the server. `tools` waits until it has started or failed.

        Args:
            name: the name of the server, for people.
            command: the program and its arguments.
            env: environment variables in addition to those that every server gets.
            start_timeout: the seconds within which the server must list its tools.
            line_limit: the most bytes of a line that the server may write.
            on_end: called when the run has ended completely, before anything else can notice the end.
            enclosure: the fence around the server; None for none.
        """
        self._name, self._start_timeout, self._on_end = name, start_timeout, on_end
        self._command, self._env, self._line_limit = command, env, line_limit
        self._enclosure = enclosure
        self._process: ServerProcess | None = None
        self._stderr = _Stderr(name)
        self._client: Client | None = None
        self._version = LATEST_HANDSHAKE_VERSION
        self.misfits: dict[str, str] = {}
        """The tools that it lists against the protocol, with what is wrong with them."""
        self._listed: asyncio.Future[list[Listed]] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._scope = anyio.CancelScope()
        self.stopped = False
        """Whether this program has ended the server: by `stop` or `kill`, or with the system."""
        self.task = asyncio.create_task(self._own(), name=f"ikigai-mcp {name}")
        """Done when nothing is left of the server."""

    @property
    def over(self) -> bool:
        """Whether the server answers no more calls. Some of its processes may still run."""
        return self._over.is_set() or self.task.done()

    @property
    def served(self) -> bool:
        """Whether the server has ever listed its tools."""
        return self._client is not None

    @property
    def last_words(self) -> str:
        """The last lines of the server's standard error, as a sentence; empty when there are none."""
        return f" Its last words: “{' | '.join(self._stderr.last)}”." if self._stderr.last else ""

    @property
    def fault(self) -> str:
        """The reason why this program ended the server, as the end of a sentence; empty when it ended by itself."""
        return "" if self._process is None else self._process.fault

    async def tools(self) -> list[Listed]:
        """Return the tools of the server after it has started.

        Raises `NotServing` if it fails to start; then it has ended.
        """
        return await asyncio.shield(self._listed)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Call a tool of the server. Raises `ToolError` when there is no answer."""
        assert self._client is not None  # who calls has waited for the tools
        try:
            result = await self._client.call_tool(tool, arguments, meta=_meta_of_call())
        except Exception as error:
            if self._over.is_set() or _is_closed(error):
                how = f"was ended during this call, since {self.fault}" if self.fault else "ended during this call"
                raise ToolError(
                    f"The MCP server {self._name} {how}: it may or may not have run. Find out before you repeat it."
                ) from error
            if _is_unreadable(error):
                raise ToolError(
                    f"The answer of the MCP server {self._name} cannot be read: {error}. The tool may have run: find "
                    "out before you repeat it."
                ) from error
            if isinstance(error, MCPError):
                raise ToolError(f"The MCP server {self._name} answered with an error: {error}") from error
            logger.info("MCP server %s answered wrongly", self._name, exc_info=error)
            raise ToolError(
                f"The answer of the MCP server {self._name} breaks the protocol ({type(error).__name__}). The tool may "
                "have run: find out before you repeat it."
            ) from error
        return result_of_call(result)

    async def stop(self) -> None:
        """End the server, and wait until all its processes are gone. After a few seconds they are killed."""
        self._leave()
        await asyncio.wait({self.task})

    def kill(self) -> None:
        """Kill the server at once."""
        self._leave()
        if self._process is not None:
            self._process.kill()

    def _leave(self) -> None:
        self.stopped = True
        self._over.set()
        self._scope.cancel()

    async def _own(self) -> None:
        failure = "it ended before it answered"
        try:
            self._scope.deadline = anyio.current_time() + self._start_timeout
            with self._scope:
                async with Client(self._connect()) as client:
                    self._version = client.protocol_version
                    listed = await list_tools(client)
                    self._scope.deadline = math.inf
                    self._client = client
                    self._listed.set_result(listed)
                    await self._over.wait()
            if self._scope.cancelled_caught:
                failure = f"it did not answer within {self._start_timeout:g} s"
        except asyncio.CancelledError:  # the system closes
            self.stopped = True
            raise
        except Exception as error:  # MCPError in groups, or what the operating system says
            logger.info("MCP server %s failed", self._name, exc_info=error)
            failure = self.fault or _reason(error) or failure
        finally:
            self._over.set()
            self._stderr.close()
            self._on_end(self)
            if not self._listed.done():
                self._listed.set_exception(NotServing(f"{failure}.{self.last_words}"))
                self._listed.exception()  # nobody may be waiting any more

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Any, None]:
        reading, writing = os.pipe()
        try:
            pipe = os.fdopen(reading, "rb", 0)
            await asyncio.get_running_loop().connect_read_pipe(lambda: self._stderr, pipe)
            self._process = await ServerProcess.start(
                self._command, self._env, writing, self._line_limit, self._enclosure
            )
        finally:
            os.close(writing)  # it is the server's now
        async with self._process.serving(self._over.set, self._sift) as streams:
            yield streams

    def _sift(self, heard: Heard) -> Heard | None:
        """Return a message without its parts that break the protocol; None for a broken notification.

        The client would refuse the whole message, and log a traceback. Broken tools of a list and parts of an answer
        are taken out. So are output schemas: a client discards a result that does not fit, though the tool has run.
        """
        match heard:
            case SessionMessage(message=JSONRPCNotification(method=method, params=params)):
                return heard if _is_notification(method, params, self._version) else None
            case SessionMessage(message=JSONRPCResponse(result=result) as message) if self._client is not None:
                return replace(heard, message=message.model_copy(update={"result": mended(result, self._version)}))
            case SessionMessage(message=JSONRPCResponse(result={"tools": list(tools)} as result) as message):
                kept = []
                for place, tool in enumerate(tools, 1):
                    if wrong := _misfit(result, tool, self._version):
                        named = tool.get("name") if isinstance(tool, Mapping) else None
                        self.misfits[named if isinstance(named, str) else f"tool_{place}"] = wrong
                    else:
                        kept.append({name: value for name, value in tool.items() if name != "outputSchema"})
                return replace(heard, message=message.model_copy(update={"result": {**result, "tools": kept}}))
        return heard


class _Stderr(asyncio.Protocol):
    """Reads a server's standard error, and logs the lines."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._transport: asyncio.BaseTransport | None = None
        self._rest = b""
        self.last: deque[str] = deque(maxlen=_LAST_WORDS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LINE]
        for line in lines:
            if text := line[:_LINE].decode(errors="replace").strip():
                self.last.append(text)
                logger.info("%s: %s", self._name, text)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@dataclass(frozen=True, slots=True, eq=False)
class McpTool:
    """A tool of an MCP server."""

    listed: Listed
    """The server's description of the tool."""
    name: str
    """The name by which the model calls the tool."""
    run: _CallTool
    """Has the server run the tool."""
    timeout: float
    """The seconds that a call may take."""
    traits: ToolTraits
    """The traits, which decide whether and how the tool may run."""
    is_async = True

    def describe(self) -> Mapping[str, Any]:
        """Return the name, description and schema, as a Messages-API dict."""
        description = self.listed.description or ""
        return {"name": self.name, "description": description, "input_schema": self.listed.input_schema}

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Satisfy the interface of a tool. The runtime never calls this, because `is_async` is True."""
        raise NotImplementedError("the tools of a server run on the event loop")

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Have the server run the tool; raises nothing but `asyncio.CancelledError`."""
        try:
            result = await self.run(self.listed.name, dict(arguments))
        except ToolError as error:
            return Result(cut(str(error)), True)
        except Exception as error:
            logger.info("MCP tool %s failed", self.name, exc_info=error)
            return Result(cut(described(error)), True)
        return replace(result, content=cut(result.content))


@dataclass(frozen=True, slots=True)
class Misfit:
    """A listed tool whose description violates the protocol. It is not offered to models."""

    name: str
    why: str
    timeout = 0.0
    traits = ToolTraits(policy=Policy.DENY)
    is_async = False

    def describe(self) -> Mapping[str, Any]:
        """Raise `Unsuitable` with the fault."""
        raise Unsuitable(f"the server lists it against the protocol ({self.why})")

    def call(self, arguments: Mapping[str, Any]) -> Result:
        """Satisfy the interface of a tool; never called."""
        raise NotImplementedError(self.why)

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        """Satisfy the interface of a tool; never called."""
        raise NotImplementedError(self.why)


def _misfit(result: Mapping[str, Any], tool: object, version: str) -> str:
    """Return in which way a listed tool violates the protocol; empty if it does not."""
    try:
        parse_server_result("tools/list", version, {**result, "tools": [tool]})
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        of_the_tool = [(fault["loc"][2:], fault["msg"]) for fault in faults if fault["loc"][:1] == ("tools",)]
        return "; ".join(": ".join(filter(None, (".".join(map(str, place)), said))) for place, said in of_the_tool)
    except ValueError as error:  # too many levels
        return str(error)
    return ""


def _is_notification(method: str, params: Mapping[str, Any] | None, version: str) -> bool:
    """Return whether a notification follows the protocol, or is of a kind that the protocol does not define."""
    try:
        parse_server_notification(method, version, params)
    except KeyError:
        return True
    except ValidationError:
        return False
    return True


def _meta_of_call() -> RequestParamsMeta | None:
    """Return the field ``_meta`` of a request, by which the server recognises a repeated call; None outside a call."""
    if (current := acting_call.get(None)) is None:
        return None
    return cast("RequestParamsMeta", {"ikigai-actors/key": current.key, "ikigai-actors/attempt": current.attempt})


def traits_of(listed: Listed, policy: Policy | None, deferred: bool = False) -> ToolTraits:
    """Return the traits of a listed tool.

    Calls of a tool that may change something need approval, unless ``policy`` says otherwise.
    """
    hints = listed.annotations
    reads = hints is not None and hints.read_only_hint is True
    again = reads or (hints is not None and hints.idempotent_hint is True)
    decided = policy or (Policy.ALLOW if reads else Policy.ASK)
    return ToolTraits(idempotent=again, read_only=reads, policy=decided, deferred=deferred)


async def list_tools(client: Client) -> list[Listed]:
    """List all tools of a server, page by page. Stops at a page without new tools, because there might be no end."""
    listed, names, cursor = list[Listed](), set[str](), None
    while True:
        page = await client.list_tools(cursor=cursor)
        new = {tool.name for tool in page.tools} - names
        listed += page.tools if new or cursor is None else ()
        names |= new
        cursor = page.next_cursor
        if cursor is None or not new:
            return listed


def _reason(error: BaseException) -> str:
    """Return the innermost cause of an error as text; empty if it only says that the connection is closed."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if _is_closed(error):
        return ""
    if _is_unreadable(error):
        return f"its answer cannot be read: {error}"
    return f"it answers {str(error)!r}" if isinstance(error, MCPError) else f"{type(error).__name__}: {error}"


def _is_closed(error: BaseException) -> bool:
    """Return whether an error means a closed connection. The code alone does not prove that: a server may send it."""
    return isinstance(error, MCPError) and (error.code, error.message) == (CONNECTION_CLOSED, "Connection closed")


def _is_unreadable(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.error.data is UNREADABLE_LINE
