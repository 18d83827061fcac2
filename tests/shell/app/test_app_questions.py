"""Calls that wait for a person, answered on the screen."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events

from ikigai_actors import Reply, ScriptedProvider, ToolCall, Workspace, tool
from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.shell.app.theme import DARK
from ikigai_actors.shell.app.widgets.approval_box import (
    ALONE,
    KEYS_WAIT,
    QUIET,
    ApprovalBox,
    Question,
    answer_line,
    folded,
    foot_of,
    keys_of,
)  # fmt: skip
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import DEADLINE


@tool(policy="ask")
def erase(path: str) -> str:
    """Erase something."""
    return f"{path} is gone"


def erasing(*paths: str) -> Reply:
    return Reply(tool_calls=tuple(ToolCall("erase", {"path": path}) for path in paths), stop_reason="tool_use")


def typed(stage: Stage) -> str:
    return stage.application.main.page.prompt.text


async def takes_the_keyboard(stage: Stage) -> None:
    """Let nobody type for a while."""
    await stage.expect("asks you")
    stage.watch.seconds += QUIET
    await stage.until(lambda: isinstance(stage.application.focused, ApprovalBox), "the focus of the box")


def let_keys_answer(stage: Stage) -> None:
    """Pass the moment in which no key answers."""
    stage.watch.seconds += 2 * KEYS_WAIT


async def answer(stage: Stage, *keys: str) -> None:
    """Press letters, each of which nothing follows."""
    box = stage.application.main._question
    for key in keys:
        let_keys_answer(stage)
        await stage.press(key)
        stage.watch.seconds += 2 * ALONE
        await stage.until(lambda: box._letter is None, "the end of the wait for what follows")


@pytest.mark.thorough("a second play of questions")
@pytest.mark.sample(1, "a key each")
@pytest.mark.parametrize(
    ("key", "result"), [("y", "a.txt is gone"), ("n", "denied"), ("a", "a.txt is gone")], ids=["yes", "no", "always"]
)
def test_a_question_takes_the_keyboard_when_nobody_types_and_a_key_answers_it(key: str, result: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase it")
        await stage.expect(r"wants to run erase[\s\S]*path: a\.txt[\s\S]* y  run once")
        await takes_the_keyboard(stage)
        await answer(stage, key)
        if key == "a":
            await stage.expect(r"always erase .*\? .*y  yes")
            await answer(stage, "y")
        await stage.expect(f"└ .*{result}")
        await stage.expect_gone("wants to run")
        await stage.type("x")
        assert typed(stage) == "x"

    with open_memory(ScriptedProvider([erasing("a.txt"), "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play)
        assert [str(rule) for rule in system.root.rules()] == (["allow erase"] if key == "a" else [])


@pytest.mark.thorough("a second play of questions")
def test_no_key_that_was_meant_for_the_prompt_answers_a_question() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase it")
        await stage.expect("asks you")
        await stage.type("y")  # the prompt has the keyboard
        stage.watch.seconds += QUIET
        await stage.pilot.pause(0.3)  # beats go by: the question takes no keyboard from a text
        await stage.type("y")
        assert typed(stage) == "yy"
        await stage.press("backspace", "backspace")
        await takes_the_keyboard(stage)
        stage.watch.seconds += KEYS_WAIT / 2
        await stage.press("y")  # it comes too soon, so it is text
        stage.application.post_message(events.Paste("y"))
        await stage.until(lambda: typed(stage) == "yy", "the paste")
        await stage.press("backspace", "backspace", "f2")
        let_keys_answer(stage)
        await stage.type("hello")  # no key of the box
        assert typed(stage) == "hello"
        for text in ("yes, buy Nilgiri", "and what about it?", "think about tea", "no …", "replace all"):
            await stage.press("ctrl+u", "f2")
            let_keys_answer(stage)
            await stage.type(text)
            assert typed(stage) == text
        await stage.press("ctrl+u", "f2")
        let_keys_answer(stage)
        await stage.press("y", "escape")  # it is taken back
        stage.watch.seconds += ALONE
        await stage.pilot.pause(0.3)
        assert len(stage.application.questions.open()) == 1

    with open_memory(ScriptedProvider([erasing("a.txt"), "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play)


LONG = "\n".join(f"step {number}." for number in range(40))


@pytest.mark.thorough("a second play of questions")
@pytest.mark.sample(1, "a window of another size")
@pytest.mark.parametrize("size", [(80, 24), (40, 20)])
def test_nobody_signs_lines_that_were_not_in_sight(size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase it")
        await takes_the_keyboard(stage)
        let_keys_answer(stage)
        seen = set[str]()
        while "step 39." not in seen:
            assert stage.application.questions.open()
            seen |= set(re.findall(r"step \d+\.", stage.text))
            await answer(stage, "y")
        assert seen == set(LONG.split("\n"))
        await stage.expect_gone("more lines below")
        await stage.press("up", "end")
        await answer(stage, "y")
        await stage.expect_gone("wants to run")

    with open_memory(ScriptedProvider([erasing(LONG), "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play, size=size)
        assert f"{LONG} is gone" in [message.content for message in system.root.history()]


@pytest.mark.thorough("a second play of questions")
def test_questions_are_gone_through_left_for_later_and_answered_with_a_reason() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("erase them")
        await stage.expect(r"path: a\.txt[\s\S]*1 of 2")
        await takes_the_keyboard(stage)
        let_keys_answer(stage)
        await stage.press("tab")
        await stage.expect(r"path: b\.txt[\s\S]*2 of 2")
        await stage.press("escape")
        stage.watch.seconds += QUIET
        await stage.pilot.pause(0.3)  # beats go by: it stays for later
        await stage.expect("F2 answers")
        await stage.press("f2")
        await answer(stage, "t")
        await stage.until(lambda: typed(stage) == "/deny 2 ")
        await stage.say("not today")
        await stage.expect(r"└ .*not today")
        await stage.say("/approve 1")
        await stage.expect(r"└ a\.txt is gone")

    with open_memory(ScriptedProvider([erasing("a.txt", "b.txt"), "well"]), tools=[erase], approvals="ask") as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of a question; every run has the inbox")
def test_a_question_of_another_agent_is_shown_with_its_name_and_answered_by_a_key_or_a_command() -> None:
    async def play(stage: Stage) -> None:
        await stage.expect("kid wants to run erase")
        stage.watch.seconds += 2 * QUIET
        await stage.pilot.pause(0.3)  # beats go by: a question of an agent that is not in sight takes no keyboard
        await stage.type("yes")
        assert typed(stage) == "yes"
        await stage.press("ctrl+u", "f2")
        let_keys_answer(stage)
        await stage.press("y", "enter")  # decides at once
        await stage.expect("1: kid runs erase")
        await stage.expect(r"path: b\.txt")
        await stage.say("/deny 2 not today")
        await stage.expect("2: kid does not run erase")

    provider = ScriptedProvider([erasing("a.txt"), erasing("b.txt"), "well"])
    with open_memory(provider, tools=[erase], approvals="ask") as system:
        kid = system.root.fork("erase it", name="kid")
        system._touch(system.root)
        on_stage(system, play)
        assert kid.reply(timeout=DEADLINE).text == "well"


def question(tool: str = "bash", of: int = 1, **arguments: object) -> Question:
    return Question(3, "buyer", PendingCall("agent", 1, "id", tool, arguments), 1, of)


def test_the_key_that_allows_always_says_for_which_agents_and_what() -> None:
    def always(asked: Question) -> list[str]:
        return [what for key, what in keys_of(asked, 200) if key == "a"]

    assert always(question("edit", file_path="a")) == ["always edit for buyer and below"]
    assert always(question(command="git push")) == ["always bash for buyer and below"]
    assert always(question(command="a; rm -rf ~")) == []
    unfenced = question()._replace(call=PendingCall("agent", 1, "id", "bash", {"command": "git push"}, unfenced=True))
    assert always(unfenced) == ["always this command for buyer and below"]
    assert [unfenced.command(key) for key in "ynta"] == ["/approve 3", "/deny 3", "/deny 3", "/approve 3 --exact"]
    assert question("edit").command("a") == "/approve 3 --always"


def test_every_box_has_the_same_words_for_no() -> None:
    asked = [question(command="a; rm -rf ~"), question("edit", file_path="a")]
    assert {tuple(keys_of(box, width)[1:3]) for box in asked for width in (30, 76, 200)} == {
        (("n", "no"), ("t", "why not"))
    }


@given(st.integers(20, 200), st.integers(1, 9), st.integers(0, 500), st.booleans())
def test_the_keys_and_the_edge_fit_into_the_box(width: int, of: int, below: int, keyboard: bool) -> None:
    asked = question("edit", of=of)
    assert answer_line(asked, width, keyboard, DARK).cell_len <= max(width, 43)
    assert len(foot_of(asked, below, width, keyboard)) + 6 <= max(width, 30)


@given(st.text("ab 漢\n", max_size=300), st.integers(4, 80))
def test_all_of_a_call_is_shown_however_narrow_the_box_is(command: str, width: int) -> None:
    lines = folded(question(command=command).call, width)
    assert all(cell_len(text) <= width for text, _ in lines)
    assert "".join(text for text, _ in lines) == command.replace("\n", "")


@pytest.mark.thorough("a second play of questions")
def test_an_edit_is_asked_for_with_the_lines_around_it_and_r_begins_a_rule(tmp_path: Path) -> None:
    (tmp_path / "a b.md").write_text("of\noak\nand pine\n", encoding="utf-8")
    edit = ToolCall("edit", {"file_path": "a b.md", "old_string": "oak", "new_string": "ash"})

    async def play(stage: Stage) -> None:
        await stage.say("edit it")
        page = ["at line 2:", "  of", "- oak", r"\+ ash", "  and pine"]
        await stage.expect(r" *│\n│ ".join(page))
        await takes_the_keyboard(stage)
        let_keys_answer(stage)
        await answer(stage, "r")
        rule = "/rules --of shop add allow edit 'a b.md'"
        await stage.until(lambda: typed(stage) == rule, "the rule")
        await stage.press("enter")
        await stage.expect(r"└ edited")  # the rule decides

    calls = Reply(tool_calls=(edit,), stop_reason="tool_use")
    tools = [Workspace(tmp_path, fence="none")]
    with open_memory(ScriptedProvider([calls, "well"]), tools=tools, approvals="ask") as system:
        system.root.rename("shop")
        on_stage(system, play)
        assert [str(rule) for rule in system.root.rules()] == ["allow edit a b.md"]
