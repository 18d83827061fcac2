"""Types that a turn must give a value of: their schemas, and values checked by both."""

import json
import math
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ikigai_actors import BadInput, OutputError, read_output
from ikigai_actors.records.messages import outputs
from ikigai_actors.records.messages.outputs import (
    MOST_SHOWN,
    Expected,
    as_output,
    expected,
    given_as_text,
    given_in,
    problems,
)


class Item(BaseModel):
    price: Annotated[float, Field(ge=0)]
    name: str
    since: date | None = None


class Order(BaseModel):
    items: list[Item]
    count: int

    @field_validator("count")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("it must be even")
        return value


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


@dataclass
class Node:
    value: int
    next: "Node | None" = None


def wrong(output: Any, value: object) -> list[str]:
    return problems(expected(output), value)


GOOD = {"items": [{"price": 1.5, "name": "tea", "since": "2026-01-31"}], "count": 2}


def test_a_value_that_fits_becomes_one_of_the_type() -> None:
    assert as_output(Order, GOOD) == Order(items=[Item(price=1.5, name="tea", since=date(2026, 1, 31))], count=2)
    assert as_output(Node, {"value": 1, "next": {"value": 2}}) == Node(1, Node(2))
    assert as_output(tuple[int, str], [1, "a"]) == (1, "a")
    assert as_output(int | None, None) is None
    assert as_output({"type": "integer"}, 5) == 5
    assert read_output(json.dumps(GOOD), Order).count == 2


@pytest.mark.parametrize(
    ("output", "value", "named"),
    [
        (int, "5", "'5' is not of type 'integer'"),
        (int, True, "True is not of type 'integer'"),
        (int, 5.0, "valid integer"),
        (bool, "yes", "'yes' is not of type 'boolean'"),
        (float, math.nan, "Out of range float values"),
        (str, "\ud800", "surrogates not allowed"),
        (Literal["a", "b"], "c", "'c' is not one of ['a', 'b']"),
        (Order, {**GOOD, "more": 1}, "'more' was unexpected"),
        (Order, {**GOOD, "count": 3}, "count: Value error, it must be even"),
        (Order, {"items": [{"price": -1, "name": "x"}], "count": 2}, "items.0.price: -1 is less than the minimum of 0"),
        (Order, {"items": [{"price": 1, "name": "x", "since": "soon"}], "count": 2}, "items.0.since"),
        (Node, {"value": 1, "next": {"value": "x"}}, "next.value: 'x' is not of type 'integer'"),
        ({"type": "array", "maxItems": 1}, [1, 2], "[1, 2] is too long"),
    ],
)
def test_each_error_of_a_value_is_named_with_its_place(output: Any, value: object, named: str) -> None:
    assert named in "\n".join(wrong(output, value))
    with pytest.raises(OutputError):
        as_output(output, value)


def test_all_errors_are_named_and_of_many_the_first_ones() -> None:
    bad = {"items": [{"price": "x", "name": 1}], "count": "2"}
    assert len(wrong(Order, bad)) == 3
    problems = wrong(list[int], ["x"] * 1_000)
    assert (len(problems), problems[-1]) == (MOST_SHOWN + 1, "and 980 more")


def test_an_unknown_key_is_an_error_unless_the_type_allows_it() -> None:
    assert wrong(Loose, {"a": 1, "b": 2}) == []
    assert wrong(Item, {"price": 1, "name": "x", "b": 2}) != []


def test_where_the_type_is_not_known_its_schema_decides() -> None:
    elsewhere = Expected(json.loads(json.dumps(expected(Order).schema)), "program:Order")
    assert problems(elsewhere, {**GOOD, "count": 3}) == []  # only the type knows that it must be even
    assert problems(elsewhere, {**GOOD, "count": "3"}) == ["count: '3' is not of type 'integer'"]


