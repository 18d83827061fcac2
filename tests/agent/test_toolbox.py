"""What an agent's settings allow it of the system's tools."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ikigai_actors import tool
from ikigai_actors.agent.builtin_calls.finding import MOST_HITS, ranked
from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.toolbox import Toolbox, finds, gone_from
from ikigai_actors.agent.turn.found_tools import ALWAYS_THERE, NOTHING_FOUND, TOOL_GROUPS, FoundTools
from ikigai_actors.agent.turn.skills import LOAD_SKILL
from ikigai_actors.agent.turn.typed import form_of
from ikigai_actors.records.messages.outputs import expected as expected_output
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.system.agents_tool import ListAgents
from ikigai_actors.tools.policy import Policy


@tool
def change() -> str:
    """Change something."""
    return "changed"


@pytest.mark.parametrize("settings", [{"tools": "change"}, {"tools": {"change": 1}}])
def test_settings_that_cannot_be_read_allow_no_tool_and_no_built_in_call(settings: dict[str, Any]) -> None:
    traits = Toolbox([change]).traits(settings)
    assert set(traits) == {"change", *BUILTIN_CALLS}
    assert {trait.policy for trait in traits.values()} == {Policy.DENY}
    assert traits["kill"].denial.startswith("The setting tools of this agent cannot be read")


def test_the_size_of_the_tools_is_that_of_these_settings_whoever_asked_before() -> None:
    toolbox = Toolbox([])
    few: dict[str, Any] = {"tools": ["send", "kill"]}
    settings: list[dict[str, Any]] = [{}, few, {}, few, {"tools": []}]
    sizes = [toolbox.size(each) for each in settings]
    assert sizes == [len(json.dumps(toolbox.offer(each).sent, ensure_ascii=False).encode()) for each in settings]
    toolbox.add([change])
    assert toolbox.size({}) > sizes[0] == toolbox.size({"tools": [*BUILTIN_CALLS]}) > sizes[1] > sizes[-1]


def deferred(*names: str) -> list[Any]:
    return [tool(name=name, defer=True)(change.function) for name in names]


def names(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


def test_a_first_request_has_five_calls_in_3400_bytes_and_what_is_not_deferred() -> None:
    toolbox = Toolbox([change, *deferred("crm__pay")])
    assert names(toolbox.offer({}, NOTHING_FOUND).sent) == sorted(["change", *ALWAYS_THERE])
    assert len(ALWAYS_THERE) == 5
    assert Toolbox([ListAgents()]).size({}, found_tools=NOTHING_FOUND) <= 3_400


def test_every_call_of_the_runtime_is_always_there_or_in_one_group() -> None:
    grouped = [name for group in TOOL_GROUPS.values() for name in group]
    assert sorted([*grouped, *ALWAYS_THERE, LOAD_SKILL]) == sorted([*BUILTIN_CALLS, ListAgents.name])


def test_what_was_found_is_appended_in_order_and_what_is_gone_or_there_already_is_left_out() -> None:
    toolbox = Toolbox([change, *deferred("crm__pay")])
    first = toolbox.offer({}, NOTHING_FOUND).sent
    offer = toolbox.offer({}, FoundTools(("recall",), ("remind", "gone", "change", "crm__pay")))
    assert offer.sent == offer.read
    assert offer.sent[: len(first)] == first
    assert names(offer.sent[len(first) :]) == ["recall", "remind", "crm__pay"]


def test_a_service_that_loads_tools_by_reference_gets_all_and_its_model_reads_those_found() -> None:
    toolbox = Toolbox([change, *deferred("crm__pay")])
    found_tools = FoundTools(("recall",), ("remind", "gone"))
    offer = toolbox.offer({}, found_tools, by_reference=True)
    later = [tool["name"] for tool in offer.sent if tool.get("defer_loading")]
    assert sorted(later) == later
    assert {*later, *names(offer.sent)} == {*BUILTIN_CALLS, "change", "crm__pay"} - {LOAD_SKILL, ASK_PERSON}
    assert {"crm__pay", "remind"} <= {*later}
    assert not {"recall", "change", "find_tools"} & {*later}
    assert names(offer.read) == [*sorted(["change", *ALWAYS_THERE]), "recall", "remind"]
    assert gone_from(offer, found_tools) == {"gone", "recall"}
    wanted = expected_output(int)
    typed = toolbox.offer({}, found_tools, True, wanted)
    assert typed.sent[-1] == typed.read[-1] == form_of(wanted)


@pytest.mark.parametrize(
    ("settings", "by_reference", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"defer": "on"}, False, True),
        ({"defer": "off"}, True, False),
        ({"defer": "on", "tools": ["send"]}, True, False),
    ],
)
def test_models_find_their_tools_where_the_cache_stays_or_the_setting_says_so(
    settings: dict[str, Any], by_reference: bool, expected: bool
) -> None:
    assert finds(settings, by_reference) is expected


QUERIES = {
    "documents": [
        "share a document with others", "write a plan that all agents can read", "read document plan/mast.md",
        "list the documents",
    ],
    "timers": [
        "remind me tomorrow at nine", "set a timer", "cancel reminder", "be told when another agent dies",
        "schedule a daily job", "cron",
    ],
    "tree": [
        "kill a child", "stop a child agent", "which agents are there", "list my children", "rename myself",
        "end myself with a result", "take over what a child said", "merge child", "compare two histories",
        "give a child more budget", "raise a budget",
    ],
    "groups": ["join a group", "leave the group"],
    "memory": [
        "show an earlier message again", "recall message 12", "summarise my history", "free some context", "compact",
    ],
    "mail": ["check whether there is new mail"],
}  # fmt: skip


def test_queries_in_plain_words_find_the_group_that_is_meant() -> None:
    about = {name: trait.about for name, trait in Toolbox([ListAgents()]).traits({}).items() if trait.about}
    missed = [
        query
        for group, queries in QUERIES.items()
        for query in queries
        if not {*TOOL_GROUPS[group]} & {*ranked(query, about)[:MOST_HITS]}
    ]
    assert missed == []
    assert ranked("zebra crossing", about) == []
