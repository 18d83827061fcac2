"""Anthropic's models, through the Messages API.

    ActorSystem.open(provider=AnthropicProvider())         # ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL are respected
    agent.configure(model="anthropic:claude-opus-5-5", max_tokens=32_000, thinking={"type": "adaptive"})

The settings of this provider are ``max_tokens``, ``stop_sequences``, ``thinking`` as the API takes it, and for the
models and servers that take them ``temperature`` and ``top_p``. Replies are streamed; their blocks are kept unaltered.
Each failure is a `ProviderError`, which says what to do and when the request may be sent again, and has the text
received so far. The client itself never retries.

The package ``anthropic`` is imported at the first request, on a thread: it takes more than a second.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from ikigai_actors.arguments import check_count, check_flag, check_optional
from ikigai_actors.errors import ProviderError, ProviderMissing
from ikigai_actors.providers import anthropic_errors
from ikigai_actors.providers.address import check_address, suspects
from ikigai_actors.providers.anthropic_reply import MessagesReply
from ikigai_actors.providers.attachment_limits import MESSAGES_LIMITS
from ikigai_actors.providers.base import OnDelta, Reply, Request, reply_tokens
from ikigai_actors.providers.batches import (
    BatchRequest,
    BatchResult,
    ListedBatch,
    MemberOutcome,
    batch_errors,
    whole_reply,
)
from ikigai_actors.providers.conversation import chain_of
from ikigai_actors.providers.extra_options import extra_options
from ikigai_actors.providers.message_json import encoded, to_json
from ikigai_actors.providers.prompt_cache import breakpoints, marked, marked_for_an_hour
from ikigai_actors.providers.remedies import Settings
from ikigai_actors.providers.service_client import ServiceClient, client_options, provider_errors
from ikigai_actors.providers.streamed_reply import received
from ikigai_actors.providers.transport import check_key, new_transport
from ikigai_actors.providers.windows import anthropic_window
from ikigai_actors.text import described

if TYPE_CHECKING:
    from anthropic import APIRequest, AsyncAnthropic, AsyncAPIResponse, AsyncCallNext
    from anthropic.resources.messages import AsyncBatches
    from anthropic.types.messages import MessageBatch, MessageBatchResult

DEFAULT_MODEL = "claude-sonnet-5-5"
"""The model of agents whose settings name none."""
DEFAULT_MAX_TOKENS = 16_000
"""The length of a reply, thinking included, at most."""

_IN_THE_BODY = ("temperature", "top_p")
"""Settings sent as fields of the body, because the client has no argument for them. Some models refuse them."""
_NO_KEY = (
    "There is no key for the Anthropic API: set ANTHROPIC_API_KEY, or use the model 'offline', which needs none. "
    "(A key can also be given as AnthropicProvider(api_key=...).)"
)
_VERSION = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>\d+)(?:-(?P<minor>\d{1,2}))?(?!\d)")
"""A pattern of the version in a model's name. A date in the name does not count as a version."""
_PIECE = 262_144
"""Bytes of a body that are written at once."""

_LISTED = 100
"""The number of batches to list when searching for a batch that was accepted although its answer was lost."""

_REFUSED = ("invalid_request_error", "not_found_error", "permission_error", "request_too_large")
"""The types of errors in a batch for which the request itself is at fault."""

_KEYLESS = "none"
"""The placeholder sent as the key to a server at a configured address, if no key is set. Most of them need none."""


