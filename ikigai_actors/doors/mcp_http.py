"""MCP over HTTP: a request is a POST, and its response is the answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

from ikigai_actors.doors.json_rpc import METHOD_NOT_FOUND, RpcConnection, RpcError, RpcRequest, Server, parsed
from ikigai_actors.doors.mcp import HANDSHAKE, STATELESS, UNSUPPORTED_VERSION
from ikigai_actors.http_server.answers import SentEventStream, answer
from ikigai_actors.http_server.requests import MOST_BODY, HttpRequest, SendEvent


async def answer_mcp(server: Server, request: HttpRequest, out: SendEvent) -> None:
    """Answer a message, by a stream where progress is reported. Raises `RequestRefused`."""
    version = request.headers.get("mcp-protocol-version", HANDSHAKE[0])
    if version not in (*HANDSHAKE, *STATELESS):
        data = {"supported": [*STATELESS, *HANDSHAKE], "requested": version[:40]}
        await _refuse(out, RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data))
        return
    body = await request.body(MOST_BODY)
    try:
        message = parsed(body)
    except RpcError as error:
        await _refuse(out, error)
        return
    if not isinstance(message, RpcRequest) or message.id is None:
        await answer(out, 202, b"")
        return
    meta = message.params.get("_meta")
    if isinstance(meta, dict) and "progressToken" in meta and "text/event-stream" in request.headers.get("accept", ""):
        await _stream(server, message, request, out)
        return
    answers: list[Mapping[str, Any]] = []
    await RpcConnection(server, answers.append).answer(message)
    refused = answers[-1].get("error")
    unknown = refused is not None and refused["code"] == METHOD_NOT_FOUND
    # In the older era 404 means that there is no such session.
    await answer(out, 404 if unknown and version in STATELESS else 200, answers[-1])


async def _refuse(out: SendEvent, error: RpcError) -> None:
    await answer(out, 400, {"jsonrpc": "2.0", "id": None, "error": error.as_json()})


async def _stream(server: Server, message: RpcRequest, request: HttpRequest, out: SendEvent) -> None:
    events: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    connection = RpcConnection(server, events.put_nowait)
    async with SentEventStream(request, out) as stream:
        work = asyncio.get_running_loop().create_task(connection.answer(message))
        stream.gone.add_done_callback(lambda _: work.cancel())
        work.add_done_callback(lambda _: events.put_nowait({"id": None}))
        try:
            while "id" not in (event := await events.get()):
                await stream.event(event, "message")
            if event["id"] is not None:
                await stream.event(event, "message")
        finally:
            work.cancel()
