"""Spans as bytes and as JSON, which say the same; and the names, against the package of the conventions."""

import json
from base64 import b64encode
from dataclasses import replace
from importlib.metadata import version

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ikigai_actors.sight.traces import conventions
from ikigai_actors.sight.traces.otlp import batches, protobuf_encoder, spans_as_json
from ikigai_actors.sight.traces.spans import SpanLink, TraceSpan

LONG = "ä" * 300
SPANS = [
    TraceSpan(b"t" * 16, b"r" * 8, b"", "invoke_agent é", 1, 1_000, 2_000, {"a": "x", "n": -1, "big": 2**40}, "killed"),
    TraceSpan(
        b"t" * 16, b"c" * 8, b"r" * 8, LONG, 3, 0, 1_796_000_000_000, {"list": ("a", ""), "none": 0}, "",
        (SpanLink(b"u" * 16, b"v" * 8, "fork"),),
    ),
]  # fmt: skip
RESOURCE = {"service.name": "mine"}


def test_json_has_what_collectors_read_from_files() -> None:
    [about] = json.loads(spans_as_json(SPANS, RESOURCE))["resourceSpans"]
    assert about["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "mine"}}]
    root, below = about["scopeSpans"][0]["spans"]
    assert (root["traceId"], root["spanId"], below["parentSpanId"]) == ((b"t" * 16).hex(), "72" * 8, "72" * 8)
    assert root["endTimeUnixNano"] == "2000000000"
    assert root["status"] == {"message": "killed", "code": 2}
    assert {"key": "n", "value": {"intValue": "-1"}} in root["attributes"]
    assert below["links"][0]["attributes"] == [{"key": "ikigai.link", "value": {"stringValue": "fork"}}]


def test_protobuf_says_what_the_json_says() -> None:
    read = ExportTraceServiceRequest.FromString(protobuf_encoder(RESOURCE, "this test")(SPANS))
    text = json.loads(spans_as_json(SPANS, RESOURCE))
    for span in text["resourceSpans"][0]["scopeSpans"][0]["spans"]:  # its package writes ids in base64
        for where in (span, *span.get("links", ())):
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in where:
                    where[key] = b64encode(bytes.fromhex(where[key])).decode()
    assert read == json_format.ParseDict(text, ExportTraceServiceRequest())


def test_a_half_of_a_character_does_not_stop_an_export() -> None:
    span = replace(SPANS[0], name="a\ud83d", attributes={"text": "b\ud83d", "more": ("c\ud83d",)}, error="d\ud83d")
    [about] = ExportTraceServiceRequest.FromString(protobuf_encoder({}, "this test")([span])).resource_spans
    [read] = about.scope_spans[0].spans
    text, more = (attribute.value for attribute in read.attributes)
    assert (read.name, text.string_value, more.array_value.values[0].string_value) == ("a?", "b?", "c?")
    assert read.status.message == "d?"


def test_a_turn_is_not_cut_by_a_batch() -> None:
    turns = [SPANS, SPANS, SPANS]
    assert [len(batch) for batch in batches(turns, 3)] == [2, 1]
    assert list(batches([], 3)) == []


def test_the_names_are_those_of_the_conventions() -> None:
    package = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    metrics = pytest.importorskip("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    if version("opentelemetry-semantic-conventions") != conventions.PINNED:
        pytest.skip("another version of the conventions is installed")
    known = {value for module in (package, metrics) for value in vars(module).values() if isinstance(value, str)}
    ours = [value for value in vars(conventions).values() if isinstance(value, str) and value.startswith("gen_ai.")]
    assert len(ours) > 15
    assert set(ours) <= known
    operations = {operation.value for operation in package.GenAiOperationNameValues}
    assert {conventions.INVOKE_AGENT, conventions.CHAT, conventions.EXECUTE_TOOL} <= operations
