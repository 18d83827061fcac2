"""The menu of completions above the prompt. The menu is drawn over the transcript, and disappears without a trace.

The prompt keeps the keyboard: the keys of the prompt move the mark, and take the marked line.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ikigai_actors.shell.app.theme import DARK, Palette
from ikigai_actors.verbs.text.mentions import is_command

MOST_ITEMS = 50
"""The most lines in the menu; more letters find the others."""


class MenuItem(NamedTuple):
    """A line of the completion menu."""

    line: str
    """The text of the prompt after this line is chosen; it ends with a blank if an argument must follow."""
    shown: str
    about: str = ""
    """A short description."""


def choice_line(choice: MenuItem, name_width: int, width: int, colours: Palette) -> Text:
    """Return a line of the menu: the name, its arguments, and a description."""
    head, _, rest = choice.shown.partition(" ")
    line = Text(head, colours.accent, no_wrap=True).append(f" {rest}" if rest else "", colours.past)
    line.truncate(name_width, overflow="ellipsis", pad=True)
    line.append(f"  {choice.about}", colours.past)
    line.truncate(width, overflow="ellipsis")
    return line


class CommandMenu(OptionList, can_focus=False):
    """The menu of completions; hidden while there is nothing to choose."""

    DEFAULT_CSS = """
    CommandMenu {
        layer: over; dock: bottom; display: none; height: auto; max-height: 12;
        border: round $edge; border-subtitle-color: $past; background: $surface; padding: 0 1;
        scrollbar-size-vertical: 1; scrollbar-background: $surface;
    }
    CommandMenu > .option-list--option-highlighted { background: $chosen; color: $foreground; text-style: bold; }
    CommandMenu:ansi > .option-list--option-highlighted { text-style: reverse; }
    """

    def __init__(self, commands: Callable[[str], list[MenuItem]]) -> None:
        """Make the menu; ``commands`` returns the completions of a text that begins a command, without waiting."""
        super().__init__(markup=False)
        self._commands = commands
        self._choices: Sequence[MenuItem] = ()
        self._text = ""  # what the choices are for
        self._width = 0
        self._colours = DARK
        self._moved = False

    def meant(self, text: str) -> MenuItem | None:
        """Return the menu line that Enter takes for a text: the marked one; None for a prompt or a complete command."""
        moved = self._moved and text == self._text
        complete = not is_command(text) or any(
            choice.line.rstrip() == text.rstrip() for choice in self._choices_for(text)
        )
        return self.fitting(text) if moved or not complete else None

    def fitting(self, text: str) -> MenuItem | None:
        """Return the marked line for a text; None without one."""
        choices = self._choices_for(text)
        at = self.highlighted if text == self._text and self.highlighted is not None else 0
        return choices[at] if choices else None

    def _choices_for(self, text: str) -> Sequence[MenuItem]:
        """Return the completions of a text, even if the menu is not drawn yet because keys came fast."""
        if text == self._text:
            return self._choices
        if is_command(text) and text.split() == [text]:
            return self._commands(text)
        return [choice for choice in self._choices if choice.line.startswith(text)]

    def offer(self, choices: Sequence[MenuItem], text: str, width: int, below: int, colours: Palette) -> None:
        """Show lines for a text, at most `MOST_ITEMS`, above ``below`` rows; no lines hide the menu."""
        self._text = text
        self.styles.margin = (0, 0, below, 0)
        if (choices, colours, width) == (self._choices, self._colours, self._width) and self.display == bool(choices):
            return
        self._width = width
        self._choices, self._colours, self._moved = choices[:MOST_ITEMS], colours, False
        self.clear_options()
        self.display = bool(choices)
        if not choices:
            return
        names = min(max(cell_len(choice.shown) for choice in self._choices), width // 2)
        self.add_options([Option(choice_line(choice, names, width, colours)) for choice in self._choices])
        self.highlighted = 0
        more = f"{len(choices) - MOST_ITEMS} more: type on · " if len(choices) > MOST_ITEMS else ""
        self.border_subtitle = Content(f"{more}↑↓ choose · Tab takes · Esc closes")

    def fit(self, width: int, below: int, colours: Palette) -> None:
        """Redraw the completion menu for a window of another width."""
        if self.display and width != self._width:
            self.offer(self._choices, self._text, width, below, colours)

    def close(self, text: str = "") -> None:
        """Hide the menu; it stays hidden for this text."""
        self._text, self._choices, self.display = text, (), False

    def move(self, by: int) -> None:
        """Move the mark: up for -1, down for 1."""
        self._moved = True
        (self.action_cursor_up if by < 0 else self.action_cursor_down)()
