"""Functions as tools: what a model is told of them, and what it reads when they are called."""

import asyncio
import functools
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import pytest
from anthropic.lib.tools import ToolError as AnthropicToolError
from pydantic import BaseModel, Field, TypeAdapter

from ikigai_actors import BadInput
from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.system.agents_tool import ListAgents
from ikigai_actors.tools import ToolError
from ikigai_actors.tools.function import LIMIT, TIMEOUT, FunctionTool, Result, result_of, tool


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    They may be large.

    Args:
        a: the one
        b: the other
    """
    return a + b


@tool(name="count", description="Counts.", timeout=5, idempotent=True, alone=True)
async def count_async(text: str) -> int:
    """Not what the model is told."""
    return len(text)


# What a model is told


def test_signature_and_docstring_describe_a_tool() -> None:
    description = add.describe()
    assert (description["name"], description["description"]) == ("add", "Add two numbers.\n\nThey may be large.")
    schema = description["input_schema"]
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["a"], False)
    assert schema["properties"]["a"] == {"description": "the one", "title": "A", "type": "integer"}
    assert schema["properties"]["b"]["default"] == 2


def test_a_tool_has_defaults_and_what_is_said_otherwise_counts() -> None:
    assert (add.timeout, add.traits.idempotent, add.traits.alone, add.is_async) == (TIMEOUT, False, False, False)
    assert (count_async.name, count_async.describe()["description"]) == ("count", "Counts.")
    traits = count_async.traits
    assert (count_async.timeout, traits.idempotent, traits.alone, count_async.is_async) == (5, True, True, True)


def test_annotations_limit_and_describe_an_argument() -> None:
    class Point(BaseModel):
        x: int

    @tool
    def plot(point: Point, colour: Literal["red", "blue"], size: Annotated[int, Field(description="mm", ge=1)]) -> str:
        return f"{point.x} {colour} {size}"

    properties = plot.describe()["input_schema"]["properties"]
    assert properties["size"]["description"] == "mm"
    assert properties["colour"]["enum"] == ["red", "blue"]
    assert plot.call({"point": {"x": 1}, "colour": "red", "size": 2}) == Result("1 red 2")
    text = plot.call({"point": {"x": "?"}, "colour": "green", "size": 0}).content
    for part in ("point.x: Input should be a valid integer", "colour: Input should be 'red' or 'blue'", "size: "):
        assert part in text


# What becomes of arguments


def test_an_argument_that_can_be_read_as_its_type_is() -> None:
    assert add.call({"a": "40", "b": 2.0}) == Result("42")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a: Missing required argument."),
        ({"a": "x"}, "a: Input should be a valid integer"),
        ({"a": None}, "a: Input should be a valid integer"),
        ({"a": 1, "c": 2}, "c: Unexpected keyword argument."),
        ({"a": 1, "self": 2}, "self: Unexpected keyword argument."),
        ({"b": "x"}, "; b: Input should be a valid integer"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_that_names_them(arguments: dict[str, Any], message: str) -> None:
    result = add.call(arguments)
    assert result.is_error
    assert result.content.startswith("The arguments do not fit the schema of add: ")
    assert message in result.content


def test_arguments_with_names_that_cannot_be_stored_are_an_error_that_can() -> None:
    assert "a\ufffdb: Unexpected" in add.call({"a": 1, "a\0b": 2}).content
    assert add.call({"a": 1, "\ud800": 2}).is_error


@pytest.mark.slow("takes a tenth of a second")
def test_many_wrong_arguments_are_an_error_of_limited_length() -> None:
    assert LIMIT <= len(add.call({f"x{number}": 1 for number in range(LIMIT // 20)}).content) < LIMIT + 100


def test_methods_and_async_functions_check_their_arguments_too() -> None:
    class Shop:
        def buy(self, pieces: int) -> int:
            return pieces

    bought = tool(Shop().buy)
    assert bought.call({"pieces": 3}) == Result("3")
    assert "the schema of buy: pieces: Input should" in bought.call({"pieces": "x"}).content
    assert "the schema of count: text: Missing" in asyncio.run(count_async.call_async({})).content


def test_a_validation_error_of_the_function_itself_is_not_one_of_its_arguments() -> None:
    @tool
    def inner() -> str:
        return str(TypeAdapter(int).validate_python("x"))

    @tool
    async def waits() -> str:
        return str(TypeAdapter(int).validate_python("x"))

    @tool
    def speaks() -> str:
        try:
            return str(TypeAdapter(int).validate_python("x"))
        except ValueError as error:
            raise ValueError("the table is damaged") from error

    for result in (inner.call({}), asyncio.run(waits.call_async({}))):
        assert result.is_error
        assert result.content.startswith("ValidationError: 1 validation error for int")
    assert speaks.call({}) == Result("ValueError: the table is damaged", True)


# What goes wrong


def test_a_deliberate_error_is_told_as_it_is() -> None:
    @tool
    def fail(blocks: bool) -> str:
        text = [{"type": "text", "text": "No such file."}, {"type": "text", "text": "Look in /tmp."}]
        if blocks:
            raise AnthropicToolError(text)
        raise ToolError("No such file.")

    assert fail.call({"blocks": False}) == Result("No such file.", True)
    assert fail.call({"blocks": True}) == Result("No such file.\nLook in /tmp.", True)


# What a model reads of a value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("as it is", "as it is"),
        ({"ä": [1, None, True]}, '{"ä": [1, null, true]}'),
        ([], "[]"),
        (1.5, "1.5"),
        ({1}, '"{1}"'),
        ("half \ud800 and nul \0", "half \ufffd and nul \ufffd"),
        (Result("no \0", True), "no \ufffd"),
    ],
)
def test_text_is_read_as_it_is_and_anything_else_as_json(value: object, text: str) -> None:
    assert result_of(value) == Result(text, isinstance(value, Result))


@pytest.mark.parametrize("value", ["x" * (LIMIT + 7), Result("x" * (LIMIT + 7))])
def test_output_over_the_limit_is_cut_and_says_so(value: object) -> None:
    content = result_of(value).content
    assert content.startswith("x" * LIMIT)
    assert content[LIMIT:] == "\n[cut: 7 more characters; ask for less at a time]"
    assert result_of("x" * LIMIT).content == "x" * LIMIT


def test_a_value_that_json_cannot_hold_is_an_error_result() -> None:
    @tool
    def circle() -> list[Any]:
        ring: list[Any] = []
        ring.append(ring)
        return ring

    assert circle.call({}).is_error


# What is no tool


def stars(*args: int) -> str:
    return str(args)


def keywords(**options: int) -> str:
    return str(options)


def positions(a: int, /) -> str:
    return str(a)


def umlaut(größe: str) -> str:
    return größe


class Odd:
    pass


def strange(odd: Odd) -> str:
    return str(odd)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (stars, r"\*args: int has no name"),
        (keywords, r"\*\*options: int has no name"),
        (positions, "a: int has no name"),
        (strange, "no schema can be made of it"),
        (functools.partial(positions, 1), "Expected a function"),
        (Odd(), "Expected a function"),
        (lambda: "", "'<lambda>'; give it another"),
        (umlaut, "parameters whose names are .*, got 'größe'. Rename"),
    ],
)
def test_what_gives_no_usable_schema_is_refused(function: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        tool(function)


@pytest.mark.parametrize("name", ["two words", "läs", "x" * 129])
def test_a_name_that_no_model_takes_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="name"):
        tool(name=name)(add.function)


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_time_out_must_leave_some_time(timeout: float) -> None:
    with pytest.raises(BadInput, match="above 0"):
        tool(timeout=timeout)(add.function)


class Named(ListAgents):
    """A tool of another name, made without the decorator."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("name", BUILTIN_CALLS)
