"""Remote MCP servers: a connection by streamable HTTP, and the errors of calls when it fails.

    NotRun          the call did not run; a person can mend the cause, or a later call may succeed
    SessionGone     the call did not run, since the server has forgotten the session: a new connection repeats the call
    ToolError       any other failure; the message says whether the call may have run

A connection (`RemoteRun`) is a `Run` without a process. `RemoteConnection` makes one when a call needs it, and another
one when that has ended. So a server that was restarted is found again by the next call.
Importing this module imports the package ``mcp``, which takes about a second.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import httpx2
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, PARSE_ERROR
from mcp.types import Tool as Listed

from ikigai_actors.certificates import trusted_authorities
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.function import Result, ToolError
from ikigai_actors.tools.mcp.connection import NotServing, Run
from ikigai_actors.tools.mcp.lines import Heard
from ikigai_actors.tools.mcp.watched import Sent, WatchedTransport, sent

_CONNECT = 10.0
"""Seconds for a connection to be made."""
_PERHAPS = "The call may or may not have run: find out before you repeat it."


class NotRun(ToolError):
    """Raised if the server has not run a call."""

    def __init__(self, text: str, about: Sent) -> None:
        """Make the error. ``text`` is the reason; ``about`` has the server's answer to the request."""
        super().__init__(text)
        self.about = about


class SessionGone(NotRun):
    """Raised if the server has not run a call, because it has forgotten the session."""


