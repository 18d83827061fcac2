"""The transcript as a person reads it: with a search, and with a mark that the arrows move when it has the keyboard.

The mark goes from one piece that can be folded to the next: prompts, thinking and calls. A search marks a text wherever
it is shown. Going to a hit unfolds pieces that hide hits, and reads earlier messages until one contains a hit.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.style import Style
from textual import events
from textual.message import Message as Notification
from textual.strip import Strip

from ikigai_actors.records.messages.messages import Message
from ikigai_actors.shell.app.theme import Palette
from ikigai_actors.shell.app.transcript.block import ShownBlock
from ikigai_actors.shell.app.transcript.layout import foldable, is_folded
from ikigai_actors.shell.app.transcript.pieces import Piece
from ikigai_actors.shell.app.transcript.text_search import TextSearch, restyled, with_marks
from ikigai_actors.shell.app.transcript.widget import Transcript

_MARKED = Style(reverse=True)
"""The style of the piece at the mark, added to the piece's own style."""


class HitCount(NamedTuple):
    """The number of hits of a search in the transcript, and the place of the present hit among them."""

    at: int
    """The number of the present hit, from 1; 0 for none."""
    of: int
    more: bool
    """Whether earlier messages are not read yet."""
    looking: bool
    """Whether earlier messages are being searched."""


