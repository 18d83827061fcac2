"""Rows: a list of lines with a cursor. Only the lines in sight are made, so 100,000 rows cost as much as ten."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Console
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Rows(ScrollView, can_focus=True):
    """A widget that lists rows, from which a person can choose one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor"}

    DEFAULT_CSS = """
    Rows { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    Rows > .rows--cursor { background: $chosen; text-style: bold; }
    Rows:ansi > .rows--cursor { text-style: reverse; }
    """

    @dataclass
    class Chosen(Message):
        """The event that a row was chosen, by Enter or a click."""

        key: str

    def __init__(
        self,
        key: Callable[[Any], str],
        line: Callable[[Any], Text],
        id: str | None = None,  # noqa: A002 - Textual names it so
        whole: Callable[[Any], int] = lambda item: 0,
    ) -> None:
        """Make an empty list.

        Args:
            key: returns the key of an item, which stays the same over updates.
            line: returns the line of an item.
            id: the id of the widget.
            whole: returns the full width of an item's line; the row at the cursor scrolls sideways to show it.
        """
        super().__init__(id=id)
        self._key, self._line, self._whole = key, line, whole
        self._items: Sequence[Any] = ()
        self._at = 0
        self.actions: dict[str, Callable[[], None]] = {
            "up": lambda: self.action_move(-1), "down": lambda: self.action_move(1),
            "pageup": lambda: self.action_page(-1), "pagedown": lambda: self.action_page(1),
            "home": lambda: self.action_move(-len(self._items)), "end": lambda: self.action_move(len(self._items)),
            "enter": self.action_choose,
        }  # fmt: skip
        """The keys of the rows."""

    @property
    def item(self) -> Any:
        """Return the item at the cursor; None in an empty list."""
        return self._items[self._at] if self._items else None

    @property
    def key(self) -> str | None:
        """Return the key of the row at the cursor; None in an empty list."""
        return self._key(self._items[self._at]) if self._items else None

    def on_key(self, event: events.Key) -> None:
        """Move the cursor, or choose a row, by a key."""
        if (action := self.actions.get(event.key)) is not None:
            action()
            event.stop()
            event.prevent_default()

    def go_to(self, key: str) -> None:
        """Move the cursor to the row with this key, if there is one."""
        self.show(self._items, key)

    def show(self, items: Sequence[Any], key: str | None = None) -> None:
        """Show these items; the cursor stays on its row, or goes to the row with this key."""
        wanted = self.key if key is None else key
        self._items = items
        place = next((index for index, item in enumerate(items) if self._key(item) == wanted), self._at)
        self._at = max(0, min(place, len(items) - 1))
        self.virtual_size = Size(self.size.width, len(items))
        if key is not None:
            self._keep_in_sight()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one line of the window."""
        index, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if index >= len(self._items):
            return Strip.blank(width, self.rich_style)
        item = self._items[index]
        text, here = self._line(item), index == self._at
        if here and self.app.current_theme.ansi:
            text = Text(text.plain)  # in reverse, each colour would be a ground of its own
        shown = min(text.cell_len, self._whole(item) + 1)  # with a place for the ellipsis
        hidden = max(0, shown - width) if here else 0
        text.truncate(width + hidden, pad=True, overflow="ellipsis")
        strip = Strip(text.render(_CONSOLE, end="")).crop(hidden).adjust_cell_length(width)
        return strip.apply_style(self.get_component_rich_style("rows--cursor") if here else self.rich_style)

    def action_move(self, by: int) -> None:
        """Move the cursor by rows: up when ``by`` is negative."""
        before, self._at = self._at, max(0, min(self._at + by, len(self._items) - 1))
        self._keep_in_sight()  # which draws all when it scrolls
        self.refresh_line(before)
        self.refresh_line(self._at)

    def action_page(self, by: int) -> None:
        """Move the cursor by windows: up when ``by`` is negative."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_choose(self) -> None:
        """Send `Chosen` for the row at the cursor."""
        if (key := self.key) is not None:
            self.post_message(self.Chosen(key))

    def on_click(self, event: events.Click) -> None:
        """Choose the row that was clicked."""
        if (index := event.y + self.scroll_offset.y) < len(self._items):
            self._at = index
            self.refresh()
            self.action_choose()

    def _keep_in_sight(self) -> None:
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if not top <= self._at < top + height:
            y = self._at if self._at < top else self._at - height + 1
            self.scroll_to(y=y, animate=False, immediate=True, force=True)  # even before there is a scroll bar


_CONSOLE = Console(legacy_windows=False)