class RemoteRun(Run):
    """One connection to a remote server. Belongs to one event loop."""

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        start_timeout: float,
        most: int,
        on_end: Callable[[Run], None],
        bearer: str = "",
    ) -> None:
        """Begin to connect. `tools` waits until the connection is made, or has failed.

        Args:
            name: the name by which a person knows the server.
            url: the address of the server.
            headers: sent with each request.
            start_timeout: the seconds within which the server must list its tools.
            most: the most bytes of an answer, or of an event of one.
            on_end: called when the connection has ended.
            bearer: the access token of an account; empty for none.
        """
        self._url, self._headers = url, headers
        inner = httpx2.AsyncHTTPTransport(verify=trusted_authorities(), trust_env=False)
        self._http = WatchedTransport(inner, most, bearer)
        super().__init__(name, (), {}, start_timeout, most, on_end)

    @property
    def fault(self) -> str:
        """Return the reason why there is no connection, as the end of a sentence; empty if unknown."""
        about = self._http.latest
        if why := about.did_not_run or (f"broke off its answer ({about.cut})" if about.cut else ""):
            return f"it {why}"
        return f"it answered {about.status}" if about.status >= 300 else ""

    @property
    def refused(self) -> Sent:
        """Return the latest request that was not a call, with the server's answer."""
        return self._http.latest

    def use_bearer(self, bearer: str) -> None:
        """Use another access token for all later requests."""
        self._http.bearer = bearer

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Call a tool. Raises `NotRun` if the tool did not run, and `ToolError` if no answer came."""
        about = Sent()
        token = sent.set(about)
        try:
            return await super().call(tool, arguments)
        except ToolError as error:
            raise self._explained(error, about) from error
        finally:
            sent.reset(token)

    def _explained(self, error: ToolError, about: Sent) -> ToolError:
        if why := about.did_not_run:
            kind = SessionGone if about.status == 404 and about.in_session else NotRun
            return kind(f"The MCP server {self._name} {why}. This call did not run.", about)
        if about.cut:
            return ToolError(f"The MCP server {self._name} broke off its answer: {about.cut}. {_PERHAPS}")
        cause = error.__cause__
        code = cause.code if isinstance(cause, MCPError) else None
        if about.status >= 300 and code is not None and "error response" in str(cause):
            return ToolError(f"The MCP server {self._name} answered {about.status}. {_PERHAPS}")
        if code in (CONNECTION_CLOSED, PARSE_ERROR):
            return ToolError(f"The MCP server {self._name} ended its answer without a result: {cause}. {_PERHAPS}")
        return error

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Any, None]:
        waits = httpx2.Timeout(_CONNECT, read=None)  # a call has a time-out of its own
        async with (
            httpx2.AsyncClient(transport=self._http, headers=self._headers, timeout=waits) as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=self._line_limit) as streams,
        ):
            heard, sending = streams
            yield _Sifted(heard, self._sift), sending


class _Sifted:
    """The stream of a server's messages, from which the parts are removed that break the protocol."""

    def __init__(self, heard: Any, sift: Callable[[Heard], Heard | None]) -> None:
        self._heard, self._sift = heard, sift

    @property
    def last_context(self) -> Any:
        return self._heard.last_context

    async def receive(self) -> Heard:
        while (message := self._sift(await self._heard.receive())) is None:
            pass
        return message

    async def aclose(self) -> None:
        await self._heard.aclose()

    def __aiter__(self) -> "_Sifted":
        return self

    async def __anext__(self) -> Heard:
        while True:
            if (message := self._sift(await self._heard.__anext__())) is not None:
                return message

    async def __aenter__(self) -> "_Sifted":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class RemoteConnection:
    """The connection to a remote server that all callers with one credential share. Belongs to one event loop."""

    def __init__(
        self,
        make: Callable[[Callable[[Run], None], str], RemoteRun],
        on_listed: Callable[[RemoteRun, list[Listed]], None],
    ) -> None:
        """Begin without a connection.

        Args:
            make: begins a connection; takes a function that is called at the end, and the access token. Raises
                `BadInput`.
            on_listed: takes the tools that a new connection lists.
        """
        self._make, self._on_listed = make, on_listed
        self._run: RemoteRun | None = None
        self._retired: set[asyncio.Task[None]] = set()
        self.calls = 0
        """The number of calls in progress."""
        self.bearer = ""
        """The access token of the account; empty for none."""

    def use_bearer(self, bearer: str) -> None:
        """Use this access token for all later requests."""
        self.bearer = bearer
        if self._run is not None:
            self._run.use_bearer(bearer)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Result:
        """Call a tool; connect first if there is no connection. Raises the errors of `RemoteRun.call`."""
        self.calls += 1
        try:
            try:
                return await (await self.connected()).call(tool, arguments)
            except SessionGone:
                self._retire()
                return await (await self.connected()).call(tool, arguments)
        finally:
            self.calls -= 1

    async def connected(self) -> RemoteRun:
        """Return a connection whose tools are listed, a new one if needed. Raises `NotRun`."""
        run = self._run
        if run is None or run.over:
            try:
                run = self._run = self._make(lambda ended: None, self.bearer)
            except BadInput as error:
                raise NotRun(f"No connection was made: {error}. This call did not run.", Sent()) from error
            try:
                self._on_listed(run, await run.tools())
            except NotServing as error:
                raise NotRun(
                    f"There is no connection to the MCP server: {error} This call did not run.", run.refused
                ) from error
            return run
        try:
            await run.tools()
        except NotServing as error:
            raise NotRun(
                f"There is no connection to the MCP server: {error} This call did not run.", run.refused
            ) from error
        return run

    def drop(self) -> None:
        """Give up the connection, so that the next call makes a new one."""
        self._retire()

    def _retire(self) -> None:
        """End the connection in the background. Its session is gone, so no call waits for an answer any more."""
        run, self._run = self._run, None
        if run is not None:
            task = asyncio.ensure_future(run.stop())
            self._retired.add(task)
            task.add_done_callback(self._retired.discard)

    async def close(self) -> None:
        """End the connection, and wait until it has ended completely."""
        self._retire()
        if self._retired:
            await asyncio.wait(set(self._retired))


def listing_of(tools: Sequence[Listed]) -> tuple[str, str]:
    """Return the digest of a list of tools, and the list as JSON."""
    listed = sorted((tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools), key=_name)
    body = json.dumps(listed, sort_keys=True, separators=(",", ":"))
    return sha256(body.encode()).hexdigest(), body


def tools_in(body: str) -> list[Listed]:
    """Return the tools in a stored list, from its JSON."""
    return [Listed.model_validate(tool) for tool in json.loads(body)]


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["name"])
