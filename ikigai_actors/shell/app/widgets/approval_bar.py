"""The question bar shows a call that waits for the person, all of it. While the bar has the focus, a key answers.

A call that fits beside the keys is there. Any other has its page below, which scrolls where it is long.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.shell.text.call_page import call_line, call_page, visible

ANSWERS = {"y": "/approve {}", "n": "/deny {}", "a": "/approve {} --always"}
"""The command of each key."""

_KEYS = "  y run  n deny  a always"


class Question(NamedTuple):
    """A call that waits for the person."""

    number: int
    who: str
    """The agent that asks, with a colon; empty for the current one."""
    call: PendingCall


class CallText(ScrollView):
    """The lines of a call, of which those in sight are drawn."""

    DEFAULT_CSS = "CallText { height: auto; scrollbar-size-vertical: 1; overflow-x: hidden; }"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []

    def show(self, lines: list[str], width: int, most: int) -> None:
        """Show lines, folded to this many columns, in at most this many rows."""
        self._lines = [part for line in lines for part in chop_cells(line, max(2, width - 1)) or [""]]
        self.display = bool(lines)
        self.styles.height = min(len(self._lines), max(1, most))
        self.virtual_size = Size(width, len(self._lines))
        self.scroll_home(animate=False, immediate=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one line of the window."""
        at = y + self.scroll_offset.y
        line = Text(self._lines[at] if at < len(self._lines) else "")
        return (
            Strip(line.render(self.app.console, end=""))
            .adjust_cell_length(self.size.width)
            .apply_style(self.rich_style)
        )


class QuestionBar(Vertical, can_focus=True):
    """Shows one question; hidden when there is none."""

    DEFAULT_CSS = """
    QuestionBar { height: auto; display: none; padding: 0 1; background: $warning 20%; }
    QuestionBar:focus { background: $warning 60%; }
    """

    BINDINGS: ClassVar[list[Any]] = [
        *(Binding(key, f"answer('{key}')", show=False) for key in ANSWERS),
        *(Binding(key, f"scroll('{key}')", show=False) for key in ("up", "down", "home", "end")),
    ]

    @dataclass
    class Answered(Message):
        """The person has answered the question of this number: with the key ``y``, ``n`` or ``a``."""

        number: int
        key: str

    def __init__(self) -> None:
        super().__init__()
        self._head, self._text = Static(markup=False), CallText()
        self._number = 0  # of the question that is in sight, and not answered
        self._shown: tuple[int, str, Size] | None = None

    def compose(self) -> ComposeResult:
        """Lay out the keys above the call."""
        yield self._head
        yield self._text

    def ask(self, question: Question | None, screen: Size) -> None:
        """Show a question on a screen of this size; None hides the bar."""
        shown = (question.number, question.who, screen) if question is not None else None
        if shown == self._shown:
            return
        before, self._shown = self._shown, shown
        self.display = question is not None
        if question is None:
            self._number = 0
            return
        width, call = screen.width - 2, question.call
        room, asked = max(10, width - len(_KEYS)), f"[{question.number}] {question.who}"
        head, lines = f"{asked}{call_line(call)}", list[str]()
        if cell_len(head) > room:
            head, lines = f"{asked}{visible(call.tool)}", call_page(call)
        if cell_len(head) > room:
            lines = [head, *lines]
        text = Text(head, "bold")
        text.truncate(room, overflow="ellipsis")
        self._head.update(text.append(_KEYS, "reverse"))
        self._text.show(lines, width, screen.height // 2)
        if before is None or before[0] != question.number:
            self._number = 0  # a key that was pressed before the question is in sight does not answer it
            self.call_after_refresh(self._in_sight, question.number)

    def _in_sight(self, number: int) -> None:
        if self._shown is not None and self._shown[0] == number:
            self._number = number

    def answer(self, key: str) -> bool:
        """Take a key as the answer; return whether it is one, and the question in sight is not answered yet."""
        if not self._number or key not in ANSWERS:
            return False
        self.post_message(self.Answered(self._number, key))
        self._number = 0
        return True

    def action_answer(self, key: str) -> None:
        """Take a key as the answer; later keys for the same question are ignored."""
        self.answer(key)

    def action_scroll(self, key: str) -> None:
        """Scroll the call."""
        scroll = {
            "up": self._text.scroll_up, "down": self._text.scroll_down,
            "home": self._text.scroll_home, "end": self._text.scroll_end,
        }[key]  # fmt: skip
        scroll(animate=False, immediate=True)

    def page(self, by: int) -> None:
        """Scroll by a window: up for -1, down for 1."""
        self._text.scroll_relative(y=by * max(1, self._text.size.height - 1), animate=False, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """Take the focus."""
        self.focus()
