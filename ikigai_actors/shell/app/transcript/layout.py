"""The layout turns a piece into the lines of a screen. Thread-safe, because it has no state.

Rich lays out markdown. Unfinished code and very long texts are shown as plain text, which costs next to nothing: Rich
takes 47 ms for 100 lines of code, and minutes for a megabyte.
"""

import io
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ikigai_actors.shell.app.theme import DARK, OWN, Palette
from ikigai_actors.shell.app.transcript.code_block import TEXT_COLUMNS, ThemedMarkdown
from ikigai_actors.shell.app.transcript.pictures import MOST_COLUMNS, PictureRows
from ikigai_actors.shell.app.transcript.pieces import ARGUMENTS, Look, Piece
from ikigai_actors.verbs.text.words import counted

HEAVY = 1_500
"""Characters of markdown above which its layout would noticeably delay the keyboard."""

HUGE = 100_000
"""Markdown longer than this many characters is shown as plain text."""

_LONGEST = 400
"""The most lines of a piece that are shown, except for markdown; the pager shows all lines."""

FOLDED = 12
"""The most lines shown of a folded prompt."""


class Frame(NamedTuple):
    """The layout of all pieces of a transcript: the width in columns, the colours, the folding."""

    width: int
    colours: Palette = DARK
    thinking: bool = False
    """Whether thinking is unfolded."""
    results: bool = False
    """Whether results of calls, and long prompts, are unfolded."""
    whole: bool = False
    """Whether plain text is shown in full, however long."""


def foldable(piece: Piece) -> bool:
    """Return whether a piece is of a kind that can be folded."""
    return piece.look in (Look.THINKING, Look.CALL, Look.PROMPT)


def is_folded(piece: Piece, frame: Frame, toggled: bool) -> bool:
    """Return whether a piece is folded; ``toggled`` is as for `lay_out`."""
    return foldable(piece) and (frame.thinking if piece.look is Look.THINKING else frame.results) == toggled


def is_heavy(piece: Piece) -> bool:
    """Return whether a piece is first laid out as plain text, and then completely on another thread."""
    return piece.look is Look.PICTURE or (piece.look is Look.MARKDOWN and HEAVY < len(piece.text) <= HUGE)


def lay_out(
    piece: Piece, frame: Frame, toggled: bool = False, plain: bool = False, picture: PictureRows | None = None
) -> list[Strip]:
    """Return the lines of a piece, not padded to the width.

    Args:
        piece: the piece to lay out.
        frame: the width, the colours, and the kinds of pieces that are unfolded.
        toggled: whether this piece differs from its kind: folded though the frame unfolds the kind, or the reverse.
        plain: whether to show markdown as plain text, and a picture as a line.
        picture: returns the rows of a picture; None shows its line only.
    """
    width, looks = max(frame.width, 10), _looks(frame.colours)
    narrow = min(width, TEXT_COLUMNS)  # of what is read as text; calls, tables and results may be wider
    match piece.look:
        case Look.MARKDOWN if not plain and len(piece.text) <= HUGE:
            return [_EMPTY, *_markdown(piece.text, width, frame.colours)]
        case Look.MARKDOWN | Look.PLAIN:
            return [_EMPTY, *_wrapped(piece.text, narrow, looks.ink)]
        case Look.PROMPT:
            return [_EMPTY, *_prompt(piece.text, narrow, frame.results != toggled, looks)]
        case Look.WAITING:
            return [_EMPTY, *_marked("… ", piece.text, narrow, looks.past, 3)]
        case Look.THINKING:
            return _thinking(piece.text, narrow, frame.thinking != toggled, looks)
        case Look.CALL:
            return _call(piece, width, frame.results != toggled, looks)
        case Look.ERROR:
            return [_EMPTY, *_marked("✗ ", piece.text, narrow, looks.failed, _LONGEST)]
        case Look.RULE:
            return [_short(f"┄ {piece.text}", width, looks.past)]
        case Look.PICTURE:
            shown: Sequence[Strip] = ()
            if picture is not None and not plain:
                shown = picture(piece.blob, min(width, MOST_COLUMNS))  # most widths want the same rows
            return [*_wrapped(piece.text, width, looks.past), *shown]
        case Look.NOTE | Look.TOLD | Look.STRONG:
            style = {Look.NOTE: looks.past, Look.STRONG: looks.strong}.get(piece.look, looks.ink)
            return list(_wrapped(piece.text, width, style, sys.maxsize if frame.whole else _LONGEST))


_EMPTY = Strip([])


class _Looks(NamedTuple):
    """The text styles of a palette, by look."""

    ink: Style
    past: Style
    aside: Style
    strong: Style
    said: Style
    """The words of the person, on a ground of their own."""
    mark: Style
    """The style of the sign before a text of the person."""
    accent: Style
    failed: Style


