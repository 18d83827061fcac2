"""The key screen lists the keys of the main screen."""

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

KEY_GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "Talk": (
        ("Enter, Ctrl+J", "Submit; a new line"),
        ("Tab", "Take a line of the menu"),
        ("Alt+Enter", "Prompt after the turn"),
        ("Up, Down", "Earlier prompts and commands"),
        ("F9", "Edit the prompt in $EDITOR"),
        ("!command", "Run it as you; !! keeps its output from the agent"),
        ("Ctrl+U", "Clear the line; twice, all"),
        ("Ctrl+_", "Undo"),
        ("Ctrl+Y", "Copy the latest answer, in an empty prompt"),
        ("Ctrl+D, Ctrl+Q", "Leave"),
    ),
    "Move": (),
    "Screens": (
        ("F1", "These keys"),
        ("Ctrl+P", "Find screens, agents, documents, commands, prompts"),
        ("ikigai --plain", "The same in lines of words, as for a screen reader"),
    ),
    "Transcript": (
        ("PageUp, PageDown", "Scroll the transcript"),
        ("n, N", "The next hit of a search: earlier, later"),
        ("Click", "Fold a call, thinking or a long prompt"),
        ("Shift+drag", "Select, by the terminal's own mouse"),
    ),
}
"""The keys other than bindings of the main screen, grouped by purpose."""

_BOUND = {
    "Talk": ("escape", "ctrl+c", "f2", "ctrl+r", "ctrl+z"),
    "Move": ("ctrl+up", "ctrl+left", "ctrl+right", "ctrl+down"),
    "Transcript": ("ctrl+end", "ctrl+f", "shift+tab", "f7", "f8"),
}
"""The groups of the main screen's bindings, by their first keys; all other bindings are in the group of screens."""


NARROW = 76
"""The window width, in characters, below which a description follows its key directly."""


class KeysScreen(ModalScreen[None]):
    """A screen that lists the keys and their effects."""

    BINDINGS: ClassVar[list[Any]] = [Binding("escape,f1,q,enter", "dismiss", "Back")]

    DEFAULT_CSS = """
    KeysScreen { align: center middle; background: $background; }
    KeysScreen VerticalScroll {
        width: auto; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; background: $surface;
    }
    KeysScreen Static { width: auto; max-width: 100%; height: auto; }
    """

    def __init__(self, main: Screen[Any]) -> None:
        super().__init__()
        self._main = main

    def compose(self) -> ComposeResult:
        """Lay out the list of keys."""
        bindings = (each for each in type(self._main).BINDINGS if isinstance(each, Binding) and each.show)
        groups = {group: list(rows) for group, rows in KEY_GROUPS.items()}
        for each in bindings:
            groups[_group_of(each.key)].append((_shown(each.key), each.description))
        text, narrow = Text(), self.app.size.width < NARROW
        for group, rows in groups.items():
            text.append(f"{group}\n", "dim")
            for key, what in rows:
                text.append(key if narrow else f"{key:<24}", "bold").append(f"{': ' * narrow}{what}\n")
        with VerticalScroll():
            yield Static(text.append("/help lists the commands · Esc", "dim"))


def _group_of(key: str) -> str:
    first = key.split(",")[0]
    return next((group for group, keys in _BOUND.items() if first in keys), "Screens")


def _shown(key: str) -> str:
    return ", ".join("+".join(part.capitalize() for part in part.split("+")) for part in key.split(","))
