"""A server of the Messages API on the loopback, in a thread of its own.

    with MessagesServer() as server:
        server.script += [Refuses(529, "overloaded_error"), Says.text("Hello")]
        AnthropicProvider(base_url=server.url, api_key="key")

Each request is recorded and judged: one that `strict.violations` finds fault with gets a 400 that lists the faults. A
good one gets the next answer of the script, or, past its end, the model's (a friendly "ok"). What a request has in
common with earlier ones is served from a cache (`cache`), and the usage says so; its entries can be read as soon as a
reply begins. With ``records=False`` nothing is kept of requests, so that it can run for hours.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from ikigai_actors.testing.simulation.messages_api import sign, violations
from tests.kit.messages_server.cache import PromptCache, Served

BACKLOG = 4096
"""Connections that wait to be accepted. Of more the kernel drops the first packet, and clients time out."""
REQUEST_SIZE = 32 * 1024 * 1024
"""Bytes of a request at most."""
OUTPUT_TOKENS = 7
"""The output tokens in ``message_delta``, which count."""


class Ending(Enum):
    """How a stream goes on after the deltas of its blocks."""

    WHOLE = auto()
    """As it should."""
    PAUSE = auto()
    """It falls silent until `MessagesServer.release`, then ends as it should."""
    CUT = auto()
    """The connection is closed."""
    SHORT = auto()
    """The response ends in good order, but the message does not."""
    ERROR = auto()
    """An ``error`` event (overloaded_error)."""
    BROKEN_JSON = auto()
    """An event whose data is no JSON."""
    BROKEN_EVENT = auto()
    """An event for a block that was never begun."""


@dataclass(frozen=True)
class Says:
    """A streamed reply."""

    blocks: tuple[Mapping[str, Any], ...]
    """Its content; thinking is signed by the server."""
    stop_reason: str = "end_turn"
    """What ``message_delta`` says."""
    ending: Ending = Ending.WHOLE
    """How it ends."""
    delay: float = 0.0
    """Seconds before each of its first events, up to the last delta."""

    @classmethod
    def text(cls, text: str, ending: Ending = Ending.WHOLE) -> "Says":
        """A reply of one text block."""
        return cls(({"type": "text", "text": text},), ending=ending)


@dataclass(frozen=True)
class Refuses:
    """An error instead of a stream, in the shape of the real API."""

    status: int
    """The HTTP status."""
    error_type: str
    """The API's word for it."""
    message: str = "No."
    """What it says."""
    headers: Mapping[str, str] = field(default_factory=lambda: {"retry-after": "0", "retry-after-ms": "1"})
    """Tell the client to try again at once."""


@dataclass(frozen=True)
class Waits:
    """No answer at all, not even headers, until `MessagesServer.release`."""


@dataclass(frozen=True)
class Sends:
    """These bytes, whatever they are; then the connection is closed."""

    data: bytes
    status: int = 200
    content_type: str = "text/event-stream"


Answer = Says | Refuses | Waits | Sends
"""What a good request gets."""

Model = Callable[[Mapping[str, Any]], Answer]
"""Decides by the body of a request. It must not block."""


