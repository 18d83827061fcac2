"""The pager: a whole call with its result, or a whole prompt or thinking text, with a search of its own."""

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen

from ikigai_actors.shell.app.theme import palette
from ikigai_actors.shell.app.transcript.pieces import Look, Piece
from ikigai_actors.shell.app.transcript.readable import ReadableTranscript
from ikigai_actors.shell.app.widgets.find_bar import FindBar
from ikigai_actors.shell.app.widgets.key_line import KeyLine

_LINES = 200
"""The most lines in a part of the text. Each part is laid out by itself, so a long text does not delay the keyboard."""

_TICK = 1 / 15
"""Seconds between two checks whether parts are left to lay out."""


def pages(piece: Piece) -> Iterator[Piece]:
    """Yield the text of a piece in full, split into parts that can be laid out one by one."""
    texts = [(piece.whole or piece.text, Look.STRONG if piece.look is Look.CALL else Look.TOLD)]
    if piece.result is not None:
        texts += [("", Look.NOTE), (piece.result or "(nothing)", Look.TOLD)]
    for text, look in texts:
        lines = text.split("\n")
        for at in range(0, len(lines), _LINES):
            yield Piece(look, "\n".join(lines[at : at + _LINES]))


class PagerScreen(Screen[None]):
    """A screen that shows one piece in full."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("ctrl+f", "find", "Find", priority=True),
        Binding("slash", "find", show=False),
        Binding("space", "page", show=False),
    ]

    DEFAULT_CSS = "PagerScreen ReadableTranscript { padding: 0 1 0 2; }"

    def __init__(self, piece: Piece, workers: Executor) -> None:
        """Make the screen; ``workers`` are threads that lay out long texts."""
        super().__init__()
        self._reader = ReadableTranscript(workers, whole=True)
        self._piece = piece
        self._find = FindBar(lambda: self._reader)

    def compose(self) -> ComposeResult:
        """Lay out the text, the search and the keys."""
        yield self._reader
        yield self._find
        yield KeyLine((("↑↓ PgUp PgDn", "scroll"), ("/", "finds"), ("Esc", "back")))

    def on_mount(self) -> None:
        """Show the beginning of the text."""
        self._reader.paint(palette(self.app.current_theme))
        self._reader.following = False
        for piece in pages(self._piece):
            self._reader.tell(piece.text, piece.look)
        self.set_focus(self._reader)
        self.set_interval(_TICK, self._tick)

    def on_find_bar_closed(self) -> None:
        """Return the focus to the text after a search."""
        self.set_focus(self._reader)

    def action_find(self) -> None:
        """Open the search bar."""
        self._find.open()

    def action_page(self) -> None:
        """Scroll by the height of the window."""
        self._reader.scroll_page_down(animate=False)

    def action_leave(self) -> None:
        """End the search, or close the screen."""
        if self._find.display:
            self._find.close()
        else:
            self.dismiss()

    def _tick(self) -> None:
        self._reader.tick()
        self._find.tick()
