"""OpenAI's models, and every server that speaks OpenAI's protocols.

    OpenAIProvider("gpt-5.5")                                                 # OpenAI itself, by Responses
    OpenAIProvider("qwen3:8b", base_url="http://127.0.0.1:11434/v1")          # any other, by chat completions

Needs: ``pip install 'ikigai-actors[openai]'``. Settings that it knows: ``max_tokens``, ``temperature``, ``top_p``,
``stop_sequences`` (chat completions only), and of ``thinking`` an ``effort``. Replies are streamed. Each failure is a
`ProviderError`, which says what to do and when the request may be sent again, and has the text received so far. The
client itself never retries.

The translations are pure: `openai_chat`, `openai_responses`. The package ``openai`` is imported at the first request,
on a thread.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ikigai_actors.arguments import check_choice, check_count, check_flag, check_optional
from ikigai_actors.errors import ProviderError, ProviderMissing
from ikigai_actors.providers import openai_errors
from ikigai_actors.providers.address import check_address, suspects
from ikigai_actors.providers.attachment_limits import OPENAI_LIMITS
from ikigai_actors.providers.base import OnDelta, Reply, Request
from ikigai_actors.providers.batches import BatchRequest, BatchResult, ListedBatch, batch_errors, whole_reply
from ikigai_actors.providers.extra_options import extra_options
from ikigai_actors.providers.openai_background import BackgroundReply, read_in_background
from ikigai_actors.providers.openai_batches import batch_result_of, last_event, one_chunk
from ikigai_actors.providers.openai_chat import ChatReply, chat_arguments
from ikigai_actors.providers.openai_responses import ENCRYPTED, ResponsesReply, responses_arguments
from ikigai_actors.providers.remedies import Settings
from ikigai_actors.providers.service_client import ServiceClient, client_options, provider_errors
from ikigai_actors.providers.streamed_reply import received
from ikigai_actors.providers.transport import check_key, new_transport
from ikigai_actors.text import described

if TYPE_CHECKING:
    from openai import AsyncAPIResponse, AsyncOpenAI

CHAT, RESPONSES = "chat", "responses"
_OFFICIAL = "api.openai.com"
_KEYLESS = "none"
"""The key for servers that need none: the client insists on one."""
_VERSION = re.compile(r"gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?(?![\d.])")
_LOADS_TOOLS = (5, 4)
"""The first version of a model that takes ``tool_search``."""
_FORMS = {"response_format", "text"}
"""The arguments by which the service writes a value itself."""
_REFUSED_FORM = ("response_format", "text.format", "schema")
"""Words of an error by which a service refuses one of `_FORMS`."""
_NOT_IN_BATCHES = ("stream", "stream_options", "background", "store")
_OURS = "ikigai_batch"
"""The field of a batch's metadata with our name of it."""
_LISTED = 100
"""The number of batches to list when searching for a batch that was accepted although its answer was lost."""
_ENDED = ("completed", "failed", "expired", "cancelled")
"""The states of a batch that has ended, so that its results, if any, can be read."""
_MISSING = "The package openai is missing: pip install 'ikigai-actors[openai]'."


