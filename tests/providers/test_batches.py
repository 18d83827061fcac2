"""Batches of Anthropic and OpenAI, through their clients, at doubles that refuse what the services refuse."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import pytest
from anthropic.types.messages.batch_create_params import Request as BatchedMessage
from pydantic import TypeAdapter

from ikigai_actors import AnthropicProvider, OpenAIProvider, ProviderError, ToolCall, Usage
from ikigai_actors.providers.base import Request
from ikigai_actors.providers.batches import BatchRequest, BatchService, batches_of, custom_id
from tests.kit.http_servers import LocalServer

BATCH = "0" * 32
QUESTION = Request(
    "a", "ann", "m", "Be brief.", [{"role": "user", "content": "Hi"}],
    ({"name": "tea", "description": "Tea.", "input_schema": {"type": "object", "properties": {}}},),
    {"max_tokens": 100},
)  # fmt: skip


class Service(LocalServer):
    """The doubles of both services."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, str] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self.ended = False


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def log_message(self, *args: object) -> None: ...

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        match urlsplit(self.path).path.split("/")[2:]:
            case ["messages", "batches"]:
                requests = json.loads(raw)["requests"]
                self._take(requests, [request["params"] for request in requests])
                TypeAdapter(list[BatchedMessage]).validate_python(requests)
                for request in requests:
                    hours = [mark.get("ttl") == "1h" for mark in _marks(request["params"]) if mark]
                    assert hours == sorted(hours, reverse=True)  # those of an hour come first
                self.send(self._message_batch("msgbatch_1", requests))
            case ["messages", "batches", remote, "cancel"]:
                self.send(self._message_batch(remote, self.server.batches[remote]))
            case ["files"]:
                text = raw.decode()
                assert 'name="purpose"\r\n\r\nbatch' in text
                self.server.files["file-1"] = "\n".join(re.findall(r'^\{"custom_id.*$', text, re.MULTILINE))
                form = {"id": "file-1", "object": "file", "bytes": 1, "created_at": 1, "filename": "x.jsonl"}
                self.send({**form, "purpose": "batch", "status": "processed"})
            case ["batches"]:
                order = json.loads(raw)
                lines = [json.loads(line) for line in self.server.files[order["input_file_id"]].splitlines()]
                assert {line["url"] for line in lines} == {order["endpoint"]}
                assert {line["method"] for line in lines} == {"POST"}
                assert len({line["body"]["model"] for line in lines}) == 1
                assert order["completion_window"] == "24h"
                self._take(lines, [line["body"] for line in lines])
                self.server.metadata["batch_1"] = order["metadata"]
                self.send(self._batch("batch_1", order["endpoint"]))
            case ["batches", remote, "cancel"]:
                self.send(self._batch(remote, "/v1/responses"))

    def do_GET(self) -> None:
        server = self.server
        match urlsplit(self.path).path.split("/")[2:]:
            case ["messages", "batches"]:
                batches = [self._message_batch(remote, requests) for remote, requests in server.batches.items()]
                self.send({"data": batches, "has_more": False, "first_id": None, "last_id": None})
            case ["messages", "batches", remote]:
                self.send(self._message_batch(remote, server.batches[remote]))
            case ["messages", "batches", remote, "results"]:
                message = {
                    "id": "m", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use",
                    "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 3},
                    "content": [{"type": "tool_use", "id": "toolu_1", "name": "tea", "input": {}}],
                }  # fmt: skip
                error = {"type": "error", "error": {"type": "invalid_request_error", "message": "too much"}}
                results = [{"type": "succeeded", "message": message}, {"type": "errored", "error": error}]
                results += [{"type": "expired"}]
                ids = [batch["custom_id"] for batch in server.batches[remote]]
                self.lines(
                    [{"custom_id": custom, "result": result} for custom, result in zip(ids, results, strict=False)]
                )
            case ["batches"]:
                self.send({"object": "list", "data": [self._batch("batch_1", "/v1/responses")], "has_more": False})
            case ["batches", remote]:
                self.send(self._batch(remote, "/v1/responses"))
            case ["files", "out", "content"]:
                [first, *_] = server.batches["batch_1"]
                self.lines(
                    [{"custom_id": first["custom_id"], "response": {"status_code": 200, "body": self._answer(first)}}]
                )
            case ["files", "errors", "content"]:
                _, second, third = server.batches["batch_1"]
                refused = {"status_code": 400, "body": {"error": {"code": "too_long", "message": "too much"}}}
                late = {"code": "batch_expired", "message": "too late"}
                self.lines([
                    {"custom_id": second["custom_id"], "response": refused},
                    {"custom_id": third["custom_id"], "response": None, "error": late},
                ])  # fmt: skip

    def _take(self, requests: list[dict[str, Any]], bodies: list[dict[str, Any]]) -> None:
        ids = [request["custom_id"] for request in requests]
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", custom) for custom in ids)
        assert len(set(ids)) == len(ids)
        assert not any({"stream", "stream_options", "extra_body"} & body.keys() for body in bodies)
        self.server.batches["msgbatch_1" if "params" in requests[0] else "batch_1"] = requests

    def _message_batch(self, remote: str, requests: list[dict[str, Any]]) -> dict[str, Any]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        ended = self.server.ended
        counts["succeeded" if ended else "processing"] = len(requests)
        return {
            "id": remote, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts, "created_at": "2026-11-29T10:00:00Z", "expires_at": "2026-11-30T10:00:00Z",
            "ended_at": "2026-11-29T11:00:00Z" if ended else None, "archived_at": None, "cancel_initiated_at": None,
            "results_url": f"{self.server.url}/v1/messages/batches/{remote}/results" if ended else None,
        }  # fmt: skip

    def _batch(self, remote: str, endpoint: str) -> dict[str, Any]:
        ended = self.server.ended
        return {
            "id": remote, "object": "batch", "endpoint": endpoint, "input_file_id": "file-1", "created_at": 1,
            "completion_window": "24h", "status": "completed" if ended else "in_progress",
            "output_file_id": "out" if ended else None, "error_file_id": "errors" if ended else None,
            "metadata": self.server.metadata.get(remote), "request_counts": {"total": 3, "completed": 1, "failed": 2},
        }  # fmt: skip

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        if request["url"] == "/v1/chat/completions":
            call = {"id": "call_1", "type": "function", "function": {"name": "tea", "arguments": "{}"}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            return {"id": "c", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": usage}
        item = {"type": "function_call", "id": "fc", "call_id": "call_1", "name": "tea", "arguments": "{}"}
        counts = {"input_tokens": 5, "output_tokens": 3}
        return {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "m-1",
            "output": [item],
            "usage": counts,
        }

    def send(self, value: object) -> None:
        self._write(json.dumps(value).encode())

    def lines(self, values: list[dict[str, Any]]) -> None:
        self._write("".join(f"{json.dumps(value)}\n" for value in values).encode())

    def _write(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def service() -> Iterator[Service]:
    with closing(Service()) as server:
        yield server


def provider_of(kind: str, service: Service) -> Any:
    if kind == "anthropic":
        return AnthropicProvider(base_url=service.url, api_key="k", batches=True)
    return OpenAIProvider("m", base_url=f"{service.url}/v1", api_key="k", api=kind, batches=True)


@pytest.mark.sample(2, "services")
@pytest.mark.parametrize("kind", ["anthropic", "chat", "responses"])
def test_a_batch_is_sent_listed_awaited_and_read(kind: str, service: Service) -> None:
    provider = provider_of(kind, service)
    batches: BatchService | None = batches_of(provider)
    assert batches is not None
    ids = [custom_id("agent", position, 1, BATCH) for position in range(3)]

    async def play() -> None:
        body = await batches.batch_body(QUESTION)
        remote = await batches.create_batch(BATCH, [BatchRequest(name, body) for name in ids])
        [listed] = await batches.listed_batches()
        assert (listed.remote, listed.size, listed.has_ended) == (remote, 3, False)
        assert listed.id == (None if kind == "anthropic" else BATCH)
        assert not await batches.has_ended(remote)
        service.ended = True
        assert await batches.has_ended(remote)
        results = {result.custom_id: result.outcome for result in await batches.batch_results(remote)}
        assert [results[name].kind for name in ids] == ["succeeded", "refused", "expired"]
        assert "too much" in results[ids[1]].result
        reply = batches.batch_reply(QUESTION, results[ids[0]].result)
        assert reply.tool_calls == (ToolCall("tea", {}, reply.tool_calls[0].id),)
        assert (reply.usage, reply.model, reply.stop_reason) == (Usage(5, 3), "m-1", "tool_use")
        await batches.cancel_batch(remote)
        await provider.close()

    asyncio.run(play())


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


@pytest.mark.slow("takes a tenth of a second")
def test_what_the_forks_of_a_history_have_in_common_is_remembered_for_an_hour(service: Service) -> None:
    provider = provider_of("anthropic", service)
    batches = batches_of(provider)
    assert batches is not None
    plan = (said("user", "Plan the ship."), said("assistant", "A plan."))
    wood = (*plan, said("user", "Of wood?"), said("assistant", "Oak."))
    asked = [
        Request("a", None, "m", "Be brief.", (*history, said("user", text)), settings={"max_tokens": 9}, shared=shared)
        for text, history, shared in (("Mast?", plan, 2), ("Keel?", plan, 2), ("How old?", wood, 4), ("Hello?", (), 0))
    ]

    async def play() -> None:
        bodies = [await batches.batch_body(request) for request in asked]
        await batches.create_batch(BATCH, [BatchRequest(f"r{place}", body) for place, body in enumerate(bodies)])
        await provider.close()

    asyncio.run(play())
    hour, minutes = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}
    mast, keel, old, alone = [_marks(request["params"]) for request in service.batches["msgbatch_1"]]
    assert mast == keel == [hour, hour, hour, minutes]
    assert [mark for mark in old if mark] == [hour, minutes, minutes, minutes]
    assert alone == [hour, minutes]  # the system prompt is that of the others


def _marks(params: dict[str, Any]) -> list[Any]:
    blocks = [*params["system"], *(block for message in params["messages"] for block in message["content"])]
    return [block.get("cache_control") for block in blocks]


@pytest.mark.parametrize("kind", ["anthropic", "chat", "responses"])
def test_a_result_that_is_no_reply_is_an_error_that_says_so(kind: str, service: Service) -> None:
    batches = batches_of(provider_of(kind, service))
    assert batches is not None
    with pytest.raises(ProviderError):
        batches.batch_reply(QUESTION, '{"status": "failed", "error": {"message": "no"}}')


def test_batches_are_for_the_services_own_addresses() -> None:
    assert batches_of(AnthropicProvider(api_key="k", base_url="http://127.0.0.1:1")) is None
    assert batches_of(OpenAIProvider("m", base_url="http://127.0.0.1:1/v1")) is None
    assert batches_of(AnthropicProvider(api_key="k", batches=True)) is not None
