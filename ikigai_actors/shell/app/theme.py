"""The colours of the application, by their meanings.

    ink      all text                       accent   controls, and agents that work
    past     finished things, and asides    waits    things that wait for the person
    line     edges                          failed   errors and failures

No meaning is shown by a colour alone: a sign or a word goes with each colour. Text has a contrast of at least 4.5 on
each ground below it; edges have less, since they mean nothing.
"""

from pathlib import Path
from typing import NamedTuple

from textual.theme import BUILTIN_THEMES, Theme

from ikigai_actors.errors import BadInput


class Palette(NamedTuple):
    """The colours of a theme, each by its meaning, with Rich's names."""

    ink: str
    past: str
    accent: str
    waits: str
    failed: str
    line: str
    paper: str
    """The ground of nearly everything."""
    raised: str
    """The background of overlays and of code."""
    chosen: str
    """The background of the row at the cursor, and of the person's texts."""


DARK = Palette("#e8e4db", "#9497a0", "#3fc1a8", "#e0a63a", "#ff6b5e", "#3a4150", "#12141a", "#1b1f28", "#243047")
LIGHT = Palette("#23221f", "#65625a", "#0b6b59", "#865300", "#b3241a", "#bdb6a6", "#fbf9f4", "#f0ece2", "#dfe7f5")
OWN = Palette("default", "bright_black", "cyan", "yellow", "red", "bright_black", "default", "default", "default")
"""The palette with the terminal's own colours; without colours under ``NO_COLOR``."""

DARK_THEME, LIGHT_THEME, OWN_THEME = NAMES = ("ikigai-dark", "ikigai-light", "ikigai-own")

THEME_NAMES = {"dark": DARK_THEME, "light": LIGHT_THEME, "own": OWN_THEME}
"""The themes by the argument of ``/settings theme``."""


class ThemeChoice:
    """The chosen theme, stored in a file beside the history. Thread-safe."""

    def __init__(self, file: Path | None) -> None:
        """Use ``file`` for the choice; None stores nothing."""
        self._file = file

    def read(self) -> str:
        """Return the name of the stored theme; empty if none was chosen."""
        try:
            return "" if self._file is None else self._file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def remember(self, word: str) -> None:
        """Store the chosen theme. Raises `BadInput` if the file cannot be written."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.write_text(f"{word}\n", encoding="utf-8")
        except OSError as error:
            raise BadInput(f"The choice cannot be kept: {error}") from error


def variables(colours: Palette) -> dict[str, str]:
    """Return the style-sheet variables of a palette: ours (``$past``, ``$edge``, ``$chosen``), and Textual's."""
    return {
        "past": colours.past,
        "edge": colours.line,
        "chosen": colours.chosen,
        "block-cursor-background": colours.chosen,
        "block-cursor-foreground": colours.ink,
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": colours.chosen,
        "input-cursor-background": colours.accent,
        "input-cursor-foreground": colours.paper,
        "border": colours.accent,
        "border-blurred": colours.line,
        "footer-key-foreground": colours.accent,
        "scrollbar": colours.line,
        "scrollbar-hover": colours.past,
        "scrollbar-active": colours.accent,
        "scrollbar-background": colours.paper,
        "scrollbar-background-hover": colours.paper,
        "scrollbar-background-active": colours.paper,
        "scrollbar-corner-color": colours.paper,
    }


def _theme(name: str, colours: Palette, dark: bool) -> Theme:
    accent = colours.accent
    return Theme(
        name, primary=accent, secondary=accent, accent=accent, success=accent, warning=colours.waits,
        error=colours.failed, foreground=colours.ink, background=colours.paper, surface=colours.raised,
        panel=colours.raised, dark=dark, text_alpha=1.0, variables=variables(colours),
    )  # fmt: skip


def _own() -> Theme:
    plain = BUILTIN_THEMES["ansi-dark"]
    own = {"past": "ansi_bright_black", "edge": "ansi_bright_black", "chosen": "ansi_default"}
    return Theme(
        OWN_THEME, primary="ansi_cyan", secondary="ansi_cyan", accent="ansi_cyan", success="ansi_cyan",
        warning="ansi_yellow", error="ansi_red", foreground=plain.foreground, background=plain.background,
        surface=plain.surface, panel=plain.panel, boost=plain.boost, ansi=True, variables=plain.variables | own,
    )  # fmt: skip


THEMES = (_theme(DARK_THEME, DARK, dark=True), _theme(LIGHT_THEME, LIGHT, dark=False), _own())


def palette(theme: Theme) -> Palette:
    """Return the palette of a theme; for one of Textual's, our nearest palette."""
    return OWN if theme.ansi else DARK if theme.dark else LIGHT
