"""MCP over HTTP: a request is a POST, and its response is the answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from ikigai_actors.doors.json_rpc import METHOD_NOT_FOUND, RpcConnection, RpcError, RpcRequest, Server, parsed
from ikigai_actors.doors.mcp import HANDSHAKE, STATELESS, UNSUPPORTED_VERSION
from ikigai_actors.doors.sent_events import SentEvents

LARGEST_BODY = 4 * 1024 * 1024
"""Bytes of a request."""


class HttpMcp:
    """MCP by HTTP: each request is answered by its response, which is a stream where progress is reported."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Answer a message."""
        version = request.headers.get("MCP-Protocol-Version", HANDSHAKE[0])
        if version not in (*HANDSHAKE, *STATELESS):
            data = {"supported": [*STATELESS, *HANDSHAKE], "requested": version[:40]}
            error = RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": error.as_json()}, status=400)
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
        unknown = refused is not None and refused["code"] == METHOD_NOT_FOUND
        # In the older era 404 means that there is no such session.
        return web.json_response(answers[-1], status=404 if unknown and version in STATELESS else 200)

    async def _stream(self, request: web.Request, message: RpcRequest) -> web.StreamResponse:
        events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        connection = RpcConnection(self._server, events.put_nowait)
        async with SentEvents(request) as stream:
            work = asyncio.get_running_loop().create_task(connection.answer(message))
            try:
                while "id" not in (event := await events.get()):
                    await stream.send(event, "event: message")
                await stream.send(event, "event: message")
            finally:
                work.cancel()
        return stream.response