class ReadableTranscript(Transcript):
    """A transcript in which a person moves a mark and searches by keys."""

    @dataclass
    class Opened(Notification):
        """The event that Enter was pressed on a piece."""

        piece: Piece

    @dataclass
    class Finds(Notification):
        """The event that the person wants to search the transcript."""

        reader: "ReadableTranscript"

    at: ShownBlock | None = None
    """The block at the mark; None without a mark."""
    reads: bool = False
    """Whether the focus was moved here for reading: then letters that are no keys go to the prompt."""
    search: TextSearch | None = None
    """The present search; None for none."""
    _hit: tuple[ShownBlock, int] | None = None  # a block, and which of its hits
    _looking = 0  # the direction in which a hit is looked for; 0 for none
    _unfolded: tuple[ShownBlock, ...] = ()  # by a search

    # Reading

    def begin(self) -> None:
        """Give the keyboard to the transcript, and mark the last visible piece."""
        self.screen.set_focus(self)
        self.reads = True
        stops = self._stops()
        last = bisect_left(stops, self._index_at(self.scroll_offset.y + self.size.height)) - 1
        self.at = self._blocks[stops[last]] if last >= 0 else None
        self._draw()

    def takes(self, event: events.Event) -> bool:
        """Return whether an event is a key of the transcript; other text is for the prompt."""
        return isinstance(event, events.Key) and event.key in self._keys()

    def on_key(self, event: events.Key) -> None:
        """Handle a key while the transcript has the focus."""
        if (action := self._keys().get(event.key)) is not None:
            action()
            event.stop()
            event.prevent_default()

    def on_blur(self) -> None:
        """Remove the mark, because the transcript has lost the focus."""
        self.reads = False
        self._draw()

    def _keys(self) -> dict[str, Callable[[], object]]:
        keys: dict[str, Callable[[], object]] = {"up": lambda: self.move(-1), "down": lambda: self.move(1)}
        if self.search is not None:
            keys |= {
                "n": lambda: self.go_to_hit(-1),
                "N": lambda: self.go_to_hit(1),
                "upper_n": lambda: self.go_to_hit(1),
            }
        if self.reads or self.search is not None:
            keys |= {"slash": lambda: self.post_message(self.Finds(self))}
        if self.reads and self.at is not None:
            keys |= {"enter": self._open, "space": self._fold, "left": self._fold, "right": self._fold}
        return keys

    def move(self, by: int) -> None:
        """Move the mark to the next piece: -1 up, 1 down; scroll if none is near."""
        self.reads = True
        stops, here = self._stops(), self._place(self.at)
        place = (bisect_left(stops, here) - 1 if by < 0 else bisect_right(stops, here)) if here >= 0 else -1
        if here < 0:  # nothing is marked: begin at the window
            edge = self.scroll_offset.y + (self.size.height if by < 0 else 0)
            place = bisect_left(stops, self._index_at(edge)) - (by < 0)
        top, height = self.scroll_offset.y, self.size.height
        line = self._starts[stops[place]] if 0 <= place < len(stops) else None
        if line is None:
            self.scroll_relative(y=by, animate=False, immediate=True)
        elif not top - height < line < top + 2 * height - 2:
            self.scroll_relative(y=by * max(1, height - 2), animate=False, immediate=True)
        else:
            self.at = self._blocks[stops[place]]
            self._bring_into_sight(line, margin=1)
        self._draw()

    def _stops(self) -> list[int]:
        """Return the indices of the blocks at which the mark can stop."""
        return [index for index in range(len(self._starts) - 1) if foldable(self._blocks[index].piece)]

    def _open(self) -> None:
        if self.at is not None:
            self.post_message(self.Opened(self.at.piece))

    def _fold(self) -> None:
        if (index := self._place(self.at)) >= 0:
            self.following = False  # the piece stays where it is
            self._toggle(index)

    # Searching

    def look_for(self, text: str) -> None:
        """Start a search: mark a text wherever it is shown; a blank text marks nothing."""
        self.end_search()
        self.search = TextSearch(text) if text.strip() else None
        self._draw()

    def end_search(self) -> None:
        """End the search: remove its marks, and fold the pieces it unfolded, except the piece at the present hit."""
        kept = self._hit[0] if self._hit is not None else None
        for block in self._unfolded:
            if block is not kept and (index := self._place(block)) >= 0:
                self._toggle(index)
        self.search, self._hit, self._looking, self._unfolded = None, None, 0, ()
        self._draw()

    def go_to_hit(self, by: int) -> None:
        """Go to another hit: -1 earlier, 1 later."""
        if self.search is not None:
            self.following, self._looking = False, by
            self._look_on()

    @property
    def hit_count(self) -> HitCount:
        """Return the number of hits, and the number of the present hit."""
        hits = self._hits()
        at = next((number for number, hit in enumerate(hits, 1) if self._is_at(hit)), 0)
        return HitCount(at, len(hits), self._first > 1, bool(self._looking))

    def tick(self) -> None:
        super().tick()
        self._look_on()

    def prepend(self, messages: Sequence[Message] | None) -> None:
        super().prepend(messages)
        if messages is None:
            self._looking = 0

    def _look_on(self) -> None:
        """Go to the wanted hit once all blocks that may contain a hit are laid out."""
        if not self._looking or self.search is None or not self.is_complete or self._unfold(self.search):
            return
        hits, by = self._hits(), self._looking
        if (place := self._next(hits, by)) is not None:
            self._looking, (index, number) = 0, hits[place]
            self._hit = self._blocks[index], number
            part = self._blocks[index].hits(self.search, self._frame)[number][0]
            self._bring_into_sight(self._starts[index] + part.line, margin=self.size.height // 3)
            self._draw()
        elif by < 0 and self._first > 1:
            self._want()
        else:
            self._looking = 0

    def _next(self, hits: Sequence[tuple[int, int]], by: int) -> int | None:
        """Return the index of the next hit; at first, the last one above the window's end, else the first below."""
        here = next((place for place, hit in enumerate(hits) if self._is_at(hit)), None)
        if here is not None:
            return here + by if 0 <= here + by < len(hits) else None
        last = self._index_at(self.scroll_offset.y + self.size.height - 1)
        above = [place for place, (index, _) in enumerate(hits) if index <= last]
        if above:
            return above[-1]
        return 0 if hits and not self._first > 1 else None

    def _hits(self) -> list[tuple[int, int]]:
        """Return all hits, each as the index of its block and its number in the block."""
        search, frame = self.search, self._frame
        if search is None:
            return []
        return [
            (index, number)
            for index in range(len(self._starts) - 1)
            for number in range(len(self._blocks[index].hits(search, frame)))
        ]

    def _is_at(self, hit: tuple[int, int]) -> bool:
        return self._hit is not None and self._blocks[hit[0]] is self._hit[0] and hit[1] == self._hit[1]

    def _unfold(self, search: TextSearch) -> bool:
        """Unfold the pieces that hide the search text; return whether there were any."""
        hiding = [
            block
            for block in self._blocks
            if is_folded(block.piece, self._frame, block.toggled)
            and search.is_in("\n".join((block.piece.whole or block.piece.text, block.piece.result or "")))
            and not block.hits(search, self._frame)
        ]
        for block in hiding:
            self._toggle(self._place(block))
        self._unfolded += tuple(hiding)
        return bool(hiding)

    # Lines

    def _line(self, number: int) -> Strip:
        line, index = super()._line(number), self._index_at(number)
        if not 0 <= index < len(self._starts) - 1:
            return line
        block, colours = self._blocks[index], self._frame.colours
        if block is self.at and self.reads and line.cell_length:
            line = restyled(line.adjust_cell_length(self._frame.width), _MARKED)
        if self.search is None:
            return line
        parts = [
            (part, _hit_style(colours, self._hit == (block, place)))
            for place, hit in enumerate(block.hits(self.search, self._frame))
            for part in hit
            if part.line == number - self._starts[index]
        ]
        return with_marks(line, parts) if parts else line

    def _index_at(self, line: int) -> int:
        return bisect_right(self._starts, line) - 1

    def _place(self, block: ShownBlock | None) -> int:
        """Return the index of a block among the laid-out blocks; -1 if it is not among them."""
        return next((index for index in range(len(self._starts) - 1) if self._blocks[index] is block), -1)

    def _bring_into_sight(self, line: int, margin: int) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if line < top + min(margin, 1):
            self.scroll_to(y=max(0, line - margin), animate=False, immediate=True)
        elif line >= top + height - min(margin, 1):
            self.scroll_to(y=line - height + 1 + margin, animate=False, immediate=True)


def _hit_style(colours: Palette, is_here: bool) -> Style:
    return Style(color=colours.accent, bold=True, reverse=True) if is_here else Style(underline=True, bold=True)
