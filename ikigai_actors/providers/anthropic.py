"""Anthropic's models, through the Messages API.

    ActorSystem.open(provider=AnthropicProvider())         # ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL are respected
    agent.configure(model="anthropic:claude-opus-5-5", max_tokens=32_000, thinking={"type": "adaptive"})

Settings that it knows: ``max_tokens``, ``stop_sequences``, ``thinking`` as the API takes it, and for the models and
servers that take them ``temperature`` and ``top_p``. Replies are streamed; their blocks are
kept unaltered. The client's own retries (rate limits, overload, no connection) apply before a stream begins. Whatever
goes wrong after them is a `ProviderError` that says what to do and carries the text received so far.

The package ``anthropic`` is imported at the first request, on a thread: it takes more than a second.
"""

import asyncio
import json
import os
import re
import reprlib
from collections.abc import Mapping
from dataclasses import fields
from http import HTTPStatus
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from ikigai_actors.arguments import check_count, check_flag, check_optional, check_seconds
from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.address import UNAVAILABLE, check_address, suspects
from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request, Spent, ToolCall, Usage
from ikigai_actors.providers.messages_form import messages_form
from ikigai_actors.providers.prompt_cache import with_breakpoints

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.lib.streaming import AsyncMessageStream
    from anthropic.types import Message as ModelMessage

DEFAULT_MODEL = "claude-sonnet-5-5"
"""The model of agents whose settings name none."""
DEFAULT_MAX_TOKENS = 16_000
"""The length of a reply, thinking included, at most."""

_IN_THE_BODY = ("temperature", "top_p")
"""Settings that the client has no argument for. A model that does not take one refuses the request."""
_TELLING = 8
"""The fewest characters of a key that is looked for in texts. A shorter one, a stray letter or two, would turn half of
their words into brackets.
"""
_KEY = re.compile(r"sk-ant-[\w-]+")
_NO_KEY = (
    "There is no key for the Anthropic API: set ANTHROPIC_API_KEY, or use the model 'offline', which needs none. "
    "(A key can also be given as AnthropicProvider(api_key=...).)"
)
_REMEDIES = {
    400: "The request does not suit the model: check the agent's settings, or take the prompt back: /undo, or undo()",
    401: "The key is not accepted: check ANTHROPIC_API_KEY",
    402: "The account cannot pay: check its billing",
    403: "The key may not do this: check its workspace and the agent's model",
    404: "There is no such model or address: check the agent's model and ANTHROPIC_BASE_URL",
    408: "It took too long: /resume, or resume(), asks again",
    413: "The request is too large: take the prompt back (/undo, undo()), or begin anew (/clear, clear())",
    429: "The rate limit is reached: wait, then /resume, or resume(); fewer agents at once help",
}
_CUT = "The connection broke in the middle of the reply: /resume, or resume(), asks again."
_OVERLOADED = "The service is overloaded or failing: wait, then /resume, or resume()"
_TOO_LONG = re.compile(
    r"too (long|large|many tokens)|context (window|length|limit)|exceeds? .*(context|tokens|maximum)"
)
"""Texts by which services say that a request is longer than the model's window."""
_SHOWN = 40
"""Characters of a prompt that are quoted to say which one is meant."""
_BY_TYPE = {"rate_limit_error": 429, "authentication_error": 401, "permission_error": 403, "invalid_request_error": 400}