@lru_cache(8)
def _looks(colours: Palette) -> _Looks:
    ink, past, accent = (Style(color=colour) for colour in (colours.ink, colours.past, colours.accent))
    said = Style(bold=True) if colours is OWN else ink + Style(bgcolor=colours.chosen)
    return _Looks(
        ink, past, past + Style(italic=True), ink + Style(bold=True), said, said + accent + Style(bold=True), accent,
        Style(color=colours.failed),
    )  # fmt: skip


def _markdown(text: str, width: int, colours: Palette) -> list[Strip]:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor", legacy_windows=False,
        markup=False, emoji=False, highlight=False,
    )  # fmt: skip
    options = console.options.update(width=width, height=None)
    lines = console.render_lines(ThemedMarkdown(text, colours), options, pad=False)
    strips = [Strip(line) for line in lines]
    while strips and not strips[-1].text.strip():
        strips.pop()
    while strips and not strips[0].text.strip():
        strips.pop(0)
    return strips


def _prompt(text: str, width: int, unfolded: bool, looks: _Looks) -> Iterator[Strip]:
    for number, strip in enumerate(_wrapped(text, width - 3, looks.said, _LONGEST if unfolded else FOLDED)):
        line = Strip([Segment("› " if number == 0 else "  ", looks.mark), *strip])
        yield line.adjust_cell_length(width, looks.said)


def _thinking(text: str, width: int, unfolded: bool, looks: _Looks) -> list[Strip]:
    if unfolded:
        return list(_marked("▾ ", text, width, looks.aside, _LONGEST))
    line = " ".join(text[: 4 * width].split())
    return [_EMPTY, _short(f"▸ thinking: {line}", width, looks.aside)]


def _call(piece: Piece, width: int, unfolded: bool, looks: _Looks) -> list[Strip]:
    style = looks.failed if piece.failed else looks.past
    if unfolded:
        head = list(_marked("▾ ", piece.whole or piece.text, width, looks.accent, _LONGEST))
        after = piece.result if piece.result is not None else "\n".join(filter(None, piece.progress))
        return [*head, *(_marked("  ", after, width, style, _LONGEST) if after else ())]
    sign = "×" if piece.failed else "▶" if piece.result is None else "▸"
    line = Text(f"{sign} ", looks.failed if piece.failed else looks.accent)
    name, _, arguments = piece.text[:ARGUMENTS].partition(" ")
    line.append(name, looks.strong).append(f"  {arguments}" if arguments else "", looks.ink)
    since, *printed = piece.progress or ("",)
    line.truncate(max(width - len(since) - 3 if since else width, 4), overflow="ellipsis")
    line.append(f" · {since}" if since else "", looks.past)
    head = [Strip(line.render(_PLAIN, end=""))]
    if piece.result is None:
        return [*head, *(_short(f"  │ {text}", width, looks.past) for text in printed)]
    first, *more = piece.result.strip("\n").split("\n") if piece.result.strip() else ["nothing"]
    if more and first.startswith("[new shell in "):  # what the command has printed says more
        first, *more = [*more, first]
    count = f" · {counted(len(more), 'more line')}" if more else ""
    return [*head, _short(f"  └ {first}", width - len(count), style, count)]


def _short(text: str, width: int, style: Style, after: str = "") -> Strip:
    line = Text(text)
    line.truncate(max(width, 4), overflow="ellipsis")
    return Strip([Segment(line.plain + after, style)])


def _marked(mark: str, text: str, width: int, style: Style, most: int) -> Iterator[Strip]:
    """Wrap plain text, with a mark before its first line."""
    for number, strip in enumerate(_wrapped(text, width - 2, style, most)):
        yield Strip([Segment(mark if number == 0 else "  ", style), *strip])


def _wrapped(text: str, width: int, style: Style, most: int = _LONGEST) -> Iterator[Strip]:
    """Wrap plain text to at most ``most`` lines; if it is cut, one more line gives the length of the whole text."""
    for number, line in enumerate(_lines(text, width)):
        if number == most:
            yield Strip([Segment(f"… ({len(text):,} characters in all: Shift+Tab, Enter)"[:width], style)])
            return
        yield Strip([Segment(line, style)] if line else [])


def _lines(text: str, width: int) -> Iterator[str]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        start = end + 1
        if len(line) <= width and (line.isascii() or cell_len(line) <= width):
            yield line
        elif len(line) > 4_000:  # wrapping it by words would take long, and it is no prose
            for place in range(0, len(line), 1_000):
                yield from chop_cells(line[place : place + 1_000], width)
        else:
            yield from (part.plain for part in Text(line).wrap(_PLAIN, width))


_PLAIN = Console(file=io.StringIO(), width=80, legacy_windows=False)
