"""An answer that is a stream of server-sent events."""

import json
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from aiohttp import web


class SentEvents:
    """An answer that is a stream of events. Where its client goes away, the block of it ends, and nothing is raised."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})

    async def __aenter__(self) -> Self:
        await self.response.prepare(self._request)
        with suppress(ConnectionError):  # it has gone already: the first event says so
            await self.response.write(b":\n\n")  # a comment: aiohttp keeps the headers until something is written
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return isinstance(error, ConnectionError)

    @property
    def is_left(self) -> bool:
        """Whether its client has gone."""
        return self._request.transport is None or self._request.transport.is_closing()

    async def send(self, event: Mapping[str, Any], line: str = "") -> None:
        """Send an object of JSON after another line. Raises `ConnectionError` when nobody hears it."""
        first = f"{line}\n" if line else ""
        await self.write(f"{first}data: {json.dumps(event)}\n\n")

    async def write(self, event: str) -> None:
        """Send an event that is encoded. Raises `ConnectionError` when nobody hears it."""
        await self.response.write(event.encode())
