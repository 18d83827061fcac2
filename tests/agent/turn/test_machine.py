"""The machine alone: pure steps, without actors, store or time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.machine import accepts, completed, failed_turn, notice_of, step
from ikigai_actors.agent.turn.state import (
    UNKNOWN,
    Answer,
    LifecycleState,
    Phase,
    PutAside,
    RequestModel,
    Spawn,
    State,
    Step,
)
from ikigai_actors.agent.turn.tool_steps import placed
from ikigai_actors.errors import MarkNotFound, NoTurn, ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply, Spent, ToolCall, Usage
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.history import EMPTY, play_all
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import outcome_of, spent_of
from supervisors.signals import Status

NOW = 1_000
UNLOADED = State("me", 4)
IDLE = State("me", 4, phase=Phase.IDLE)
BUSY = replace(IDLE, phase=Phase.WAITING_FOR_MODEL, turn=4, request=3, callers=("asker",))
CUT_OFF = replace(IDLE, phase=Phase.INTERRUPTED, turn=4)
PAUSED = replace(BUSY, phase=Phase.WAITING_FOR_BUDGET, hold=Paused("lead", "tokens", "too little", at=4))


def fork(prompt: str | None = None, **settings: Any) -> on.Fork:
    return on.Fork("kid", "name", prompt, settings, "transient", "caller")


TURN_COMMANDS = (
    on.Prompt("hi", "caller"),
    fork(),
    on.Clear("caller"),
    on.SetMark("m", "caller"),
    on.Rewind(None, "caller"),
    on.Undo("caller", 4),
    on.Configure({}, "caller"),
)
IMMEDIATE = (on.Resume("caller"), on.GetOutcome("caller"), on.Interrupt("caller"))


def written(done: Step) -> list[tuple[int, str, str]]:
    assert isinstance(done.unit, LogUnit)
    return [(message.id, message.kind, message.content) for message in done.unit.messages]


def answers(done: Step) -> dict[Any, Any]:
    return {effect.caller: effect.value for effect in done.effects if isinstance(effect, Answer)}


@pytest.mark.parametrize("command", TURN_COMMANDS)
def test_a_command_of_a_turn_waits_while_a_turn_is_open(command: on.Deferrable) -> None:
    assert accepts(IDLE, command)
    assert accepts(CUT_OFF, command)
    assert not accepts(BUSY, command)
    assert isinstance(command, on.Fork) or not accepts(UNLOADED, command)


@pytest.mark.parametrize("command", [*TURN_COMMANDS, on.Compact("", "caller"), on.ExitNow("bye", "caller")])
def test_what_waits_for_a_budget_holds_up_nothing_but_the_next_turn_and_the_end(command: on.Deferrable) -> None:
    assert accepts(PAUSED, command) is not isinstance(command, on.Prompt | on.ExitNow)
    stopped = replace(PAUSED, lifecycle=LifecycleState(Status.STOPPED))
    assert accepts(stopped, command) is isinstance(command, on.Fork | on.Prompt)  # which is put aside


def test_a_change_has_the_request_that_waits_weighed_again_and_an_earlier_grant_is_not_for_it() -> None:
    done = step(PAUSED, on.Configure({"model": "cheap"}, "caller"), NOW)
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.asks, done.unit.unpaused, done.unit.turn) == (True, True, None)
    assert done.effects == (Answer("caller", 5), RequestModel(PAUSED.request + 1))
    waits = placed(done, Paused("lead", "tokens", "too little", at=5))
    assert (waits.state.phase, waits.effects) == (Phase.WAITING_FOR_BUDGET, (Answer("caller", 5),))
    assert step(waits.state, on.Granted(Held(4, 9, 0, 9)), NOW) == Step(waits.state)
    assert step(waits.state, on.Granted(Held(5, 9, 0, 9)), NOW).state.phase is Phase.WAITING_FOR_MODEL


def test_who_wants_a_prompt_stored_is_answered_when_it_opens_a_turn_or_is_kept_by_a_busy_agent() -> None:
    prompt = on.Prompt("hi", "caller", stored="person")
    opened, kept = step(IDLE, prompt, NOW), step(BUSY, prompt, NOW)
    assert written(opened) == [(5, "user", "hi")]
    assert (kept.unit, kept.state, kept.caller) == (PutAside(prompt), BUSY, "caller")
    assert (answers(opened), answers(kept)) == ({"person": 0}, {})  # the actor gives the number of the mail
    assert not accepts(BUSY, replace(prompt, mail=7))
    assert not accepts(UNLOADED, prompt)


@pytest.mark.parametrize("state", [IDLE, replace(IDLE, lifecycle=LifecycleState(Status.STOPPED))])
def test_the_turn_of_a_prompt_that_an_int_came_for_ends_as_it_begins_and_asks_nobody(state: State) -> None:
    prompt = on.Prompt("hi", "caller", mail=7, data={"labels": {"user": "ann"}}, stored="person", interrupted=True)
    assert accepts(state, prompt)
    assert not accepts(BUSY, prompt)
    done = step(state, prompt, NOW)
    assert written(done) == [(5, "user", "hi"), (6, "interrupted", "")]
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.turn, done.unit.asks, done.unit.prompt) == (0, False, 7)
    outcome_by_caller = answers(done)
    assert outcome_by_caller.pop("person") == 0
    assert [isinstance(outcome, TurnInterrupted) for outcome in outcome_by_caller.values()] == [True]
    assert not any(isinstance(effect, RequestModel) for effect in done.effects)
    assert (done.state.phase, done.state.turn, done.state.head, done.state.failed) == (Phase.IDLE, 0, 6, 0)


@pytest.mark.parametrize(
    ("restart", "settings", "by", "closes"),
    [
        ("temporary", {}, on.Resumption.HOST, True),
        ("temporary", {}, on.Resumption.PERSON, False),
        ("temporary", {}, on.Resumption.SUPERVISOR, False),
        ("temporary", {"effects": {"trial": 1}}, on.Resumption.HOST, False),  # whoever makes trials goes on with them
        ("transient", {}, on.Resumption.HOST, False),
        ("permanent", {}, on.Resumption.HOST, False),
    ],
)
def test_a_host_closes_the_turn_of_a_temporary_agent_and_goes_on_with_any_other(
    restart: str, settings: Mapping[str, Any], by: on.Resumption, closes: bool
) -> None:
    kind = LifecycleState(restart=restart)
    state = replace(CUT_OFF, lifecycle=kind, view=EMPTY._replace(settings=settings), callers=("asker",))
    done = step(state, on.Resume("caller", by), NOW)
    assert isinstance(done.unit, LogUnit)
    if closes:
        assert (written(done), done.unit.turn, done.unit.resumed_at) == ([(5, "interrupted", "")], 0, 0)
        assert isinstance(answers(done)["asker"], TurnInterrupted)
    else:
        assert (done.unit.asks, done.unit.resumed_at) == (True, 0 if by is on.Resumption.SUPERVISOR else 4)


def test_a_prompt_that_repeats_the_one_that_was_cut_off_replaces_it() -> None:
    log = Log("me", 3, None, [Message("me", 4, Kind.USER, "hi", {}, 1)])
    asked = on.Prompt("hi", "caller")
    again = completed(CUT_OFF, asked, log)
    assert isinstance(again, on.Prompt)
    assert again.repeats == 4
    done = step(CUT_OFF, again, NOW)
    assert written(done) == [(5, "interrupted", ""), (6, "rewind", ""), (7, "user", "hi")]
    other = completed(CUT_OFF, on.Prompt("ho", "caller"), log)
    assert [kind for _, kind, _ in written(step(CUT_OFF, other, NOW))] == ["interrupted", "user"]


def test_a_prompt_that_an_int_came_for_closes_a_turn_that_was_cut_off() -> None:
    done = step(CUT_OFF, on.Prompt("hi", "caller", interrupted=True), NOW)
    assert [kind for _, kind, _ in written(done)] == ["interrupted", "user", "interrupted"]


@pytest.mark.parametrize("turn", [0, 3])
def test_a_fork_needs_the_head_alone_and_leaves_the_log_unread(turn: int) -> None:
    unread = replace(UNLOADED, head=4, turn=turn)
    assert accepts(unread, fork())
    done = step(unread, fork(), 9)
    assert written(done) == [(5, "fork", "")]
    assert isinstance(done.unit, LogUnit)
    assert [birth.fork_message_id for birth in done.unit.births] == [4]
    assert done.state == replace(unread, head=5)
    assert not accepts(replace(unread, head=UNKNOWN), fork())


@pytest.mark.parametrize("command", IMMEDIATE)
def test_what_waits_for_no_turn_needs_the_log_alone(command: on.Deferrable) -> None:
    assert accepts(BUSY, command)
    assert not accepts(UNLOADED, command)


def test_loading_makes_an_agent_idle_with_its_head_view_and_last_outcome() -> None:
    view, last = EMPTY._replace(settings={"a": 1}), Reply("x")
    assert step(UNLOADED, on.Loaded(9, view, (), last), NOW).state == replace(IDLE, head=9, view=view, last=last)


def test_loading_an_agent_with_an_open_turn_makes_it_interrupted() -> None:
    loaded = step(replace(UNLOADED, turn=4), on.Loaded(4, EMPTY, (), Reply("x")), NOW).state
    assert loaded.phase is Phase.INTERRUPTED
    assert isinstance(loaded.last, TurnInterrupted)


def test_a_prompt_opens_a_turn_in_one_unit_and_then_asks_the_model() -> None:
    done = step(IDLE, on.Prompt("hi", "caller"), NOW)
    assert written(done) == [(5, "user", "hi")]
    assert isinstance(done.unit, LogUnit)
    assert done.unit.turn == 5
    assert done.effects == (RequestModel(1),)
    assert (done.state.turn, done.state.head, done.state.phase) == (5, 5, Phase.WAITING_FOR_MODEL)
    assert done.caller == "caller"


def test_a_prompt_closes_a_turn_that_was_cut_off_in_the_same_unit() -> None:
    done = step(CUT_OFF, on.Prompt("hi", "caller"), NOW)
    assert written(done) == [(5, "interrupted", ""), (6, "user", "hi")]
    assert done.state.turn == 6


def test_a_reply_closes_the_turn_and_answers_everybody_who_waits() -> None:
    asked = step(BUSY, on.GetOutcome("second"), NOW).state
    done = step(asked, on.ReplyReceived(3, Reply("yes"), "p:m"), NOW)
    assert written(done) == [(5, "assistant", "yes")]
    assert isinstance(done.unit, LogUnit)
    assert done.unit.turn == 0
    assert done.state.phase is Phase.IDLE
    assert answers(done) == {"asker": Reply("yes"), "second": Reply("yes")}


@pytest.mark.parametrize("state", [IDLE, CUT_OFF, BUSY])
def test_a_completion_that_answers_an_older_request_changes_nothing(state: State) -> None:
    for late in (on.ReplyReceived(2, Reply("late"), "p:m"), on.ReplyFailed(2, ProviderError("late"))):
        assert step(state, late, NOW) == Step(state)


def test_a_failed_request_ends_the_turn_with_an_error_message_that_keeps_what_came() -> None:
    error = ProviderError("overloaded", "so far")
    done = step(BUSY, on.ReplyFailed(3, error), NOW)
    assert written(done) == [(5, "error", "overloaded")]
    assert isinstance(done.unit, LogUnit)
    assert done.unit.messages[0].data == {"partial": "so far"}
    assert answers(done) == {"asker": error}


def test_an_interrupt_keeps_what_was_received_as_a_reply_with_its_own_stop_reason() -> None:
    done = step(BUSY, on.Interrupt("caller", "half"), NOW)
    assert written(done) == [(5, "assistant", "half")]
    assert isinstance(done.unit, LogUnit)
    assert done.unit.messages[0].data["stop_reason"] == "interrupted"
    assert isinstance(answers(done)["asker"], TurnInterrupted)
    assert answers(done)["caller"] is True


def test_an_interrupt_with_nothing_received_writes_that_alone() -> None:
    assert written(step(BUSY, on.Interrupt("caller"), NOW)) == [(5, "interrupted", "")]
    assert written(step(CUT_OFF, on.Interrupt("caller"), NOW)) == [(5, "interrupted", "")]


def test_an_interrupt_of_an_idle_agent_does_nothing() -> None:
    done = step(IDLE, on.Interrupt("caller"), NOW)
    assert (done.state, done.unit) == (IDLE, None)
    assert answers(done) == {"caller": False}


def test_resume_asks_the_model_again_once_what_that_may_cost_is_held() -> None:
    done = step(CUT_OFF, on.Resume("caller"), NOW)
    assert done.unit == LogUnit("me", (), asks=True, resumed_at=4)
    assert done.effects == (Answer("caller", True), RequestModel(1))
    assert done.state.turn == CUT_OFF.turn
    assert answers(step(IDLE, on.Resume("caller"), NOW)) == {"caller": False}


def test_a_fork_is_one_unit_of_both_logs_at_the_parents_head() -> None:
    done = step(IDLE, fork("go", model="offline"), NOW)
    assert written(done) == [(5, "fork", "")]
    assert isinstance(done.unit, LogUnit)
    assert isinstance(done.unit, LogUnit)
    [birth] = done.unit.births
    assert (birth.fork_message_id, birth.turn, birth.parent_uuid, birth.name) == (4, 7, "me", "name")
    assert [(m.agent_uuid, m.id, m.kind) for m in birth.messages] == [
        ("kid", 5, "fork"),
        ("kid", 6, "configure"),
        ("kid", 7, "user"),
    ]
    assert done.effects == (Spawn(birth), Answer("caller", "kid"))


def test_a_child_without_a_prompt_is_born_idle() -> None:
    unit = step(IDLE, fork(), NOW).unit
    assert isinstance(unit, LogUnit)
    [birth] = unit.births
    assert birth.turn == 0
    assert [m.kind for m in birth.messages] == ["fork"]


def test_a_fork_of_a_turn_that_was_cut_off_leaves_that_turn_open() -> None:
    done = step(CUT_OFF, fork(), NOW)
    assert (done.state.turn, done.state.phase) == (4, Phase.INTERRUPTED)


def test_clear_carries_the_settings_over_in_the_same_unit() -> None:
    state = replace(IDLE, view=EMPTY._replace(settings={"model": "offline"}))
    done = step(state, on.Clear("caller"), NOW)
    assert written(done) == [(5, "clear", ""), (6, "configure", "")]
    assert done.state.view.settings == {"model": "offline"}
    assert done.state.view.start == 5
    assert written(step(IDLE, on.Clear("caller"), NOW)) == [(5, "clear", "")]


def test_rewind_finds_its_mark_and_stores_where_it_is() -> None:
    marked = step(IDLE, on.SetMark("m", "caller"), NOW).state
    spoken = replace(marked, head=9)
    done = step(spoken, on.Rewind("m", "caller"), NOW)
    assert isinstance(done.unit, LogUnit)
    assert done.unit.messages[0].data == {"mark": 5}
    assert done.state.view.visible(done.state.head) == [(0, 5), (9, 10)]


@pytest.mark.parametrize("label", [None, "m"])
def test_rewind_without_a_mark_is_an_answer_and_writes_nothing(label: str | None) -> None:
    done = step(IDLE, on.Rewind(label, "caller"), NOW)
    assert (done.unit, done.state) == (None, IDLE)
    assert isinstance(answers(done)["caller"], MarkNotFound)


def test_undo_is_a_rewind_to_before_the_latest_prompt() -> None:
    done = step(replace(IDLE, head=9), on.Undo("caller", 7), NOW)
    assert written(done) == [(10, "rewind", "")]
    assert done.state.view.visible(10) == [(0, 6), (9, 10)]
    assert answers(done) == {"caller": 10}


def test_undo_without_a_prompt_is_an_answer_and_writes_nothing() -> None:
    done = step(IDLE, on.Undo("caller"), NOW)
    assert (done.unit, done.state) == (None, IDLE)
    assert isinstance(answers(done)["caller"], NoTurn)


BROKEN = ProviderError("the connection broke", "so f", broke_off=True)


def test_a_reply_that_breaks_off_is_asked_for_again_once_with_what_it_cost_in_the_log() -> None:
    spent = Spent(Usage(7, 1), "m-1")
    first = step(BUSY, on.ReplyFailed(3, BROKEN, spent), NOW)
    assert written(first) == [(5, "retry", "the connection broke")]
    assert isinstance(first.unit, LogUnit)
    assert spent_of(first.unit.messages[0]) == spent
    assert first.effects == (RequestModel(4),)
    assert (first.state.turn, first.state.phase, first.state.callers) == (4, Phase.WAITING_FOR_MODEL, ("asker",))
    second = step(first.state, on.ReplyFailed(4, BROKEN), NOW)
    assert written(second) == [(6, "error", "the connection broke")]
    assert answers(second) == {"asker": BROKEN}


@pytest.mark.parametrize("retries", [0, 3])
def test_a_setting_says_how_often_a_reply_that_breaks_off_is_asked_for_again(retries: int) -> None:
    state = replace(BUSY, view=EMPTY._replace(settings={"stream_retries": retries}))
    for _ in range(retries):
        state = step(state, on.ReplyFailed(state.request, BROKEN), NOW).state
    assert written(step(state, on.ReplyFailed(state.request, BROKEN), NOW))[0][1] == "error"


def test_each_request_of_a_turn_may_break_off_once() -> None:
    again = step(BUSY, on.ReplyFailed(3, BROKEN), NOW).state
    working = step(again, on.ReplyReceived(4, Reply(tool_calls=(ToolCall("lost"),)), "p:m"), NOW).state
    continued = step(working, on.Continue(["kid"]), NOW).state  # there is no such tool
    asked = step(continued, on.Continue(["kid"]), NOW).state
    assert asked.phase is Phase.WAITING_FOR_MODEL
    assert written(step(asked, on.ReplyFailed(asked.request, BROKEN), NOW))[0][1] == "retry"


def test_resume_opens_a_turn_again_that_an_error_has_ended() -> None:
    failed = step(BUSY, on.ReplyFailed(3, ProviderError("overloaded")), NOW).state
    done = step(failed, on.Resume("caller"), NOW)
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.messages, done.unit.turn) == ((), 4)
    assert done.effects == (Answer("caller", True), RequestModel(4))
    assert (done.state.turn, done.state.failed, done.state.phase) == (4, 0, Phase.WAITING_FOR_MODEL)


@pytest.mark.parametrize("command", [on.Clear("c"), on.Undo("c", 4), on.Prompt("x", "c")])
def test_what_begins_anew_leaves_no_failed_turn_to_resume(command: on.Deferrable) -> None:
    failed = step(BUSY, on.ReplyFailed(3, ProviderError("overloaded")), NOW).state
    assert step(failed, command, NOW).state.failed == 0


def test_a_prompt_that_says_the_same_as_the_one_that_failed_takes_that_one_back() -> None:
    failed = step(BUSY, on.ReplyFailed(3, ProviderError("overloaded")), NOW).state
    done = step(failed, on.Prompt("hi", "caller", repeats=4), NOW)
    assert written(done) == [(6, "rewind", ""), (7, "user", "hi")]
    assert done.state.view.visible(7) == [(0, 3), (5, 7)]
    assert done.state.turn == 7


def said(*kinds: Kind | tuple[Kind, str]) -> list[Message]:
    pairs = [(each, "") if isinstance(each, Kind) else each for each in kinds]
    return [Message("me", place, kind, text, {}, NOW) for place, (kind, text) in enumerate(pairs, start=1)]


@pytest.mark.parametrize(
    ("messages", "opener"),
    [
        (said(Kind.USER, Kind.ERROR), 1),
        (said(Kind.USER, Kind.ASSISTANT, Kind.USER, Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.ERROR), 3),
        (said(Kind.USER, Kind.ERROR, Kind.CONFIGURE, Kind.FORK, Kind.MARK, Kind.MAIL), 1),
        (said(Kind.USER, Kind.RETRY, Kind.ERROR, Kind.ERROR), 1),
        (said(Kind.FORK, Kind.TOOL_RESULT, Kind.ERROR), 2),
        (said(Kind.USER, Kind.ERROR, Kind.REWIND), 0),
        (said(Kind.USER, Kind.ERROR, Kind.CLEAR), 0),
        (said(Kind.USER, Kind.ERROR, Kind.USER, Kind.ASSISTANT), 0),
        (said(Kind.USER, Kind.ERROR, Kind.INTERRUPTED), 0),
        (said(Kind.USER, Kind.RETRY), 0),
        (said(Kind.FORK), 0),
        ([], 0),
    ],
)
def test_the_log_tells_which_turn_an_error_has_ended(messages: list[Message], opener: int) -> None:
    assert failed_turn(reversed(messages)) == opener


@pytest.mark.parametrize(
    ("turn", "same"),
    [
        (said((Kind.USER, "tea"), Kind.ERROR), True),
        (said((Kind.USER, "tea"), Kind.RETRY, Kind.ERROR, Kind.CONFIGURE), True),
        (said((Kind.USER, "milk"), Kind.ERROR), False),
        (said((Kind.USER, "tea"), Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.ERROR), False),
        (said((Kind.USER, "tea"), Kind.ERROR, Kind.MARK), False),
        (said((Kind.TOOL_RESULT, "tea"), Kind.ERROR), False),
    ],
)
def test_a_prompt_repeats_one_whose_turn_failed_without_a_reply(turn: list[Message], same: bool) -> None:
    failed = replace(IDLE, head=len(turn), failed=1)
    known = completed(failed, on.Prompt("tea", "caller"), Log("me", 0, None, turn))
    assert known == on.Prompt("tea", "caller", repeats=1 if same else 0)


def test_an_interrupt_keeps_what_the_request_has_cost() -> None:
    spent = Spent(Usage(7, 1), "m-1")
    for partial in ("", "half"):
        unit = step(BUSY, on.Interrupt("caller", partial, spent=spent), NOW).unit
        assert isinstance(unit, LogUnit)
        assert spent_of(unit.messages[0]) == spent


def test_asking_for_an_outcome_gives_the_last_one_or_says_that_there_is_none() -> None:
    assert answers(step(replace(IDLE, last=Reply("x")), on.GetOutcome("c"), NOW)) == {"c": Reply("x")}
    assert isinstance(answers(step(IDLE, on.GetOutcome("c"), NOW))["c"], NoTurn)


def test_the_view_follows_every_message_that_is_written() -> None:
    state = IDLE
    for command in (on.Configure({"a": 1}, "c"), on.SetMark("m", "c"), on.Rewind("m", "c"), on.Clear("c")):
        done = step(state, command, NOW)
        assert isinstance(done.unit, LogUnit)
        assert done.state.view == play_all(state.view, done.unit.messages)
        state = done.state


def closing(kind: str, content: str = "", **data: Any) -> Message:
    return Message("me", 1, kind, content, data, NOW)


def test_the_outcome_of_a_log_is_how_its_latest_turn_ended() -> None:
    assert outcome_of([]) is None
    assert outcome_of([closing(Kind.MARK), closing(Kind.USER)]) is None
    reply = outcome_of([closing(Kind.MARK), closing(Kind.ASSISTANT, "x", stop_reason="end_turn")])
    assert isinstance(reply, Reply)
    assert reply.text == "x"
    assert isinstance(outcome_of([closing(Kind.ASSISTANT, "x", stop_reason="interrupted")]), TurnInterrupted)
    assert isinstance(outcome_of([closing(Kind.INTERRUPTED)]), TurnInterrupted)
    error = outcome_of([closing(Kind.ERROR, "bad", partial="so far")])
    assert isinstance(error, ProviderError)
    assert (str(error), error.partial) == ("bad", "so far")


def test_a_turn_that_crashed_too_often_is_closed_once() -> None:
    done = step(CUT_OFF, on.TurnPoisoned("it crashed"), NOW)
    assert written(done) == [(5, "error", "it crashed")]
    assert done.state.turn == 0
    assert step(IDLE, on.TurnPoisoned("it crashed"), NOW) == Step(IDLE)  # an interrupt came before it


NOTICE = closing(Kind.MAIL, "You have 1 unread mail.")


@pytest.mark.parametrize(
    ("later", "known"),
    [
        (closing(Kind.USER), True),
        (closing(Kind.CLEAR), False),
        (closing(Kind.REWIND), False),
        (closing(Kind.TOOL_RESULT, name="read_mail"), False),
        (closing(Kind.TOOL_RESULT, name="read_mail", is_error=True), True),
        (closing(Kind.TOOL_RESULT, name="agents"), True),
    ],
)
def test_a_notice_of_mail_is_known_until_the_mailbox_was_looked_at_or_the_model_sees_it_no_more(
    later: Message, known: bool
) -> None:
    assert notice_of([later, NOTICE]) == (NOTICE.id if known else 0)
    assert notice_of([later]) == 0
