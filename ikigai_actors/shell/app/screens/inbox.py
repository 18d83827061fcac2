"""The inbox screen lists the questions that wait for a person.

A question can be answered after the person was shown all of it.
"""

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Input, Static

from ikigai_actors.errors import IkigaiError
from ikigai_actors.shell.app.agent_page import Later
from ikigai_actors.shell.app.transcript.pieces import tidy
from ikigai_actors.shell.app.widgets.key_line import KeyLine
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.system.handles.ref import System
from ikigai_actors.verbs.questions import InboxLine, answer_line_of, inbox_lines
from ikigai_actors.verbs.text.harmless import harmless

NO_QUESTIONS = "Calls that wait for approval, and questions of models and programs, come here."


class InboxScreen(Screen[None]):
    """The screen of the waiting questions, the oldest first."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q", "dismiss", "Back"),
        Binding("y", "decide(False)", "Allow the open one"),
        Binding("n", "decide(True)", "Deny or decline the open one"),
        Binding("r", "read", "Reload"),
    ]

    DEFAULT_CSS = """
    InboxScreen #head { padding: 0 1; }
    InboxScreen VerticalScroll { height: 1fr; border-top: solid $edge; padding: 0 1; }
    InboxScreen Input { display: none; }
    """

    def __init__(self, system: System, later: Later) -> None:
        super().__init__()
        self._system, self._later = system, later
        self._head, self._body = Static(id="head"), Static(id="body", markup=False)
        self._rows = Rows(lambda line: str(line.id), self._row)
        self._answer = Input(placeholder="The answer; Enter sends it")
        self._lines: dict[str, InboxLine] = {}
        self._open: InboxLine | None = None

    def compose(self) -> ComposeResult:
        """Lay out the head, the rows, the open question, the field for its answer and the keys."""
        yield self._head
        yield self._rows
        with VerticalScroll(can_focus=False):
            yield self._body
        yield self._answer
        yield KeyLine((("Enter", "opens"), ("y", "allows"), ("n", "denies"), ("r", "reloads"), ("Esc", "back")))

    def on_mount(self) -> None:
        """Read the waiting questions for the first time."""
        self.action_read()

    def action_read(self) -> None:
        """Read the waiting questions again."""
        self._later(lambda: inbox_lines(self._system), self._show)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Show the chosen question whole."""
        line = self._open = self._lines.get(event.key)
        if line is None:
            return
        self._body.update(Text(f"{line.who} asks\n\n", "bold").append(tidy(line.whole), "not bold"))
        self._answer.value, self._answer.display = "", line.takes_text
        if line.takes_text:
            self._answer.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer the open question with the typed text."""
        self._send(event.value, deny=False)

    def action_decide(self, deny: bool) -> None:
        """Allow, deny or decline the open question."""
        if self._open is not None and (deny or not self._open.takes_text):
            self._send("", deny=deny)

    def _send(self, text: str, *, deny: bool) -> None:
        line = self._open
        if line is None:
            return

        def answer() -> tuple[bool, str]:
            try:
                return True, answer_line_of(self._system, line, text, deny=deny)
            except IkigaiError as error:
                return False, str(error)

        self._later(answer, self._answered)

    def _answered(self, outcome: tuple[bool, str]) -> None:
        taken, said = outcome
        if not taken:
            self._head.update(said)
            return
        self._open, self._answer.display = None, False
        self._rows.focus()
        self._body.update(said)
        self.action_read()

    def _show(self, lines: list[InboxLine]) -> None:
        self._lines = {line.id: line for line in lines}
        self._head.update(Text(f"Inbox: {len(lines)} waiting", "bold"))
        self._rows.show(lines)
        if not lines and self._open is None and not str(self._body.content):
            self._body.update(NO_QUESTIONS)

    def _row(self, line: InboxLine) -> Text:
        return Text(f"  {line.id[:12]}  {line.who:<16}  {harmless(line.first)}")
