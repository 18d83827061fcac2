"""Doors by HTTP on this machine: which requests are let in, and MCP over HTTP.

A request must have the token, name this machine as its Host, and not come from a page of another origin. Any other
request is refused before its body is read. The token is made once, in a file that only its user may read.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from ikigai_actors.doors.json_rpc import METHOD_NOT_FOUND, RpcConnection, RpcError, RpcRequest, Server, parsed

LARGEST_BODY = 4 * 1024 * 1024
"""Bytes of a request."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gatekeeper:
    """Lets those in who may come in."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self._places = {f"{host}:{port}" for host in ("127.0.0.1", "localhost")}

    def refusal(self, headers: Mapping[str, str]) -> int | None:
        """The status with which a request is refused, by its headers; None for one that may come in."""
        origin = headers.get("Origin")
        if headers.get("Host") not in self._places or (
            origin is not None and origin not in {f"http://{place}" for place in self._places}
        ):
            return 403
        kind, _, given = headers.get("Authorization", "").partition(" ")
        sound = kind.lower() == "bearer" and secrets.compare_digest(
            given.strip().encode(errors="replace"), self._token.encode()
        )
        return None if sound else 401

    @property
    def middleware(self) -> Any:
        """The middleware before every handler."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if (status := self.refusal(request.headers)) is not None:
                needed = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
                return web.Response(status=status, headers=needed, text="Refused: this door needs its token.\n")
            return await handler(request)

        return guarded


class HttpMcp:
    """MCP by HTTP: each request is answered by its response, which is a stream where progress is reported."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Answer a message."""
        body = await request.read()
        try:
            message = parsed(body)
        except RpcError as error:
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": error.as_json()}, status=400)
        if not isinstance(message, RpcRequest) or message.id is None:
            return web.Response(status=202)
        meta = message.params.get("_meta")
        if (
            isinstance(meta, dict)
            and "progressToken" in meta
            and "text/event-stream" in request.headers.get("Accept", "")
        ):
            return await self._stream(request, message)
        answers: list[Mapping[str, Any]] = []
        connection = RpcConnection(self._server, answers.append)
        await connection.answer(message)
        refused = answers[-1].get("error")
        is_unknown = refused is not None and refused["code"] == METHOD_NOT_FOUND
        return web.json_response(answers[-1], status=404 if is_unknown else 200)

    async def _stream(self, request: web.Request, message: RpcRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        connection = RpcConnection(self._server, events.put_nowait)
        work = asyncio.get_running_loop().create_task(connection.answer(message))
        try:
            while True:
                event = await events.get()
                await response.write(b"event: message\ndata: " + json.dumps(event).encode() + b"\n\n")
                if "id" in event:
                    return response
        finally:
            work.cancel()
