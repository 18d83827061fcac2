"""The screen that finds: a few letters lead to a screen, an agent, a document, a command or an earlier prompt."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ikigai_actors.shell.app.agent_page import Later
from ikigai_actors.shell.app.agent_rows import colour_of
from ikigai_actors.shell.app.finding import Group, Thing, by_kind, found_by, letters, letters_of_agents
from ikigai_actors.shell.app.theme import Palette, palette
from ikigai_actors.shell.app.widgets.key_line import KeyLine
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import SIGNS

_NAME = 26
"""The width of a name's column before the description. A narrow window has less, and a long name takes more."""

_KEYS = (("Enter", "opens"), ("@", "agents"), (">", "commands"), ("#", "documents"), ("^", "prompts"), ("Esc", ""))


class FindScreen(ModalScreen[Thing | None]):
    """A screen to find and choose a thing; its result is the thing, or None."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,ctrl+p", "dismiss(None)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
    ]

    DEFAULT_CSS = """
    FindScreen { align: center top; background: $background 60%; }
    FindScreen #find { width: 90; max-width: 100%; height: 70%; margin-top: 2; }
    FindScreen #find { background: $surface; border: round $edge; }
    FindScreen #entry { height: 1; margin-bottom: 1; padding: 0 1; }
    FindScreen #entry Static { width: 2; color: $accent; text-style: bold; }
    FindScreen Input, FindScreen Input:focus { width: 1fr; background: $surface; background-tint: 0%; }
    FindScreen Rows { scrollbar-background: $surface; scrollbar-background-hover: $surface; }
    """

    def __init__(
        self,
        text: str,
        known: Iterable[Thing],
        read: Callable[[], Iterable[Thing]],
        agents: Callable[[str], Iterable[Thing]],
        later: Later,
    ) -> None:
        """Make the screen.

        Args:
            text: the text already typed.
            known: the things that can be searched at once.
            read: returns further things, and may take a while.
            agents: returns the agents that match some letters, since the known ones may be only a part.
            later: runs a function on another thread.
        """
        super().__init__()
        self._things, self._read, self._agents, self._later = by_kind(known), read, agents, later
        self._rows = Rows(lambda thing: f"{thing.group}{thing.value or thing.name}", self._row)
        self._input = Input(text, placeholder="a few letters of a name", compact=True, select_on_focus=False)

    def compose(self) -> ComposeResult:
        """Lay out the input, the results, and the keys."""
        with Vertical(id="find"):
            with Horizontal(id="entry"):
                yield Static("›")
                yield self._input
            yield self._rows
            yield KeyLine(_KEYS)

    def on_mount(self) -> None:
        """Show the known things."""
        self._input.focus()
        self._search()
        self._later(self._read, self._add)

    def on_input_changed(self) -> None:
        """Search again whenever the text changes; the cursor goes to the best match."""
        self._search()
        self._rows.action_move(-len(self._things))
        if wanted := letters_of_agents(self._input.value):
            self._later(partial(self._agents, wanted), self._add)

    def on_input_submitted(self) -> None:
        """Choose the thing at the cursor."""
        self._rows.action_choose()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Close the screen with the chosen thing."""
        self.dismiss(self._rows.item)

    def action_move(self, by: int) -> None:
        """Move the cursor; the input keeps the focus."""
        self._rows.action_move(by)

    def action_page(self, by: int) -> None:
        """Move the cursor by a window."""
        self._rows.action_page(by)

    @property
    def _colours(self) -> Palette:
        return palette(self.app.current_theme)

    def _add(self, read: Iterable[Thing]) -> None:
        known = {(thing.group, thing.value) for thing in self._things if thing.value}
        self._things = by_kind([*self._things, *(thing for thing in read if (thing.group, thing.value) not in known)])
        self._search()

    def _search(self) -> None:
        self._rows.show(found_by(self._things, self._input.value))

    def _row(self, thing: Thing) -> Text:
        columns = min(_NAME, self._rows.size.width * 2 // 5)
        return thing_line(thing, letters(self._input.value), columns, self._colours)


def thing_line(thing: Thing, wanted: str, columns: int, colours: Palette) -> Text:
    """Return the line of a thing: its name with the matching letters marked, and its description."""
    sign, colour = (
        (SIGNS[thing.kind], colour_of(thing.kind, colours)) if thing.kind else (_SIGNS[thing.group], colours.past)
    )
    name = Text(one_line(thing.name), colours.ink)
    if wanted and (match := re.search(re.escape(wanted), name.plain, re.IGNORECASE)):
        name.stylize(f"bold {colours.accent}", *match.span())
    line = Text().append(f" {sign} ", colour).append_text(name)
    line.append(" " * max(2, columns - name.cell_len))
    return line.append(one_line(thing.about), colours.past)


_SIGNS = {Group.SCREEN: "▪", Group.DOCUMENT: "#", Group.COMMAND: ">", Group.PROMPT: "^", Group.AGENT: "@"}
