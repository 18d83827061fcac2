"""Calls that are answered from a record."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.agent.turn.calls import Call, Progress
from ikigai_actors.agent.turn.record import from_record, kept_in
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.tools.policy import ToolTraits

NAMES = st.sampled_from(["a", "b"])
INPUTS = st.sampled_from([{}, {"x": 1}, {"x": 1, "y": 2}])
RECORDS = st.lists(st.tuples(NAMES, INPUTS), max_size=8).map(
    lambda calls: [[name, arguments, f"{place}", place % 2 == 0] for place, (name, arguments) in enumerate(calls)]
)
REPLIES = st.lists(st.lists(st.tuples(NAMES, INPUTS), min_size=1, max_size=4), min_size=1, max_size=4)


def reply(position: int, calls: list[tuple[str, dict[str, Any]]]) -> Message:
    blocks = [
        {"type": "tool_use", "id": f"{position}-{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(calls)
    ]
    return Message("me", position, "assistant", "", {"blocks": blocks}, 0)


@given(RECORDS, REPLIES)
def test_the_same_call_made_again_gets_the_next_of_its_results(
    record: list[list[Any]], replies: list[list[tuple[str, dict[str, Any]]]]
) -> None:
    """The oracle takes results out of a list, call by call, as one who replays a tape would."""
    left = [list(entry) for entry in record]
    own = [reply(10 + place, calls) for place, calls in enumerate(replies)]
    for place, calls in enumerate(replies):
        expected = {}
        for number, call in enumerate(calls):
            match = next((entry for entry in left if entry[:2] == [*call]), None)
            if match is not None:
                left.remove(match)
                expected[f"{10 + place}-{number}"] = (match[2], match[3], ())
        now = tuple(Call(f"{10 + place}-{number}", *call, reply=10 + place) for number, call in enumerate(calls))
        assert from_record({"record": record}, own[: place + 1], now) == expected


def test_the_order_of_the_keys_of_an_argument_does_not_matter() -> None:
    calls = (Call("1", "a", {"y": 2, "x": 1}, reply=7),)
    assert from_record({"record": [["a", {"x": 1, "y": 2}, "found", False]]}, [], calls) == {"1": ("found", False, ())}


def test_only_a_tool_that_is_named_and_only_reads_is_carried_out() -> None:
    tools = {"reads": ToolTraits(read_only=True), "other": ToolTraits(read_only=True), "writes": ToolTraits()}
    calls = tuple(Call(name, name, {}) for name in ("reads", "other", "writes", "unknown"))
    kept = kept_in({"run": ["reads", "writes", "unknown"]}, calls, tools)
    assert [call.name for call in kept] == ["other", "writes", "unknown"]


def test_what_has_begun_is_not_answered_again() -> None:
    calls = (Call("1", "a", {}, Progress.RUNNING), Call("2", "a", {}, Progress.DONE))
    assert kept_in({}, calls, {}) == ()
