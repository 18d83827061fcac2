"""What an agent's settings allow it of the system's tools."""

import json
from typing import Any

import pytest

from ikigai_actors import tool
from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.tools.policy import Policy


@tool
def change() -> str:
    """Change something."""
    return "changed"


@pytest.mark.parametrize("settings", [{"tools": "change"}, {"tools": {"change": 1}}])
def test_settings_that_cannot_be_read_allow_no_tool_and_no_built_in_call(settings: dict[str, Any]) -> None:
    traits = Toolbox([change]).traits(settings)
    assert set(traits) == {"change", *BUILTIN_CALLS}
    assert {one.policy for one in traits.values()} == {Policy.DENY}
    assert traits["kill"].denial.startswith("The setting tools of this agent cannot be read")


def test_the_size_of_the_tools_is_that_of_these_settings_whoever_asked_before() -> None:
    toolbox = Toolbox([])
    few: dict[str, Any] = {"tools": ["send", "kill"]}
    settings: list[dict[str, Any]] = [{}, few, {}, few, {"tools": []}]
    sizes = [toolbox.size(each) for each in settings]
    assert sizes == [len(json.dumps(toolbox.describe(each), ensure_ascii=False).encode()) for each in settings]
    toolbox.add([change])
    assert toolbox.size({}) > sizes[0] == toolbox.size({"tools": [*BUILTIN_CALLS]}) > sizes[1] > sizes[-1]
