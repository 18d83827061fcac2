"""What a person is told of a refusal: which part of the request it is about, and what to do. Pure."""

import pytest

from ikigai_actors.providers.base import Request
from ikigai_actors.providers.openai_parts import sent_name
from ikigai_actors.providers.remedies import Settings, refused

LONG = "a_tool_of_a_server_" * 5
TOOLS = [
    {"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}}
    for name in ("read", LONG, "give_result")
]
ASKED = Request(
    "a", None, "m", "", [{"role": "user", "content": [{"type": "text", "text": "go"}]}], tools=TOOLS, output=TOOLS[-1]
)


def refusal(said: str, *details: str, status: int = 400) -> str:
    return refused(status, said, [str(status), *details], ASKED, Settings("key", "address"), "")


@pytest.mark.parametrize(
    ("said", "details", "name"),
    [
        ("tools.1.custom.input_schema: no oneOf at the top level", (), LONG),
        ("tools.0.custom.name: should match a pattern", (), "read"),
        (f"Invalid schema for function '{sent_name(LONG)}': an array without items.", (), LONG),
        ("Invalid 'tools[0].function.description': string too long.", (), "read"),
        ("It is not valid.", ("tools[1].function.parameters",), LONG),
    ],
)
def test_the_refusal_of_a_tool_names_it_and_takes_no_prompt_back(said: str, details: tuple[str], name: str) -> None:
    text = refusal(said, *details)
    assert text.startswith(f"The service refuses the tool {name!r}: name all others in the setting tools")
    assert f"The API said: {said}" in text
    assert "undo" not in text
    assert refusal(said, *details, status=422).startswith("The service refuses the tool")


def test_the_refusal_of_an_output_says_so() -> None:
    assert refusal("tools.2.custom.input_schema: no").startswith("The service refuses the schema of the output")


@pytest.mark.parametrize("said", ["tools.9.custom: ?", "function 'other' is unknown", "prompt is too long", "No."])
def test_any_other_refusal_names_no_tool(said: str) -> None:
    assert "refuses the tool" not in refusal(said)
