"""Where words enter a turn: pure, without actors, store or time."""

from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import GIVE_RESULT, WAIT, Call, Progress
from ikigai_actors.agent.turn.machine import step
from ikigai_actors.agent.turn.plan import SummaryPlan, plan_of
from ikigai_actors.agent.turn.request import Turns
from ikigai_actors.agent.turn.state import LifecycleState, Phase, RequestModel, State, Step
from ikigai_actors.agent.turn.typed import MOST_REPAIRS
from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Reply, Spent, ToolCall, Usage
from ikigai_actors.providers.blocks import TextBlock
from ikigai_actors.providers.conversation import Passage
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.steered import Steered, steered_in
from supervisors.signals import Status
from tests.agent.turn.test_assembly import MODEL, Entry, history, result, said, user
from tests.agent.turn.test_calls import NOW, TOOLS, call
from tests.agent.turn.test_tool_steps import CONTINUE, tooling

WORDS = (on.Prompt("one", None, 7, data={"steer": True}), on.Prompt("two", None, 9, data={"steer": True}))
ASKING = State("me", 4, turn=3, phase=Phase.WAITING_FOR_MODEL, request=3, steps=1, callers=("asker",))
TYPED = replace(ASKING, output={"schema": {"type": "integer"}})


def written(done: Step) -> list[tuple[str, str]]:
    """Kind and content of what a step writes."""
    assert isinstance(done.unit, LogUnit)
    return [(message.kind, message.content) for message in done.unit.messages]


def entered(done: Step) -> tuple[int, ...]:
    return done.unit.words if isinstance(done.unit, LogUnit) else ()


def replied(*calls: ToolCall, text: str = "done", output: Any = None) -> on.ReplyReceived:
    return on.ReplyReceived(3, Reply(text, calls, "tool_use" if calls else "end_turn", output=output), "p:m")


def test_words_are_the_last_messages_of_the_unit_behind_which_a_request_leaves() -> None:
    done = step(ASKING, replied(), NOW, TOOLS, WORDS)
    assert written(done) == [("assistant", "done"), ("steer", "one"), ("steer", "two")]
    assert entered(done) == (7, 9)
    assert done.effects == (RequestModel(4),)
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.turn, done.state.turn, done.state.head, done.state.steps) == (None, 3, 7, 2)
    assert [message.data["turn"] for message in done.unit.messages[1:]] == [3, 3]


def test_words_wait_behind_a_reply_with_calls_until_the_last_result() -> None:
    assert written(step(ASKING, replied(ToolCall("read", {}, "1")), NOW, TOOLS, WORDS)) == [("assistant", "done")]
    both = tooling(call("1:read", Progress.RUNNING), call("2:read", Progress.RUNNING))
    once = step(both, on.ToolFinished(3, "1", "a", False), NOW, TOOLS, WORDS)
    assert entered(once) == ()
    two = step(once.state, on.ToolFinished(3, "2", "b", False), NOW, TOOLS, WORDS)
    assert written(two) == [("tool_result", "b"), ("steer", "one"), ("steer", "two")]


@pytest.mark.parametrize(
    "state",
    [
        replace(ASKING, lifecycle=LifecycleState(Status.STOPPED)),
        replace(ASKING, lifecycle=LifecycleState(Status.TERMINATING)),
        replace(ASKING, steps=50),
    ],
    ids=["stopped", "terminating", "max_steps"],
)
def test_a_reply_ends_the_turn_of_an_agent_that_goes_no_further(state: State) -> None:
    done = step(state, replied(), NOW, TOOLS, WORDS)
    assert (written(done), done.state.turn) == ([("assistant", "done")], 0)


def test_an_error_ends_the_turn_and_a_retry_takes_words_in() -> None:
    assert written(step(ASKING, on.ReplyFailed(3, ProviderError("down")), NOW, TOOLS, WORDS)) == [("error", "down")]
    again = step(ASKING, on.ReplyFailed(3, ProviderError("cut", broke_off=True)), NOW, TOOLS, WORDS)
    assert [kind for kind, _ in written(again)] == ["retry", "steer", "steer"]


def test_a_prompt_opens_a_turn_with_the_words_that_wait() -> None:
    idle = State("me", 4, phase=Phase.IDLE)
    done = step(idle, on.Prompt("go", "asker"), NOW, TOOLS, WORDS)
    assert written(done) == [("user", "go"), ("steer", "one"), ("steer", "two")]
    opened = step(idle, WORDS[0], NOW, TOOLS, WORDS[1:])
    assert written(opened) == [("user", "one"), ("steer", "two")]
    assert isinstance(opened.unit, LogUnit)
    assert (opened.unit.prompt, entered(opened), opened.state.turn) == (7, (9,), 5)


def test_a_request_that_waits_for_a_budget_is_weighed_again_with_the_words() -> None:
    paused = replace(ASKING, phase=Phase.WAITING_FOR_BUDGET, hold=Paused("b", "tokens", "no more", at=4))
    done = step(paused, on.TakeWords(), NOW, TOOLS, WORDS)
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.asks, done.unit.unpaused, entered(done)) == (True, True, (7, 9))


def test_words_that_come_behind_the_last_result_have_the_request_weighed_again() -> None:
    held = tooling(call("1:read", Progress.DONE), hold=Held(4, 1, 0, 1))
    done = step(held, CONTINUE, NOW, TOOLS, WORDS)
    assert (written(done), done.effects) == ([("steer", "one"), ("steer", "two")], (RequestModel(4),))
    assert step(held, CONTINUE, NOW, TOOLS).unit is None


