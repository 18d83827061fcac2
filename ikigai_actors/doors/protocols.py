"""MCP and AG-UI by HTTP, after a guard that lets the user of this machine in.

    POST /mcp               a message of MCP
    POST /agui/AGENT        a run            GET /agui/AGENT     all events of an agent

The API has the same handlers for its principals (`ikigai_actors.doors.api.application`).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.extras import NeedsExtra
from ikigai_actors.http_server.answers import TEXT, answer
from ikigai_actors.http_server.requests import AsgiScope, HttpRequest, Receive, RequestRefused, SendEvent
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.news import NewsFeed
from ikigai_actors.verbs.principal import Principal

if TYPE_CHECKING:
    from types import ModuleType

    from mcp.server.lowlevel import Server

    from ikigai_actors.doors.agui.runs import WebRuns


class DoorApplication:
    """The application of ``ikigai mcp --http``. A guard has authorised its clients, which have all rights."""

    def __init__(self, mcp: "Server[Any]", access: Access, *, read_only: bool = False) -> None:
        """Make the application. With ``read_only`` there is no AG-UI."""
        self._mcp, self._access, self._read_only = mcp, access, read_only
        self._news = NewsFeed(lambda: access.system)

    def drain(self) -> None:
        """End all streams, because the server is about to end."""
        self._news.release_all()

    async def __call__(self, scope: AsgiScope, receive: Receive, out: SendEvent) -> None:
        request = HttpRequest(scope, receive)
        try:
            match request.method, request.parts:
                case "POST", ["mcp"]:
                    await answer_mcp_client(lambda: self._mcp, request, out)
                case "GET" | "POST", ["agui", agent] if not self._read_only:
                    await AguiClient(self._access, self._news).answer(agent, request, out)
                case _, ["mcp"]:
                    await answer(out, 405, b"Expected POST.\n", {"Allow": "POST"}, TEXT)
                case _:
                    await answer(out, 404, b"There is no such path.\n", media=TEXT)
        except RequestRefused as error:
            await answer(out, error.status, f"{error.text}\n".encode(), {"Connection": "close"}, TEXT)
        except UnicodeDecodeError:
            await answer(out, 400, b"Expected a path in UTF-8.\n", media=TEXT)


async def answer_mcp_client(server: "Callable[[], Server[Any]]", request: HttpRequest, out: SendEvent) -> None:
    """Answer a message of MCP, or explain which package is missing. Raises `RequestRefused`."""
    try:
        mcp_http = await asyncio.to_thread(_mcp_http)
    except BadInput as error:
        await answer(out, 501, {"error": str(error)})
        return
    await mcp_http.answer_mcp(server(), request, out)


def _mcp_http() -> "ModuleType":
    with NeedsExtra("mcp", "MCP"):
        from ikigai_actors.doors import mcp_http
    return mcp_http


class AguiClient(NamedTuple):
    """A client of AG-UI: the agents that it may reach, and the principal for which it acts."""

    access: Access
    """The agents that the client may reach."""
    news: NewsFeed
    principal: Principal | None = None
    """The principal that asks; None for the user of this machine."""

    async def answer(self, agent: str, request: HttpRequest, out: SendEvent) -> None:
        """Answer a request about an agent, or explain which package is missing. Raises `RequestRefused`."""
        try:
            made = await asyncio.to_thread(self._runs)
        except BadInput as error:
            await answer(out, 501, {"error": str(error)})
            return
        await (made.post if request.method == "POST" else made.get)(agent, request, out)

    def _runs(self) -> "WebRuns":
        with NeedsExtra("agui", "AG-UI"):
            from ikigai_actors.doors.agui.runs import WebRuns
        return WebRuns(self.access, self.news, self.principal)
