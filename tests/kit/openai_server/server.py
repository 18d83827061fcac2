"""A server of chat completions and of Responses on the loopback, in a thread of its own.

A response with ``background`` is kept: its events are numbered, it goes on without a connection, and may be cancelled.

    with OpenAIServer() as server:
        server.answers += [Refuses(429, "rate_limit_exceeded"), Streams(chat_text("Hello"))]
        OpenAIProvider("model", base_url=server.url)

Each request is recorded and judged: one that `strict` finds fault with gets a 400 that lists the faults. A good one
gets the next of the answers, or, past their end, "ok".
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from tests.kit.messages_server.server import MessagesServer, Refuses, Sends, Waits
from tests.kit.openai_server.strict import chat_violations, responses_violations

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Streams:
    """A streamed answer."""

    events: Sequence[Event | bytes]
    """Its events; bytes are sent as they are."""
    cut: bool = False
    """Whether the connection is closed then, instead of the end."""
    done: bool = True
    """Whether ``[DONE]`` follows."""
    pause: int | None = None
    """Before which event it falls silent, until `release`."""


OpenAIAnswer = Streams | Refuses | Sends | Waits


def chunk(delta: Event | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    choice = {"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice], **more}


def counted(prompt: int, completion: int, **details: int) -> dict[str, Any]:
    """The last chunk, which has the usage."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details or None}
    return {"id": "c1", "model": "m-1", "choices": [], "usage": usage}


def chat_text(text: str, finish: str = "stop") -> list[Event]:
    """The chunks of a reply of text, word by word."""
    words = text.split(" ")
    spoken = [words[0], *(f" {word}" for word in words[1:])]
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": piece}) for piece in spoken),
        chunk({}, finish),
    ]


def call_piece(index: int | None, arguments: Any = None, name: str | None = None, call_id: str | None = None) -> Event:
    """A delta with a piece of a call; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece = {"index": index, "id": call_id, "function": function}
    return {"tool_calls": [{key: value for key, value in piece.items() if value is not None}]}


def response_events(
    *items: Event, status: str = "completed", usage: Event | None = None, **more: Any
) -> list[dict[str, Any]]:
    """The events of a response that consists of these items."""
    base = {"id": "resp_1", "model": "gpt-1", "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": base}]
    for place, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": place, "item": {**item, "status": "new"}})
        events += [{"type": "response.output_text.delta", "delta": text} for text in _texts(item)]
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    end = {**base, "status": status, "usage": usage or {"input_tokens": 5, "output_tokens": 3}, **more}
    return [*events, {"type": f"response.{status}", "response": end}]


def message_item(text: str) -> dict[str, Any]:
    """An item that is a text."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content}


def call_item(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    """An item that is a call."""
    return {
        "id": "fc_1", "type": "function_call", "status": "completed", "call_id": call_id, "name": name,
        "arguments": arguments,
    }  # fmt: skip


def _texts(item: Event) -> list[str]:
    return [part["text"] for part in item.get("content") or () if part.get("type") == "output_text"]


class OpenAIServer(MessagesServer):
    """The server, as a context manager."""

    def __init__(self, strict: bool = True) -> None:
        """Prepare it; ``strict`` refuses what real servers may take."""
        super().__init__()
        self._strict = strict
        self.answers: list[OpenAIAnswer] = []
        """Answers still to give."""
        self.plain_models: set[str] = set()
        """Models that do not reason, and refuse to be asked for that."""
        self.kept: dict[str, Streams] = {}
        """The responses that were made in the background, by their ids: each was paid for."""
        self.read_after: list[tuple[str, int]] = []
        """Which of them were read again, and after which event."""
        self.cancelled: list[str] = []
        """Which of them were cancelled."""
        self.forgets = False
        """Whether it has none of them any more."""

    def _route(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/responses", self._answer)
        app.router.add_get("/v1/responses/{id}", self._read)
        app.router.add_post("/v1/responses/{id}/cancel", self._cancel)

    async def _start(self) -> None:
        await super()._start()
        self.url += "/v1"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("authorization", "").removeprefix("Bearer "))
        is_chat = request.path.endswith("completions")
        if "include" in body and body["model"] in self.plain_models:
            return _refusal(Refuses(400, "", "Encrypted content is not supported with this model."))
        if self._strict and (faults := chat_violations(body) if is_chat else responses_violations(body)):
            return _refusal(Refuses(400, "invalid_request_error", "; ".join(faults)))
        usual = Streams(chat_text("ok") if is_chat else response_events(message_item("ok")))
        answer = self.answers.pop(0) if self.answers else usual
        if isinstance(answer, Waits):
            await self._released.wait()
            answer = usual
        if isinstance(answer, Refuses):
            return _refusal(answer)
        if isinstance(answer, Sends):
            return web.Response(body=answer.data, status=answer.status, headers={"content-type": answer.content_type})
        if body.get("background"):
            named = f"resp_{len(self.kept) + 1}"
            self.kept[named] = answer = _numbered(answer, named)
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        with contextlib.suppress(ConnectionResetError):  # the client is gone
            await self._send(request, response, answer)
        return response

    async def _read(self, request: web.Request) -> web.StreamResponse:
        """The events of a kept response after one of them."""
        named, asked = request.match_info["id"], request.query
        if self.forgets or named not in self.kept or named in self.cancelled:
            return _refusal(Refuses(404, "not_found", f"Response with id '{named}' not found."))
        if unknown := asked.keys() - {"stream", "starting_after", "include[]", "include"}:
            return _refusal(Refuses(400, "invalid_request_error", f"Unknown parameters: {sorted(unknown)}"))
        if asked.get("stream") != "true":
            return _refusal(Refuses(400, "invalid_request_error", "Here a stream is meant."))
        after = int(asked["starting_after"])
        self.read_after.append((named, after))
        answer = self.kept[named]
        pause = None if answer.cut or answer.pause is None else max(0, answer.pause - after - 1)
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        with contextlib.suppress(ConnectionResetError):
            await self._send(request, response, Streams(answer.events[after + 1 :], pause=pause))
        return response

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        named = request.match_info["id"]
        if named not in self.kept:
            return _refusal(Refuses(404, "not_found", f"Response with id '{named}' not found."))
        self.cancelled.append(named)
        return web.json_response({"id": named, "object": "response", "status": "cancelled", "output": []})

    async def _send(self, request: web.Request, response: web.StreamResponse, answer: Streams) -> None:
        await response.prepare(request)
        for place, event in enumerate(answer.events):
            if answer.pause == place and answer.cut:
                break
            if answer.pause == place:
                await self._released.wait()
            await response.write(event if isinstance(event, bytes) else f"data: {json.dumps(event)}\n\n".encode())
        if answer.cut:
            assert request.transport is not None
            request.transport.close()
        elif answer.done:
            await response.write(b"data: [DONE]\n\n")


def _numbered(answer: Streams, named: str) -> Streams:
    """The events of a response with this id, as a kept one has them."""
    events: list[dict[str, Any]] = []
    for event in answer.events:
        assert not isinstance(event, bytes)
        numbered = {**event, "sequence_number": len(events)}
        if "response" in event:
            numbered["response"] = {**event["response"], "id": named, "background": True}
        events.append(numbered)
    return replace(answer, events=events)


def _refusal(answer: Refuses) -> web.Response:
    error = {"message": answer.message, "type": "error", "code": answer.error_type or None}
    return web.json_response({"error": error}, status=answer.status, headers=answer.headers)
