"""The last line of a screen, which names its keys and their effects."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.widgets import Static

from ikigai_actors.shell.app.theme import Palette, palette

Keys = Sequence[tuple[str, str]]
"""Keys with their effects, most useful first."""


class KeyLine(Static):
    """A line that shows as many keys with their effects as it has room for."""

    DEFAULT_CSS = "KeyLine { height: 1; padding: 0 1; }"

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    def on_resize(self, event: events.Resize) -> None:
        """Show as many keys as fit."""
        self.update(key_line(self._keys, self.content_size.width, palette(self.app.current_theme)), layout=False)


def key_line(keys: Keys, width: int, colours: Palette) -> Text:
    """Return a line with as many keys and effects as fit."""
    text = Text()
    for key, what in keys:
        if text.cell_len + cell_len(f"{key} {what}") > width:
            break
        text.append(key, colours.accent).append(f" {what}  ", colours.past)
    return text
