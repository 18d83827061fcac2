"""What MCP servers answer calls with, without one: whatever can be read of it is the result."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types.methods import parse_server_result

from ikigai_actors.tools.function import Result
from ikigai_actors.tools.mcp.results import mended, result_of_call
from tests.kit.pictures import painted

VERSIONS = ("2024-11-05", "2025-11-25", "2026-07-28")
TEXT = {"type": "text", "text": "t"}
PICTURE = b64encode(painted([[(0, 0, 0, 255)] * 2] * 2)).decode()

ANSWERS: Mapping[str, tuple[Any, str]] = {
    "structured alone": ({"structuredContent": {"rows": 3}}, '{"rows": 3}'),
    "structured, and no object": ({"structuredContent": [1, 2]}, "[1, 2]"),
    "nothing": ({}, ""),
    "null": ({"content": None}, ""),
    "an unknown block": ({"content": [{"type": "hologram", "x": 1}, TEXT]}, '{"type": "hologram", "x": 1}\nt'),
    "a text in place of a block": ({"content": ["words", TEXT]}, "words\nt"),
    "a text in place of blocks": ({"content": "words"}, "words"),
    "a block in place of blocks": ({"content": TEXT}, "t"),
    "a block without a type": ({"content": [{"text": "x"}, TEXT]}, "x\nt"),
    "a number as text": ({"content": [{"type": "text", "text": 5}]}, '{"type": "text", "text": 5}'),
    "a later field": ({"content": [TEXT], "structuredContent": {"a": 1}, "new": True}, "t"),
}


def read(answer: Mapping[str, Any], version: str) -> Result:
    call = parse_server_result("tools/call", version, mended(answer, version))
    return result_of_call(call)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("answer", "text"), ANSWERS.values(), ids=ANSWERS)
def test_what_can_be_read_of_an_answer_is_the_result(answer: Mapping[str, Any], text: str, version: str) -> None:
    assert read(answer, version) == Result(text)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_picture_without_a_type_is_one(version: str) -> None:
    result = read({"content": [{"type": "image", "data": PICTURE}, TEXT]}, version)
    [picture] = result.attached
    assert picture.media == "image/png"
    assert result.content.endswith("\nt")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_says_that_it_is_an_error_stays_one(version: str) -> None:
    assert read({"content": [{"type": "hologram"}], "isError": True}, version).is_error
    assert not read({"content": None, "isError": "no"}, version).is_error


NAMES = st.sampled_from(["content", "type", "text", "structuredContent", "isError", "data"])
PLAIN = st.none() | st.booleans() | st.text() | st.integers()
VALUES = st.recursive(PLAIN, lambda below: st.lists(below) | st.dictionaries(NAMES, below), max_leaves=12)


@pytest.mark.thorough("made-up answers; every run has those of the protocol")
@given(VALUES)
def test_no_answer_that_is_an_object_is_refused(value: Any) -> None:
    answer = value if isinstance(value, dict) else {"content": value}
    for version in VERSIONS:
        assert isinstance(read(json.loads(json.dumps(answer)), version), Result)
