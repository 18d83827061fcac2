"""The search among the entries that were submitted before."""

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from ikigai_actors.shell.app.input_history import Recall
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.shell.text.harmless import one_line


class RecallScreen(ModalScreen[str | None]):
    """Gives the chosen entry, or None."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,ctrl+r", "dismiss(None)", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
    ]

    DEFAULT_CSS = """
    RecallScreen { align: center bottom; }
    RecallScreen Vertical { height: 60%; background: $surface; border: round $foreground 40%; }
    RecallScreen Rows { height: 1fr; }
    """

    def __init__(self, recall: Recall) -> None:
        super().__init__()
        self._recall = recall
        self._found: list[str] = []

    def compose(self) -> ComposeResult:
        """Lay out the entries that are found, and the input for the search text below them."""
        with Vertical():
            yield Rows(lambda pair: str(pair[0]), lambda pair: Text(one_line(pair[1])))
            yield Input(placeholder="search earlier prompts; Enter takes one, Esc leaves", compact=True)

    def on_mount(self) -> None:
        """Begin with all entries."""
        self.query_one(Input).focus()
        self._search("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search again whenever the text changes."""
        self._search(event.value)

    def on_input_submitted(self) -> None:
        """Choose the entry at the cursor."""
        self.query_one(Rows).action_choose()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Give the chosen entry."""
        self.dismiss(self._found[int(event.key)])

    def action_move(self, by: int) -> None:
        """Move the cursor among the entries; the input keeps the focus."""
        self.query_one(Rows).action_move(by)

    def _search(self, text: str) -> None:
        self._found = self._recall.search(text)
        self.query_one(Rows).show(list(enumerate(self._found)))
