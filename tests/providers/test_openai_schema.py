"""Which types OpenAI's service writes values of itself, by the schemas that turns are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from ikigai_actors.providers.openai_schema import is_taken
from ikigai_actors.records.messages.outputs import expected


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Mast:
    wood: Literal["oak", "pine"]
    feet: Annotated[int, Field(ge=1, description="Its height.")]


class Ship(BaseModel):
    """A ship."""

    name: str
    masts: list[Mast]
    colour: Colour | None
    built: date
    consort: "Ship | None"


class Empty(BaseModel):
    pass


class WithDefault(BaseModel):
    name: str = "Argo"


class Described(BaseModel):
    mast: Mast = Field(description="The tallest one.")


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Wide(BaseModel):
    model_config = {"extra": "allow"}
    name: str


def nested(levels: int) -> Any:
    return list[nested(levels - 1)] if levels else int  # type: ignore[misc]


def taken(output: object) -> bool:
    return is_taken(expected(output).arguments)


@pytest.mark.parametrize(
    "output",
    [
        int,
        bool,
        str | None,
        list[float],
        Literal["a", "b"],
        Mast,
        Ship,
        list[Ship],
        Cat | Dog,
        Annotated[str, Field(pattern="^(a|b)$")],
        Annotated[list[int], Field(min_length=1, max_length=3)],
        {"type": ["string", "null"], "enum": ["a", None]},
        nested(9),
    ],
    ids=str,
)
def test_a_type_that_strict_mode_takes_unchanged_is_taken(output: object) -> None:
    assert taken(output)


@pytest.mark.parametrize(
    "output",
    [
        dict[str, int],
        tuple[int, str],
        set[int],
        Any,
        list[Any],
        {"type": "string", "pattern": "^(?!a)"},
        bytes,
        Empty,  # it names nothing that is required
        WithDefault,
        Described,  # words beside a reference
        Wide,
        Annotated[Cat | Dog, Field(discriminator="kind")],
        Annotated[str, Field(max_length=3)],
        {},
        {"type": "array"},
        {"type": "array", "items": True},
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        {"allOf": [{"type": "integer"}]},
        {"not": {"type": "integer"}},
        {"type": "integer", "if": {"minimum": 1}},
        {"$ref": "#/definitions/A", "definitions": {"A": {"type": "integer"}}},
        nested(10),
    ],
    ids=str,
)
def test_a_type_that_strict_mode_would_refuse_or_change_is_given_by_the_tool(output: object) -> None:
    assert not taken(output)


def test_the_limits_of_a_schema_are_kept() -> None:
    assert is_taken(closed({"f": {"type": "string", "enum": [str(number) for number in range(1_000)]}}))
    assert not is_taken(closed({"f": {"type": "string", "enum": [str(number) for number in range(1_001)]}}))
    assert not is_taken(closed({"f": {"type": "string", "enum": ["a" * 70_000, "b" * 70_000]}}))
    assert is_taken(closed({f"f{number}": {"type": "integer"} for number in range(5_000)}))
    assert not is_taken(closed({f"f{number}": {"type": "integer"} for number in range(5_001)}))


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def test_a_root_is_an_object_and_no_choice() -> None:
    assert not is_taken({"type": "integer"})
    assert not is_taken({"type": "object", "anyOf": [{"type": "object"}]})
