"""What a person types is what the prompt has, whatever Python calls printable."""

from pathlib import Path

import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key
from textual.widgets import Input

from ikigai_actors.shell.app.typed_key import as_typed
from tests.kit.app_pilot import Stage, on_stage, open_memory

ODD = "a\u3000b\xa0c\u200cd\u200de\xadf\u200fg\ufeffh\U000e0062"


def typed(text: str) -> list[str]:
    """What the keys are that a terminal sends for a text: their characters if they are text, else their names."""
    keys = [as_typed(event) for event in XTermParser().feed(text) if isinstance(event, Key)]
    return [key.character or "" if key.is_printable else key.key for key in keys if isinstance(key, Key)]


def test_every_character_that_a_terminal_sends_is_text_but_control_characters() -> None:
    assert "".join(typed(ODD)) == ODD
    assert typed("\x01\t\x7f\x1b[A") == ["ctrl+a", "tab", "backspace", "up"]


def test_what_would_paint_the_terminal_is_spelled_out_as_in_a_paste() -> None:
    assert typed("\u202e\u2028") == ["\\u202e", "\\u2028"]


@pytest.mark.thorough("every box; every run has the prompt")
@pytest.mark.slow("the application, key by key")
def test_all_boxes_take_what_is_typed(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        for key in ("ctrl+r", "ctrl+p"):
            await stage.press(key)
            await stage.until(lambda: isinstance(stage.application.focused, Input))
            await stage.type(ODD)
            assert stage.application.screen.query_one(Input).value.removeprefix("^") == ODD
            await stage.press("escape")
            await stage.until(lambda: stage.application.screen is stage.application.main)
        await stage.say(ODD)
        await stage.until(lambda: stage.system.root.history(), "the prompt in the log")

    with open_memory() as system:
        on_stage(system, play, history=tmp_path / "history")
        assert system.root.history()[0].content == ODD