class AnthropicProvider:
    """Answers with a model of Anthropic's. An argument of a wrong type is a `BadInput`.

    Args:
        model: The model of agents whose settings name none.
        api_key: The key; None takes it from the environment, as the client does.
        base_url: The address of the API; None takes it from the environment.
        max_tokens: The most tokens of a reply, for agents without this setting.
        timeout: Seconds of silence after which a request is given up, and the most between two pieces of its reply;
            None for the client's own default, and for 20 minutes between two pieces.
        prompt_cache: Let the API cache what requests have in common (see `ikigai_actors.providers.prompt_cache`). Forks
            share their parent's history, so caching lowers their cost.
        json_output: Have the service itself write the value of a typed turn as JSON, where it takes the schema as it
            is: without references, bounds, defaults and the like. None does so at Anthropic's own address. Else the
            model gives the value by a tool.
        tool_references: Have the service load tools where results refer to them, so that what it has cached stays as it
            was when a model finds some. None does so at Anthropic's own address, for the models that take references.
        batches: Whether the service has batches, for agents with the setting ``urgency``. None means only at
            Anthropic's own address.
        client_spans: Let the client itself make a span of OpenTelemetry for each request, where the program has set
            that up. `ikigai_actors.sight.trace_turns` exports a span of each request without this.
    """

    name = "anthropic"
    counts = True
    attachments = MESSAGES_LIMITS

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        timeout: float | None = None,
        prompt_cache: bool = True,
        json_output: bool | None = None,
        tool_references: bool | None = None,
        batches: bool | None = None,
        client_spans: bool = False,
    ) -> None:
        self.model = check_optional(model, str, "model", "text") or DEFAULT_MODEL
        self.max_tokens = check_count(max_tokens, "max_tokens", least=1)
        self._prompt_cache = check_flag(prompt_cache, "prompt_cache")
        self._json_output = None if json_output is None else check_flag(json_output, "json_output")
        self._tool_references = None if tool_references is None else check_flag(tool_references, "tool_references")
        self._batches = None if batches is None else check_flag(batches, "batches")
        check_optional(api_key, str, "api_key", "text")
        check_optional(base_url, str, "base_url", "text")
        options = {"api_key": api_key, "base_url": base_url}
        self._options: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        self._options |= client_options(timeout)
        # No propagation: the address of a span is no business of the service.
        self._options["open_telemetry"] = {"traces": check_flag(client_spans, "client_spans"), "propagation": False}
        self._client: ServiceClient[AsyncAnthropic] = ServiceClient(_import_client)

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Ask the model and stream its reply.

        Raises:
            ProviderError: There is no whole reply; ``partial`` is the text that came.
        """
        address = self._address()
        await self._client.enter()
        reply = MessagesReply()

        def explain(error: Exception) -> str:
            return anthropic_errors.explanation(error, request, self._settings(), suspects(address, os.environ))

        def limit() -> object:
            return reply_tokens(request.settings, self.max_tokens)

        with provider_errors(anthropic_errors, reply, explain, self._keys, limit, request):
            arguments = self._arguments(request)
            client = self._ready_client()
            create = client.messages.with_streaming_response.create
            async with create(**arguments, stream=True) as response:
                return await received(response, reply, on_delta, self._options.get("timeout"))

    def takes_batches(self) -> bool:
        """Return whether the service has batches."""
        return not self._address() if self._batches is None else self._batches

    async def batch_body(self, request: Request) -> bytes:
        """Return the request in the form for a batch. Raises `ProviderError` for a request that cannot be sent."""
        await self._client.enter()
        arguments = self._arguments(request)
        further = arguments.pop("extra_body", {})
        return b"".join(_body_of({**arguments, **further}))

    def batch_reply(self, request: Request, result: str) -> Reply:
        """Return the reply in a result of a batch. Raises `ProviderError`."""
        reply = MessagesReply()

        def limit() -> object:
            return reply_tokens(request.settings, self.max_tokens)

        with provider_errors(anthropic_errors, reply, described, self._keys, limit, request):
            return whole_reply(reply, {"type": "message_start", "message": json.loads(result)})

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        """Send a batch; return the id that the service gives it. Raises `ProviderError`."""
        async with self._batches_of_service() as batches:
            bodies = marked_for_an_hour([json.loads(request.body) for request in requests])
            params = [
                {"custom_id": request.custom_id, "params": body} for request, body in zip(requests, bodies, strict=True)
            ]
            return (await batches.create(requests=cast(Any, params))).id

    async def listed_batches(self) -> Sequence[ListedBatch]:
        """Return the latest batches of the service. Raises `ProviderError`."""
        async with self._batches_of_service() as batches:
            page = await batches.list(limit=_LISTED)
            return [
                ListedBatch(batch.id, _size_of(batch), batch.processing_status == "ended", None) for batch in page.data
            ]

    async def has_ended(self, remote: str) -> bool:
        """Return whether the results of a batch can be read. Raises `ProviderError`."""
        async with self._batches_of_service() as batches:
            return (await batches.retrieve(remote)).processing_status == "ended"

    async def batch_results(self, remote: str) -> Sequence[BatchResult]:
        """Return the results of an ended batch. Raises `ProviderError`."""
        async with self._batches_of_service() as batches:
            decoder = await batches.results(remote)
            return [BatchResult(entry.custom_id, _outcome_of(entry.result)) async for entry in decoder]

    async def cancel_batch(self, remote: str) -> None:
        """Cancel the rest of a batch; results that exist are kept. Raises `ProviderError`."""
        async with self._batches_of_service() as batches:
            await batches.cancel(remote)

    @asynccontextmanager
    async def _batches_of_service(self) -> "AsyncIterator[AsyncBatches]":
        await self._client.enter()
        with batch_errors(anthropic_errors, self.name, self._keys):
            yield self._ready_client().messages.batches

    def load(self) -> None:
        """Import the client. Blocks."""
        _import_client()

    def check_ready(self) -> None:
        """Raise `ProviderMissing` if there is no API key. May block."""
        keys = (self._options.get("api_key"), os.environ.get("ANTHROPIC_API_KEY"))
        if not any(keys) and "base_url" not in self._options:
            client = self._new_client()  # it alone knows the other places for a key
            if not _has_key(client):
                raise ProviderMissing(_NO_KEY, unavailable=True, free=True)

    def window(self, model: str) -> int:
        """Return the size of a model's context window in tokens; 0 if unknown."""
        return anthropic_window(model or self.model)

    def refers_to_tools(self, model: str) -> bool:
        """Return whether the service loads tools that results refer to: Anthropic's own, for newer models."""
        if self._tool_references is not None:
            return self._tool_references
        return not self._address() and _loads_tools(model or self.model)

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        await self._client.close()

    def _ready_client(self) -> "AsyncAnthropic":
        client = self._client.get(self._new_client)
        if not _has_key(client):
            raise ProviderMissing(_NO_KEY, unavailable=True, free=True)
        check_key(client.api_key or "", self._settings().key)
        check_key(client.auth_token or "", "ANTHROPIC_AUTH_TOKEN")
        return client

    def _address(self) -> str:
        """Return the configured address of the API; empty for the client's default.

        Raises `ProviderError` for an invalid one.
        """
        url, setting = self._options.get("base_url"), "base_url"
        if url is None:
            url, setting = os.environ.get("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
        if url is None:
            return ""
        check_address(str(url), setting)
        return str(url)

    def _new_client(self) -> "AsyncAnthropic":
        import anthropic

        client = anthropic.AsyncAnthropic(http_client=new_transport(), middleware=[_spliced], **self._options)
        if "base_url" in self._options and not _has_key(client):
            client.api_key = _KEYLESS
        return client

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": request.model or self.model,
            "max_tokens": reply_tokens(request.settings, self.max_tokens),
            "messages": self._messages(request),
        }
        if request.system.strip():
            arguments["system"] = [{"type": "text", "text": request.system}]
        tools = list(request.tools)
        if (schema := self._schema_to_send(request)) is not None:
            arguments["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            tools = [tool for tool in tools if tool != request.output]
        if tools:
            arguments["tools"] = tools
        if thinking := request.settings.get("thinking"):
            if not isinstance(thinking, Mapping):
                raise ProviderError(
                    f"Expected the setting thinking as {{'type': 'adaptive'}} or the like, got {thinking!r}."
                )
            arguments["thinking"] = thinking
        if stop := request.settings.get("stop_sequences"):
            arguments["stop_sequences"] = list(stop)
        body = {name: request.settings[name] for name in _IN_THE_BODY if name in request.settings}
        if body := {**body, **extra_options(request, {**arguments, **body})}:
            arguments["extra_body"] = body
        if self._prompt_cache:
            arguments = marked(arguments)
        if tools:  # the client would copy them twice, block by block
            arguments["tools"] = _Written([to_json(arguments["tools"]).encode()])
        return arguments

    def _schema_to_send(self, request: Request) -> Mapping[str, Any] | None:
        """Return the JSON schema by which the service itself writes the value; None if the model gives it by a tool."""
        own = not self._address() if self._json_output is None else self._json_output
        if request.output is None or not own:
            return None
        import anthropic

        schema: Mapping[str, Any] = request.output["input_schema"]
        if "$defs" in schema or "definitions" in schema:
            return None  # a type within itself is refused
        try:
            return schema if anthropic.transform_schema(dict(schema)) == schema else None
        except Exception:  # it knows only what pydantic writes
            return None

    def _messages(self, request: Request) -> "_Written":
        last = chain_of(request.messages)
        points = breakpoints(last, request.shared) if self._prompt_cache else ()
        return _Written(encoded(last, request.blobs, points))

    def _keys(self) -> list[str | None]:
        """Return the API keys, which no text for people may show."""
        client = self._client.made
        return [] if client is None else [client.api_key, client.auth_token]

    def _settings(self) -> Settings:
        variables = {"api_key": "ANTHROPIC_API_KEY", "base_url": "ANTHROPIC_BASE_URL"}
        return Settings(*(name if name in self._options else variable for name, variable in variables.items()))


class _Written:
    """JSON that is already encoded. The client passes it on unchanged, until `_spliced` puts it into the body."""

    def __init__(self, parts: list[bytes]) -> None:
        self.parts = parts

    def __deepcopy__(self, memo: object) -> "_Written":
        return self


class _Body:
    """The body of a request, which can be sent several times. It is sent in pieces that fit a processor's caches."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = list(parts)
        self.size = sum(map(len, self._parts))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: list[bytes] = []
        size = 0
        for part in self._parts:
            pieces.append(part)
            size += len(part)
            if size >= _PIECE:
                yield b"".join(pieces)
                pieces, size = [], 0
        yield b"".join(pieces)


def _body_of(arguments: Mapping[str, Any]) -> list[bytes]:
    """Return the parts of a request's body: its arguments as JSON. Some of them are already encoded."""
    parts = [b"{"]
    for name, value in arguments.items():
        parts.append(f"{',' if parts[1:] else ''}{to_json(name)}:".encode())
        parts += value.parts if isinstance(value, _Written) else [to_json(value).encode()]
    return [*parts, b"}"]


def _size_of(batch: "MessageBatch") -> int:
    counts = batch.request_counts
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired


def _outcome_of(result: "MessageBatchResult") -> MemberOutcome:
    """Return the outcome of a request in a batch; ``refused`` only if the service blames the request itself."""
    if result.type == "succeeded":
        return MemberOutcome("succeeded", to_json(result.message.to_dict()))
    if result.type == "errored":
        error = result.error.error
        refused = error.type in _REFUSED
        return MemberOutcome("refused" if refused else "errored", f"{error.type}: {error.message}")
    return MemberOutcome(result.type, "")


async def _spliced(request: "APIRequest", call_next: "AsyncCallNext") -> "AsyncAPIResponse[Any]":
    """Send a request with a body made of the bytes already encoded for each message, equal to the client's own JSON."""
    if request.json is None:
        return await call_next(request)
    body = _Body(_body_of(cast("Mapping[str, Any]", request.json)))
    sized = request.copy(body=None, headers={**request.headers, "content-length": str(body.size)})
    sized.options.content = body
    return await call_next(sized)


def _loads_tools(model: str) -> bool:
    """Return whether a model accepts references to tools: Sonnet and Opus from 4.5 on, all models from 5 on."""
    named = _VERSION.match(model)
    if named is None:
        return False
    version = int(named["major"]), int(named["minor"] or 0)
    return version >= ((5, 0) if named["family"] == "haiku" else (4, 5))


def _has_key(client: "AsyncAnthropic") -> bool:
    return bool(client.api_key or client.auth_token or client.credentials)


def _import_client() -> None:
    import anthropic  # noqa: F401 - for its 1.4 s, which are spent on a thread here

    import ikigai_actors.providers.connections  # noqa: F401
