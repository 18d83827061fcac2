"""MCP by HTTP: who may come in is decided before anything is read, and each request is answered by its response."""

import asyncio
import json
import stat
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ikigai_actors import OfflineProvider
from ikigai_actors.doors.http import LARGEST_BODY, Gatekeeper, HttpMcp
from ikigai_actors.errors import BadInput
from ikigai_actors.system.secret_file import secret_in
from tests.kit.blocking_provider import Gate
from tests.kit.doors import mcp_server, opened

TOKEN = "t" * 43
SOUND = {"Host": "127.0.0.1:8000", "Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, None),
        ({"Host": "localhost:8000"}, None),
        ({"Origin": "http://127.0.0.1:8000"}, None),
        ({"Authorization": f"bearer {TOKEN}"}, None),
        ({"Authorization": ""}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN[1:]}"}, 401),
        ({"Authorization": "Bearer \udcff"}, 401),
        ({"Host": "evil.example:8000"}, 403),
        ({"Host": "127.0.0.1:8001"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_only_a_request_with_the_token_for_this_machine_comes_in(change: dict[str, str], status: int | None) -> None:
    assert Gatekeeper(TOKEN, 8000).refusal({**SOUND, **change}) == status


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    file = tmp_path / "home" / "door-token"
    token = secret_in(file)
    assert (secret_in(file), len(token) >= 43, stat.S_IMODE(file.stat().st_mode)) == (token, True, 0o600)
    file.chmod(0o644)
    with pytest.raises(BadInput, match="others may read it"):
        secret_in(file)
    file.unlink()
    file.write_text("short")
    file.chmod(0o600)
    with pytest.raises(BadInput, match="too short"):
        secret_in(file)


Scene = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


def play(database: str, scene: Scene, provider: Any = None) -> None:
    """Play a scene with a client of a door on a port of this machine."""
    with opened(database, provider or OfflineProvider()) as (_, access):

        async def run() -> None:
            guards: list[Gatekeeper] = []

            @web.middleware
            async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
                answer: web.StreamResponse = await guards[0].middleware(request, handler)
                return answer

            application = web.Application(middlewares=[guard], client_max_size=LARGEST_BODY)
            application.router.add_post("/mcp", HttpMcp(mcp_server(access)).post)
            async with TestServer(application) as server, aiohttp.ClientSession() as client:
                guards.append(Gatekeeper(TOKEN, server.port or 0))
                await scene(client, f"http://127.0.0.1:{server.port}/mcp")

        asyncio.run(run())


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def headers(**more: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {TOKEN}", **more}


def test_a_request_is_answered_by_its_response(durable: str) -> None:
    async def scene(client: aiohttp.ClientSession, url: str) -> None:
        async def post(body: Any, **more: str) -> tuple[int, Any]:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            async with client.post(url, data=BytesIO(data), headers=headers(**more)) as response:
                return response.status, await response.json() if response.content_type == "application/json" else None

        status, told = await post(request("tools/call", name="agents", arguments={}))
        assert (status, told["id"], len(told["result"]["structuredContent"]["result"])) == (200, 1, 1)
        assert (await post(request("nothing")))[0] == 404
        assert (await post(b"no json"))[0] == 400
        assert (await post({"jsonrpc": "2.0", "method": "notifications/initialized"})) == (202, None)
        assert (await post(b" " * (LARGEST_BODY + 1)))[0] == 413
        assert (await post(request("ping"), Authorization="Bearer no"))[0] == 401
        assert (await post(request("ping"), Origin="http://evil.example"))[0] == 403
        async with client.get(url, headers=headers()) as response:
            assert response.status == 405

    play(durable, scene)


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

    play(durable, scene, gate.provider)
