"""The colours of the application."""

from pathlib import Path

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from ikigai_actors.shell.app.application import Application
from ikigai_actors.shell.app.theme import (
    DARK,
    DARK_THEME,
    LIGHT,
    LIGHT_THEME,
    OWN,
    THEMES,
    Palette,
    ThemeChoice,
    palette,
)  # fmt: skip
from tests.kit.app_pilot import Stage, on_stage, open_memory


@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_text_can_be_read_on_each_ground(colours: Palette) -> None:
    grounds = (colours.paper, colours.raised, colours.chosen)
    texts = (colours.ink, colours.past, colours.accent, colours.waits, colours.failed)
    assert min(_contrast(text, ground) for text in texts for ground in grounds) >= 4.5


def test_the_palette_of_a_theme_is_that_of_ours_which_is_nearest() -> None:
    assert [palette(theme) for theme in THEMES] == [DARK, LIGHT, OWN]
    assert [palette(BUILTIN_THEMES[name]) for name in ("nord", "textual-light", "ansi-light")] == [DARK, LIGHT, OWN]


def _contrast(colour: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it."""
    dim, bright = sorted(map(_luminance, (colour, other)))
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = (part / 255 for part in Color.parse(colour).rgb)
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_theme_is_chosen_and_remembered(tmp_path: Path) -> None:
    history = tmp_path / "home" / "history"

    async def play(stage: Stage) -> None:
        await stage.say("/settings theme light")
        await stage.until(lambda: stage.application.theme == LIGHT_THEME, "the theme")
        await stage.say("/settings theme")
        await stage.expect("Say which colours")

    def first_theme(light: bool | None = None) -> str:
        application = Application(system, history, light=light)
        application.events.close()
        application._serial.close()
        return application.theme

    with open_memory() as system:
        on_stage(system, play, history=history)
        assert first_theme(light=False) == LIGHT_THEME
        ThemeChoice(history.with_name("theme")).remember("auto")
        assert [first_theme(light) for light in (False, True)] == [DARK_THEME, LIGHT_THEME]