_FIELDS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""The fields that blocks of known types must have."""

T = TypeVar("T")

CONNECTIONS = 8
"""How many requests are begun in one turn of the event loop."""


class AnthropicProvider:
    """Answers with a model of Anthropic's. An argument of a wrong type is a `BadInput`.

    Args:
        model: The model of agents whose settings name none.
        api_key: The key; None takes it from the environment, as the client does.
        base_url: The address of the API; None takes it from the environment.
        max_tokens: The most tokens of a reply, for agents whose settings do not say.
        max_retries: How often the client tries again; None for its own default.
        timeout: Seconds of silence after which a request is given up; None for the client's own default.
        prompt_cache: Let the API cache what requests have in common (see `ikigai_actors.providers.prompt_cache`). Forks
            share their parent's history, so it pays.
    """

    name = "anthropic"

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        max_retries: int | None = None,
        timeout: float | None = None,
        prompt_cache: bool = True,
    ) -> None:
        self.model = check_optional(model, str, "model", "text") or DEFAULT_MODEL
        self.max_tokens = check_count(max_tokens, "max_tokens", least=1)
        self._prompt_cache = check_flag(prompt_cache, "prompt_cache")
        check_optional(api_key, str, "api_key", "text")
        check_optional(base_url, str, "base_url", "text")
        if max_retries is not None:
            check_count(max_retries, "max_retries")
        if timeout is not None:
            check_seconds(timeout, "timeout", zero=False)
        options = {"api_key": api_key, "base_url": base_url, "max_retries": max_retries, "timeout": timeout}
        self._options: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        self._client: AsyncAnthropic | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door = asyncio.Semaphore(CONNECTIONS)

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Ask the model and stream its reply.

        Raises:
            ProviderError: There is no whole reply; ``partial`` is the text that came.
        """
        address = self._address()
        await self._enter()
        import aiohttp
        import anthropic
        import httpx2

        failures = (anthropic.AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError, UnicodeError)
        arguments = self._arguments(request)
        text: list[str] = []

        def pass_on(delta: Delta) -> None:
            if delta.kind == "text":
                text.append(delta.text)  # nothing, where the delta tells what was spent
            on_delta(delta)

        try:
            async with self._ready_client().messages.stream(**arguments) as stream:
                if not await _drain(stream, pass_on):
                    raise ProviderError(_CUT, "".join(text), broke_off=True)
                return _reply(stream.current_message_snapshot, "".join(text), arguments["max_tokens"])
        except failures as error:
            said = self._without_key(_explanation(error, request, suspects(address, os.environ)))
            raise ProviderError(
                said, "".join(text), broke_off=_broke_off(error), unavailable=_is_unavailable(error)
            ) from self._showable(error)
        except _MalformedStreamError as error:
            said = self._without_key(f"The reply cannot be understood: {error}. /resume, or resume(), asks again.")
            raise ProviderError(said, "".join(text)) from self._showable(error)

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _enter(self) -> None:
        """Let a few requests in at a time, so that the event loop serves other connections in between.

        When a thousand start in the same moment, each connection would otherwise wait until the last request is built,
        and time out.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # connections cannot go from one loop to another
            self._client, self._door, self._loop = None, asyncio.Semaphore(CONNECTIONS), loop
        async with self._door:
            if self._client is None:
                await asyncio.to_thread(_import_client)  # on this thread it would stop every other agent's stream
            await asyncio.sleep(0)

    def _ready_client(self) -> "AsyncAnthropic":
        """The client of this event loop."""
        if self._client is None:
            self._client = self._new_client()
        if not (self._client.api_key or self._client.auth_token or self._client.credentials):
            raise ProviderError(_NO_KEY, unavailable=True)
        return self._client

    def _address(self) -> str:
        """The address of the API, if one was given; empty for the client's own.

        Raises `ProviderError` for an invalid one.
        """
        given, setting = self._options.get("base_url"), "base_url"
        if given is None:
            given, setting = os.environ.get("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
        if given is None:
            return ""
        check_address(str(given), setting)
        return str(given)

    def _new_client(self) -> "AsyncAnthropic":
        import anthropic
        import httpx2

        # 0, not None: this transport reads None as aiohttp's default of 100, and the next request would wait silently.
        limits = httpx2.Limits(max_connections=0)
        return anthropic.AsyncAnthropic(http_client=anthropic.DefaultAioHttpClient(limits=limits), **self._options)

    def _arguments(self, request: Request) -> dict[str, Any]:
        """The request as arguments of the client; settings without a value are left out."""
        arguments: dict[str, Any] = {
            "model": request.model or self.model,
            "max_tokens": request.settings.get("max_tokens", self.max_tokens),
            "messages": messages_form(request.conversation, request.blobs),
        }
        if request.system.strip():
            arguments["system"] = [{"type": "text", "text": request.system}]
        if request.tools:
            arguments["tools"] = list(request.tools)
        if thinking := request.settings.get("thinking"):
            if not isinstance(thinking, Mapping):
                raise ProviderError(
                    f"Expected the setting thinking as {{'type': 'adaptive'}} or the like, got {thinking!r}."
                )
            arguments["thinking"] = thinking
        if stop := request.settings.get("stop_sequences"):
            arguments["stop_sequences"] = list(stop)
        if body := {name: request.settings[name] for name in _IN_THE_BODY if name in request.settings}:
            arguments["extra_body"] = body
        return with_breakpoints(arguments, request.shared) if self._prompt_cache else arguments

    def _showable(self, error: BaseException) -> BaseException | None:
        """The error, as a cause; None when it or one of its causes quotes a key, since causes are printed."""
        link: BaseException | None = error
        while link is not None:
            if self._without_key(str(link)) != str(link):
                return None
            link = link.__cause__ or link.__context__
        return error

    def _without_key(self, text: str) -> str:
        """The text without anything that is or looks like a key: some errors quote headers."""
        client = self._client
        for secret in (client.api_key, client.auth_token) if client is not None else ():
            for form in (secret, secret.strip(), repr(secret)[1:-1]) if secret else ():
                text = _without(form, text) if len(form) >= _TELLING else text
        return _KEY.sub("[key]", text)


def _without(secret: str, text: str) -> str:
    """The text without the secret, also where the text ends in the middle of it."""
    begins, at = secret[:_TELLING], 0
    while (at := text.find(begins, at)) >= 0:
        quoted = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text[at:], secret, strict=False)))
        text = f"{text[:at]}[key]{text[at + quoted :]}"
        at += len("[key]")
    return text


class _MalformedStreamError(Exception):
    """The service sent something that the client cannot read."""


def _import_client() -> None:
    import anthropic  # noqa: F401 - for its 1.4 s, which are spent on a thread here


async def _drain(stream: "AsyncMessageStream[Any]", on_delta: OnDelta) -> bool:
    """Read the stream to its end and pass on the deltas; False when no message began."""
    began = False
    while (event := await _next_event(stream)) is not None:
        match event.type:
            case "message_start":
                began = True
                on_delta(Delta(spent=_spent(stream.current_message_snapshot)))
            case "message_delta" if began:
                on_delta(Delta(spent=_spent(stream.current_message_snapshot)))
            case "text":
                on_delta(Delta(_of_type(str, event.text, "delta")))
            case "thinking":
                on_delta(Delta(_of_type(str, event.thinking, "delta"), "thinking"))
    return began


async def _next_event(stream: "AsyncMessageStream[Any]") -> Any:
    """The next event; None at the end.

    The client builds the message without checking it, so a broken event shows as an arbitrary error. None of our code
    runs in here, so no error of ours is mistaken for the service's.
    """
    try:
        return await anext(stream, None)
    except json.JSONDecodeError as error:
        raise _MalformedStreamError(f"broken JSON in the stream: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RuntimeError, UserWarning) as error:
        raise _MalformedStreamError(f"a broken event in the stream: {error!r}") from error


def _reply(message: "ModelMessage", partial: str, max_tokens: int) -> Reply:
    """The reply of a finished message; raises `ProviderError` when it is not whole."""
    if message.stop_reason is None:
        raise ProviderError(_CUT, partial, broke_off=True)
    blocks = _blocks(message)
    uses = [block for block in blocks if block["type"] == "tool_use"]
    if uses and blocks[-1]["type"] == "tool_use" and message.stop_reason != "tool_use":
        # The client completes half an input: "rm -rf /tmp/x" may have become "rm -rf /". Such a call must not run.
        raise ProviderError(
            f"The reply ended ({message.stop_reason}) in the middle of a call of {uses[-1]['name']!r}: "
            f"raise the setting max_tokens (now {max_tokens}), or prompt for smaller steps.",
            partial,
        )
    return Reply(
        text="".join(str(block.get("text", "")) for block in blocks if block["type"] == "text"),
        tool_calls=tuple(ToolCall(use["name"], use["input"], use["id"]) for use in uses),
        stop_reason=_of_type(str, message.stop_reason, "stop_reason"),
        usage=_usage(message),
        blocks=blocks,
        model=_of_type(str, message.model, "model"),
    )


def _blocks(message: "ModelMessage") -> tuple[dict[str, Any], ...]:
    """A message's blocks, checked: the API must take them again, or it would refuse every later request."""
    try:
        blocks = tuple(block.to_dict(warnings=False) for block in message.content)
    except (ValueError, TypeError, AttributeError) as error:
        raise _MalformedStreamError(f"a broken block in the stream: {error!r}") from error
    for block in blocks:
        kind = _of_type(str, block.get("type"), "type of a block")
        for name, expected in _FIELDS.get(kind, {}).items():
            _of_type(expected, block.get(name), f"{name} of a block of type {kind}")
    return blocks


