"""MCP over HTTP: the package's handler, for a request that was authorised already.

The handler keeps no state of clients. The answer is a stream if the client wants progress, and a JSON object otherwise.
"""

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from ikigai_actors.http_server.requests import MOST_BODY, HttpRequest, SendEvent


async def answer_mcp(server: Server[Any], request: HttpRequest, out: SendEvent) -> None:
    """Answer a message of MCP that came by HTTP. Raises `RequestRefused`."""
    body = await request.body(MOST_BODY)
    streams = b'"progressToken"' in body and "text/event-stream" in request.headers.get("accept", "")
    manager = StreamableHTTPSessionManager(server, stateless=True, json_response=not streams)
    async with manager.run():
        await manager.handle_request(*request.handed_on(body), out)
