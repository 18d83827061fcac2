"""The question bar: a call that waits for the person, answered by a key when the bar has the focus."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Static


class QuestionBar(Static, can_focus=True):
    """Shows one question; hidden when there is none."""

    DEFAULT_CSS = """
    QuestionBar { height: 1; display: none; padding: 0 1; background: $warning 20%; }
    QuestionBar:focus { background: $warning 60%; }
    """

    BINDINGS: ClassVar[list[Any]] = [
        Binding("y", "answer('y')", "Run it"),
        Binding("n", "answer('n')", "Do not"),
        Binding("a", "answer('a')", "Run it, and always"),
    ]

    @dataclass
    class Answered(Message):
        """A key was pressed: ``y``, ``n`` or ``a``."""

        number: int
        key: str

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._number = 0
        self._question: tuple[int, Text] | None = None

    def ask(self, question: tuple[int, Text] | None) -> None:
        """Show a question with its number, or none."""
        if question == self._question:
            return
        self._question, self.display = question, question is not None
        if question is not None:
            self._number, text = question
            self.update(text)

    def action_answer(self, key: str) -> None:
        """Tell which key was pressed. One question gets one answer."""
        if self._number:
            self.post_message(self.Answered(self._number, key))
            self._number = 0
