"""What went wrong between us and a service that speaks Messages, for a person: why, and what to do about it. Pure."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from ikigai_actors.providers.address import UNAVAILABLE
from ikigai_actors.providers.base import Request

if TYPE_CHECKING:
    from anthropic import APIStatusError

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
CUT = "The connection broke in the middle of the reply: /resume, or resume(), asks again."
_OVERLOADED = "The service is overloaded or failing: wait, then /resume, or resume()"
_TOO_LONG = re.compile(
    r"too (long|large|many tokens)|context (window|length|limit)|exceeds? .*(context|tokens|maximum)"
)
"""Texts by which services say that a request is longer than the model's window."""
_SHOWN = 40
"""Characters of a prompt that are quoted to say which one is meant."""
_BY_TYPE = {"rate_limit_error": 429, "authentication_error": 401, "permission_error": 403, "invalid_request_error": 400}


def broke_off(error: Exception) -> bool:
    """Whether a reply had begun and was cut, through no fault of the request."""
    import aiohttp
    import anthropic
    import httpx2

    if isinstance(error, anthropic.APIStatusError):  # status 200: an error event in the stream
        return error.status_code == 200 and _status(error) >= 500
    return isinstance(error, httpx2.HTTPError | aiohttp.ClientError)


def is_unavailable(error: Exception) -> bool:
    """Whether the service does not serve, so that another one may be asked instead."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError):
        return _status(error) in UNAVAILABLE or _status(error) >= 500
    return isinstance(error, anthropic.APIConnectionError)


def explanation(error: Exception, request: Request, suspected: str) -> str:
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
    return CUT  # the innards of the client are the cause of the error, and none of a person's business


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
