"""Pastes: each stands in the prompt once and is sent as it was, wherever the focus was."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from textual.events import Paste

from ikigai_actors import Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.shell.app.widgets.prompt import LARGE
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.fullscreen import FullScreen

pytestmark = pytest.mark.slow("programs at terminals, and pastes at every place")

READY = r"╭─ (?!starting …)"

PASTES = {
    "a word": "ABC",
    "lines": "one\ntwo\n\nfour",
    "a newline at the end": "one\n",
    "blanks": "  indented\n\tby a tab",
    "wide characters": "茶と器 é 🫖",
    "as much as is inserted": "x" * LARGE,
}


def bracketed(text: str) -> str:
    """As a terminal sends a paste."""
    return f"\x1b[200~{text}\x1b[201~"


def prompts(database: Path) -> list[str]:
    """What agents were prompted with, as committed."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT content FROM messages WHERE kind = 'user' ORDER BY created_at, id")
        return [content for (content,) in rows]


@pytest.mark.sample(1, "a screen for each")
@pytest.mark.parametrize(
    ("pasted", "focus"),
    [*((pasted, ()) for pasted in PASTES.values()), ("one\n", ("f3",)), ("one\n", ("click",))],
    ids=[*PASTES, "at the tree", "at the transcript"],
)
def test_a_paste_stands_in_the_prompt_once(pasted: str, focus: tuple[str, ...]) -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        if "click" in focus:
            stage.application.main.page.transcript.focus()
        else:
            await stage.press(*focus)
        stage.application.post_message(Paste(pasted))
        await stage.until(lambda: prompt.has_focus and prompt.text)
        await stage.type("!")
        assert prompt.text == f"{pasted}!"

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("another place for a paste")
def test_a_paste_takes_the_place_of_what_is_selected() -> None:
    async def play(stage: Stage) -> None:
        prompt = stage.application.main.page.prompt
        for pasted, shown in [("tea", "tea"), ("x" * (LARGE + 1), "[pasted 10 KB]")]:
            await stage.type("keep this")
            await stage.press(*["shift+left"] * 4)
            stage.application.post_message(Paste(pasted))
            await stage.type("!")
            assert prompt.text == f"keep {shown}!"
            assert prompt.whole == f"keep {pasted}!"
            prompt.clear()

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of a paste")
def test_the_ends_of_lines_of_a_paste_are_newlines_and_its_control_characters_are_spelled_out() -> None:
    async def play(stage: Stage) -> None:
        stage.application.post_message(Paste("a\r\nb\rc\x1b[31md"))
        await stage.type("!")
        assert stage.application.main.page.prompt.text == "a\nb\nc\\x1b[31md!"

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("a second play of a paste")
def test_a_paste_at_a_question_is_no_answer_but_goes_to_the_prompt() -> None:
    @tool(policy="ask")
    def launch() -> str:
        """Launch it."""
        raise AssertionError("Nobody allowed it.")

    async def play(stage: Stage) -> None:
        await stage.say("go")
        await stage.expect("wants to run launch")
        await stage.press("f2")
        stage.application.post_message(Paste("yes"))
        await stage.until(lambda: stage.application.main.page.prompt.has_focus)
        await stage.type("!")
        assert stage.application.main.page.prompt.text == "yes!"
        await stage.expect("wants to run launch")

    with open_memory(
        ScriptedProvider([Reply("", (ToolCall("launch", {}),))]), tools=[launch], approvals="ask"
    ) as system:
        on_stage(system, play)


@pytest.mark.thorough("a second screen")
@pytest.mark.sample(1, "a screen each")
@pytest.mark.parametrize("key", ["f1", "f5"])
def test_a_paste_on_another_screen_changes_nothing_of_the_prompt(key: str) -> None:
    async def play(stage: Stage) -> None:
        main = stage.application.screen
        await stage.press(key)
        await stage.until(lambda: stage.application.screen is not main)
        stage.application.post_message(Paste("nqd"))
        await stage.pilot.pause(0)
        await stage.press("escape")
        await stage.until(lambda: stage.application.screen is main)
        await stage.type("!")
        assert stage.application.main.page.prompt.text == "!"

    with open_memory() as system:
        on_stage(system, play)


@pytest.mark.thorough("an application for one box; test_typed_keys asks all boxes")
def test_a_paste_into_a_search_is_searched_for_once(tmp_path: Path) -> None:
    from textual.widgets import Input

    async def play(stage: Stage) -> None:
        for key in ("ctrl+r", "ctrl+p"):
            await stage.press(key)
            await stage.until(lambda: isinstance(stage.application.focused, Input))
            field = stage.application.focused
            assert isinstance(field, Input)
            stage.application.post_message(Paste("tw"))
            await stage.until(lambda field=field: field.value.strip("^"))  # type: ignore[misc]
            await stage.pilot.pause(0)
            assert field.value.removeprefix("^") == "tw"
            await stage.press("escape")
            await stage.until(lambda: stage.application.screen is stage.application.main)
        assert stage.application.main.page.prompt.text == ""

    (tmp_path / "history").write_text("one\ntwo\nthree\n")
    with open_memory() as system:
        on_stage(system, play, history=tmp_path / "history")


@pytest.mark.thorough("a program at a terminal; every run has pastes without one")
@pytest.mark.parametrize(
    "focus",
    ["", pytest.param("\x1b[13~", marks=pytest.mark.thorough("a program at a terminal; one is pasted to in each run"))],
    ids=["prompt", "tree"],
)
def test_what_is_pasted_at_a_terminal_is_sent_once_and_whole(tmp_path: Path, focus: str) -> None:
    pasted = [*PASTES.values(), "y" * (LARGE + 1), "z" * 100_000]
    with FullScreen("--database", str(tmp_path / "team.db"), "--model", "offline", size=(160, 30)) as program:
        program.expect(READY)
        for number, text in enumerate(pasted):
            program.type(focus)
            program.type(bracketed(text))
            program.type(f"<{number}>")
            program.expect(f"<{number}>")
            program.type("\r")
            program.expect(f"I remember {number + 1} " if number else "That is all I remember")
            program.type(focus)  # which hides the tree
        program.type("\x04")
        assert program.ends() == 0
    assert prompts(tmp_path / "team.db") == [f"{text}<{number}>" for number, text in enumerate(pasted)]


HOSTILE = [
    "a\x1b[31m b",
    "up\x1b[A down\x1b[B",
    "a line\x1b\rand one more",
    "\x1b",
    "\x1b\x1b[200~x",
    "half \x1b[20",
    "\x1b" + "long" * 20 + "\r/exit\r",
    "\x1b[<0;1;1M\x04",
]


@pytest.mark.thorough("a program at a terminal; pastes lose their escapes in test_start")
def test_escape_sequences_in_a_paste_are_text_and_no_keys(tmp_path: Path) -> None:
    from ikigai_actors.verbs.text.harmless import harmless

    with FullScreen("--database", str(tmp_path / "team.db"), "--model", "offline", size=(160, 30)) as program:
        program.expect(READY)
        for number, text in enumerate(HOSTILE):
            program.type(bracketed(text))
            program.type(f"<{number}>")
            program.expect(f"<{number}>")
            program.type("\r")
            program.expect(f"I remember {number + 1} " if number else "That is all I remember")
        program.type("\x04")
        assert program.ends() == 0
    wanted = [f"{harmless(text.replace(chr(13), chr(10)))}<{number}>" for number, text in enumerate(HOSTILE)]
    assert prompts(tmp_path / "team.db") == wanted
