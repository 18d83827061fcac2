"""Spans as OpenTelemetry's protocol has them: protobuf for collectors, JSON for files. Pure.

Written by hand: eight messages of the protocol are used, and the classes of its package take as long as all else of
an export. Arize Phoenix refuses JSON over HTTP, so protobuf is what is sent.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ikigai_actors.sight.traces.conventions import OWN_LINK, SCHEMA_URL
from ikigai_actors.sight.traces.spans import AttributeValue, TraceSpan

SCOPE = "ikigai-actors"
"""The name of what made the spans; also the name of the service, where no other is given."""

_NANOSECONDS = 1_000_000
_LONG = 64
"""Characters of a text that is not kept."""
_ERROR = 2
"""The code of a status."""
_LONGEST_WORDS = 300
"""Characters of a collector's words that are kept."""


def batches(turns: Iterable[list[TraceSpan]], most: int) -> Iterator[list[list[TraceSpan]]]:
    """The turns in lists of ``most`` spans and a few more: none is cut."""
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


def spans_as_protobuf(spans: Iterable[TraceSpan], resource: Mapping[str, str]) -> bytes:
    """The body of a request: an ``ExportTraceServiceRequest``."""
    scope = _part(1, _part(1, SCOPE.encode())) + b"".join(_part(2, _span(one)) for one in spans)
    about = b"".join(_attribute(1, *one) for one in resource.items())
    schema = _part(3, SCHEMA_URL.encode())
    return _part(1, _part(1, about) + _part(2, scope + schema) + schema)


def spans_as_json(spans: Iterable[TraceSpan], resource: Mapping[str, str]) -> str:
    """The same as one line of JSON, which collectors read from files."""
    scope = {"scope": {"name": SCOPE}, "spans": [_span_as_json(one) for one in spans], "schemaUrl": SCHEMA_URL}
    about = {"resource": {"attributes": _attributes_as_json(resource)}, "scopeSpans": [scope], "schemaUrl": SCHEMA_URL}
    return json.dumps({"resourceSpans": [about]}, separators=(",", ":"))


class PartialSuccess(NamedTuple):
    """The answer of a collector to a request that it has taken."""

    rejected: int = 0
    """How many of its spans were not kept."""
    words: str = ""
    """Why, or a warning."""


def partial_success(body: bytes, kind: str) -> PartialSuccess:
    """The fields of an ``ExportTraceServiceResponse``, as protobuf or JSON; nothing for what is neither."""
    try:
        return _partial_in_json(json.loads(body)) if "json" in kind else _partial_in_protobuf(body)
    except (ValueError, TypeError, IndexError, RecursionError):
        return PartialSuccess()


def _partial_in_json(answer: Any) -> PartialSuccess:
    said = answer.get("partialSuccess", answer.get("partial_success")) if isinstance(answer, dict) else None
    if not isinstance(said, dict):
        return PartialSuccess()
    rejected: Any = said.get("rejectedSpans", said.get("rejected_spans", 0))
    return PartialSuccess(int(rejected), _words(str(said.get("errorMessage", said.get("error_message", "")))))


def _partial_in_protobuf(body: bytes) -> PartialSuccess:
    said = dict(_fields(dict(_fields(body)).get(1, b"")))
    rejected, words = said.get(1, 0), said.get(2, b"")
    return PartialSuccess(
        rejected if isinstance(rejected, int) else 0,
        _words(words.decode(errors="replace") if isinstance(words, bytes) else ""),
    )


def _words(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_WORDS]


def _fields(body: bytes | int) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, by their numbers. Raises `ValueError` and `IndexError` for what is none."""
    if isinstance(body, int):
        raise ValueError("a number is no message")
    place = 0
    while place < len(body):
        key, place = _read_varint(body, place)
        value: int | bytes
        match key & 7:
            case 0:
                value, place = _read_varint(body, place)
            case 2:
                size, place = _read_varint(body, place)
                value, place = body[place : place + size], place + size
            case 1 | 5 as wire:
                size = 8 if wire == 1 else 4
                value, place = body[place : place + size], place + size
            case _:
                raise ValueError("an unknown type of field")
        if place > len(body):
            raise ValueError("the message is cut")
        yield key >> 3, value


def _read_varint(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[place]
        value, shift, place = value | (byte & 0x7F) << shift, shift + 7, place + 1
        if byte < 0x80:
            return value, place


def _span(span: TraceSpan) -> bytes:
    parts = [
        _part(1, span.trace),
        _part(2, span.id),
        _part(4, span.parent) if span.parent else b"",
        _part(5, span.name.encode(errors="replace")),
        _number(6, span.kind),
        b"\x39" + (span.start * _NANOSECONDS).to_bytes(8, "little"),
        b"\x41" + (span.end * _NANOSECONDS).to_bytes(8, "little"),
        *(_attribute(9, key, value) for key, value in span.attributes.items()),
        *(_part(13, _part(1, trace) + _part(2, one) + _attribute(4, OWN_LINK, why)) for trace, one, why in span.links),
    ]
    if span.error:
        parts.append(_part(15, _part(2, span.error.encode()) + _number(3, _ERROR)))
    return b"".join(parts)


def _attribute(field: int, key: str, value: AttributeValue) -> bytes:
    if isinstance(value, str) and len(value) > _LONG:
        return _part(field, _key(key) + _part(2, _value(value)))
    return _short_attribute(field, key, value)


@lru_cache(4_096)
def _short_attribute(field: int, key: str, value: AttributeValue) -> bytes:
    """The same, kept: most of what spans say is the same in many."""
    return _part(field, _key(key) + _part(2, _value(value)))


@cache
def _key(key: str) -> bytes:
    return _part(1, key.encode())


def _value(value: AttributeValue) -> bytes:
    match value:
        case str():
            return _part(1, value.encode(errors="replace"))
        case int():
            return _number(3, value)
    return _part(5, b"".join(_part(1, _value(one)) for one in value))


def _part(field: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0x80:
        return bytes((field << 3 | 2, size)) + body
    return bytes((field << 3 | 2,)) + _varint(size) + body


def _number(field: int, value: int) -> bytes:
    return bytes((field << 3,)) + _varint(value)


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


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
        **({"links": [_link_as_json(*one) for one in span.links]} if span.links else {}),
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
    return {"arrayValue": {"values": [_value_as_json(one) for one in value]}}