class OpenAIProvider:
    """Answers with a model of OpenAI's, or of a server that speaks its protocols. Wrong arguments are a `BadInput`.

    Args:
        model: The model of agents whose settings name none.
        base_url: The address of the API, mostly with ``/v1`` at its end; None takes ``OPENAI_BASE_URL`` from the
            environment, else OpenAI's own.
        api: ``"chat"`` for chat completions, ``"responses"`` for Responses; None takes Responses for OpenAI itself, and
            chat completions for all others.
        api_key: The key. None takes ``OPENAI_API_KEY`` from the environment. A server whose ``base_url`` is passed gets
            a placeholder instead, since the key may be for another server.
        max_tokens: The most tokens of a reply, for agents without this setting; None for the service's own limit.
        timeout: Seconds of silence after which a request is given up, and the most between two pieces of its reply;
            None for the client's own default, and for 20 minutes between two pieces.
        json_output: Have the service itself write the value of a typed turn as JSON, where it takes the schema as it
            is: every property required, and no defaults, dicts or tuples. None does so at OpenAI's own address. Else,
            and for a model that refuses that, the model gives the value by a tool.
        tool_search: With Responses, have the service load tools where a search has found them, so that what it has
            cached stays as it was. None does so at OpenAI's own address, for the models that take it.
        batches: Whether the service has batches, for agents with the setting ``urgency``. None means only at OpenAI's
            own address.
    """

    name = "openai"
    attachments = OPENAI_LIMITS

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api: str | None = None,
        api_key: str | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,
        json_output: bool | None = None,
        tool_search: bool | None = None,
        batches: bool | None = None,
    ) -> None:
        self.model = check_optional(model, str, "model", "text") or ""
        self._base_url = check_optional(base_url, str, "base_url", "text")
        self._api = None if api is None else check_choice(api, "api", (CHAT, RESPONSES))
        self._api_key = check_optional(api_key, str, "api_key", "text")
        self._max_tokens = None if max_tokens is None else check_count(max_tokens, "max_tokens", least=1)
        self._json_output = None if json_output is None else check_flag(json_output, "json_output")
        self._tool_search = None if tool_search is None else check_flag(tool_search, "tool_search")
        self._batches = None if batches is None else check_flag(batches, "batches")
        self._options = client_options(timeout)
        self._client: ServiceClient[AsyncOpenAI] = ServiceClient(_import_client)
        self._plain: set[str] = set()
        """Models that have no reasoning to give back."""
        self._wordy: set[str] = set()
        """Models that have refused to write a value by its schema; they get the tool."""

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Ask the model and stream its reply.

        Raises:
            ProviderError: There is no whole reply; ``partial`` is the text that came.
        """
        address, settings = self._address()
        model, key = request.model or self.model, self._key()
        if not model:
            raise ProviderError("No model is named: set one, as /model openai:MODEL, or OpenAIProvider(model=...).")
        await self._client.enter()
        by_responses = self._speaks_responses(address)
        in_background = by_responses and bool(request.settings.get("background"))
        new_reply = BackgroundReply if in_background else ResponsesReply if by_responses else ChatReply
        reply = new_reply(request.tools)
        max_tokens = request.settings.get("max_tokens", self._max_tokens)

        def explain(error: Exception) -> str:
            return openai_errors.explanation(error, request, settings, self._suspects(address))

        def limit() -> object:
            return max_tokens or "the service's own"

        with provider_errors(openai_errors, reply, explain, lambda: [key], limit, request):
            client, pause = self._client.get(lambda: self._new_client(address, key)), self._options.get("timeout")

            def opened() -> "AbstractAsyncContextManager[AsyncAPIResponse[Any]]":
                return self._answered(client, request, model, max_tokens, address)

            if isinstance(reply, BackgroundReply):
                return await read_in_background(client, opened, request.kept, reply, on_delta, pause)
            async with opened() as response:
                return await received(response, reply, on_delta, pause)

    async def give_up(self, id: str) -> None:  # noqa: A002 - its field's name
        """Have the service end a reply that it makes in the background. Raises `ProviderError`."""
        async with self._asking("replies") as client:
            await client.responses.cancel(id)

    def takes_batches(self) -> bool:
        """Return whether the service has batches."""
        return _is_official(self._address()[0]) if self._batches is None else self._batches

    async def batch_body(self, request: Request) -> bytes:
        """Return the request in the form for a batch. Raises `ProviderError` for a request that cannot be sent."""
        model, address = request.model or self.model, self._address()[0]
        await self._client.enter()
        arguments = self._arguments(request, model, request.settings.get("max_tokens", self._max_tokens), address)
        further = arguments.pop("extra_body", {})
        body = {name: value for name, value in arguments.items() if name not in _NOT_IN_BATCHES}
        return json.dumps({**body, **further}).encode()

    def batch_reply(self, request: Request, result: str) -> Reply:
        """Return the reply in a result of a batch. Raises `ProviderError`."""
        by_responses, whole = self._speaks_responses(self._address()[0]), json.loads(result)
        reply = ResponsesReply(request.tools) if by_responses else ChatReply(request.tools)
        with provider_errors(openai_errors, reply, described, lambda: [self._api_key], lambda: "its own", request):
            return whole_reply(reply, last_event(whole) if by_responses else one_chunk(whole))

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        """Upload the file of a batch and start it; return the id that the service gives it. Raises `ProviderError`."""
        endpoint: Any = "/v1/responses" if self._speaks_responses(self._address()[0]) else "/v1/chat/completions"
        lines = (
            b'{"custom_id":%s,"method":"POST","url":%s,"body":%s}\n'
            % (json.dumps(request.custom_id).encode(), json.dumps(endpoint).encode(), request.body)
            for request in requests
        )
        async with self._asking() as client:
            file = await client.files.create(file=(f"{id}.jsonl", b"".join(lines)), purpose="batch")
            made = await client.batches.create(
                input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={_OURS: id}
            )
            return str(made.id)

    async def listed_batches(self) -> Sequence[ListedBatch]:
        """Return the latest batches of the service. Raises `ProviderError`."""
        async with self._asking() as client:
            page = await client.batches.list(limit=_LISTED)
            return [
                ListedBatch(
                    batch.id,
                    0 if batch.request_counts is None else batch.request_counts.total,
                    batch.status in _ENDED,
                    (batch.metadata or {}).get(_OURS, ""),
                )
                for batch in page.data
            ]

    async def has_ended(self, remote: str) -> bool:
        """Return whether the results of a batch can be read. Raises `ProviderError`."""
        async with self._asking() as client:
            return (await client.batches.retrieve(remote)).status in _ENDED

    async def batch_results(self, remote: str) -> Sequence[BatchResult]:
        """Return the results of an ended batch. Raises `ProviderError`."""
        async with self._asking() as client:
            batch = await client.batches.retrieve(remote)
            lines: list[str] = []
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                lines += (await client.files.content(file)).text.splitlines()
            return [batch_result_of(json.loads(line)) for line in lines if line.strip()]

    async def cancel_batch(self, remote: str) -> None:
        """Cancel the rest of a batch; results that exist are kept. Raises `ProviderError`."""
        async with self._asking() as client:
            await client.batches.cancel(remote)

    @asynccontextmanager
    async def _asking(self, about: str = "batches") -> "AsyncIterator[AsyncOpenAI]":
        """Yield the client for requests about stored batches or replies; its errors become `ProviderError`."""
        address, key = self._address()[0], self._key()
        await self._client.enter()
        with batch_errors(openai_errors, self.name, lambda: [key], about):
            yield self._client.get(lambda: self._new_client(address, key))

    def check_ready(self) -> None:
        """Raise `ProviderMissing` if there is no API key."""
        self._key()

    def load(self) -> None:
        """Import the client. Blocks."""
        _import_client()

    def refers_to_tools(self, model: str) -> bool:
        """Return whether the service loads tools that results refer to: OpenAI's Responses, for newer models."""
        address, _ = self._address()
        if not self._speaks_responses(address):
            return False
        if self._tool_search is not None:
            return self._tool_search
        named = _VERSION.match(model or self.model)
        known = named is not None and (int(named["major"]), int(named["minor"] or 0)) >= _LOADS_TOOLS
        return known and _is_official(address)

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        await self._client.close()

    @asynccontextmanager
    async def _answered(
        self, client: "AsyncOpenAI", request: Request, model: str, max_tokens: int | None, address: str
    ) -> "AsyncIterator[AsyncAPIResponse[Any]]":
        """Yield the response. If a model refuses an argument that only some models accept, ask again without it."""
        import openai

        api = client.responses if self._speaks_responses(address) else client.chat.completions
        create = api.with_streaming_response.create
        while True:
            arguments = self._arguments(request, model, max_tokens, address)
            opening = create(**arguments)
            try:
                response = await opening.__aenter__()
                break
            except openai.BadRequestError as error:
                if not self._learns(model, arguments, str(error)):
                    raise
        try:
            yield response
        finally:
            await opening.__aexit__(None, None, None)

    def _arguments(self, request: Request, model: str, max_tokens: int | None, address: str) -> dict[str, Any]:
        official = _is_official(address)
        json_output = (official if self._json_output is None else self._json_output) and model not in self._wordy
        if self._speaks_responses(address):
            arguments = responses_arguments(request, model, max_tokens, model not in self._plain, json_output)
        else:
            arguments = chat_arguments(request, model, max_tokens, official, json_output)
        if options := extra_options(request, arguments):
            arguments["extra_body"] = options
        return arguments

    def _learns(self, model: str, arguments: Mapping[str, Any], error_text: str) -> bool:
        """Note that a model refuses an argument, which the error names; return whether the request had the argument."""
        if ENCRYPTED in arguments.get("include", ()) and "ncrypted" in error_text:
            self._plain.add(model)
            return True
        if arguments.keys() & _FORMS and any(word in error_text for word in _REFUSED_FORM):
            self._wordy.add(model)
            return True
        return False

    def _new_client(self, address: str, key: str) -> "AsyncOpenAI":
        import openai

        return openai.AsyncOpenAI(base_url=address, api_key=key, http_client=new_transport(), **self._options)

    def _address(self) -> tuple[str, Settings]:
        """Return the API's address, and the names of the settings. Raises `ProviderError` if it is invalid."""
        key = "OPENAI_API_KEY" if self._api_key is None else "api_key"
        if self._base_url is not None:
            check_address(self._base_url, "base_url")
            return self._base_url, Settings("api_key", "base_url")
        if (url := os.environ.get("OPENAI_BASE_URL")) is not None:
            check_address(url, "OPENAI_BASE_URL")
            return url, Settings(key, "OPENAI_BASE_URL")
        return f"https://{_OFFICIAL}/v1", Settings(key, "OPENAI_BASE_URL")

    def _key(self) -> str:
        """Return the API key. Raises `ProviderMissing` if there is none, `ProviderError` if no header can carry it."""
        key, setting = self._api_key, "api_key"
        if key is None and self._base_url is None:
            key, setting = os.environ.get("OPENAI_API_KEY", ""), "OPENAI_API_KEY"
            if not key:
                raise ProviderMissing(
                    "There is no key for OpenAI: set OPENAI_API_KEY, or give OpenAIProvider(api_key=...). A server "
                    "that needs none is named by OpenAIProvider(base_url=...).",
                    unavailable=True,
                    free=True,
                )
        return check_key((key or _KEYLESS).strip(), setting)

    def _speaks_responses(self, address: str) -> bool:
        return self._api == RESPONSES or (self._api is None and _is_official(address))

    def _suspects(self, address: str) -> str:
        ending = "" if "/v" in urlsplit(address).path else " The address has no version in it: it mostly ends in /v1."
        return f"{ending}{suspects(address, os.environ, adds_version=False)}"


def _is_official(address: str) -> bool:
    return urlsplit(address).hostname == _OFFICIAL


def _import_client() -> None:
    try:
        import openai.resources.chat
        import openai.resources.responses  # noqa: F401

        import ikigai_actors.providers.connections  # noqa: F401 - for the time of all three, spent on a thread here
    except ModuleNotFoundError as error:
        raise ProviderError(_MISSING) from error