def test_a_tool_with_the_name_of_a_built_in_call_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"'{name}' is a call of the runtime itself; give the tool another name"):
        Toolbox([Named(name)])


@pytest.mark.parametrize("tools", [(add, add), (add, Named("add")), (ListAgents(), Named("agents"))])
def test_tools_of_one_name_are_refused(tools: tuple[FunctionTool | Named, ...]) -> None:
    with pytest.raises(BadInput, match=f"Two tools are named '{tools[-1].name}'"):
        Toolbox(tools)


async def _pages() -> AsyncIterator[int]:
    yield 1


def test_a_function_that_yields_is_no_tool() -> None:
    def rows() -> Any:
        yield 1

    async def pages() -> Any:
        yield 1

    for function in (rows, pages):
        with pytest.raises(BadInput, match="it yields, and a model reads one result"):
            tool(function)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"PNG\xff", "it returned bytes"),
        ({"picture": bytearray(b"PNG")}, "it returned bytes"),
        ((row for row in "ab"), "an iterator (generator)"),
        ([map(str, "ab")], "an iterator (map)"),
        (_pages(), "an iterator (async_generator)"),
    ],
)
def test_what_has_no_content_that_a_model_could_read_is_a_clear_error(value: object, said: str) -> None:
    @tool
    def odd() -> Any:
        return value

    result = odd.call({})
    assert result.is_error
    assert said in result.content
