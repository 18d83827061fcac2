"""What is offered above the prompt while a person types."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.events import Key

from ikigai_actors.shell.app.choices import command_choices, file_choices
from ikigai_actors.shell.app.theme import DARK
from ikigai_actors.shell.app.widgets.command_menu import CommandMenu, MenuItem, choice_line
from tests.kit.app_pilot import Stage, on_stage, open_memory


def names(text: str) -> list[str]:
    return [choice.line.rstrip() for choice in command_choices(text)]


def test_commands_are_found_by_their_beginning_then_within_and_then_by_what_they_do() -> None:
    assert names("/se")[:3] == ["/send", "/set", "/settings"]
    assert names("/mail")[:3] == ["/check-mail", "/delete-mail", "/filter-mail"]
    assert "/kill" in names("/at once")
    assert names("/no-such") == []
    assert len(names("/")) > 50


def test_a_command_that_takes_more_ends_with_a_blank_and_says_what() -> None:
    [switch, *_] = command_choices("/switch")
    assert (switch.line, switch.shown, switch.about) == ("/switch ", "/switch ID", "Go to an agent.")
    [parent, *_] = command_choices("/parent")
    assert parent.line == "/parent"


@given(st.text(max_size=60), st.text(max_size=60), st.integers(4, 60), st.integers(20, 110))
def test_no_line_of_the_menu_is_wider_than_it(shown: str, about: str, names: int, width: int) -> None:
    assert cell_len(choice_line(MenuItem("", shown, about), names, width, DARK).plain) <= width


def test_the_files_of_a_mention_are_those_below_the_directory_folders_first(tmp_path: Path) -> None:
    for path in ("node_modules/plan.js", "src/plan.py", "src/tea/leaf.py", "plan.md", ".hidden", "a b.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()

    def lines(text: str) -> list[str]:
        return [choice.line for choice in file_choices(text, tmp_path)]

    assert lines("see @") == ["see @node_modules/", "see @src/", "see @plan.md "]
    assert lines("see @PL") == ["see @plan.md ", "see @src/plan.py "]  # beyond the directory, too
    assert lines("@leaf") == ["@src/tea/leaf.py "]
    assert lines("@src/") == ["@src/tea/", "@src/plan.py "]
    assert lines("@.h") == ["@.hidden "]
    for none in ("see @../", "@/", "mail a@", "@src/ and", "no"):
        assert lines(none) == []


async def offers(stage: Stage, *shown: str) -> None:
    menu = stage.application.main.query_one(CommandMenu)
    await stage.until(lambda: menu.display and all(label in stage.text for label in shown), str(shown))


@pytest.mark.thorough("a second play of the menu")
@pytest.mark.slow("the application, key by key")
def test_the_menu_shows_what_may_follow_and_leaves_nothing_behind() -> None:
    async def play(stage: Stage) -> None:
        prompt, menu = stage.application.main.page.prompt, stage.application.main.query_one(CommandMenu)
        await stage.type("/sw")
        await offers(stage, "/switch ID", "Go to an agent.")
        await stage.press("tab")
        assert prompt.text == "/switch "
        await offers(stage, "buyer", "seller", "idle")
        await stage.press("down", "enter")  # the second one; no more is to be typed
        await stage.expect(r"▸ seller ─")
        await stage.expect_gone("choose")
        await stage.type("/agents")
        await stage.press("escape")
        assert (stage.application.main.page.prompt.text, menu.display) == ("/agents", False)
        await stage.press("enter")
        await stage.expect("3 running")
        assert "choose" not in stage.transcript
        await stage.type("/")
        await offers(stage, "/fork")
        for letter in ("f", "o", "r", "enter"):  # faster than the menu is drawn
            stage.application.post_message(Key(letter, letter if len(letter) == 1 else None))
        await stage.until(lambda: stage.application.main.page.prompt.text == "/fork ", "the command that was meant")
        await stage.press("ctrl+u")
        await stage.type("/no-such")
        await stage.press("enter")
        await stage.expect("There is no command")
        await stage.press("up", "up")
        assert stage.application.main.page.prompt.text == "/agents"  # what is recalled opens no menu

    with open_memory() as system:
        system.root.rename("zoe")  # the last of the three
        for name in ("buyer", "seller"):
            system.root.fork(name=name)
        system._touch(system.root)
        on_stage(system, play)


@pytest.mark.slow("the application, key by key")
def test_enter_sends_a_prompt_as_it_was_typed_whatever_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(stage: Stage) -> None:
        await stage.type("look at @pl")
        await offers(stage, "@plan.md")
        await stage.press("enter")
        await stage.expect("You said “look at @pl”")

    (tmp_path / "plan.md").touch()
    monkeypatch.chdir(tmp_path)
    with open_memory() as system:
        on_stage(system, play)
