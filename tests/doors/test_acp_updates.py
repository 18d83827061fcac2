"""What an ACP client is shown: each agent in its session, announced before anything bears its id."""

from typing import Any

import pytest
from acp.schema import PromptRequest, ToolCallProgress, ToolCallStart, UserMessageChunk
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ikigai_actors.doors.acp.client_prompt import prompt_of
from ikigai_actors.doors.acp.models import checked, dumped
from ikigai_actors.doors.acp.session_tree import Announcement, Route, SessionTree
from ikigai_actors.doors.acp.updates import Live, updates_of
from ikigai_actors.doors.call_title import call_title
from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.messages import Kind, Message

ABOVE: dict[str, str | None] = {"root": None, "a": "root", "b": "a", "c": "b", "d": "a", "e": "root"}


def tree(*opened: str, subagents: bool = True) -> SessionTree:
    made = SessionTree(ABOVE.get, subagents=subagents)
    made.open.update(opened)
    return made


def test_an_agent_below_an_open_session_is_announced_parents_first_and_once() -> None:
    sessions = tree("a")
    route = sessions.route("c")
    assert route == Route("c", (Announcement("a", "b"), Announcement("b", "c")))
    sessions.announce(route)
    assert [sessions.route(agent) for agent in ("c", "b", "a")] == [Route("c"), Route("b"), Route("a")]
    assert sessions.route("e") is None
    sessions.forget("a")
    assert (sessions.route("c"), sessions.announced) == (None, {})


def test_a_client_that_knows_no_subagents_sees_the_nearest_open_session() -> None:
    sessions = tree("root", "b", subagents=False)
    assert [sessions.route(agent) for agent in ("c", "d", "e")] == [Route("b"), Route("root"), Route("root")]


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=9),
    st.lists(st.tuples(st.sampled_from(["open", "close", "act"]), st.integers(0, 9)), max_size=30),
)
def test_nothing_bears_an_id_that_was_not_announced(parents: list[int], steps: list[tuple[str, int]]) -> None:
    above = {"0": None} | {str(number): str(parent % number) for number, parent in enumerate(parents, 1)}
    sessions, known = SessionTree(above.get, subagents=True), set[str]()
    for what, number in steps:
        agent = str(number % len(above))
        if what == "open":
            sessions.open.add(agent)
            known.add(agent)
        elif what == "close":
            sessions.forget(agent)
            known = sessions.open | sessions.announced.keys()
        elif (route := sessions.route(agent)) is not None:
            for parent, child in route.first:
                assert (parent in known, above[child]) == (True, parent)
                known.add(child)
            assert route.session == agent in known
            sessions.announce(route)


def message(kind: str, content: str = "", **data: Any) -> Message:
    return Message("a", 7, kind, content, data, 1)


@pytest.mark.parametrize(
    ("live", "shown"),
    [
        (None, [("a:7", "tea is")]),
        (Live("x", "tea"), [("x", " is")]),
        (Live("x", "tea is"), []),
        (Live("x", "tea", is_whole=False), [("a:7", "tea is")]),
        (Live("x", "coffee"), [("a:7", "tea is")]),
    ],
)
def test_of_a_reply_that_was_streamed_only_the_rest_is_shown(live: Live | None, shown: list[tuple[str, str]]) -> None:
    dumps = [
        dumped(update)
        for update in updates_of(message(Kind.ASSISTANT, "tea is"), live)
        if isinstance(update, BaseModel)
    ]
    assert [(update["messageId"], update["content"]["text"]) for update in dumps] == shown


def test_calls_and_their_results_are_shown_under_ids_that_are_never_empty() -> None:
    reply = message(Kind.ASSISTANT, tool_calls=[{"id": "", "name": "bash", "input": {"command": "ls\n-l"}}])
    [call] = updates_of(reply)
    assert call == ToolCallStart(
        session_update="tool_call",
        tool_call_id="call_7_0",
        title="bash ls -l",
        status="pending",
        raw_input={"command": "ls\n-l"},
    )
    [begun] = updates_of(message(Kind.TOOL_CALL, tool_use_id="call_7_0"))
    [ended] = updates_of(message(Kind.TOOL_RESULT, "no", tool_use_id="call_7_0", is_error=True))
    assert [update.status for update in (begun, ended) if isinstance(update, ToolCallProgress)] == [
        "in_progress",
        "failed",
    ]
    assert len(call_title("x", {"text": "y" * 9_999})) == 200


def test_what_a_person_said_is_shown_in_replays_alone() -> None:
    said = message(Kind.USER, "tea?")
    assert list(updates_of(said)) == []
    assert [type(update) for update in updates_of(said, replayed=True)] == [UserMessageChunk]


def test_blocks_of_a_client_are_a_prompt() -> None:
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    ]
    prompt = checked(PromptRequest, {"sessionId": "a", "prompt": blocks}).prompt
    assert prompt_of(prompt) == ("look\n[a](file:///a)\nfile:///b:\nb", (b"hi",))


@pytest.mark.parametrize(
    "blocks", [None, {}, ["x"], [{"type": "video"}], [{"type": "image", "data": "?", "mimeType": "image/png"}], [{}]]
)
def test_blocks_that_cannot_be_understood_are_refused(blocks: object) -> None:
    with pytest.raises(BadInput, match="Expected"):
        prompt_of(checked(PromptRequest, {"sessionId": "a", "prompt": blocks}).prompt)
