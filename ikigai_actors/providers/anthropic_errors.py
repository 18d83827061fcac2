"""Errors of a service that speaks Messages, made of the exceptions of its client. Pure."""

from typing import TYPE_CHECKING

from ikigai_actors.providers import remedies
from ikigai_actors.providers.address import UNAVAILABLE
from ikigai_actors.providers.base import Request
from ikigai_actors.providers.remedies import Settings
from ikigai_actors.providers.retry_after import is_for_the_moment, refused_until
from ikigai_actors.providers.streamed_reply import CUT, SILENT, NoStreamError, ServiceFailure

if TYPE_CHECKING:
    from anthropic import APIStatusError

_BY_TYPE = {"rate_limit_error": 429, "authentication_error": 401, "permission_error": 403, "invalid_request_error": 400}


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of the client in which a request may end."""
    import aiohttp
    import anthropic
    import httpx2

    theirs = (anthropic.AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, aiohttp.ClientError)
    return (*theirs, UnicodeError, ServiceFailure, NoStreamError)


def broke_off(error: Exception) -> bool:
    """Return whether a connection broke after the reply had begun, without an error in the request."""
    import aiohttp
    import httpx2

    if isinstance(error, ServiceFailure):
        return _status(error) >= 500
    return isinstance(error, httpx2.HTTPError | aiohttp.ClientError)


def is_unavailable(error: Exception) -> bool:
    """Return whether the service is unavailable, so that another one may be asked instead."""
    import anthropic

    if isinstance(error, anthropic.APIStatusError | ServiceFailure):
        return _status(error) in UNAVAILABLE or _status(error) >= 500
    return isinstance(error, anthropic.APIConnectionError | NoStreamError)


def is_free(error: Exception) -> bool:
    """Return whether the service was not reached, or refused the request before a reply began and bills nothing."""
    import anthropic
    import httpx2

    unreached = isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
    return isinstance(error, anthropic.APIStatusError) or unreached


def retry_after(error: Exception) -> float | None:
    """Return the seconds after which the same request may be sent again, as `ProviderError.retry_after`."""
    import anthropic

    match error:
        case anthropic.APIStatusError():
            return refused_until(_status(error), error.response.headers)
        case ServiceFailure():
            return 0.0 if is_for_the_moment(_status(error)) else None
    return 0.0 if isinstance(error, anthropic.APIConnectionError) else None


def explanation(error: Exception, request: Request, settings: Settings, suspected: str) -> str:
    """Return a text for people: the error, and what to do about it.

    ``suspected`` is the likely reason why an address does not answer.
    """
    import anthropic
    import httpx2

    match error:
        case anthropic.APIStatusError():
            details = [str(error.status_code), *(str(each) for each in (error.type, error.request_id) if each)]
            said = error.api_message or remedies.quoted_page(error.message)
            return remedies.refused(_status(error), said, details, request, settings, suspected)
        case ServiceFailure():
            return remedies.refused(_status(error), str(error), error.words, request, settings, suspected)
        case NoStreamError():
            return remedies.no_server(error, settings.address, suspected)
        case anthropic.APITimeoutError():
            return remedies.late(settings, suspected)
        case anthropic.APIConnectionError():
            return remedies.unreachable(error.__cause__ or error, settings, suspected)
        case httpx2.InvalidURL():
            return f"The API's address is no URL ({error}): check {settings.address}."
        case httpx2.TimeoutException():
            return SILENT
        case anthropic.AnthropicError():
            return f"The client of the API failed ({error}): check {settings.key} and its configuration."
        case UnicodeError():
            return remedies.half_a_character(error)
    return CUT  # the innards of the client are the cause of the error, and none of a person's business


def _status(error: "APIStatusError | ServiceFailure") -> int:
    """Return the HTTP status of an error; for an error within the stream, the equivalent status."""
    if isinstance(error, ServiceFailure):
        return next((_BY_TYPE[word] for word in error.words if word in _BY_TYPE), 500)
    return error.status_code
