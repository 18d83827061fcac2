"""The steps that carry out the calls of a reply: pure, without actors, store or time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import PERHAPS_RUN, Call, Progress, digest_of
from ikigai_actors.agent.turn.machine import accepts, step
from ikigai_actors.agent.turn.state import Answer, AskApproval, Phase, RequestModel, RunTool, Spawn, State, Step
from ikigai_actors.errors import BadInput, ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.log.history import EMPTY
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.settings import LIVING_LIMIT, MAX_STEPS
from ikigai_actors.tools.policy import Policy, ToolTraits
from tests.agent.turn.test_calls import NOW, TOOLS, call

CONTINUE = on.Continue(["kids"])


def tooling(*parts: Call | str, **changes: Any) -> State:
    """An agent that carries out calls, in its third request."""
    made = tuple(call(part) if isinstance(part, str) else part for part in parts)
    state = State("memo", 4, turn=3, phase=Phase.RUNNING_TOOLS, request=3, steps=1, calls=made, callers=("asker",))
    return replace(state, **changes)


def said(done: Step) -> list[tuple[str, str]]:
    """Kind and call of each message that a step writes."""
    assert isinstance(done.unit, LogUnit)
    return [(message.kind, str(message.data.get("tool_use_id", ""))) for message in done.unit.messages]


def only(done: Step) -> Message:
    """The one message that a step writes."""
    assert isinstance(done.unit, LogUnit)
    [message] = done.unit.messages
    return message


def progress(state: State) -> Mapping[str, Progress]:
    return {call.id: call.progress for call in state.calls}


def finished(call_id: str, content: str = "done", request: int = 3) -> on.ToolFinished:
    return on.ToolFinished(request, call_id, content, False)


def test_a_reply_with_calls_is_committed_before_anything_is_done_for_them() -> None:
    asking = tooling(phase=Phase.WAITING_FOR_MODEL)
    reply = Reply("I look.", (ToolCall("read", {"path": "a"}, "1"),), "tool_use")
    done = step(asking, on.ReplyReceived(3, reply, "p:m"), NOW, TOOLS)
    assert said(done) == [("assistant", "")]
    assert done.effects == ()
    assert isinstance(done.unit, LogUnit)
    assert done.unit.turn is None
    assert done.state.phase is Phase.RUNNING_TOOLS
    assert done.state.calls == (Call("1", "read", {"path": "a"}, reply=5),)


def test_each_call_is_written_ahead_in_one_unit_and_its_tool_runs_only_after_that() -> None:
    done = step(tooling("1:read", "2:fork", "3:write"), CONTINUE, NOW, TOOLS)
    assert said(done) == [("tool_call", "1"), ("tool_call", "3")]
    assert done.effects == (RunTool(3, "1"), RunTool(3, "3"))
    assert progress(done.state) == {"1": Progress.RUNNING, "2": Progress.WAITING, "3": Progress.RUNNING}


def test_while_a_tool_is_outside_there_is_nothing_to_do() -> None:
    state = tooling(call("1:read", Progress.RUNNING), "2:fork")
    assert step(state, CONTINUE, NOW, TOOLS) == Step(state)


def test_results_are_written_one_by_one_in_the_order_in_which_they_come() -> None:
    state = step(tooling("1:read", "2:read"), CONTINUE, NOW, TOOLS).state
    written = []
    for late in ("2", "1"):
        done = step(state, finished(late, f"of {late}"), NOW, TOOLS)
        written.append((only(done).id, only(done).content, only(done).data["tool_use_id"]))
        state = done.state
    assert written == [(7, "of 2", "2"), (8, "of 1", "1")]
    assert step(state, CONTINUE, NOW, TOOLS).effects == (RequestModel(4),)


def test_an_error_result_says_so_in_its_data() -> None:
    state = tooling(call("1:read", Progress.RUNNING))
    assert only(step(state, on.ToolFinished(3, "1", "no", True), NOW, TOOLS)).data["is_error"] is True
    assert "is_error" not in only(step(state, finished("1"), NOW, TOOLS)).data


@pytest.mark.parametrize("late", [finished("1", request=2), finished("2"), finished("3"), finished("nobody")])
def test_a_result_that_nobody_waits_for_changes_nothing(late: on.ToolFinished) -> None:
    state = tooling(call("1:read", Progress.RUNNING), call("2:read", Progress.DONE), "3:read")
    assert step(state, late, NOW, TOOLS) == Step(state)


def test_a_result_after_the_end_of_the_turn_changes_nothing() -> None:
    ended = step(tooling(call("1:read", Progress.RUNNING)), on.Interrupt("caller"), NOW, TOOLS).state
    assert step(ended, finished("1"), NOW, TOOLS) == Step(ended)


def test_an_unknown_tool_is_an_error_result_that_names_those_on_offer() -> None:
    done = step(tooling("1:read", "2:gone", "3:lost"), CONTINUE, NOW, TOOLS)
    assert said(done) == [("tool_result", "2"), ("tool_result", "3")]
    assert isinstance(done.unit, LogUnit)
    assert "Tools on offer: drop, fork, post, read, shell, write." in done.unit.messages[0].content
    assert done.unit.messages[0].data["is_error"] is True
    assert done.effects == ()
    assert step(done.state, CONTINUE, NOW, TOOLS).effects == (RunTool(3, "1"),)


def test_a_fork_that_the_settings_leave_out_is_an_unknown_tool() -> None:
    done = step(tooling("1:fork"), CONTINUE, NOW)
    assert "Tools on offer: none." in only(done).content
    assert isinstance(done.unit, LogUnit)
    assert done.unit.births == ()


def test_forks_come_last_and_in_order_all_in_one_unit() -> None:
    state = tooling(call("1:fork", name="a"), call("2:read", Progress.RUNNING), call("3:fork", prompt="go"))
    assert step(state, CONTINUE, NOW, TOOLS) == Step(state)
    state = step(state, finished("2"), NOW, TOOLS).state
    both = step(state, on.Continue(["kid 1", "kid 2"]), NOW, TOOLS)
    assert said(both) == [("fork", ""), ("tool_result", "1"), ("fork", ""), ("tool_result", "3")]
    assert (both.call, both.together) == ("1", True)
    assert isinstance(both.unit, LogUnit)
    places = [(birth.uuid, birth.fork_message_id, birth.messages[0].id) for birth in both.unit.births]
    assert places == [("kid 1", state.head, state.head + 1), ("kid 2", state.head + 2, state.head + 3)]
    assert step(both.state, on.Continue([]), NOW, TOOLS).effects == (RequestModel(4),)


def test_forks_that_the_store_refused_together_are_carried_out_one_by_one() -> None:
    state = tooling("1:fork", "2:fork")
    first = step(state, on.Continue(["kid 1", "kid 2"], one_by_one=True), NOW, TOOLS)
    second = step(first.state, on.Continue(["kid 3"]), NOW, TOOLS)
    assert said(first) == [("fork", ""), ("tool_result", "1")]
    assert said(second) == [("fork", ""), ("tool_result", "2")]
    assert [(call.call, call.together) for call in (first, second)] == [("1", False), ("2", False)]


def test_forks_with_a_mistake_between_them_are_units_of_their_own() -> None:
    state = tooling(call("1:fork"), call("2:fork", name="two words"), call("3:fork"))
    first = step(state, on.Continue(["kid 1", "kid 2", "kid 3"]), NOW, TOOLS)
    second = step(first.state, on.Continue(["kid 2", "kid 3"]), NOW, TOOLS)
    assert said(first) == [("fork", ""), ("tool_result", "1")]
    assert said(second) == [("tool_result", "2")]


def test_a_fork_by_call_gives_each_side_its_own_result_of_that_call() -> None:
    done = step(tooling(call("1:fork", prompt="go", name="n")), CONTINUE, NOW, TOOLS)
    assert isinstance(done.unit, LogUnit)
    assert isinstance(done.unit, LogUnit)
    [birth] = done.unit.births
    assert done.effects == (Spawn(birth),)
    assert (birth.uuid, birth.name, birth.parent_uuid, birth.fork_message_id) == ("kids", "n", "memo", 4)
    assert [(m.id, m.kind) for m in birth.messages] == [(5, "fork"), (6, "tool_result"), (7, "user")]
    assert (birth.turn, birth.limit) == (7, LIVING_LIMIT)
    mine, hers = done.unit.messages[1], birth.messages[1]
    assert mine.data == hers.data == {"tool_use_id": "1", "name": "fork"}
    assert "the child is n" in mine.content
    assert f"You are the child n, forked from {words_of('memo')}" in hers.content


def test_a_child_of_a_call_without_a_prompt_is_born_in_its_turn_too() -> None:
    for blank in ({}, {"prompt": None}, {"prompt": "", "name": ""}):
        unit = step(tooling(call("1:fork", **blank)), CONTINUE, NOW, TOOLS).unit
        assert isinstance(unit, LogUnit)
        [birth] = unit.births
        assert [m.kind for m in birth.messages] == ["fork", "tool_result"]
        assert (birth.turn, birth.name) == (6, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "two words"}, "1 to 64 letters"),
        ({"name": "A" * 22}, "look like a uuid"),
        ({"prompt": 7}, "wants prompt to be text, got 7"),
        ({"promt": "x"}, "does not know 'promt'"),
    ],
)
def test_a_fork_that_cannot_be_is_an_error_result_that_says_why(arguments: dict[str, Any], message: str) -> None:
    done = step(tooling(call("1:fork", **arguments)), CONTINUE, NOW, TOOLS)
    assert message in only(done).content
    assert only(done).data["is_error"] is True
    assert isinstance(done.unit, LogUnit)
    assert done.unit.births == ()
    assert step(done.state, CONTINUE, NOW, TOOLS).effects == (RequestModel(4),)


def test_a_fork_that_the_store_refuses_is_an_error_result_and_the_turn_goes_on() -> None:
    state = tooling("1:fork", "2:fork")
    done = step(state, on.CallRefused("1", "The name is taken."), NOW, TOOLS)
    assert (only(done).content, only(done).data["is_error"]) == ("The name is taken.", True)
    assert progress(done.state) == {"1": Progress.DONE, "2": Progress.WAITING}


def test_a_turn_ends_with_an_error_after_its_last_step() -> None:
    state = tooling(call("1:read", Progress.DONE), steps=MAX_STEPS)
    done = step(state, CONTINUE, NOW, TOOLS)
    assert only(done).kind == Kind.ERROR
    assert isinstance(done.unit, LogUnit)
    assert done.unit.turn == 0
    assert done.state.phase is Phase.IDLE
    [answer] = done.effects
    assert isinstance(answer, Answer)
    assert isinstance(answer.value, ProviderError)
    assert f"after {MAX_STEPS} steps" in str(answer.value)
    assert step(replace(state, steps=MAX_STEPS - 1), CONTINUE, NOW, TOOLS).effects == (RequestModel(4),)
    for most, ends in ((MAX_STEPS, True), (MAX_STEPS + 1, False)):
        allowed = replace(state, view=EMPTY._replace(settings={"max_steps": most}))
        assert (step(allowed, CONTINUE, NOW, TOOLS).state.turn == 0) is ends


def test_a_question_is_committed_before_somebody_is_asked_and_other_calls_start_meanwhile() -> None:
    done = step(tooling("1:post", "2:read", "3:post"), CONTINUE, NOW, TOOLS)
    assert said(done) == [("approval", "1"), ("approval", "3")]
    assert done.effects == (AskApproval(3, "1"), AskApproval(3, "3"))
    started = step(done.state, CONTINUE, NOW, TOOLS)
    assert said(started) == [("tool_call", "2")]
    assert started.state.shown is Phase.RUNNING_TOOLS
    ended = step(started.state, finished("2"), NOW, TOOLS)
    assert ended.state.shown is Phase.WAITING_FOR_APPROVAL
    assert step(ended.state, CONTINUE, NOW, TOOLS) == Step(ended.state)


def test_an_approved_call_starts_and_a_denied_one_has_its_result() -> None:
    asked = step(tooling("1:post", "2:post"), CONTINUE, NOW, TOOLS).state
    approved = step(asked, on.Decide(0, "1", True, "", "", "person"), NOW, TOOLS)
    assert (said(approved), approved.effects) == ([("approval", "1")], (Answer("person", True),))
    denied = step(approved.state, on.Decide(0, "2", False, "no", "", "person"), NOW, TOOLS)
    assert only(denied).content == "This call was denied: no"
    started = step(denied.state, CONTINUE, NOW, TOOLS)
    assert (said(started), started.effects) == ([("tool_call", "1")], (RunTool(3, "1"),))


@pytest.mark.parametrize("decision", [(0, "2"), (7, "1")])
def test_a_decision_on_a_call_that_does_not_ask_changes_nothing(decision: tuple[int, str]) -> None:
    asked = step(tooling("1:post", "2:read"), CONTINUE, NOW, TOOLS).state
    done = step(asked, on.Decide(*decision, True, "", "", "person"), NOW, TOOLS)
    assert done == Step(asked, effects=(Answer("person", False),))


def test_a_decision_is_on_the_exact_arguments_and_the_log_says_who_made_it() -> None:
    asked = step(tooling("1:post", "2:post"), CONTINUE, NOW, TOOLS)
    digest = digest_of("post", {})
    assert isinstance(asked.unit, LogUnit)
    assert [message.data["call_sha256"] for message in asked.unit.messages] == [digest, digest]
    other = step(asked.state, on.Decide(0, "1", True, "", "", "person", digest_of("post", {"to": "all"})), NOW, TOOLS)
    [answer] = other.effects
    assert isinstance(answer, Answer)
    assert isinstance(answer.value, BadInput)
    assert other.state == asked.state
    approved = step(asked.state, on.Decide(0, "1", True, "", "", "person", digest, "anna@shop"), NOW, TOOLS)
    assert only(approved).data == {
        "tool_use_id": "1", "name": "post", "call_sha256": digest, "approved": True, "by": "anna@shop",
    }  # fmt: skip
    denied = step(approved.state, on.Decide(0, "2", False, "no", "", "person", digest, "anna@shop"), NOW, TOOLS)
    assert (only(denied).data["call_sha256"], only(denied).data["by"]) == (digest, "anna@shop")


def test_a_call_that_is_not_the_one_that_was_approved_is_not_begun() -> None:
    asked = step(tooling("1:post"), CONTINUE, NOW, TOOLS).state
    approved = step(asked, on.Decide(0, "1", True, "", "", "person"), NOW, TOOLS).state
    [posts] = approved.calls
    changed = replace(approved, calls=(replace(posts, input={"to": "all"}),))
    refused = only(step(changed, CONTINUE, NOW, TOOLS))
    assert refused.content == "This is not the call that was approved, so it was not begun."
    assert said(step(approved, CONTINUE, NOW, TOOLS)) == [("tool_call", "1")]


def test_a_question_is_settled_when_the_policy_has_changed() -> None:
    asked = step(tooling("1:post"), CONTINUE, NOW, TOOLS).state
    allowed = step(asked, CONTINUE, NOW, {**TOOLS, "post": ToolTraits()})
    assert said(allowed) == [("tool_call", "1")]
    forbidden = step(asked, CONTINUE, NOW, {**TOOLS, "post": ToolTraits(policy=Policy.DENY, denial="not any more")})
    assert only(forbidden).content == "not any more"


def test_resuming_asks_again_what_was_not_decided() -> None:
    asked = step(tooling("1:post", "2:post"), CONTINUE, NOW, TOOLS).state
    cut_off = replace(asked, phase=Phase.INTERRUPTED)
    decided = step(cut_off, on.Decide(0, "1", True, "", "", "person"), NOW, TOOLS)
    assert decided.state.phase is Phase.INTERRUPTED
    resumed = step(decided.state, on.Resume("person"), NOW, TOOLS)
    assert resumed.effects == (Answer("person", True), AskApproval(3, "2"))
    assert said(step(resumed.state, CONTINUE, NOW, TOOLS)) == [("tool_call", "1")]


def test_an_interrupt_during_tools_ends_the_turn_and_forgets_its_calls() -> None:
    state = tooling(call("1:read", Progress.RUNNING), "2:fork")
    done = step(state, on.Interrupt("caller"), NOW, TOOLS)
    assert only(done).kind == Kind.INTERRUPTED
    assert isinstance(done.unit, LogUnit)
    assert done.unit.turn == 0
    assert (done.state.phase, done.state.calls) == (Phase.IDLE, ())
    assert isinstance(done.state.last, TurnInterrupted)


@pytest.mark.parametrize(
    ("fork", "accepted"),
    [(call("1:read"), False), (call("1:read", Progress.RUNNING), False), (call("1:read", Progress.DONE), True)],
)
def test_a_fork_from_outside_waits_until_every_call_has_its_result(fork: Call, accepted: bool) -> None:
    state = tooling(call("0:read", Progress.DONE), fork)
    assert accepts(state, on.Fork("kids", None, None, {}, "transient", "caller")) is accepted
    assert not accepts(state, on.Prompt("x", "caller"))
    assert accepts(state, on.GetOutcome("caller"))


# Resuming: the table of calls.py, line by line


def resumed(*calls: Call) -> Step:
    return step(tooling(*calls, phase=Phase.INTERRUPTED), on.Resume("caller"), NOW, TOOLS)


def test_resuming_starts_a_call_that_waited() -> None:
    done = resumed(call("1:write"))
    assert (done.unit, done.effects) == (LogUnit("memo", (), resumed_at=4), (Answer("caller", True),))
    assert step(done.state, CONTINUE, NOW, TOOLS).effects == (RunTool(3, "1"),)


def test_resuming_starts_an_idempotent_call_again_with_a_record_of_its_own() -> None:
    done = resumed(replace(call("1:read", Progress.RUNNING), attempt=1))
    assert done.unit == LogUnit("memo", (), resumed_at=4)
    again = step(done.state, CONTINUE, NOW, TOOLS)
    assert (said(again), again.effects) == ([("tool_call", "1")], (RunTool(3, "1"),))
    assert [call.attempt for call in again.state.calls] == [2]


def test_resuming_says_of_any_other_call_that_it_may_have_run_and_never_runs_it() -> None:
    done = resumed(call("1:write", Progress.RUNNING), call("2:write", Progress.DONE))
    assert (only(done).content, only(done).data["is_error"]) == (PERHAPS_RUN, True)
    assert done.effects == (Answer("caller", True),)
    assert done.caller == "caller"
    assert step(done.state, CONTINUE, NOW, TOOLS).effects == (RequestModel(4),)


def test_resuming_performs_a_fork_that_has_no_result() -> None:
    done = resumed(call("1:fork", Progress.DONE), call("2:fork"))
    forked = step(done.state, CONTINUE, NOW, TOOLS)
    assert said(forked) == [("fork", ""), ("tool_result", "2")]


def test_resuming_lets_results_stand_and_asks_the_model() -> None:
    done = resumed(call("1:write", Progress.DONE))
    assert done.unit == LogUnit("memo", (), resumed_at=4)
    assert step(done.state, CONTINUE, NOW, TOOLS).effects == (RequestModel(4),)


def test_without_its_program_a_turn_is_resumed_untouched_and_waits_whoever_asks() -> None:
    cut = tooling(call("1:write", Progress.RUNNING), call("2:read"), phase=Phase.INTERRUPTED)
    done = step(cut, on.Resume("caller", on.Resumption.HOST, program="lead"), NOW, TOOLS)
    assert (done.unit, done.effects) == (None, (Answer("caller", True),))
    assert (done.state.phase, done.state.calls) == (Phase.WAITING_FOR_PROGRAM, cut.calls)
    assert not done.state.goes_on
    waits = done.state
    assert [accepts(waits, command) for command in (on.Prompt("x", "caller"), on.Compact("", "caller"))] == [False] * 2
    assert not accepts(waits, on.Merge("kid", "result", (), "caller"))
    assert accepts(waits, on.Fork("kids", None, None, {}, "transient", "caller"))
    known = step(waits, on.Resume("caller"), NOW, TOOLS)
    assert (known.state.phase, only(known).content) == (Phase.RUNNING_TOOLS, PERHAPS_RUN)
    ended = step(waits, on.Interrupt("caller"), NOW, TOOLS)
    assert (ended.state.phase, ended.state.turn) == (Phase.IDLE, 0)
    late = step(waits, on.ProgramMissing(waits.request, "lead"), NOW, TOOLS)
    assert late.state == waits
