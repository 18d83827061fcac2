"""Spans in the form of OpenTelemetry's protocol: protobuf for collectors, JSON for files. Pure.

Protobuf is written by the classes of ``opentelemetry-proto``, which the extra ``otel`` brings: Arize Phoenix refuses
JSON over HTTP, so protobuf is sent by default. JSON is written here, because that package writes ids in base64 where
the protocol wants hexadecimal digits.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ikigai_actors.extras import NeedsExtra
from ikigai_actors.sight.traces.conventions import OWN_LINK, SCHEMA_URL
from ikigai_actors.sight.traces.spans import AttributeValue, TraceSpan

SCOPE = "ikigai-actors"
"""The name of the instrumentation scope; also the default name of the service."""

_NANOSECONDS = 1_000_000
_ERROR = 2
"""The status code of a span that ended with an error."""
_LONGEST_WORDS = 300
"""The most characters of a collector's error message that are kept."""


def batches(turns: Iterable[list[TraceSpan]], most: int) -> Iterator[list[list[TraceSpan]]]:
    """Yield lists of turns with about ``most`` spans each; the spans of a turn stay together."""
    held: list[list[TraceSpan]] = []
    size = 0
    for turn in turns:
        held.append(turn)
        size += len(turn)
        if size >= most:
            yield held
            held, size = [], 0
    if held:
        yield held


def protobuf_encoder(resource: Mapping[str, str], user: str) -> Callable[[Iterable[TraceSpan]], bytes]:
    """Return a function that makes the body of a request: an ``ExportTraceServiceRequest``.

    Raises `BadInput` where the extra ``otel`` is missing; the error names the ``user`` that needs it.
    """
    with NeedsExtra("otel", user):
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def encode(spans: Iterable[TraceSpan]) -> bytes:
        request = ExportTraceServiceRequest()
        about = request.resource_spans.add(schema_url=SCHEMA_URL)
        _fill_attributes(about.resource.attributes, resource)
        scope = about.scope_spans.add(schema_url=SCHEMA_URL)
        scope.scope.name = SCOPE
        for span in spans:
            _fill_span(scope.spans.add(), span)
        body: bytes = request.SerializeToString()
        return body

    return encode


def spans_as_json(spans: Iterable[TraceSpan], resource: Mapping[str, str]) -> str:
    """Return the spans as one line of JSON, which collectors read from files."""
    scope = {"scope": {"name": SCOPE}, "spans": [_span_as_json(span) for span in spans], "schemaUrl": SCHEMA_URL}
    about = {"resource": {"attributes": _attributes_as_json(resource)}, "scopeSpans": [scope], "schemaUrl": SCHEMA_URL}
    return json.dumps({"resourceSpans": [about]}, separators=(",", ":"))


class PartialSuccess(NamedTuple):
    """The answer of a collector that has accepted a request: the rejected spans, and the reason."""

    rejected: int = 0
    """The number of spans that were not kept."""
    words: str = ""
    """The reason, or a warning."""


def partial_success(body: bytes, kind: str) -> PartialSuccess:
    """Return the fields of an ``ExportTraceServiceResponse``, as protobuf or JSON; empty for any other body."""
    if not body:
        return PartialSuccess()
    try:
        return _partial_in_json(json.loads(body)) if "json" in kind else _partial_in_protobuf(body)
    except (ValueError, TypeError, RecursionError, ImportError):  # protobuf in answer to JSON, without the extra
        return PartialSuccess()


def _partial_in_json(answer: Any) -> PartialSuccess:
    said = answer.get("partialSuccess", answer.get("partial_success")) if isinstance(answer, dict) else None
    if not isinstance(said, dict):
        return PartialSuccess()
    rejected: Any = said.get("rejectedSpans", said.get("rejected_spans", 0))
    return PartialSuccess(int(rejected), _words(str(said.get("errorMessage", said.get("error_message", "")))))


def _partial_in_protobuf(body: bytes) -> PartialSuccess:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        said = ExportTraceServiceResponse.FromString(body).partial_success
    except DecodeError as error:
        raise ValueError(error) from error
    return PartialSuccess(said.rejected_spans, _words(said.error_message))


def _words(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_WORDS]


def _fill_span(message: Any, span: TraceSpan) -> None:
    message.trace_id, message.span_id, message.parent_span_id = span.trace, span.id, span.parent
    message.name, message.kind = _text(span.name), span.kind
    message.start_time_unix_nano, message.end_time_unix_nano = span.start * _NANOSECONDS, span.end * _NANOSECONDS
    _fill_attributes(message.attributes, span.attributes)
    for trace, other, why in span.links:
        _fill_attributes(message.links.add(trace_id=trace, span_id=other).attributes, {OWN_LINK: why})
    if span.error:
        message.status.message, message.status.code = _text(span.error), _ERROR


def _fill_attributes(fields: Any, attributes: Mapping[str, AttributeValue]) -> None:
    for key, value in attributes.items():
        _fill_value(fields.add(key=key).value, value)


def _fill_value(field: Any, value: AttributeValue) -> None:
    match value:
        case str():
            field.string_value = _text(value)
        case int():
            field.int_value = value
        case _:
            for text in value:
                field.array_value.values.add(string_value=_text(text))


def _text(value: str) -> str:
    """Return the text without lone surrogates, which protobuf refuses."""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _span_as_json(span: TraceSpan) -> dict[str, object]:
    return {
        "traceId": span.trace.hex(),
        "spanId": span.id.hex(),
        **({"parentSpanId": span.parent.hex()} if span.parent else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start * _NANOSECONDS),
        "endTimeUnixNano": str(span.end * _NANOSECONDS),
        "attributes": _attributes_as_json(span.attributes),
        **({"links": [_link_as_json(*link) for link in span.links]} if span.links else {}),
        **({"status": {"message": span.error, "code": _ERROR}} if span.error else {}),
    }


def _link_as_json(trace: bytes, span: bytes, why: str) -> dict[str, object]:
    return {"traceId": trace.hex(), "spanId": span.hex(), "attributes": _attributes_as_json({OWN_LINK: why})}


def _attributes_as_json(attributes: Mapping[str, AttributeValue]) -> list[dict[str, object]]:
    return [{"key": key, "value": _value_as_json(value)} for key, value in attributes.items()]


def _value_as_json(value: AttributeValue) -> dict[str, object]:
    match value:
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
    return {"arrayValue": {"values": [_value_as_json(element) for element in value]}}
