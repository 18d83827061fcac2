"""The sender of spans: sends batches to a collector over HTTP, and repeats requests that a busy collector refuses.

    sender = SpanSender(collector, encode, "application/x-protobuf", patiently(sleep, now))
    sender.send(spans)      # the spans that the collector has rejected

A body that is too large for the collector is halved until it fits; a single span that is too large is left out. A
collector that does not support gzip gets uncompressed bodies.
"""

import gzip
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import isfinite, nan
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.sight.traces.conventions import SERVICE_NAME
from ikigai_actors.sight.traces.otlp import SCOPE, PartialSuccess, partial_success
from ikigai_actors.sight.traces.spans import TraceSpan

_BUSY = (429, 502, 503, 504)
"""The HTTP statuses of a collector that may accept the same request later."""

_TOO_LARGE, _UNKNOWN_FORM = 413, 415

_MOST_NAMED = 5
"""The most spans that an error message names."""

_LONGEST_ANSWER = 100_000
"""The most bytes of an answer that are read."""

_TRIES = 6
_LONGEST_PAUSE = 60.0
_TIMEOUT = 30.0

PATH = "/v1/traces"
"""The path at which a collector accepts spans, if its address has none."""


class _Staying(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, which would change the request and send its headers to another server."""

    def redirect_request(self, *args: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_Staying)


class CollectorAnswer(NamedTuple):
    """The answer of a collector to a request."""

    status: int
    """The HTTP status; 0 if there was no answer."""
    reason: str
    retry_after: str = ""
    partial: PartialSuccess = PartialSuccess()
    """The spans of an accepted request that were not kept."""


@dataclass(frozen=True, slots=True)
class Collector:
    """The address and headers of a collector of spans."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(url: str, headers: Iterable[str], environment: Mapping[str, str]) -> "Collector":
        """Return a collector from its address and its headers ``name=value``; also uses ``OTEL_EXPORTER_OTLP_HEADERS``.

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

    @property
    def place(self) -> str:
        """Return the collector's address for people, without user name and password."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def post(self, body: bytes, kind: str, *, zipped: bool = True) -> CollectorAnswer:
        """Send a body to the collector once; return the collector's answer."""
        headers = {**self.headers, "Content-Type": kind, **({"Content-Encoding": "gzip"} if zipped else {})}
        request = urllib.request.Request(self.url, gzip.compress(body, 1, mtime=0) if zipped else body, headers)
        try:
            with _OPENER.open(request, timeout=_TIMEOUT) as response:
                answered = response.read(_LONGEST_ANSWER)
                kept = partial_success(answered, response.headers.get("Content-Type", ""))
                return CollectorAnswer(response.status, "", partial=kept)
        except urllib.error.HTTPError as error:
            with error:
                return CollectorAnswer(error.code, str(error.reason), error.headers.get("Retry-After", ""))
        except OSError as error:
            return CollectorAnswer(0, str(getattr(error, "reason", error)))


Attempt = Callable[[Callable[[], CollectorAnswer]], CollectorAnswer]
"""Calls a function that sends a request, once or repeatedly, and returns the last answer."""


class Delivery(NamedTuple):
    """The outcome of a delivery: the spans that the collector has rejected although it answered."""

    rejected: int = 0
    words: tuple[str, ...] = ()
    """The collector's reasons and warnings."""
    too_large: tuple[TraceSpan, ...] = ()
    """The spans that are too large for the collector, each by itself."""

    def and_then(self, other: "Delivery") -> "Delivery":
        """Return the sum of two deliveries."""
        words = tuple(dict.fromkeys((*self.words, *other.words)))
        return Delivery(self.rejected + other.rejected, words, self.too_large + other.too_large)

    @property
    def lost(self) -> str:
        """Return a sentence for people about the spans that were rejected; empty if there are none."""
        losses = (
            [f"has rejected {self.rejected:,} {'span' if self.rejected == 1 else 'spans'}"] if self.rejected else []
        )
        if self.too_large:
            names = [f"{span.name} (trace {span.trace.hex()}, span {span.id.hex()})" for span in self.too_large]
            more = f", and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
            losses.append(f"finds these too large, so they are left out: {'; '.join(names[:_MOST_NAMED])}{more}")
        said = f" It says: “{' '.join(self.words)}”." if losses and self.words else ""
        return " and ".join(losses) + ("." + said if losses else "")


class SpanSender:
    """Sends spans to one collector. Remembers which encodings and sizes the collector does not accept."""

    def __init__(
        self, collector: Collector, encode: Callable[[Sequence[TraceSpan]], bytes], kind: str, attempt: Attempt
    ) -> None:
        """Prepare.

        Args:
            collector: the collector.
            encode: makes the body of a request.
            kind: the media type of that body.
            attempt: sends a request.
        """
        self._collector, self._encode, self._kind, self._attempt = collector, encode, kind, attempt
        self._zipped = True
        self._too_large = 0  # bytes of the smallest body that was; 0 for none

    def send(self, spans: Sequence[TraceSpan]) -> Delivery:
        """Send spans, in as many requests as needed. Raises `IkigaiError` if they are refused, or nobody answers."""
        body = self._encode(spans)
        if len(spans) > 1 and 0 < self._too_large <= len(body):
            return self._halved(spans)
        answer = self._attempt(lambda: self._collector.post(body, self._kind, zipped=self._zipped))
        if answer.status == _UNKNOWN_FORM and self._zipped:
            self._zipped = False
            answer = self._attempt(lambda: self._collector.post(body, self._kind, zipped=False))
        if answer.status == _TOO_LARGE:
            self._too_large = min(self._too_large or len(body), len(body))
            return self._halved(spans) if len(spans) > 1 else Delivery(too_large=(*spans,))
        if not 200 <= answer.status < 300:
            raise IkigaiError(f"{self._collector.place} {_why(answer)}.")
        return Delivery(answer.partial.rejected, (answer.partial.words,) if answer.partial.words else ())

    def _halved(self, spans: Sequence[TraceSpan]) -> Delivery:
        middle = len(spans) // 2
        return self.send(spans[:middle]).and_then(self.send(spans[middle:]))


def _why(answer: CollectorAnswer) -> str:
    if not answer.status:
        return f"does not answer: {answer.reason}"
    how = "is busy" if answer.status in _BUSY else "refuses the spans"
    return f"{how}: {answer.status} {answer.reason}".rstrip()


def patiently(sleep: Callable[[float], object], now: Callable[[], float]) -> Attempt:
    """Return an `Attempt` that repeats a request while the collector is busy or unreachable, up to six times."""

    def attempt(post: Callable[[], CollectorAnswer]) -> CollectorAnswer:
        for number in range(_TRIES - 1):
            answer = post()
            if answer.status and answer.status not in _BUSY:
                return answer
            sleep(pause(number, answer.retry_after, now()))
        return post()

    return attempt


def pause(attempt: int, retry_after: str, now: float) -> float:
    """Return the seconds until the next attempt: as the collector asks, else doubled each time."""
    try:
        asked = float(retry_after)
    except ValueError:
        try:
            asked = parsedate_to_datetime(retry_after).timestamp() - now
        except ValueError:
            asked = nan
    return min(max(asked if isfinite(asked) else 0.5 * 2**attempt, 0.0), _LONGEST_PAUSE)


def address_in(environment: Mapping[str, str]) -> str | None:
    """Return the collector's address from OpenTelemetry's environment variables; None if they name none."""
    if url := environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        return url
    base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return None if not base else f"{base.rstrip('/')}{PATH}"


def resource_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of the service that sends the spans, from OpenTelemetry's environment variables."""
    attributes = dict(map(_header, filter(None, environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))))
    service = environment.get("OTEL_SERVICE_NAME") or attributes.get(SERVICE_NAME) or SCOPE
    return {**attributes, SERVICE_NAME: service}


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadInput("Expected a header or an attribute as NAME=VALUE; one has no name, or no sign of equality.")
    return name.strip(), unquote(value.strip())
