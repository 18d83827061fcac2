"""A server of the Messages API, in a process of its own, that says in each delta when it was sent.

    with StampServer(streams=1_000, deltas=30) as url:
        ...                                     # asks it for exactly as many streams

A stream says one stamp at once, then waits for the others. When all are open, each goes on with so many more, half a
second to a second apart; when all have said them, all end. A stamp is `time.monotonic_ns`, which is one clock for all
processes of a machine (Linux). Each stream of a number has its own seed: every client meets the same load.
"""

import asyncio
import gc
import json
import random
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.kit.descriptors import allow_open_files

APART = (0.5, 1.0)
"""Seconds between two deltas of a stream: at least, at most."""

SETTLING = 2.0
"""Seconds of silence after the last stream has opened, at least."""


class StampServer:
    """The process, as a context manager; it also ends when the process that began it does."""

    def __init__(self, streams: int, deltas: int) -> None:
        """Make a server for one run.

        Args:
            streams: how many are open at once; they wait for each other.
            deltas: how many each one sends, after the first.
        """
        context = get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, streams, deltas), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> str:
        """The base URL."""
        url: str = self._ours.recv()
        return url

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ours.close()
        self._process.join()


class _Streams:
    """The handler of the requests."""

    def __init__(self, streams: int, deltas: int) -> None:
        self._streams, self._deltas = streams, deltas
        self._asked = 0
        self._opened, self._said = asyncio.Barrier(streams), asyncio.Barrier(streams)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One stream, from its first event to its last."""
        await request.read()
        self._asked += 1
        chance = random.Random(self._asked)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(_OPENING)
        await response.write(_delta(time.monotonic_ns()))
        await self._opened.wait()
        due = time.monotonic() + SETTLING + chance.uniform(0, APART[1])
        for _ in range(self._deltas):
            await asyncio.sleep(due - time.monotonic())
            await response.write(_delta(time.monotonic_ns()))
            due += chance.uniform(*APART)
        await self._said.wait()
        await response.write(_CLOSING)
        return response


def _serve(parent: Connection, streams: int, deltas: int) -> None:
    """The process: tell where the server is, and serve until the other end of the pipe is closed."""
    with allow_open_files(streams):
        asyncio.run(_serve_until_closed(parent, streams, deltas))


async def _serve_until_closed(parent: Connection, streams: int, deltas: int) -> None:
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(parent.fileno(), closed.set)
    app = web.Application()
    app.router.add_post("/v1/messages", _Streams(streams, deltas).answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=streams).start()
    parent.send(f"http://127.0.0.1:{runner.addresses[0][1]}")
    gc.disable()  # a collection between a stamp and its sending would count as the client's
    await closed.wait()
    await runner.cleanup()


def _encoded(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _delta(stamp: int) -> bytes:
    return _encoded({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"{stamp} "}})


_MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "stamps",
    "content": [],
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "stop_reason": None,
    "stop_sequence": None,
}
_OPENING = _encoded(
    {"type": "message_start", "message": _MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
)
_CLOSING = _encoded(
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
)
