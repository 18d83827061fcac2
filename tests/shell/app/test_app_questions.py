"""Calls that wait for a person, answered on the screen."""

import re

import pytest

from ikigai_actors import Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.shell.app.widgets.approval_bar import QuestionBar
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE


@tool(policy="ask")
def erase(path: str) -> str:
    """Erase something."""
    return f"{path} is gone"


CALL = Reply(tool_calls=(ToolCall("erase", {"path": "a.txt"}),), stop_reason="tool_use")


@pytest.mark.sample(4, "a screen for each")
@pytest.mark.parametrize("pressed", [(), ("f2",), ("f3",)], ids=["in the prompt", "at the question", "in the tree"])
@pytest.mark.parametrize(
    ("key", "result"), [("y", "a.txt is gone"), ("n", "denied"), ("a", "a.txt is gone")], ids=["yes", "no", "always"]
)
def test_a_question_is_answered_by_a_key(key: str, result: str, pressed: tuple[str, ...]) -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase it")
        await stage.expect(r"\[1\] erase .*a\.txt.*y run  n deny")
        await stage.expect("F2 answers")
        await stage.type(f"x{key}")  # to the prompt, which is not empty
        assert stage.application.main.page.prompt.text == f"x{key}"
        await stage.press("backspace", "backspace", *pressed, key)
        await stage.expect(f"└ .*{result}")
        await stage.expect_gone("y run")
        await stage.expect("well")
        await stage.type("x")
        assert stage.application.main.page.prompt.text == "x"

    with open_memory(ScriptedProvider([CALL, "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play)


LONG = "\n".join(f"step {number}." for number in range(60))


@pytest.mark.sample(1, "hundreds of keys")
@pytest.mark.parametrize("size", [(80, 24), (40, 20)])
def test_a_long_call_can_be_read_to_its_end_before_it_is_answered(size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase it")
        await stage.expect(r"\[1\] erase  y run  n deny  a always")
        await stage.press("f2")
        seen = set[str]()
        while "step 59." not in seen:
            seen |= set(re.findall(r"step \d+\.", stage.text))
            await stage.press("pagedown")
        assert seen == set(LONG.split("\n"))
        await stage.press("up", "home", "y")
        await stage.expect_gone("y run")

    call = Reply(tool_calls=(ToolCall("erase", {"path": LONG}),), stop_reason="tool_use")
    with open_memory(ScriptedProvider([call, "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play, size=size)
        assert f"{LONG} is gone" in [message.content for message in system.root.history()]


def test_a_question_of_another_agent_is_shown_with_its_name_and_answered_by_command() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"\[1\] kid: erase")
        await stage.say("/deny 1 not today")
        await stage.expect(r"1: kid does not run erase")
        await stage.expect_gone("y run")

    with open_memory(ScriptedProvider([CALL, "well"]), tools=[erase], approvals="ask") as system:
        system.root.fork("erase it", name="kid")
        system._touch(system.root)
        on_stage(system, play)


def test_a_key_answers_a_question_of_another_agent_once_and_says_so() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect(r"\[1\] kid: erase")
        await stage.press("f2")
        bar = stage.application.main.query_one(QuestionBar)
        bar.action_answer("y")
        bar.action_answer("n")  # it is answered
        await stage.expect(r"1: kid runs erase")
        await stage.expect_gone("y run")

    with open_memory(ScriptedProvider([CALL, "well"]), tools=[erase], approvals="ask") as system:
        kid = system.root.fork("erase it", name="kid")
        system._touch(system.root)
        on_stage(system, play)
        assert kid.reply(timeout=DEADLINE).text == "well"
        assert "a.txt is gone" in [message.content for message in kid.history()]
