"""The spans of a log: a fold of messages. Pure."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.records.messages.messages import Message
from ikigai_actors.sight.traces import conventions as name
from ikigai_actors.sight.traces.ids import call_span, request_span, trace_of, turn_span
from ikigai_actors.sight.traces.spans import EndedTurn, TracedAgent, TraceSpan, TurnFold

AGENT = "a" * 22
FORKED: tuple[str, str, Mapping[str, Any]] = ("fork", "", {"parent": "p", "by": "maker"})
Draft = tuple[str, str, Mapping[str, Any]]


def reply(text: str = "done", *calls: str, **data: Any) -> Draft:
    asked = {"tool_calls": [{"id": call, "name": "look", "input": {"at": call}} for call in calls]} if calls else {}
    usage = {"usage": {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5}}
    return "assistant", text, {"model": "anthropic:opus", "stop_reason": "end_turn", **usage, **asked, **data}


def result(call: str, **data: Any) -> Draft:
    return "tool_result", f"result of {call}", {"tool_use_id": call, "name": "look", **data}


def folded(*drafts: Draft, times: list[int] | None = None, **end: Any) -> list[EndedTurn]:
    """The turns of a log whose messages are one millisecond apart; it ends as ``end`` says."""
    fold = TurnFold(TracedAgent(AGENT, "walker", "p", born=7), content=bool(end.pop("content", False)))
    messages = [
        Message(AGENT, place, kind, content, data, times[place - 1] if times else 1_000 + place)
        for place, (kind, content, data) in enumerate(drafts, start=1)
    ]
    turns = [turn for message in messages if (turn := fold.follow(message)) is not None]
    last = fold.close(**{"is_open": False, **end})
    return turns if last is None else [*turns, last]


def shown(turn: EndedTurn) -> list[tuple[str, int, int, str]]:
    return [(span.name, span.start - 1_000, span.end - 1_000, span.error) for span in turn.spans]


def test_a_turn_is_a_span_with_its_requests_and_calls_below_it() -> None:
    call = ("tool_call", "look", {"tool_use_id": "c1", "name": "look"})
    [turn] = folded(("user", "hi", {}), reply("", "c1", "c2"), call, result("c1"), result("c2", is_error=True), reply())
    assert shown(turn) == [
        ("invoke_agent walker", 1, 6, ""),
        ("chat opus", 1, 2, ""),
        ("execute_tool look", 3, 4, ""),
        ("execute_tool look", 2, 5, "tool_error"),
        ("chat opus", 5, 6, ""),
    ]
    root, first, tool, *_ = turn.spans
    assert (root.trace, root.id, root.parent) == (trace_of(AGENT, 1), turn_span(AGENT, 1, 0), b"")
    assert (first.id, tool.id) == (request_span(AGENT, 1, 1), call_span(AGENT, 2, 0))
    assert {span.parent for span in turn.spans[1:]} == {root.id}
    assert len({span.id for span in turn.spans}) == 5
    assert (root.attributes[name.INPUT_TOKENS], root.attributes[name.OUTPUT_TOKENS]) == (30, 6)
    assert first.attributes[name.INPUT_TOKENS] == 15  # what the cache served is part of it
    assert root.attributes[name.OWN_END] == 6


def test_texts_stay_at_home_unless_they_are_asked_for() -> None:
    drafts: tuple[Draft, ...] = (("user", "a secret", {}), reply("a secret", "c1"), result("c1"), reply("a secret"))
    [silent] = folded(*drafts)
    assert "secret" not in str(silent)
    assert "result of" not in str(silent)
    [turn] = folded(*drafts, content=True)
    said = '[{"role":"user","parts":[{"type":"text","content":"a secret"}]}]'
    assert turn.spans[0].attributes[name.INPUT_MESSAGES] == said
    assert turn.spans[2].attributes[name.TOOL_RESULT] == "result of c1"
    assert turn.spans[2].attributes[name.TOOL_ARGUMENTS] == '{"at":"c1"}'


def test_nothing_is_told_of_a_turn_that_is_open() -> None:
    opened: tuple[Draft, ...] = (("user", "hi", {}), reply("", "c1"))
    assert folded(*opened, is_open=True) == []
    assert folded(("user", "hi", {}), reply(), is_open=True) == []  # words wait, and it goes on
    assert [len(turn.spans) for turn in folded(("user", "hi", {}), reply(), ("user", "more", {}), is_open=True)] == [2]


def test_a_turn_that_was_opened_again_has_a_second_span_in_its_trace() -> None:
    first, again = folded(("user", "hi", {}), ("error", "no", {}), ("summary", "", {}), reply())
    assert shown(first) == [("invoke_agent walker", 1, 2, "provider_error"), ("chat", 1, 2, "provider_error")]
    assert [first.spans[0].trace, first.again, again.again] == [again.spans[0].trace, 0, 1]
    assert again.spans[1].id == request_span(AGENT, 1, 3)  # the summary between counts
    assert first.spans[0].id != again.spans[0].id


def test_a_reply_after_which_the_turn_goes_on_does_not_end_it() -> None:
    word = ("steer", "wait", {"turn": 1})
    [turn] = folded(("user", "hi", {}), reply("first"), word, reply("second"))
    assert [line[0] for line in shown(turn)] == ["invoke_agent walker", "chat opus", "chat opus"]
    first, second = folded(("user", "hi", {}), reply("first"), ("mark", "", {}), ("user", "more", {}), reply("second"))
    assert (shown(first)[0], shown(second)[0]) == (
        ("invoke_agent walker", 1, 2, ""),
        ("invoke_agent walker", 4, 5, ""),
    )


def test_a_request_that_broke_off_is_a_span_and_a_failure_without_one_is_none() -> None:
    [turn] = folded(("user", "hi", {}), ("retry", "cut", {}), reply("{}"), ("error", "no value", {"output": False}))
    assert shown(turn) == [
        ("invoke_agent walker", 1, 4, "output_error"),
        ("chat", 1, 2, "retry"),
        ("chat opus", 2, 3, ""),
    ]
    [cut] = folded(("user", "hi", {}), reply("", "c1"), ("interrupted", "", {}))
    assert [line[0] for line in shown(cut)] == ["invoke_agent walker", "chat opus"]


def test_a_request_for_the_default_model_names_the_one_that_was_asked_as_its_answer_does() -> None:
    answered = reply(model="anthropic", made_by="opus-9")
    [turn] = folded(("user", "hi", {}), answered)
    assert turn.spans[1].name == "chat opus-9"
    assert {span.attributes[name.REQUEST_MODEL] for span in turn.spans} == {"opus-9"}


def test_what_was_started_when_a_turn_ended_has_a_span() -> None:
    call = ("tool_call", "look", {"tool_use_id": "c1", "name": "look"})
    drafts: tuple[Draft, ...] = (("user", "hi", {}), reply("", "c1", "c2"), call)
    [killed] = folded(*drafts, death="killed", died=2_000)
    assert shown(killed)[0] == ("invoke_agent walker", 1, 1_000, "killed")
    assert shown(killed)[2:] == [("execute_tool look", 3, 1_000, "killed")]
    [left] = folded(*drafts, death="exited", died=2_000)
    assert shown(left)[0][3] == ""


def test_times_do_not_fall_where_a_clock_was_set_back() -> None:
    drafts: tuple[Draft, ...] = (("user", "hi", {}), reply("", "c1"), result("c1"), reply())
    [turn] = folded(*drafts, times=[2_000, 1_500, 1_700, 1_600])
    assert shown(turn)[0][1:3] == (1_000, 1_000)
    assert all(turn.spans[0].start <= span.start <= span.end <= turn.spans[0].end for span in turn.spans)


def test_a_call_without_an_id_of_the_provider_has_its_span() -> None:
    [turn] = folded(("user", "hi", {}), reply("", ""), result("call_2_0"), reply())
    assert turn.spans[2].attributes[name.TOOL_CALL_ID] == "call_2_0"


def test_a_child_begins_with_its_prompt_and_a_trial_with_its_fork() -> None:
    [child] = folded(FORKED, result("c9"), ("user", "look", {}), reply())
    assert child.opens == 3
    assert child.references[0][1:] == ("fork", "maker", 7)
    [goes_on] = folded(FORKED, result("c9"), reply())
    assert goes_on.opens == 2
    copy = reply("what was said", **{"from": 4})
    born: Draft = ("fork", "", {"parent": "p", "by": "maker", "go": True})
    [trial] = folded(born, ("user", "hi", {"from": 3}), copy, result("c1", **{"from": 5}), reply("new"))
    assert (trial.opens, [line[0] for line in shown(trial)]) == (1, ["invoke_agent walker", "chat opus"])
    assert folded(("fork", "", {"parent": "p"}), ("fork", "", {"child": "k"})) == []


def test_a_merge_and_mail_are_references() -> None:
    merged = ("merge", "said", {"from": "k", "head": 12, "how": "result"})
    read: Draft = ("assistant", "", {"tool_calls": [{"id": "c1", "name": "read_mail", "input": {}}]})
    [turn] = folded(("user", "hi", {}), merged, read, result("c1"), reply())
    assert [reference[:4] for reference in turn.references] == [(0, "merge", "k", 12), (2, "mail", AGENT, 1_004)]
    mails: TraceSpan = turn.spans[2]
    assert mails.name == "execute_tool read_mail"
