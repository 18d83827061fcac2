"""Doors within a test: a server on a system of this process, and clients that speak to it, the official one too."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
from mcp.client.session import ClientSession
from mcp.shared.message import SessionMessage
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, jsonrpc_message_adapter
from mcp_types import PROTOCOL_VERSION_META_KEY as VERSION_KEY
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from ikigai_actors import ActorSystem
from ikigai_actors.doors.mcp import McpDoor
from ikigai_actors.doors.mcp_lines import McpLines
from ikigai_actors.doors.program import Connected
from ikigai_actors.errors import NoHost
from ikigai_actors.providers import Provider
from ikigai_actors.reach.access import Access
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.databases import DEADLINE


@contextmanager
def opened(
    database: str, provider: Provider, under: str | None = None, *, quick: float = DEADLINE, **options: Any
) -> Iterator[tuple[ActorSystem, Access]]:
    """A host, and what a door reaches of it. Its calls wait for what is done at once, however loaded the machine is."""
    with ActorSystem.open(database, provider, **options) as host, AttachedSystem.open(database) as system:
        yield host, Access(lambda timeout: system, lambda timeout: None, under, quick)


def unhosted(access: Access) -> Access:
    """The same while no host lives."""

    def refuse(timeout: float) -> None:
        raise NoHost("No host at the moment: nothing was done.")

    access.check_hosted = refuse
    return access


def mcp_server(access: Access, *, read_only: bool = False, tasks: bool = False) -> McpDoor:
    """The server of a door, on the running event loop."""
    return McpDoor(lambda: access, read_only=read_only, tasks=tasks)


class RawClient:
    """Speaks by lines, and keeps what comes."""

    def __init__(self, connect: Callable[[Callable[[Mapping[str, Any]], object]], Connected]) -> None:
        self.heard: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        """What came, but for the answers that are waited for."""
        self._waiting: dict[object, asyncio.Future[Mapping[str, Any]]] = {}
        self._number = 0
        self.connected = connect(self.hear)

    def hear(self, message: Mapping[str, Any]) -> None:
        if (waiting := self._waiting.pop(message.get("id"), None)) is not None:
            waiting.set_result(message)
        else:
            self.heard.put_nowait(message)

    @property
    def latest(self) -> int:
        """The id of the latest request."""
        return self._number

    def say(self, line: bytes | Mapping[str, Any]) -> None:
        self.connected.receive_line(line if isinstance(line, bytes) else json.dumps(line).encode())

    async def ask(self, method: str, **params: Any) -> Any:
        """The result of a request; an error is given as it came."""
        self._number += 1
        waiting = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        message = await waiting
        return message.get("result", message)


class McpClient(RawClient):
    """A client of MCP that does not check what it sends. It shakes hands first, if need be."""

    def __init__(self, door: McpDoor) -> None:
        super().__init__(lambda hear: McpLines(door.server, hear))
        self._begun = False

    async def ask(self, method: str, **params: Any) -> Any:
        begun, self._begun = self._begun, True
        if not begun and method != "initialize" and VERSION_KEY not in params.get("_meta", {}):
            await super().ask("initialize", **HELLO)
        return await super().ask(method, **params)

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool gives; the text of an error."""
        answer = await self.ask("tools/call", name=tool, arguments=arguments)
        if answer.get("isError"):
            return answer["content"][0]["text"]
        content = answer["structuredContent"]
        return content["result"] if set(content) == {"result"} else content


HELLO = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

STATELESS_META = {
    VERSION_KEY: LATEST_MODERN_VERSION,
    CLIENT_INFO_META_KEY: HELLO["clientInfo"],
    CLIENT_CAPABILITIES_META_KEY: {},
}
"""The envelope of each request of the later era."""


@asynccontextmanager
async def official(door: McpDoor, **options: Any) -> AsyncIterator[ClientSession]:
    """A session of the official client with a server of this process."""
    to_client, answers = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    to_server, asked = anyio.create_memory_object_stream[SessionMessage](math.inf)

    def send(message: Mapping[str, Any]) -> None:
        to_client.send_nowait(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

    lines = McpLines(door.server, send)

    async def pump() -> None:
        async for message in asked:
            lines.receive_line(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with anyio.create_task_group() as group:
        group.start_soon(pump)
        with to_client, answers, to_server, asked:
            async with ClientSession(answers, to_server, **options) as session:
                yield session
            group.cancel_scope.cancel()
