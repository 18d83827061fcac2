"""The transcript: the messages of an agent, as lines that scroll.

    body      consecutive messages, up to the latest one, and texts of the shell between them
    tail      the answer in progress; when its message is committed, the message replaces it
    waiting   prompts that wait for the end of a turn

At first only the end of a history is loaded; the message `Wanted` requests earlier messages when a person scrolls up.
Lines are laid out within a budget of time for each tick, so that no burst of messages and no resize blocks the
keyboard. Long markdown is laid out on another thread, and shown as plain text until then; so are pictures, below the
line that names them. Only visible lines that have changed are drawn: while an answer arrives, the last line of twenty
or sixty.
"""

import asyncio
import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from time import perf_counter

from textual import events
from textual.geometry import Region, Size
from textual.message import Message as Notification
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.shell.app.theme import Palette
from ikigai_actors.shell.app.transcript.answer import StreamedAnswer
from ikigai_actors.shell.app.transcript.block import ShownBlock
from ikigai_actors.shell.app.transcript.layout import Frame, foldable, lay_out
from ikigai_actors.shell.app.transcript.pictures import PictureRows
from ikigai_actors.shell.app.transcript.pieces import (
    Look,
    Piece,
    pieces_of,
    progress_of,
    running_call,
    tidy,
    with_fork,
    with_result,
)
from ikigai_actors.verbs.text.pace import TurnSpan
from ikigai_actors.verbs.text.pages import NameOf, no_name

BUDGET = 0.008
"""Seconds of one tick that the layout may use; at least one block is laid out."""

_MARGIN = 20
"""The number of lines left above the window below which earlier messages are asked for."""

FEW = 10
"""The most blocks that are all laid out when an agent is opened; of more blocks, only the last screen and a margin."""

_NEAR = 200
"""The number of the latest blocks that are searched for the call to which a message belongs."""

TRIMMED = 100
"""The number of blocks kept when the frame changes; earlier ones are read again on scrolling up."""

_EMPTY = Strip([])


