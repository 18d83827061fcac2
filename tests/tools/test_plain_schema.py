"""Schemas in the form that every service takes: no arguments are lost, and what has no such form is refused."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ikigai_actors.testing.simulation.messages_api import violations
from ikigai_actors.tools.plain_schema import Unsuitable, plain
from tests.kit.openai_server.strict import responses_violations

LONG = "x" * 70
TEXT = {"type": "string"}


def refusals(schema: Mapping[str, Any]) -> list[str]:
    """What services have against a tool with this schema."""
    said = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    ours = {"name": "t", "description": "", "input_schema": schema}
    theirs = {"type": "function", "name": "t", "description": "", "parameters": schema, "strict": False}
    asked = {"role": "user", "content": [{"type": "input_text", "text": "go"}]}
    return [
        *violations({"model": "m", "max_tokens": 9, "messages": said, "tools": [ours]}),
        *responses_violations({"model": "m", "store": False, "input": [asked], "tools": [theirs]}),
    ]


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        ({}, {}, []),
        ({"type": ["object", "null"]}, {}, []),
        ({"properties": {"x": TEXT}, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}, {"x": TEXT}, []),
        (
            {"allOf": [{"properties": {"x": TEXT}, "required": ["x"]}, {"properties": {"y": TEXT}}]},
            {"x": TEXT, "y": TEXT},
            ["x"],
        ),
        (
            {"anyOf": [{"$ref": "#/$defs/A"}, {"properties": {"k": {"const": 2}}, "required": ["k"]}],
             "$defs": {"A": {"properties": {"k": {"const": 1}, "x": TEXT}, "required": ["k", "x"]}}},
            {"k": {"anyOf": [{"const": 1}, {"const": 2}]}, "x": TEXT},
            ["k"],
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"x": TEXT}}}}, {"x": TEXT}, []),
        ({"properties": {"x": {"type": "array"}}}, {"x": {"type": "array", "items": {}}}, []),
        (
            {"properties": {"x": {"type": "array", "items": [TEXT], "additionalItems": False}}},
            {"x": {"type": "array", "prefixItems": [TEXT], "items": False}},
            [],
        ),
        (
            {"properties": {"x": {"minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}}},
            {"x": {"exclusiveMinimum": 0, "maximum": 9}},
            [],
        ),
    ],
)  # fmt: skip
def test_what_services_refuse_is_said_in_their_words(
    schema: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    made = plain(schema)
    assert made.schema["properties"] == properties
    assert made.schema.get("required", []) == required
    assert refusals(made.schema) == []
    assert made.names == {}
    assert plain(made.schema) == made


def test_what_is_combined_at_the_top_stays_as_words() -> None:
    description = plain({"type": "object", "description": "Either.", "not": {"required": ["x"]}}).schema["description"]
    assert description == 'Either.\n\nThe arguments must also fit this schema: {"not": {"required": ["x"]}}'


@pytest.mark.parametrize("pattern", [r"(?<year>\d{4})", r"^\p{L}+$", r"\u{1F600}", "["])
def test_a_pattern_that_python_does_not_know_stays_as_words(pattern: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {**TEXT, "pattern": pattern}}}}
    words = f"It must match the regular expression {pattern}"
    assert plain(schema).schema["properties"]["x"]["items"] == {**TEXT, "description": words}
    known = {"type": "object", "properties": {"x": {**TEXT, "pattern": r"^(?:a|b)\d+$"}}}
    assert plain(known).schema == known


def test_names_that_services_refuse_are_replaced_and_found_again() -> None:
    names = ["$top", "_top", "a b", "größe", LONG, f"{LONG}y", "", "ok.it-is"]
    schema = {
        "properties": {**dict.fromkeys(names, TEXT), "nested": {"type": "object", "properties": {"$free": TEXT}}},
        "required": ["$top", "größe", "_top"],
        "dependentRequired": {"a b": ["$top"]},
        "anyOf": [{"required": ["a b"]}, {"required": [LONG]}],
    }
    made = plain(schema)
    assert refusals(made.schema) == []
    assert list(made.names.values()) == ["$top", "a b", "größe", LONG, f"{LONG}y", ""]
    new = {name: new for new, name in made.names.items()}
    assert made.schema["required"] == [new["$top"], new["größe"], "_top"]
    assert made.schema["dependentRequired"] == {new["a b"]: [new["$top"]]}
    assert made.schema["properties"]["nested"]["properties"] == {"$free": TEXT}
    assert made.schema["properties"][new["$top"]]["description"] == "The name of this parameter is '$top'."
    assert json.dumps({"required": [new["a b"]]}) in made.schema["description"]
    assert made.own({new["$top"]: 1, "_top": 2, "unknown": 3}) == {"$top": 1, "_top": 2, "unknown": 3}


def multiplying(depth: int) -> dict[str, Any]:
    """A schema whose references double what is combined at its top, again and again."""
    twice = {f"d{place}": {"allOf": [{"$ref": f"#/$defs/d{place + 1}"}] * 2} for place in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**twice, f"d{depth}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "no JSON object, but of type NoneType"),
        ([], "no JSON object, but of type list"),
        ({"type": "string"}, "of type 'string', and arguments are an object"),
        ({"properties": []}, r"no JSON schema: \[\] is not of type 'object' \(at \$.properties\)"),
        ({"properties": {"x": {"required": True}}}, "no JSON schema: True is not of type 'array'"),
        ({"properties": {"x": {"$ref": "#/components/X"}}}, "refers to '#/components/X', which is not in it"),
        ({"properties": {"x": {"$ref": "https://example.org/x"}}}, "refers to 'https://example.org/x'"),
        ({"anyOf": [{"$ref": "#/$defs/A"}]}, "refers to '#/\\$defs/A'"),
        ({"allOf": [{"$ref": "#"}]}, "nested too deep"),
        (multiplying(40), "combines too many"),
        ({"properties": {"x": {"default": float("nan")}}}, "no JSON: "),
        ({"properties": {"x": {"description": "\ud800"}}}, "no JSON: "),
        ({"properties": {"x": {"default": {1}}}}, "no JSON: "),
    ],
)
def test_what_has_no_plain_form_is_refused_with_the_reason(schema: object, message: str) -> None:
    with pytest.raises(Unsuitable, match=message):
        plain(schema)


NAMES = st.sampled_from(["x", "y", "$x", "_x", "a b"])
SIMPLE: st.SearchStrategy[Any] = st.sampled_from(
    [{}, TEXT, {"type": "integer"}, {"enum": [1, "a"]}, {"type": "array"}, True]
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(NAMES, SIMPLE, max_size=3),
        "required": st.lists(NAMES, unique=True, max_size=2),
    },
)
COMBINED = st.recursive(
    OBJECTS,
    lambda inner: st.tuples(
        OBJECTS,
        st.dictionaries(
            st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=3), max_size=2
        ),
        st.dictionaries(st.just("not"), inner, max_size=1),
    ).map(lambda parts: {**parts[0], **parts[1], **parts[2]}),
    max_leaves=4,
)
ARGUMENTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(NAMES, st.sampled_from([1, "a", [], None]), max_size=4)


@given(COMBINED, ARGUMENTS)
def test_arguments_that_fit_a_schema_fit_its_plain_form_too(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    made = plain(schema)
    assert refusals(made.schema) == []
    assume(not made.names.keys() & arguments.keys())  # no model knows that a name without a meaning was taken
    new = {name: new for new, name in made.names.items()}
    sent = {new.get(name, name): value for name, value in arguments.items()}
    assert made.own(sent) == arguments
    if Draft202012Validator(schema).is_valid(arguments):
        assert Draft202012Validator(made.schema).is_valid(sent)
