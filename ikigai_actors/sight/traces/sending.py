"""The sender of spans: gives batches to a collector over HTTP, and sends again what a busy one refuses."""

import gzip
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import isfinite, nan
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.sight.traces.conventions import SERVICE_NAME
from ikigai_actors.sight.traces.otlp import SCOPE

_BUSY = (429, 502, 503, 504)
"""What a collector answers that may take the same request later."""

_TRIES = 6
_LONGEST_PAUSE = 60.0
_TIMEOUT = 30.0

PATH = "/v1/traces"
"""Where a collector takes spans, if its address has no path."""


class _Staying(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would turn the request into another one, and take the headers elsewhere."""

    def redirect_request(self, *args: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Staying)


class CollectorAnswer(NamedTuple):
    """What came of a request."""

    status: int
    """0 where nobody has answered."""
    reason: str
    retry_after: str = ""


@dataclass(frozen=True, slots=True)
class Collector:
    """A collector of spans."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(url: str, headers: Iterable[str], environment: Mapping[str, str]) -> "Collector":
        """A collector by its address, with headers as ``name=value``; those of ``OTEL_EXPORTER_OTLP_HEADERS`` as well.

        Raises `BadInput` for an address or a header that is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise BadInput(f"Expected http://… or https://…, got {url!r}.")
        if parts.path in ("", "/"):
            url = parts._replace(path=PATH).geturl()
        known = environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or environment.get(
            "OTEL_EXPORTER_OTLP_HEADERS", ""
        )
        return Collector(url, dict(map(_header, [*filter(None, known.split(",")), *headers])))

    def post(self, body: bytes, kind: str) -> CollectorAnswer:
        """Send a body once."""
        headers = {**self.headers, "Content-Type": kind, "Content-Encoding": "gzip"}
        request = urllib.request.Request(self.url, gzip.compress(body, 1, mtime=0), headers)
        try:
            with _OPENER.open(request, timeout=_TIMEOUT) as response:
                response.read()
                return CollectorAnswer(response.status, "")
        except urllib.error.HTTPError as error:
            with error:
                return CollectorAnswer(error.code, str(error.reason), error.headers.get("Retry-After", ""))
        except OSError as error:
            return CollectorAnswer(0, str(getattr(error, "reason", error)))


def send_patiently(
    post: Callable[[], CollectorAnswer], url: str, sleep: Callable[[float], object], now: Callable[[], float]
) -> None:
    """Send until the collector takes it.

    Raises `IkigaiError` when it refuses, or is busy or away for long.
    """
    for attempt in range(_TRIES):
        answer = post()
        if 200 <= answer.status < 300:
            return
        if answer.status and answer.status not in _BUSY:
            raise IkigaiError(f"{url} refuses the spans: {answer.status} {answer.reason}.")
        if attempt < _TRIES - 1:
            sleep(pause(attempt, answer.retry_after, now()))
    how = f"is busy: {answer.status} {answer.reason}" if answer.status else f"does not answer: {answer.reason}"
    raise IkigaiError(f"{url} {how}.")


def pause(attempt: int, retry_after: str, now: float) -> float:
    """Seconds until the next attempt: what the collector asks for, else twice as long each time."""
    try:
        asked = float(retry_after)
    except ValueError:
        try:
            asked = parsedate_to_datetime(retry_after).timestamp() - now
        except ValueError:
            asked = nan
    return min(max(asked if isfinite(asked) else 0.5 * 2**attempt, 0.0), _LONGEST_PAUSE)


def address_in(environment: Mapping[str, str]) -> str | None:
    """The address of a collector that the variables of OpenTelemetry name; None for none."""
    if url := environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        return url
    base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return None if not base else f"{base.rstrip('/')}{PATH}"


def resource_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The attributes of the service that the spans are of, as OpenTelemetry's variables say."""
    given = dict(map(_header, filter(None, environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))))
    service = environment.get("OTEL_SERVICE_NAME") or given.get(SERVICE_NAME) or SCOPE
    return {**given, SERVICE_NAME: service}


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadInput("Expected a header or an attribute as NAME=VALUE; one has no name, or no sign of equality.")
    return name.strip(), unquote(value.strip())