class Transcript(ScrollView, can_focus=True):
    """The scrolling transcript of one agent."""

    DEFAULT_CSS = "Transcript { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }"

    @dataclass
    class Wanted(Notification):
        """The request for the messages before a position, which a transcript sends when a person scrolls up."""

        transcript: "Transcript"
        position: int

    def __init__(
        self,
        workers: Executor,
        budget: float = BUDGET,
        picture: PictureRows | None = None,
        called: NameOf = no_name,
        whole: bool = False,
    ) -> None:
        """Make an empty transcript.

        Args:
            workers: threads that lay out long texts.
            budget: the seconds of a tick that the layout may use.
            picture: returns the rows of a picture; None shows pictures as lines.
            called: returns the name of an agent.
            whole: whether plain text is shown in full.
        """
        super().__init__()
        self._threads, self._budget, self._picture, self._called = workers, budget, picture, called
        self._blocks: list[ShownBlock] = []
        self._starts = [0]  # first line of each block that is laid out; at the end the number of lines
        self._drawn: list[Strip] = []  # the lines in sight, or soon to be drawn by Textual
        self._body = 0  # number of blocks in the body, which come first
        self._answer = StreamedAnswer()
        self._waiting: list[ShownBlock] = []
        self._kept = Counter[str]()  # the texts that waited in the database at the latest look
        self.turn = TurnSpan()
        """The latest turn."""
        self._frame = Frame(0, whole=whole)
        self._opened = False  # whether anything was laid out
        self._asked = self._in_vain = False  # for earlier messages; whether they could not be read
        self._first = 0  # position of the first message that is shown; 0 for none
        self.head = 0
        """Position of the latest message that is shown; 0 for none."""
        self.following = True
        """Whether the end stays in sight when text is added."""

    @property
    def text(self) -> str:
        """Return all blocks as plain text; lays out the rest first."""
        return "\n".join(line.text.rstrip() for block in self._blocks for line in block.lines(self._frame))

    @property
    def arrived(self) -> int:
        """Return the number of characters of the answer that have arrived."""
        return self._answer.size

    @property
    def speaks(self) -> bool:
        """Return whether text of the answer has arrived."""
        return self._answer.speaks

    @property
    def answering(self) -> bool:
        """Return whether a text is shown that is not stored yet: an arriving answer or a waiting prompt."""
        return bool(self._answer.blocks or self._waiting)

    # Contents

    def add(self, messages: Sequence[Message]) -> None:
        """Add the committed messages that follow the head."""
        for message in messages:
            self._first = self._first or message.id
            self.head = message.id
            self.turn.add(message)
            if message.ends_pieces:
                self._end_answer(message)
            elif message.kind == Kind.TOOL_RESULT:
                self._add_result(message)
            elif message.kind == Kind.TOOL_CALL:
                self._note_begin(message)
            elif self._body and (joined := with_fork(self._blocks[self._body - 1].piece, message, self._called)):
                self._blocks[self._body - 1].show(joined)
                self._lay_out_from(self._body - 1)
            else:
                self._insert([ShownBlock(piece) for piece in pieces_of([message], self._called)])
        self._arrange()

    def restart(self, messages: Sequence[Message]) -> None:
        """Replace all shown messages by the latest ones, after more new messages than can be shown."""
        del self._blocks[: self._body]
        self._body, self._first, self.head, self._opened = 0, 0, 0, False
        self._lay_out_from(0)
        self.add(messages)

    def prepend(self, messages: Sequence[Message] | None) -> None:
        """Add earlier messages before the first one.

        None if they could not be read, so that the next scroll asks again.
        """
        self._asked = self._in_vain = messages is None
        if not messages or not self._first or messages[-1].id != self._first - 1:
            return
        self._first = messages[0].id
        new = [ShownBlock(piece) for piece in pieces_of(messages, self._called)]
        count = sum(len(block.lines(self._frame)) for block in new)
        self._blocks[:0] = new
        self._body += len(new)
        starts = [0]
        for block in new:
            starts.append(starts[-1] + len(block.lines(self._frame)))
            if block.plain:
                self._lay_out_elsewhere(block)
        self._starts = [*starts[:-1], *(start + count for start in self._starts)]
        following = self.following
        self._resize_contents()
        self.scroll_to(y=self.scroll_y + count, animate=False, immediate=True)
        self.following = following

    def stream(self, pieces: Iterable[tuple[str, str]]) -> None:
        """Add pieces of the answer, each as its kind and its text."""
        for kind, text in pieces:
            self._answer.add(kind, text)
        self._show_answer()

    def forget_answer(self) -> None:
        """Remove the arriving answer, since its message replaces it."""
        self._answer = StreamedAnswer()
        self._show_answer()

    def tell(self, text: str, look: Look = Look.TOLD) -> None:
        """Show a text that is not in the log."""
        self._insert([ShownBlock(Piece(look, text))])
        self._arrange()

    def wait_with(self, prompt: str) -> None:
        """Show a submitted prompt that is not in the log yet."""
        self._waiting.append(ShownBlock(Piece(Look.WAITING, tidy(prompt))))
        self._show_answer()

    def dismiss(self, prompt: str) -> None:
        """Remove a waiting prompt, which is in the log now or was dropped."""
        self._stop_waiting(prompt)
        self._show_answer()

    def show_waiting(self, texts: Sequence[str]) -> None:
        """Show the prompts that wait in the database, also those from before this process began."""
        before = Counter(block.piece.text for block in self._waiting)
        kept = Counter(map(tidy, texts))
        if kept - before or (self._kept - kept) & before:
            gone = self._kept - kept  # taken up, or taken back
            stay = []
            for block in self._waiting:
                if gone[block.piece.text] > 0:
                    gone[block.piece.text] -= 1
                else:
                    stay.append(block)
            new = (kept - Counter(block.piece.text for block in stay)).elements()
            self._waiting = [*stay, *(ShownBlock(Piece(Look.WAITING, text)) for text in new)]
            self._show_answer()
        self._kept = kept

    def fold(self, *, thinking: bool = False, results: bool = False) -> None:
        """Fold or unfold all thinking, or all results of calls and long prompts."""
        frame = self._frame
        self._reframe(frame._replace(thinking=frame.thinking != thinking, results=frame.results != results))

    def paint(self, colours: Palette) -> None:
        """Lay out the transcript again, in these colours."""
        self._reframe(self._frame._replace(colours=colours))

    def tick(self) -> None:
        """Continue the layout, if blocks are left.

        Textual sends no size to a widget that was painted before it had a place, so a new width is looked for too.
        """
        if 0 < self._width != self._frame.width:
            self._reframe(self._frame._replace(width=self._width))
        elif not self.is_complete:
            self._arrange()

    @property
    def is_complete(self) -> bool:
        """Return whether all blocks are laid out."""
        return len(self._starts) > len(self._blocks)

    # Layout

    def render_line(self, y: int) -> Strip:
        """Render one line of the window."""
        line, style = self._line(y + self.scroll_offset.y), self.rich_style
        return line.adjust_cell_length(self.scrollable_content_region.width, style).apply_style(style)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out again if the width has changed; if only the height has changed, keep the end visible."""
        if self._width != self._frame.width:
            self._reframe(self._frame._replace(width=self._width))
        elif self.following:
            self._arrange()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for earlier messages when the window comes near the beginning of the loaded messages."""
        super().watch_scroll_y(old_value, new_value)
        self.following, self._drawn = new_value >= self.max_scroll_y, []
        self._asked = self._asked and not self._in_vain
        self._ask()

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold the piece that was clicked."""
        index = bisect_right(self._starts, event.y + self.scroll_offset.y) - 1
        if 0 <= index < len(self._starts) - 1 and foldable(self._blocks[index].piece):
            self._toggle(index)

    @property
    def _width(self) -> int:
        """Return the columns of a line; 0 or less before the transcript has a size."""
        return self.scrollable_content_region.width - 1

    def _toggle(self, index: int) -> None:
        self._blocks[index].toggle()
        self._lay_out_from(index)
        self._arrange()

    def _reframe(self, frame: Frame) -> None:
        """Lay out again for a frame, from the end if the end is followed, else from the top of the window.

        Earlier messages are read again when they are wanted.
        """
        if frame == self._frame:
            return
        following, self._frame = self.following, frame
        at = self._body - TRIMMED if following else bisect_right(self._starts, self.scroll_offset.y) - 1
        self._cut(min(at, self._body))
        self._lay_out_from(0)
        self._arrange()
        if not following:
            self.scroll_to(y=0, animate=False, immediate=True)
        self.following = following  # after the scrolling, which sees only the blocks laid out so far

    def _cut(self, at: int) -> None:
        """Drop the blocks before an index, and the other blocks of a message that this divides."""
        while 0 < at < self._body and self._blocks[at].piece.position in (0, self._blocks[at - 1].piece.position):
            at += 1
        if 0 < at < self._body:
            del self._blocks[:at]
            self._body -= at
            self._first = self._blocks[0].piece.position

    def _insert(self, blocks: list[ShownBlock]) -> None:
        self._blocks[self._body : self._body] = blocks
        self._lay_out_from(self._body)
        self._body += len(blocks)

    def show_running(self, now: int | None, printed: Mapping[str, str]) -> None:
        """Show for running calls their duration and the last lines of their output.

        Args:
            now: milliseconds since 1970; None while no call runs.
            printed: the output of calls so far, by call id.
        """
        for index, block in enumerate(self._blocks[self._near : self._body], self._near):
            piece = block.piece
            if piece.began and piece.result is None:
                progress = () if now is None else progress_of(now - piece.began, printed.get(piece.call, ""))
                if progress != piece.progress:
                    block.show(piece._replace(progress=progress))
                    self._lay_out_from(index)
                    self._arrange()

    @property
    def _near(self) -> int:
        """Return the index of the first block that is searched for the call of a result or of the start of a call."""
        return max(0, self._body - _NEAR)

    def _note_begin(self, message: Message) -> None:
        pieces = [block.piece for block in self._blocks[self._near : self._body]]
        if (at := running_call(pieces, message)) is not None:
            self._blocks[self._near + at].piece = pieces[at]._replace(began=message.created_at)

    def _add_result(self, message: Message) -> None:
        pieces = [block.piece for block in self._blocks[self._near : self._body]]
        at, shown = with_result(pieces, message)
        index, blocks = self._near + at, [ShownBlock(piece) for piece in shown]
        if index == self._body:
            self._insert(blocks)
        else:
            self._blocks[index].show(shown[0])
            self._blocks[index + 1 : index + 1] = blocks[1:]
            self._body += len(blocks) - 1
            self._lay_out_from(index)

    def _end_answer(self, message: Message) -> None:
        """Replace the arrived answer by its message, and keep the chunks that are laid out."""
        done = {block.piece.text: block for block in self._answer.blocks if block.piece.look is Look.MARKDOWN}
        self._answer = StreamedAnswer()
        if message.kind in (Kind.USER, Kind.STEER):
            self._stop_waiting(message.content)
        blocks = []
        for piece in pieces_of([message], self._called):
            block = done.pop(piece.text, None) if piece.look is Look.MARKDOWN else None
            if block is not None:
                block.piece = piece
            blocks.append(block or ShownBlock(piece))
        self._blocks[self._body :] = self._waiting
        self._insert(blocks)

    def _stop_waiting(self, prompt: str) -> None:
        block = next((block for block in self._waiting if block.piece.text == tidy(prompt)), None)
        if block is not None:
            self._waiting.remove(block)

    def _show_answer(self) -> None:
        before, after = self._blocks[self._body :], [*self._answer.blocks, *self._waiting]
        pairs = enumerate(zip(before, after, strict=False))
        first = next((at for at, (old, new) in pairs if old is not new), min(len(before), len(after)))
        self._blocks[self._body :] = after
        self._lay_out_from(self._body + first)
        self._arrange()

    def _lay_out_from(self, index: int) -> None:
        del self._starts[index + 1 :]

    def _line(self, number: int) -> Strip:
        index = bisect_right(self._starts, number) - 1
        if not 0 <= index < len(self._starts) - 1:
            return _EMPTY
        return self._blocks[index].lines(self._frame)[number - self._starts[index]]

    def _arrange(self) -> None:
        """Lay out the blocks that need it, for as long as the budget lasts.

        A block that has its lines already costs nothing of the budget, so a reader keeps the text in sight.
        """
        if not self._frame.width:
            return
        if self.following and len(self._blocks) - len(self._starts) > (2 * TRIMMED if self._opened else FEW):
            self._cut(self._at_the_end() if not self._opened else self._body - TRIMMED)
            self._lay_out_from(0)
        self._opened = self._opened or bool(self._body)
        until, late = perf_counter() + self._budget, False
        while len(self._starts) <= len(self._blocks):
            block = self._blocks[len(self._starts) - 1]
            if not block.is_laid_out(self._frame):
                if late:
                    break
                block.lines(self._frame)
                late = perf_counter() >= until
            self._starts.append(self._starts[-1] + len(block.lines(self._frame)))
            if block.plain:
                self._lay_out_elsewhere(block)
        self._resize_contents()

    def _at_the_end(self) -> int:
        """Return the index of the first block of the body that is needed to fill the window and a margin."""
        lines, at = self.size.height + 2 * _MARGIN, len(self._blocks)
        while at and lines > 0:
            at -= 1
            lines -= len(self._blocks[at].lines(self._frame))
        return min(at, self._body)

    def _resize_contents(self) -> None:
        following, height = self.following, self._starts[-1]
        if not following and not self.is_complete:  # the end is not known yet, so the window stays
            height = max(height, self.virtual_size.height)
        # Setting the attribute itself would make Textual arrange the whole screen again.
        self.set_reactive(Transcript.virtual_size, Size(self._frame.width, height))
        self.vertical_scrollbar.window_virtual_size = height
        if following or self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)
            self.following = True
        self._draw()
        self._ask()

    def _draw(self) -> None:
        """Draw those visible lines that have changed."""
        top, size = self.scroll_offset.y, self.scrollable_content_region.size
        before, self._drawn = self._drawn, [self._line(top + y) for y in range(size.height)]
        if len(before) != size.height:
            self.refresh()
        elif changed := [y for y, line in enumerate(self._drawn) if line is not before[y] and line != before[y]]:
            self.refresh(Region(0, changed[0], size.width, changed[-1] - changed[0] + 1))

    def _ask(self) -> None:
        if self.scroll_y < _MARGIN and self.is_complete:
            self._want()

    def _want(self) -> None:
        """Ask for earlier messages, unless that was done already or there are none."""
        if not self._asked and self._first > 1:
            self._asked = True
            self.post_message(self.Wanted(self, self._first))

    def _lay_out_elsewhere(self, block: ShownBlock) -> None:
        frame, loop = self._frame, asyncio.get_running_loop()
        if block.asked == frame:
            return
        block.asked = frame

        def done(future: "Future[list[Strip]]") -> None:
            if not future.cancelled() and future.exception() is None:
                with contextlib.suppress(RuntimeError):  # the application has ended
                    loop.call_soon_threadsafe(self._settle, block, future.result(), frame)

        self._threads.submit(lay_out, block.piece, frame, picture=self._picture).add_done_callback(done)

    def _settle(self, block: ShownBlock, lines: list[Strip], frame: Frame) -> None:
        """Take the lines that another thread has laid out; the visible text stays in place."""
        if not self.is_attached or block not in self._blocks:
            return
        index, before = self._blocks.index(block), len(block.lines(self._frame))
        if not block.settle(lines, frame) or index >= len(self._starts) - 1:
            return
        above, place = self._starts[index] < self.scroll_offset.y and not self.following, self.scroll_y
        self._lay_out_from(index)
        self._arrange()
        if above:
            self.scroll_to(y=place + len(lines) - before, animate=False, immediate=True)