class MessagesServer:
    """The server, as a context manager."""

    def __init__(self, model: Model = lambda body: Says.text("ok"), *, records: bool = True) -> None:
        self.url = ""
        """Its base URL."""
        self.script: list[Answer] = []
        """Answers still to give."""
        self.model = model
        """Answers a request, past the end of the script."""
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests so far."""
        self.bodies: list[bytes] = []
        """The same, as they came."""
        self.keys: list[str] = []
        """The API key of each."""
        self.served: list[Served] = []
        """How the cache served each of those that were answered with a stream."""
        self._records = records
        self._cache = PromptCache()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="messages server")
        self._released = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def release(self) -> None:
        """Let what pauses go on; nothing pauses after it."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def _start(self) -> None:
        app = web.Application(client_max_size=REQUEST_SIZE)
        self._route(app)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=BACKLOG).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await asyncio.sleep(0)  # a connection that is closed gives its socket back in the next turn of the loop

    def _route(self, app: web.Application) -> None:
        app.router.add_post("/v1/messages", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self._records:
            self.requests.append(body)
            self.bodies.append(await request.read())
            self.keys.append(request.headers.get("authorization", "").removeprefix("Bearer "))
        if faults := violations(body):
            return _error(Refuses(400, "invalid_request_error", "; ".join(faults)))
        answer = self.script.pop(0) if self.script else self.model(body)
        if isinstance(answer, Waits):
            await self._released.wait()
            answer = Says.text("at last")
        if isinstance(answer, Refuses):
            return _error(answer)
        if isinstance(answer, Sends):
            return web.Response(body=answer.data, status=answer.status, headers={"content-type": answer.content_type})
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "request-id": "req_1"})
        with contextlib.suppress(ConnectionResetError):  # the client is gone
            await self._stream(request, response, _message(body["model"], self._serve(body)), answer)
        return response

    def _serve(self, body: Mapping[str, Any]) -> Served:
        if not self._records:
            return Served(0, 0, 0)
        self.served.append(self._cache.serve(body))
        return self.served[-1]

    async def _stream(
        self, request: web.Request, response: web.StreamResponse, message: dict[str, Any], reply: Says
    ) -> None:
        await response.prepare(request)
        for event in _opening(message, reply):
            if reply.delay:
                await asyncio.sleep(reply.delay)
            await response.write(_encoded(event))
        match reply.ending:
            case Ending.WHOLE | Ending.PAUSE:
                if reply.ending is Ending.PAUSE:
                    await self._released.wait()
                for event in _closing(reply):
                    await response.write(_encoded(event))
            case Ending.CUT:
                assert request.transport is not None
                request.transport.close()
            case Ending.SHORT:
                pass
            case Ending.ERROR:
                await response.write(_encoded({"type": "error", "error": _fault("overloaded_error", "Overloaded")}))
            case Ending.BROKEN_JSON:
                await response.write(b'event: content_block_delta\ndata: {"type": \n\n')
            case Ending.BROKEN_EVENT:
                delta = {"type": "text_delta", "text": "?"}
                await response.write(_encoded({"type": "content_block_delta", "index": 99, "delta": delta}))


def _fault(error_type: str, message: str) -> dict[str, str]:
    return {"type": error_type, "message": message}


def _error(refusal: Refuses) -> web.Response:
    body = {"type": "error", "error": _fault(refusal.error_type, refusal.message), "request_id": "req_1"}
    headers = {"request-id": "req_1", **refusal.headers}
    return web.json_response(body, status=refusal.status, headers=headers)


def events_of(reply: Says, model: str = "model") -> list[dict[str, Any]]:
    """The events of a whole reply."""
    return [*_opening(_message(model, Served(0, 0, 0)), reply), *_closing(reply)]


def _encoded(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _message(model: str, served: Served) -> dict[str, Any]:
    """A message as it is begun."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "usage": {**served.usage(), "output_tokens": 1},
        "stop_reason": None,
        "stop_sequence": None,
    }


def _opening(message: dict[str, Any], reply: Says) -> Iterator[dict[str, Any]]:
    """The events up to the last delta."""
    yield {"type": "message_start", "message": message}
    yield {"type": "ping"}
    for index, block in enumerate(reply.blocks):
        start, deltas = _pieces(message["model"], block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if index < len(reply.blocks) - 1:
            yield {"type": "content_block_stop", "index": index}


def _closing(reply: Says) -> Iterator[dict[str, Any]]:
    """The events after the last delta."""
    if reply.blocks:
        yield {"type": "content_block_stop", "index": len(reply.blocks) - 1}
    delta = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": OUTPUT_TOKENS}}
    yield {"type": "message_stop"}


def _pieces(model: str, block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it is begun, and the deltas that complete it."""
    match block["type"]:
        case "text":
            words = [{"type": "text_delta", "text": word} for word in block["text"].split(" ")]
            words[1:] = [{**word, "text": " " + word["text"]} for word in words[1:]]
            return {**block, "text": ""}, words
        case "thinking":
            thought = block["thinking"]
            signature = {"type": "signature_delta", "signature": sign(model, thought)}
            return {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": thought},
                signature,
            ]
        case "tool_use":
            text = json.dumps(block["input"])
            parts = (text[: len(text) // 2], text[len(text) // 2 :])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return dict(block), []
