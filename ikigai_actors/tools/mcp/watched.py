"""The HTTP of a remote MCP server, watched: for each call it is known whether its request was taken.

The client of the package ``mcp`` raises the same error for each failure, and ends all calls of a connection if one
cannot connect. This transport answers in place of a server that cannot be reached, and records the fate of the request
of each call (`Sent`). It finds the call by a context variable.

    unreached      no connection: the call did not run
    401, 403       the server requires another credential, or another right: the call did not run
    404, 429       the session is over, or there were too many requests: the call did not run
    cut            the request was sent, and the answer broke off: whether the call ran is unknown
"""

import logging
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2

logger = logging.getLogger(__name__)

REFUSED_UNRUN = {
    401: "it wants a credential",
    403: "it forbids this",
    404: "it has no such session",
    429: "it is too busy",
}
"""The statuses that say that a request was not carried out, with their meaning."""

_UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)
_GATEWAY = 503


@dataclass(slots=True)
class Sent:
    """A request of a call, and whether the server has taken the request."""

    status: int = 0
    """The status of the answer; 0 where there is none."""
    unreached: str = ""
    """The reason why no connection was made; empty if one was made."""
    cut: str = ""
    """The reason why the answer broke off; empty if it did not."""
    challenge: str = ""
    """The header ``WWW-Authenticate`` of the answer."""
    in_session: bool = False
    """Whether the request was sent in a session."""

    @property
    def did_not_run(self) -> str:
        """The reason why the call did not run, as the end of a sentence; empty if the call may have run."""
        if self.unreached:
            return f"cannot be reached ({self.unreached})"
        if self.status in REFUSED_UNRUN:
            return f"answered {self.status}: {REFUSED_UNRUN[self.status]}"
        return ""


sent: ContextVar[Sent | None] = ContextVar("sent", default=None)
"""The request of the call in this context."""


class WatchedTransport(httpx2.AsyncBaseTransport):
    """Sends HTTP requests by another transport, and records for each call whether the server took the request."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, most: int, bearer: str = "") -> None:
        """Wrap a transport; an answer in one piece may have at most ``most`` bytes."""
        self._inner, self._most = inner, most
        self.bearer = bearer
        """The access token that each request gets; empty for none."""
        self.latest = Sent()
        """The latest request outside of a call, such as the first of a connection."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return the response, or a response 503 if the connection failed before one came."""
        noted = sent.get()
        if request.method != "POST":  # beside a call: a stream of the server, or the end of a session
            noted = Sent()
        elif noted is None:
            noted = self.latest = Sent()
        noted.status, noted.unreached, noted.cut, noted.challenge = 0, "", "", ""
        if self.bearer:
            request.headers["Authorization"] = f"Bearer {self.bearer}"
        noted.in_session = "mcp-session-id" in request.headers
        try:
            response = await self._inner.handle_async_request(request)
        except _UNREACHED as error:
            noted.unreached = _words(error)
            return httpx2.Response(_GATEWAY, request=request)
        except httpx2.TransportError as error:
            noted.cut = _words(error)
            return httpx2.Response(_GATEWAY, request=request)
        noted.status = response.status_code
        noted.challenge = response.headers.get("www-authenticate", "")
        endless = response.headers.get("content-type", "").startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _WatchedStream(response.stream, noted, None if endless else self._most)
        return response

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


class _WatchedStream(httpx2.AsyncByteStream):
    """The body of an answer. If the connection breaks, the body ends, and `Sent` notes the break."""

    def __init__(self, inner: httpx2.AsyncByteStream, noted: Sent, most: int | None) -> None:
        self._inner, self._noted, self._most = inner, noted, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._inner:
                size += len(piece)
                if self._most is not None and size > self._most:
                    self._noted.cut = f"it has more than {self._most:,} bytes (McpServer's line_limit)"
                    return
                yield piece
        except httpx2.TransportError as error:
            self._noted.cut = _words(error)

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        except httpx2.TransportError as error:  # it was cut off already
            logger.debug("A cut off answer could not be closed: %s", error)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
