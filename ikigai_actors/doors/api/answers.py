"""Answers of ASGI: whole ones, and streams of events."""

import json
from collections.abc import Mapping
from typing import Any

from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.doors.api.requests import SendEvent

JSON, PROBLEM = "application/json", "application/problem+json"

RULES = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""The headers of every answer."""

RETRY_MS = 1_000
"""Milliseconds after which a client connects again whose stream has ended."""


async def answer(
    out: SendEvent, status: int, value: Any, headers: Mapping[str, str] | None = None, media: str = JSON
) -> None:
    """SendEvent a whole answer: bytes as they are, all else as JSON."""
    body = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    fields = {"content-type": media, "content-length": str(len(body)), **(headers or {})}
    own = [(name.lower().encode("latin-1"), text.encode("latin-1", "replace")) for name, text in fields.items()]
    await out({"type": "http.response.start", "status": status, "headers": [*RULES, *own]})
    await out({"type": "http.response.body", "body": body})


async def answer_problem(out: SendEvent, problem: ApiProblem) -> None:
    """SendEvent a refusal."""
    await answer(out, problem.status, problem.as_json(), problem.headers, PROBLEM)


class ApiStream:
    """Server-sent events. Each call returns when the client has room for more, so nothing is kept for a slow one."""

    def __init__(self, out: SendEvent) -> None:
        self._out = out
        self.has_begun = False

    async def begin(self) -> None:
        """SendEvent the head."""
        self.has_begun = True
        headers = [*RULES, (b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await self._out({"type": "http.response.start", "status": 200, "headers": headers})
        await self._write(f"retry: {RETRY_MS}\n\n")

    async def event(self, kind: str, value: Any, position: int | str | None = None) -> None:
        """SendEvent an event; one with a position can be gone on from."""
        head = "" if position is None else f"id: {position}\n"
        await self._write(f"{head}event: {kind}\ndata: {json.dumps(value)}\n\n")

    async def comment(self) -> None:
        """SendEvent what no client sees, so that no proxy thinks that nobody is there."""
        await self._write(":\n\n")

    async def finish(self) -> None:
        """SendEvent the end."""
        await self._out({"type": "http.response.body", "body": b""})

    async def _write(self, text: str) -> None:
        await self._out({"type": "http.response.body", "body": text.encode(), "more_body": True})