def test_a_validator_that_fails_is_an_error_of_the_value() -> None:
    class Fragile(BaseModel):
        a: int

        @field_validator("a")
        @classmethod
        def fail(cls, value: int) -> int:
            raise RuntimeError("out of order")

    assert wrong(Fragile, {"a": 1}) == ["its validator failed: RuntimeError: out of order"]


@pytest.mark.parametrize(
    "output",
    [object(), 5, "int", print, type, {"type": "nope"}, {"$ref": "https://example.org"}, {"$ref": "#/$defs/x"},
     {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]},
     {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"x": {"required": True}}},
     {"pattern": "("}, {"enum": {1}}, {"description": "x" * 300_000}],
)  # fmt: skip
def test_what_is_no_type_is_refused_at_the_call(output: object) -> None:
    with pytest.raises(BadInput, match="output"):
        expected(output)


@pytest.mark.parametrize(
    "text",
    ["", "5", "[]", '{"result": 1, "result": 2}', '{"result": NaN}', '```json\n{"result": 1}\n```', '{"result": 1} ok',
     '{"result": 1, "more": 2}', "[" * 100_000],
)  # fmt: skip
def test_an_answer_in_words_is_no_value(text: str) -> None:
    value, is_value = given_as_text(text, expected(int))
    assert value is None
    assert is_value


def test_an_answer_in_the_form_of_the_tool_is_the_value() -> None:
    assert given_as_text('{"result": 7}', expected(int)) == (7, [])
    assert given_in({"result": 7}, expected(int)) == (7, [])
    assert given_in({"result": 7, "more": 1}, expected(int))[1]
    assert given_in("x", expected(int))[1]


def test_the_arguments_of_the_tool_are_an_object_whatever_the_type() -> None:
    from jsonschema import Draft202012Validator

    for output, value in ((int, 1), (list[int], [1]), (Node, {"value": 1}), (int | str, "a"), (Order, GOOD)):
        arguments = expected(output).arguments
        assert arguments["type"] == "object"
        Draft202012Validator.check_schema(arguments)
        assert list(Draft202012Validator(arguments).iter_errors({"result": value})) == []
        assert list(Draft202012Validator(arguments).iter_errors({"result": object()})) != []


def test_the_arguments_of_the_tool_are_in_the_form_that_services_take() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.org/pair"}
    pair = {
        **draft,
        "type": "array",
        "items": [{"$ref": "#/$defs/A"}, {"type": "array"}],
        "$defs": {"A": {"type": "string"}},
    }
    wanted = expected(pair)
    assert wanted.schema == pair
    assert problems(wanted, ["a", []]) == []
    array = {"type": "array", "items": {}}
    made = {"type": "array", "prefixItems": [{"$ref": "#/$defs/A"}, array], "items": {}}
    assert wanted.arguments["properties"] == {"result": made}
    assert wanted.arguments["$defs"] == pair["$defs"]
    stored = Expected({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/lost"}]})  # by an older version
    assert stored.arguments["properties"] == {"result": stored.schema}


@pytest.mark.thorough("hundreds of types")
def test_a_process_keeps_a_few_hundred_types_at_most() -> None:
    for number in range(outputs._MOST_KNOWN + 5):
        expected(Literal[number])
    assert len(outputs._known) <= outputs._MOST_KNOWN


leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3)
values = st.recursive(leaves, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part))


@pytest.mark.slow("takes a second")
@given(st.sampled_from([Order, Node, int, list[int], dict[str, float], Loose, tuple[int, str]]), values)
@settings(max_examples=60, deadline=None)
def test_whatever_comes_is_a_value_of_the_type_or_named_as_none(output: Any, value: Any) -> None:
    wanted = expected(output)
    if wrong(output, value):
        with pytest.raises(OutputError):
            as_output(output, value)
    else:
        from pydantic import TypeAdapter

        made = as_output(output, value)
        again = json.loads(TypeAdapter(output).dump_json(made, exclude_unset=True))
        assert again == json.loads(json.dumps(value))
    assert problems(wanted, value) == wrong(output, value)
