"""Builds: the same code has the same digest wherever it lies, and each change of it another one."""

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ikigai_actors import BadInput
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.builds import DIGITS, build_of, differing
from ikigai_actors.tools.definitions import ToolDifference
from ikigai_actors.tools.function import Tool, tool

PRICE = '''
from ikigai_actors import tool

@tool
def price(of: str) -> int:
    """Say what a tea costs."""
    return 3
'''


@pytest.fixture
def tool_of(tmp_path: Path) -> Callable[[str, str], Tool]:
    """Makes the tool of a module whose text and place are given."""

    def make(text: str, place: str) -> Tool:
        (tmp_path / place).mkdir(exist_ok=True)
        file = tmp_path / place / "shop.py"
        file.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"shop_{place}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made: Tool = module.price
        return made

    return make


def test_the_same_code_has_the_same_digest_elsewhere_and_any_change_of_it_another(
    tool_of: Callable[[str, str], Tool],
) -> None:
    first = build_of([tool_of(PRICE, "a")])
    assert len(first.id) == DIGITS
    assert build_of([tool_of(PRICE, "b")]) == first
    assert build_of([tool_of(PRICE.replace("return 3", "return 4"), "c")]).id != first.id  # they look alike
    assert build_of([tool_of(PRICE.replace("@tool", "@tool(idempotent=True)"), "d")]).tools != first.tools
    assert build_of([]).id != first.id
    assert build_of([], [tool_of(PRICE, "e").call]).id == build_of([]).id  # a method of ours


def test_a_file_counts_once_for_tools_programs_and_toolsets_of_an_app() -> None:
    @tool
    def plain() -> str:
        """Do one thing."""
        return ""

    class Two(Toolset):
        name = "two"

        async def open(self, tell: object) -> Sequence[Tool]:
            return ()

        async def leave(self, agent: str) -> None: ...

        async def close(self) -> None: ...

    def act(prompt: str) -> str:
        return prompt

    assert build_of([Two()]).id == build_of([], [act]).id == build_of([Two()], [act]).id
    assert build_of([plain, Two()]) == build_of([plain], [act])
    assert build_of([Two()]).tools == ()


@pytest.mark.parametrize("name", ["", "a b", "-a", "é", "a" * 65, 3])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="Expected build to be 1 to 64 letters of English"):
        build_of([], name=name)


def test_tools_that_hosts_do_not_have_alike_are_named_with_what_differs() -> None:
    bodies = {
        "1": json.dumps({"name": "price", "description": "In euros.", "policy": "allow", "read_only": True}),
        "2": json.dumps({"name": "price", "description": "In dollars.", "policy": "ask", "read_only": True}),
    }
    alike = {"look": "9"}
    assert differing({"a": {"price": "1", **alike}, "b": {"price": "1", **alike}}, bodies) == ()
    differences = differing({"a": {"price": "1", **alike}, "b": {"price": "2", "refund": "3", **alike}}, bodies)
    assert differences == (
        ToolDifference("price", ("description", "policy"), ()),
        ToolDifference("refund", (), ("a",)),
    )
    assert differing({"a": {"price": "1"}, "b": {"price": "7"}}, bodies) == (
        ToolDifference("price", ("definition",), ()),
    )
