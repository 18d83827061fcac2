"""MCP by HTTP: each request is answered by its response, after the guard has let it in."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from ikigai_actors import OfflineProvider
from ikigai_actors.doors.protocols import DoorApplication
from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.guard import Guard
from ikigai_actors.http_server.requests import MOST_BODY
from ikigai_actors.http_server.server import serving
from ikigai_actors.reach.access import QUICK
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.doors import STATELESS_META, mcp_server, opened

TOKEN = "t" * 43

Scene = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


def play(database: str, scene: Scene, provider: Any = None, *, quick: float = DEADLINE) -> None:
    """Play a scene with a client of a door on a port of this machine."""
    with opened(database, provider or OfflineProvider(), quick=quick) as (_, access):

        async def run() -> None:
            application = DoorApplication(mcp_server(access).server, access)
            listening = listen("127.0.0.1", 0)
            place = f"127.0.0.1:{listening.getsockname()[1]}"
            guard = Guard(place, token=TOKEN)
            async with (
                serving(application, guard, listening, ConnectionLimits(), DEADLINE),
                aiohttp.ClientSession() as client,
            ):
                await scene(client, f"http://{place}/mcp")

        asyncio.run(run())


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def headers(**more: str) -> Mapping[str, str]:
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return {"Authorization": f"Bearer {TOKEN}", **accepted, **more}


def test_a_request_is_answered_by_its_response(durable: str) -> None:
    async def scene(client: aiohttp.ClientSession, url: str) -> None:
        async def post(body: Any, **more: str) -> tuple[int, Any]:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            waits = len(data) > MOST_BODY  # else the answer is lost with the connection, which is closed as it sends
            sent = client.post(url, data=BytesIO(data), headers=headers(**more), expect100=waits)
            async with sent as response:
                return response.status, await response.json() if response.content_type == "application/json" else None

        status, answer = await post(request("tools/call", name="agents", arguments={}))
        assert (status, answer["id"], len(answer["result"]["structuredContent"]["result"])) == (200, 1, 1)
        for wrong in (b"no json", [request("ping")]):  # no known client sends a batch, which one version allows
            assert (await post(wrong))[0] == 400
        for version, expected in (("1999-01-01", 400), (LATEST_HANDSHAKE_VERSION, 200)):
            status, answer = await post(request("ping"), **{"MCP-Protocol-Version": version})
            assert (status, "error" in answer) == (expected, expected == 400)
        modern = {"MCP-Protocol-Version": LATEST_MODERN_VERSION, "Mcp-Method": "tools/list"}
        status, answer = await post(request("tools/list", _meta=STATELESS_META), **modern)
        assert (status, answer["result"]["resultType"]) == (200, "complete")
        assert (await post({"jsonrpc": "2.0", "method": "notifications/initialized"})) == (202, None)
        assert (await post(b" " * (MOST_BODY + 1)))[0] == 413
        for refused, foreign in ((401, {"Authorization": "Bearer no"}), (403, {"Origin": "http://evil.example"})):
            async with client.post(url, json=request("ping"), headers=headers(**foreign)) as response:
                assert response.status == refused
                assert response.headers["Connection"] == "close"
                assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
        async with client.get(url, headers=headers()) as response:
            assert response.status == 405

    play(durable, scene)


@pytest.mark.sample(2, "versions")
@pytest.mark.parametrize(
    ("version", "status"),
    [*((version, 200) for version in HANDSHAKE_PROTOCOL_VERSIONS), ("", 200), (LATEST_MODERN_VERSION, 404)],
)
def test_a_method_that_nobody_knows_is_an_error_in_an_answer_for_clients_that_shook_hands(
    new_sqlite: Callable[[], str], version: str, status: int
) -> None:
    async def scene(client: aiohttp.ClientSession, url: str) -> None:
        named = headers(**{"MCP-Protocol-Version": version, "Mcp-Method": "prompts/list"} if version else {})
        meta = {"_meta": STATELESS_META} if status == 404 else {}
        async with client.post(url, json=request("prompts/list", **meta), headers=named) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (status, METHOD_NOT_FOUND)

    play(new_sqlite(), scene)


def test_progress_comes_as_a_stream_that_ends_with_the_answer(durable: str) -> None:
    gate = Gate("tea")

    async def scene(client: aiohttp.ClientSession, url: str) -> None:
        fork = request("tools/call", name="fork", arguments={"prompt": "tea?"})
        async with client.post(url, json=fork, headers=headers()) as response:
            handle = (await response.json())["result"]["structuredContent"]["handle"]
        wait = request("tools/call", name="wait", arguments={"handles": [handle]}, _meta={"progressToken": "p"})
        async with client.post(url, json=wait, headers=headers(Accept="application/json, text/event-stream")) as stream:
            assert stream.content_type == "text/event-stream"
            gate.open()
            events = [json.loads(line[6:]) async for line in stream.content if line.startswith(b"data: ")]
        assert events[-1]["result"]["structuredContent"]["result"][0]["text"] == "tea"

    play(durable, scene, gate.provider, quick=QUICK)


def test_a_client_that_goes_away_while_it_waits_ends_its_stream_alone(
    new_sqlite: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate("tea")

    async def scene(client: aiohttp.ClientSession, url: str) -> None:
        asked = request("tools/call", name="fork", arguments={"name": "kid", "prompt": "tea"})
        async with client.post(url, json=asked, headers=headers()) as response:
            handle = (await response.json())["result"]["structuredContent"]["handle"]
        wait = request("tools/call", name="wait", arguments={"handles": [handle]}, _meta={"progressToken": "p"})
        async with client.post(url, json=wait, headers=headers()):
            await asyncio.to_thread(gate.wait_until_asked)
        gate.open()
        async with client.post(url, json=wait, headers=headers(Accept="application/json")) as response:
            assert (await response.json())["result"]["structuredContent"]["result"][0]["status"] == "done"

    play(new_sqlite(), scene, gate.provider, quick=QUICK)
    assert caplog.records == []
