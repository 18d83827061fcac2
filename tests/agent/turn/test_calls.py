"""The calls of one reply: which may start, and what a crash leaves of them. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors.agent.builtin_calls.table import BUILTIN_CALLS
from ikigai_actors.agent.turn.builtin import BuiltinTraits
from ikigai_actors.agent.turn.calls import (
    Call,
    Calls,
    Progress,
    calls_of,
    recover,
    settle_cut_off,
    startable,
    unknown,
)
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_message_data
from ikigai_actors.tools.policy import Policy, ToolTraits

NOW = 1_000
TOOLS: Mapping[str, ToolTraits] = {
    "read": ToolTraits(idempotent=True),
    "write": ToolTraits(),
    "shell": ToolTraits(alone=True),
    "post": ToolTraits(policy=Policy.ASK),
    "drop": ToolTraits(policy=Policy.DENY, denial="not here"),
    "fork": BuiltinTraits(begin=BUILTIN_CALLS["fork"].begin),
}


def call(text: str, progress: Progress = Progress.WAITING, **arguments: Any) -> Call:
    """A call, from ``id:name``."""
    call_id, _, name = text.partition(":")
    return Call(call_id, name, arguments, progress)


def calls(*texts: str, reply: int = 0, started: str = "", **far_ids: str) -> Calls:
    """Calls, from ``id:name``; ``running="2 3"`` says that those with these ids are that far, ``started`` once."""
    far = {Progress(name): calls.split() for name, calls in far_ids.items()}
    made = map(call, texts)
    return tuple(
        replace(
            call,
            reply=reply,
            attempt=started.split().count(call.id),
            progress=next((progress for progress, ids in far.items() if call.id in ids), call.progress),
        )
        for call in made
    )


def attempts(of: Calls) -> list[int]:
    return [call.attempt for call in of]


def ids(chosen: Calls) -> list[str]:
    return [call.id for call in chosen]


# Which calls may start


def test_all_ordinary_calls_start_at_once_and_forks_do_not() -> None:
    assert ids(startable(calls("1:read", "2:fork", "3:write"), TOOLS)) == ["1", "3"]


def test_calls_that_run_or_are_done_do_not_start_again() -> None:
    assert ids(startable(calls("1:read", "2:read", "3:read", running="1", done="2"), TOOLS)) == ["3"]


@pytest.mark.parametrize(
    ("waiting", "running", "done", "chosen"),
    [
        (("1:shell", "2:read", "3:read"), "", "", ["1"]),
        (("1:shell", "2:read", "3:read"), "1", "", []),
        (("1:shell", "2:read", "3:read"), "", "1", ["2", "3"]),
        (("1:read", "2:shell", "3:read"), "", "", ["1"]),
        (("1:read", "2:shell", "3:read"), "1", "", []),
        (("1:read", "2:shell", "3:read"), "", "1", ["2"]),
        (("1:read", "2:shell", "3:read"), "", "1 2", ["3"]),
        (("1:shell", "2:shell"), "", "", ["1"]),
        (("1:shell", "2:shell"), "", "1", ["2"]),
        (("1:fork", "2:shell"), "", "", ["2"]),
    ],
)
def test_a_call_that_runs_alone_waits_for_those_before_it_and_those_after_wait_for_it(
    waiting: tuple[str, ...], running: str, done: str, chosen: list[str]
) -> None:
    assert ids(startable(calls(*waiting, running=running, done=done), TOOLS)) == chosen


def test_only_waiting_calls_of_tools_that_are_not_on_offer_are_unknown() -> None:
    all_calls = calls("1:gone", "2:read", "3:gone", "4:fork", done="3")
    assert ids(unknown(all_calls, TOOLS)) == ["1"]
    assert ids(unknown(all_calls, {"gone": ToolTraits()})) == ["2", "4"]


# What a crash left


def message(kind: str, call_id: str = "", **data: Any) -> Message:
    return Message("me", 1, kind, "", {"tool_use_id": call_id, **data} if call_id else data, NOW)


def reply(*texts: str) -> Message:
    tool_calls = tuple(ToolCall(name, {}, call_id) for call_id, _, name in (text.partition(":") for text in texts))
    return message(Kind.ASSISTANT, **reply_message_data(Reply(tool_calls=tool_calls), "p:m"))


def test_calls_are_recovered_as_far_as_the_log_says_they_came() -> None:
    log = [
        message(Kind.USER),
        reply("1:read", "2:read", "3:write", "4:fork"),
        message(Kind.TOOL_CALL, "1"),
        message(Kind.TOOL_CALL, "2"),
        message(Kind.TOOL_RESULT, "2"),
    ]
    assert recover(log) == calls("1:read", "2:read", "3:write", "4:fork", reply=1, started="1 2", running="1", done="2")


def test_only_the_calls_of_the_latest_reply_are_recovered() -> None:
    log = [reply("1:read"), message(Kind.TOOL_CALL, "1"), message(Kind.TOOL_RESULT, "1"), reply("1:write")]
    assert recover(log) == calls("1:write", reply=1)
    assert recover([*log, reply()]) == ()
    assert recover([]) == ()


def test_a_child_has_no_calls_to_recover_though_its_log_has_the_result_of_one() -> None:
    assert recover([message(Kind.TOOL_RESULT, "1"), message(Kind.USER)]) == ()


def test_calls_without_ids_are_recovered_under_the_ids_that_their_results_name() -> None:
    asked = reply(":read", ":read")
    first, second = calls_of(asked)
    assert first.id != second.id
    assert [call.progress for call in recover([asked, message(Kind.TOOL_RESULT, second.id)])] == [
        Progress.WAITING,
        Progress.DONE,
    ]


def test_each_record_that_a_call_starts_is_an_attempt_of_it() -> None:
    asked = reply("1:read", "2:write")
    log = [asked, message(Kind.TOOL_CALL, "1"), message(Kind.TOOL_CALL, "2"), message(Kind.TOOL_CALL, "1")]
    assert [attempts(recover(log[:length])) for length in range(1, 5)] == [[0, 0], [1, 0], [1, 1], [2, 1]]
    assert attempts(recover([*log, message(Kind.TOOL_RESULT, "1"), reply("1:read")])) == [0]


def test_of_the_calls_that_were_cut_off_the_idempotent_start_again_and_the_others_are_lost() -> None:
    cut = calls("1:read", "2:write", "3:gone", "4:write", "5:read", running="1 2 3", done="5")
    going_on, lost = settle_cut_off(cut, TOOLS)
    assert ids(lost) == ["2", "3"]
    assert going_on == calls("1:read", "2:write", "3:gone", "4:write", "5:read", done="2 3 5", approved="1")
