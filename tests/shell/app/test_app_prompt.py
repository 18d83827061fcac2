"""What a person types: recall, several lines, large pastes, the way out."""

from pathlib import Path

import pytest
from textual.events import Key

from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.blocking_provider import Hanging
from tests.kit.echo import kinds

pytestmark = pytest.mark.slow("the application, key by key")


@pytest.mark.thorough("another play of the prompt; its keys are in every run")
def test_ctrl_u_clears_the_line_and_then_the_whole_draft() -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        await stage.type("one\ntwo\nthree")
        await stage.press("ctrl+u")
        assert prompt.text == "one\ntwo\n"
        await stage.press("ctrl+u")
        assert prompt.text == ""
        await stage.press("ctrl+underscore")
        assert prompt.text == "one\ntwo\n"

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("another play of the prompt; its keys are in every run")
def test_several_lines_are_one_prompt_and_what_was_submitted_can_be_recalled(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        await stage.say("one\ntwo")
        await stage.expect("You said “one two”")
        await stage.say("three")
        await stage.expect("You said “three”")
        await stage.type("unsent")
        await stage.press("up")
        assert prompt.text == "three"
        await stage.press("up", "up")
        assert prompt.text == "one\ntwo"
        prompt.clear()
        await stage.press("ctrl+r")
        await stage.expect("› \\^")
        await stage.type("TW")
        await stage.expect("one two")
        await stage.press("enter")
        await stage.until(lambda: prompt.text == "one\ntwo")

    with open_memory() as system:
        on_stage(system, play, history=tmp_path / "history")
        assert system.root.history()[0].content == "one\ntwo"
    assert (tmp_path / "history").read_text() == "one\u2028two\nthree\n"


@pytest.mark.thorough("a second play of the prompt")
def test_a_command_that_takes_long_is_said_to_be_in_progress() -> None:
    async def play(stage: Stage) -> None:
        await stage.say("/wait 60")
        await stage.expect(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] /wait 60 · \d+ s")
        stage.system.send(stage.system.root, "enough")
        await stage.expect_gone(r"/wait 60 · \d+ s")

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("another way through what was submitted")
def test_the_arrows_move_within_a_prompt_and_beyond_its_ends_through_what_was_submitted(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        await stage.press("enter", "up", "down")  # nothing was submitted, and nothing is
        assert prompt.text == ""
        await stage.say("/model")
        await stage.expect("model: not set")
        await stage.type("un\nsent")
        await stage.press("up")
        assert (prompt.text, prompt.cursor_location) == ("un\nsent", (0, 2))
        await stage.press("up")
        assert prompt.text == "/model"
        await stage.press("down")
        assert prompt.text == "un\nsent"
        await stage.press("up", "down")
        assert (prompt.text, prompt.cursor_location[0]) == ("un\nsent", 1)

    with open_memory() as system:
        on_stage(system, play, history=tmp_path / "history")
        assert not system.root.history()


@pytest.mark.thorough("another way through what was submitted")
def test_the_search_among_what_was_submitted_has_a_cursor(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        await stage.press("ctrl+r")
        await stage.expect("three")
        await stage.press("down", "down", "up", "enter")
        await stage.until(lambda: prompt.text == "two")
        await stage.press("ctrl+r")
        await stage.expect("Enter opens")
        await stage.press("escape")
        await stage.expect_gone("Enter opens")
        assert prompt.text == "two"

    (tmp_path / "history").write_text("one\ntwo\nthree\n")
    with open_memory() as system:
        on_stage(system, play, history=tmp_path / "history")


def test_ctrl_c_copies_what_is_selected_and_interrupts_a_turn() -> None:
    async def play(stage: Stage) -> None:
        await stage.type("keep this")
        await stage.press(*["shift+left"] * 4, "ctrl+c")
        await stage.until(lambda: stage.application.clipboard == "this")
        assert stage.application.main.page.prompt.text == "keep this"
        await stage.press("end", "enter")
        await stage.expect("thinking|answering")
        await stage.press("ctrl+c")
        await stage.expect_notice("Ctrl-C again leaves")
        await stage.expect(r"Ctrl-C again(.*\n)+╭─ .*─╮\n│ › .*│\n╰─.*─╯\n.*F1 keys$")  # over no line below
        await stage.expect(r"\[interrupted\]")

    with open_memory(Hanging("So it begins")) as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of the prompt")
@pytest.mark.parametrize(("key", "times"), [("ctrl+c", 1), ("escape", 5)])
def test_a_key_right_behind_enter_interrupts_the_turn_of_that_prompt(key: str, times: int) -> None:
    async def play(stage: Stage) -> None:
        for number in range(times):
            await stage.type(f"go {number}")
            await stage.press("enter", key)
            await stage.until(lambda: len(system.root.history()) == 2 * number + 2)  # noqa: B023 - it is called at once
            await stage.expect(rf"go {number}\s+\[interrupted\]")

    with open_memory(Hanging("")) as system:
        on_stage(system, play)
        assert kinds(system.root.history()) == ["user", "interrupted"] * times


@pytest.mark.thorough("a second play of the prompt")
def test_ctrl_c_twice_leaves_and_ctrl_d_only_from_an_empty_prompt() -> None:
    async def twice(stage: Stage) -> None:
        await stage.type("something")
        await stage.press("ctrl+c")
        await stage.until(lambda: stage.application.main.page.prompt.text == "")
        await stage.press("ctrl+c")
        await stage.until(lambda: not stage.application.is_running)

    async def once(stage: Stage) -> None:
        await stage.type("ab")
        await stage.press("left", "ctrl+d")
        assert stage.application.main.page.prompt.text == "a"
        await stage.press("backspace", "ctrl+d")
        await stage.until(lambda: not stage.application.is_running)

    async def by_command(stage: Stage) -> None:
        await stage.say("/exit")
        await stage.until(lambda: not stage.application.is_running)

    with open_memory() as system:
        assert on_stage(system, twice).return_value == 130
        assert on_stage(system, once).return_value == 0
        assert on_stage(system, by_command).return_value == 0


@pytest.mark.thorough("a second play of the prompt")
def test_a_prompt_is_stored_that_was_submitted_just_before_the_person_leaves() -> None:
    async def play(stage: Stage) -> None:
        await stage.type("ONE")
        for key in ("enter", "ctrl+d"):
            stage.application.post_message(Key(key, None))
        await stage.until(lambda: not stage.application.is_running)

    with open_memory(Hanging("So it begins")) as system:
        assert on_stage(system, play).undone == []
        assert [message.content for message in system.root.history()] == ["ONE"]
