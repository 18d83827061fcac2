"""A request of ASGI, with the methods that our servers need."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendEvent = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY = 4 * 1024 * 1024
"""The largest body of a request, in bytes."""

MOST_HEADERS = 64 * 1024
"""The most bytes of the path, the query and the headers together."""

BODY_SECONDS = 20.0
"""Seconds within which the whole body must arrive."""


class RequestRefused(Exception):
    """A request that is too large, too slow or cut off."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status, self.code, self.text = status, code, text


class HttpRequest:
    """An HTTP request, as ASGI passes it to an application."""

    def __init__(self, scope: AsgiScope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.root: str = scope.get("root_path", "").rstrip("/")
        """The path under which the application is mounted, and with which links must begin."""
        self._scope, self._receive = scope, receive
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        """The headers by lower-case name; of a repeated header, the last value."""

    @property
    def parts(self) -> list[str]:
        """Return the parts of the path below the root. A percent-encoded slash separates nothing.

        Raises `UnicodeDecodeError`.
        """
        raw: bytes | None = self._scope.get("raw_path")
        path = self._scope["path"] if raw is None else raw.split(b"?")[0].decode("latin-1")
        if self.root and path.startswith(f"{self.root}/"):
            path = path[len(self.root) :]
        return [unquote(part, errors="strict") if raw is not None else part for part in path.strip("/").split("/")]

    @property
    def query(self) -> dict[str, str]:
        """Return the query parameters; of a repeated parameter, the last value."""
        return dict(parse_qsl(self._scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))

    @property
    def media(self) -> str:
        """Return the media type of the body, in lower case; empty if the request gives none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def address(self) -> str:
        """Return the address of the client; empty if unknown."""
        client = self._scope.get("client")
        return str(client[0]) if client else ""

    @property
    def bearer(self) -> str:
        """Return the bearer token of the header Authorization; empty if there is none."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    async def body(self, most: int) -> bytes:
        """Read and return the body, at most ``most`` bytes. Raises `RequestRefused` if it is too large or too slow."""
        too_large = RequestRefused(413, "too-large", f"Expected a body of at most {most:,} bytes.")
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise RequestRefused(400, "cut-off", "The body was cut off.")
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            text = f"The body has not come within {BODY_SECONDS:g} s."
            raise RequestRefused(408, "too-slow", text) from None
        return bytes(body)

    def handed_on(self, body: bytes) -> tuple[AsgiScope, Receive]:
        """Return the request as scope and receive function for another application, with the body that was read."""
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            return unread.pop() if unread else await self._receive()

        return self._scope, receive

    async def gone(self) -> None:
        """Wait until the client has disconnected. Call it after the body was read, or for a request without a body."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def check_headers(scope: AsgiScope) -> None:
    """Refuse a request whose target and headers are too large. Raises `RequestRefused`.

    The server itself refuses a request whose head does not end (`ikigai_actors.http_server.server`).
    """
    target = len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b""))
    if target + sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
        text = f"Expected headers and a path of at most {MOST_HEADERS:,} bytes."
        raise RequestRefused(431, "large-headers", text)
