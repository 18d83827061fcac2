"""The bar of a search: the search text and the number of the present hit."""

from collections.abc import Callable

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from ikigai_actors.shell.app.transcript.readable import HitCount, ReadableTranscript


def hit_count_words(hit_count: HitCount) -> str:
    """Return the number of hits in words."""
    if hit_count.looking:
        return "reading earlier messages …"
    of = f"{hit_count.of}{'+' if hit_count.more else ''}"
    return f"{hit_count.at} of {of}" if hit_count.at else f"{of} found" if hit_count.of else "nothing found"


class FindBar(Horizontal):
    """The search bar; hidden while there is no search."""

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; background: $surface; padding: 0 1; }
    FindBar Static { width: auto; color: $past; }
    FindBar Input { width: 1fr; height: 1; border: none; }
    FindBar Input, FindBar Input:focus { background: $surface; background-tint: 0%; }
    """

    class Closed(Message):
        """The event that the search was ended."""

    def __init__(self, reader: Callable[[], ReadableTranscript]) -> None:
        """Make the bar; ``reader`` returns the searched transcript."""
        super().__init__()
        self._reader = reader
        self._input, self._count = Input(compact=True, placeholder="find in this talk"), Static()
        self._told = ""

    def compose(self) -> ComposeResult:
        """Lay out the input and the number of hits."""
        yield Static("find ")
        yield self._input
        yield self._count

    def open(self, text: str = "") -> None:
        """Let the person type a text; if a text is given, go to the latest hit of this text."""
        self.display = True
        if text:
            self._input.value = text
            self._search(text)
            self._go(-1)
        else:
            self.screen.set_focus(self._input)
            self._input.select_all()
            self._search(self._input.value)
        self.tick()

    def close(self) -> None:
        """End the search, and hide the bar."""
        if self.display:
            self.display = False
            self._reader().end_search()
            self.post_message(self.Closed())

    def tick(self) -> None:
        """Show the number of hits."""
        if self.display:
            keys = "↑↓ Esc" if self._input.has_focus else "n earlier · N later · Esc"
            count = hit_count_words(self._reader().hit_count) if self._input.value.strip() else ""
            if (line := f"{count} · {keys}" if count else keys) != self._told:
                self._told = line
                self._count.update(Text(line))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Mark the text while the person types."""
        event.stop()
        self._search(event.value)
        self.tick()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the latest hit, and focus the transcript."""
        event.stop()
        self._go(-1)

    def on_key(self, event: events.Key) -> None:
        """Handle the keys that move from hit to hit, and Escape."""
        actions = {
            "up": lambda: self._reader().go_to_hit(-1),
            "down": lambda: self._reader().go_to_hit(1),
            "escape": self.close,
        }
        if (action := actions.get(event.key)) is not None:
            action()
            event.stop()
            event.prevent_default()

    def _search(self, text: str) -> None:
        search = self._reader().search
        if text.strip() != (search.text.strip() if search is not None else ""):
            self._reader().look_for(text)

    def _go(self, by: int) -> None:
        self.screen.set_focus(self._reader())
        self._reader().go_to_hit(by)