@pytest.mark.parametrize(("partial", "kind"), [("By pl", "assistant"), ("", "retry")])
def test_what_was_received_of_a_request_that_is_cut_off_stays_and_what_it_has_cost(partial: str, kind: str) -> None:
    spent = Spent(Usage(5, 7), "m")
    event = on.TakeWords(at_once=True, partial=partial, spent=spent, asked=True)
    done = step(ASKING, event, NOW, TOOLS, WORDS)
    assert [name for name, _ in written(done)] == [kind, "steer", "steer"]
    assert isinstance(done.unit, LogUnit)
    assert done.unit.messages[0].data["usage"]["output_tokens"] == 7
    assert (done.state.request, done.state.steps, done.effects) == (4, 1, (RequestModel(4),))
    again = step(ASKING, event, NOW, TOOLS)  # the words were withdrawn meanwhile, and the request is cut off
    assert (written(again)[0][0], again.effects) == ("retry", (RequestModel(4),))
    unasked = step(ASKING, replace(event, asked=False), NOW, TOOLS, WORDS)
    assert [name for name, _ in written(unasked)] == ["steer", "steer"]


def test_a_wait_ends_for_words_and_every_call_for_those_that_do_not_wait() -> None:
    waits = Call("1", WAIT, {}, Progress.RUNNING)
    runs, asks = call("2:read", Progress.RUNNING), call("3:read", Progress.ASKING)
    ended = step(tooling(waits, runs, asks), on.TakeWords(), NOW, TOOLS, WORDS)
    assert ([kind for kind, _ in written(ended)], entered(ended)) == (["tool_result"], ())
    alone = step(tooling(waits), on.TakeWords(), NOW, TOOLS, WORDS)
    assert [kind for kind, _ in written(alone)] == ["tool_result", "steer", "steer"]
    cut = step(tooling(waits, runs, asks), on.TakeWords(at_once=True), NOW, TOOLS, WORDS)
    assert [kind for kind, _ in written(cut)] == ["tool_result"] * 3 + ["steer", "steer"]
    assert [
        word in text for (_, text), word in zip(written(cut), ("wait", "may or may not", "not begun"), strict=False)
    ]


def test_a_value_is_not_taken_while_words_wait_and_no_repair_is_counted() -> None:
    done = step(TYPED, replied(output=5), NOW, TOOLS, WORDS)
    assert ([kind for kind, _ in written(done)], len(done.state.misfits)) == (["assistant", "steer", "steer"], 0)
    give_result = Call("1", GIVE_RESULT, {"result": 5}, reply=4)
    called = step(tooling(give_result, output=TYPED.output), CONTINUE, NOW, TOOLS, WORDS)
    assert ([kind for kind, _ in written(called)], len(called.state.misfits)) == (["tool_result", "steer", "steer"], 0)
    wrong = step(TYPED, replied(text="five"), NOW, TOOLS, WORDS)
    assert [kind for kind, _ in written(wrong)] == ["assistant", "repair", "steer", "steer"]
    last = step(replace(TYPED, misfits=("no JSON",) * MOST_REPAIRS), replied(text="five"), NOW, TOOLS, WORDS)
    assert [kind for kind, _ in written(last)] == ["assistant", "steer", "steer"]
    assert [kind for kind, _ in written(step(TYPED, replied(output=5), NOW, TOOLS))] == ["assistant", "output"]


def test_a_summary_keeps_the_words_of_the_open_turn_behind_its_prompt() -> None:
    def called(number: int) -> list[Entry]:
        return [said("x" * 400, f"c{number}:read"), result(f"c{number}", "y" * 400)]

    word: Entry = (Kind.STEER, "by train", {"mail": 1, "turn": 1, "steer": True})
    steered: Entry = (Kind.STEER, "hurry", {"mail": 2, "turn": 1, "steer": True, "sender": "a" * 22, "name": "lead"})
    turn = [user("go"), *called(1), word, *called(2), steered, *called(3), *called(4)]
    log = Log("me", 0, None, history(*turn))
    plan = plan_of(log, log.head, 1)
    assert plan is not None
    assert (plan.prompt, list(plan.words)) == (1, [{"text": "by train"}, {"text": "hurry", "from": "lead"}])
    assert plan.keep_from > 7
    assert "Word at 4: by train" in plan.digest
    data = {"keep_from": plan.keep_from, "prompt": 1, "words": [*plan.words]}
    summary: Entry = (Kind.SUMMARY, "notes", data)
    again = Log("me", 0, None, history(*turn, summary, *called(5), *called(6), *called(7)))
    later = plan_of(again, again.head, 1)
    assert later is not None
    assert list(later.words) == list(plan.words)
    turns = Turns(None, MODEL, ())
    turns.open_with(history(*turn, summary)[-1], history(*turn)[0])
    assert spoken(turns.finish())[-2:] == ["by train", '<steer from="lead">\nhurry\n</steer>']


def test_words_wait_until_a_summary_is_written() -> None:
    plan = SummaryPlan(3, 0, 2, 100, 0, "", 4, "", 0.25)
    asked = step(tooling(call("1:read", Progress.DONE)), on.Compact("", "asker", plan=plan), NOW, TOOLS, WORDS)
    assert (asked.state.phase, written(asked), entered(asked)) == (Phase.COMPACTING, [], ())


def test_a_copy_of_a_word_that_a_trial_begins_with_is_no_word() -> None:
    entry: Entry = (Kind.USER, "by train", {"mail": 7, "steer": True})
    [message] = history(entry)
    assert steered_in(message) == (7, Steered(1, 1, opened=True))
    [copy] = history((Kind.USER, "by train", {**entry[2], "from": 3}))
    assert steered_in(copy) is None


def spoken(passage: Passage) -> list[str]:
    """The texts of the last message."""
    return [block.text for block in passage.blocks if isinstance(block, TextBlock)]
