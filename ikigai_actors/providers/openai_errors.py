"""Errors of a service that speaks OpenAI's protocols, made of the exceptions of its client. Pure."""

from typing import TYPE_CHECKING

from ikigai_actors.providers import remedies
from ikigai_actors.providers.address import UNAVAILABLE
from ikigai_actors.providers.base import Request
from ikigai_actors.providers.remedies import Settings
from ikigai_actors.providers.retry_after import is_for_the_moment, refused_until
from ikigai_actors.providers.streamed_reply import CUT, SILENT, NoStreamError, ServiceFailure

if TYPE_CHECKING:
    from openai import APIStatusError

_BY_WORD = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 402,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "BadRequestError": 400,
    "model_not_found": 404,
}


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of the client in which a request may end."""
    import aiohttp
    import httpx2
    import openai

    theirs = (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError)
    return (*theirs, ServiceFailure, NoStreamError, ValueError, TimeoutError, ExceptionGroup)


def status_of(error: Exception) -> int | None:
    """Return the HTTP status of an error, also one equivalent to an error in the stream; None if it has none."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return 402 if error.code == "insufficient_quota" else error.status_code
    if isinstance(error, ServiceFailure):
        known = [_BY_WORD[word] for word in error.words if word in _BY_WORD]
        numbers = [int(word) for word in error.words if word.isdigit() and 400 <= int(word) < 600]
        return next(iter((*known, *numbers)), 500)
    return None


def broke_off(error: Exception) -> bool:
    """Return whether a connection broke after the reply had begun, without an error in the request."""
    import aiohttp
    import httpx2

    if isinstance(error, ServiceFailure):
        return (status_of(error) or 0) >= 500
    return isinstance(error, httpx2.HTTPError | aiohttp.ClientError | TimeoutError)


def is_unavailable(error: Exception) -> bool:
    """Return whether the service is unavailable, so that another one may be asked instead."""
    import openai

    status = status_of(error)
    if status is not None:
        return status in UNAVAILABLE or status >= 500
    return isinstance(error, openai.APIConnectionError | NoStreamError)


def is_free(error: Exception) -> bool:
    """Return whether the service was not reached, or refused the request before a reply began and bills nothing."""
    import httpx2
    import openai

    unreached = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
    return isinstance(error, openai.APIStatusError) or unreached


def retry_after(error: Exception) -> float | None:
    """Return the seconds after which the same request may be sent again, as `ProviderError.retry_after`."""
    import openai

    match error:
        case openai.APIStatusError():
            return refused_until(status_of(error) or 0, error.response.headers)
        case ServiceFailure():
            return 0.0 if is_for_the_moment(status_of(error) or 0) else None
    return 0.0 if isinstance(error, openai.APIConnectionError) else None


def explanation(error: Exception, request: Request, settings: Settings, suspected: str) -> str:
    """Return a text for people: the error, and what to do about it.

    ``suspected`` is the likely reason why an address does not answer.
    """
    import httpx2
    import openai

    match error:
        case openai.APIStatusError():
            words = [
                str(error.status_code),
                *(str(detail) for detail in (error.code, error.param, error.request_id) if detail),
            ]
            return remedies.refused(status_of(error) or 0, _said(error), words, request, settings, suspected)
        case ServiceFailure():
            return remedies.refused(status_of(error) or 0, str(error), error.words, request, settings, suspected)
        case NoStreamError():
            return remedies.no_server(error, f"{settings.address}, which mostly ends in /v1", suspected)
        case openai.APITimeoutError():
            return remedies.late(settings, suspected)
        case openai.APIConnectionError():
            return remedies.unreachable(error.__cause__ or error, settings, suspected)
        case httpx2.InvalidURL():
            return f"The API's address is no URL ({error}): check {settings.address}."
        case httpx2.TimeoutException() | TimeoutError():
            return SILENT
        case openai.OpenAIError():
            return f"The client of the API failed ({error}): check {settings.key} and its configuration."
        case UnicodeError():
            return remedies.half_a_character(error)
        case ValueError():
            return f"The request cannot be sent as JSON ({error}): check the agent's settings."
    return CUT  # the innards of the client are the cause of the error, and none of a person's business


def _said(error: "APIStatusError") -> str:
    """Return the service's error message; if it sent a page, the beginning of the page."""
    body = error.body
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body.get("error") or error.message
    else:
        said = body or error.message
    return remedies.quoted_page(str(said))
