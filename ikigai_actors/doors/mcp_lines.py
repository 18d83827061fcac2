"""A client of MCP by lines: the streams between the client and the package's server.

The package also has streams for standard input and output. Those streams do not limit the length of a line, and ignore
a line that is no message, so that its sender waits forever. Here the sender of such a line gets an error without an id.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from anyio import EndOfStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from ikigai_actors.doors.json_rpc import INVALID_REQUEST, PARSE_ERROR, RpcError, message_of

logger = logging.getLogger(__name__)


class McpLines:
    """The streams between one client and the server of the package ``mcp``. They belong to one event loop."""

    def __init__(
        self, server: Server[Any], send: Callable[[Mapping[str, Any]], object], end: Callable[[], object] | None = None
    ) -> None:
        """Serve a client by sending messages; ``end`` is called when the server has ended."""
        self._send, self._end = send, end
        self._messages: asyncio.Queue[SessionMessage | None] = asyncio.Queue()
        self._serving = asyncio.get_running_loop().create_task(self._serve(server))

    def receive_line(self, line: bytes) -> None:
        """Pass a line of the client to the server. A line that is no message gets an error."""
        try:
            self._messages.put_nowait(_message_in(line))
        except RpcError as error:
            self.refuse(error.code, str(error))

    def refuse(self, code: int, text: str) -> None:
        """Send the client an error for a line that is no message."""
        self._send({"jsonrpc": "2.0", "id": None, "error": RpcError(code, text).as_json()})

    def close(self) -> None:
        """End all waits of the client."""
        self._messages.put_nowait(None)

    async def _serve(self, server: Server[Any]) -> None:
        try:
            await server.run(self, self, server.create_initialization_options())
        except Exception:
            logger.exception("The server of a client has failed")
        if self._end is not None:
            self._end()

    async def receive(self) -> SessionMessage:
        """Return the next message of the client. The package ``mcp`` calls this."""
        if (message := await self._messages.get()) is None:
            raise EndOfStream
        return message

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message of the package ``mcp`` to the client."""
        self._send(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))

    async def aclose(self) -> None:
        """Do nothing, because there is nothing to release."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing, because there is nothing to release."""


def _message_in(line: bytes) -> SessionMessage:
    """Return the message in a line. Raises `RpcError`."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, "Parse error: expected one JSON object on each line.") from error
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValidationError as error:
        message_of(value)  # says what is wrong, if it is not the version
        message = 'Invalid request: expected a message of JSON-RPC 2.0, with "jsonrpc": "2.0".'
        raise RpcError(INVALID_REQUEST, message) from error