def _of_type(expected: type[T], value: object, what: str) -> T:
    """The value; raises `_MalformedStreamError` when it is of another type."""
    if not isinstance(value, expected) or isinstance(value, bool):
        raise _MalformedStreamError(f"the {what} is {reprlib.repr(value)}")
    return value


def _usage(message: "ModelMessage") -> Usage:
    counts = {field.name: getattr(message.usage, field.name, None) or 0 for field in fields(Usage)}
    return Usage(**{name: _of_type(int, count, name) for name, count in counts.items()})


def _spent(message: "ModelMessage") -> Spent:
    """The tokens that the service has counted so far, of a message that is on its way."""
    return Spent(_usage(message), _of_type(str, message.model, "model"))


def _broke_off(error: Exception) -> bool:
    """Whether a reply had begun and was cut, through no fault of the request."""
    import aiohttp
    import anthropic
    import httpx2

    if isinstance(error, anthropic.APIStatusError):  # status 200: an error event in the stream
        return error.status_code == 200 and _status(error) >= 500
    return isinstance(error, httpx2.HTTPError | aiohttp.ClientError)


def _is_unavailable(error: Exception) -> bool:
    """Whether the service does not serve, so that another one may be asked instead."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        return _status(error) in UNAVAILABLE or _status(error) >= 500
    return isinstance(error, anthropic.APIConnectionError)


def _explanation(error: Exception, request: Request, suspected: str) -> str:
    """What went wrong and what to do about it, for a person.

    ``suspected`` is the likely reason why an address does not answer.
    """
    import anthropic
    import httpx2

    match error:
        case anthropic.APIStatusError():
            told = _status_explanation(error, request)
            return f"{told}.{suspected}" if error.status_code == HTTPStatus.NOT_FOUND and suspected else told
        case anthropic.APITimeoutError():
            return (
                "The API did not answer in time: check the network and ANTHROPIC_BASE_URL, then /resume, or resume()."
                f"{suspected}"
            )
        case anthropic.APIConnectionError():
            why = error.__cause__ or error
            return f"The API cannot be reached ({why}): check the network and ANTHROPIC_BASE_URL.{suspected}"
        case httpx2.InvalidURL():
            return f"The API's address is no URL ({error}): check ANTHROPIC_BASE_URL."
        case httpx2.TimeoutException():
            return (
                "The model fell silent in the middle of its reply and was given up: /resume, or resume(), asks again."
            )
        case anthropic.AnthropicError():
            return f"The client of the API failed ({error}): check ANTHROPIC_API_KEY and its configuration."
        case UnicodeError():
            half = f"The request holds half of a character, which cannot be sent ({error})"
            return f"{half}: take the prompt back (/undo, undo())."
    return _CUT  # the innards of the client are the cause of the error, and none of a person's business


def _status(error: "APIStatusError") -> int:
    """The HTTP status of an error; also of an error event in a stream, whose response had status 200."""
    return error.status_code if error.status_code != 200 else _BY_TYPE.get(str(error.type), 500)


def _status_explanation(error: "APIStatusError", request: Request) -> str:
    status = _status(error)
    remedy = _OVERLOADED if status >= 500 else _REMEDIES.get(status, "The API refused")
    if status == 413 or (status == 400 and _TOO_LONG.search(error.api_message or error.message)):
        remedy = _too_long(request)
    details = [str(error.status_code), *(str(each) for each in (error.type, error.request_id) if each)]
    return f"{remedy}. The API said: {error.api_message or error.message} ({', '.join(details)})"


def _too_long(request: Request) -> str:
    """Names the part that makes the request too long: its latest prompt, or the history before."""
    whole = sum(_characters(message["content"]) for message in request.messages)
    prompt = next(
        (block["text"] for block in reversed(request.messages[-1]["content"]) if block.get("type") == "text"), ""
    )
    begins = prompt if len(prompt) <= _SHOWN else f"{prompt[:_SHOWN]}…"
    named = f"The prompt {begins!r} ({len(prompt):,} of {whole:,} characters)"
    if 2 * len(prompt) >= whole:
        return f"{named} is too long for the model: take it back (/undo, undo()), and say it in parts"
    ways = "begin anew (/clear, clear()), or go back (/undo, /rewind, undo(), rewind())"
    return f"The history is too long for the model: {ways}. {named} is the latest"


def _characters(content: object) -> int:
    """How long a content is, roughly: all texts in it."""
    match content:
        case str():
            return len(content)
        case Mapping():
            return sum(_characters(part) for key, part in content.items() if key != "type")
        case list() | tuple():
            return sum(_characters(part) for part in content)
    return 0
