"""Answers of ASGI: whole ones, and streams of server-sent events."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from ikigai_actors.http_server.requests import HttpRequest, SendEvent

JSON, TEXT = "application/json", "text/plain; charset=utf-8"

RETRY_MS = 1_000
"""Milliseconds that a client waits before it reopens an ended stream."""


async def answer(
    out: SendEvent, status: int, value: Any, headers: Mapping[str, str] | None = None, media: str = JSON
) -> None:
    """Send a complete answer; ``value`` is sent unchanged if it is bytes, else as JSON."""
    body = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    fields = {"content-type": media, "content-length": str(len(body)), **(headers or {})}
    await out({"type": "http.response.start", "status": status, "headers": asgi_headers(fields)})
    await out({"type": "http.response.body", "body": body})


def asgi_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers in the form of ASGI."""
    return [(name.lower().encode("latin-1"), text.encode("latin-1", "replace")) for name, text in headers.items()]


def with_rules(out: SendEvent, rules: Iterable[tuple[bytes, bytes]]) -> SendEvent:
    """Return a send function that adds these headers to each answer that has none of the same name."""

    async def ruled(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            names = {name for name, _ in own}
            message = {**message, "headers": [*(rule for rule in rules if rule[0] not in names), *own]}
        await out(message)

    return ruled


class SentEventStream:
    """An answer that is a stream of server-sent events, for the length of a block.

    A call returns when the client can receive more, so nothing is buffered for a slow client. If the client
    disconnects, a `ConnectionError` ends the block; the block's caller does not get the error.
    """

    def __init__(self, request: HttpRequest, out: SendEvent, retry_ms: int = RETRY_MS) -> None:
        self._request, self._out, self._retry_ms = request, out, retry_ms
        self.gone: asyncio.Future[None]
        """A future that is done when the client has disconnected."""

    async def __aenter__(self) -> Self:
        self.gone = asyncio.ensure_future(self._request.gone())
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await self._out({"type": "http.response.start", "status": 200, "headers": headers})
        await self.write(f"retry: {self._retry_ms}\n\n")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.gone.cancel()
        if error is None:
            await self._out({"type": "http.response.body", "body": b""})
        return isinstance(error, OSError)

    @property
    def is_left(self) -> bool:
        """Return whether the client of the stream has disconnected."""
        return self.gone.done()

    async def event(self, value: Any, kind: str = "", position: int | str | None = None) -> None:
        """Send an event to the client, which can resume after an event with a position. Raises `ConnectionError`."""
        head = "" if position is None else f"id: {position}\n"
        named = f"event: {kind}\n" if kind else ""
        await self.write(f"{head}{named}data: {json.dumps(value)}\n\n")

    async def comment(self) -> None:
        """Send a comment, which clients ignore, so that proxies keep the idle connection open.

        Raises `ConnectionError`.
        """
        await self.write(":\n\n")

    async def write(self, text: str) -> None:
        """Send text to the client unchanged. Raises `ConnectionError`."""
        if self.is_left:
            raise ConnectionResetError("The client has gone.")
        await self._out({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await asyncio.sleep(0)  # a page of events holds nobody up, and the end of the connection is heard
