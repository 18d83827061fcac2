"""The question bar shows a call that waits for the person. While the bar has the focus, a key answers."""

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
        """The person has answered the question of this number: with the key ``y``, ``n`` or ``a``."""

        number: int
        key: str

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._number = 0
        self._question: tuple[int, Text] | None = None

    def ask(self, question: tuple[int, Text] | None) -> None:
        """Show a question, given as its number and its text; None hides the bar."""
        if question == self._question:
            return
        self._question, self.display = question, question is not None
        if question is not None:
            self._number, text = question
            self.update(text)

    def action_answer(self, key: str) -> None:
        """Post the key as the answer; later keys for the same question are ignored."""
        if self._number:
            self.post_message(self.Answered(self._number, key))
            self._number = 0
