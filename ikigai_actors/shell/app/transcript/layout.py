"""Layout turns a piece into the lines of a screen. Thread-safe: it keeps nothing.

Rich lays out markdown. Code that is not finished, and a very long text, stay plain, which costs next to nothing: code
of 100 lines takes Rich 47 ms, and a text of a megabyte minutes.
"""

import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.markdown import Markdown
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ikigai_actors.shell.app.transcript.pictures import MOST_COLUMNS, PictureRows
from ikigai_actors.shell.app.transcript.pieces import ARGUMENTS, Look, Piece

HEAVY = 1_500
"""Characters of markdown above which its layout would noticeably delay the keyboard."""

HUGE = 100_000
"""Characters of markdown above which it stays plain."""

_LONGEST = 400
"""The most lines that are shown of a piece, unless Rich lays it out; /history shows all."""

FOLDED = 12
"""The most lines that are shown of a folded prompt."""

_DIM = Style(dim=True)
_QUIET = Style(dim=True, italic=True)
_BOLD = Style(bold=True)
_BAD = Style(color="red", bold=True)
_BAR = Style(color="cyan", bold=True)


class Frame(NamedTuple):
    """The settings that all pieces of a transcript are laid out with: the width in columns, the theme, the folding."""

    width: int
    dark: bool = True
    thinking: bool = False
    """Whether thinking is unfolded."""
    results: bool = False
    """Whether results of calls, and long prompts, are unfolded."""


def foldable(piece: Piece) -> bool:
    """Whether a piece can be folded."""
    return piece.look in (Look.THINKING, Look.CALL, Look.PROMPT)


def is_heavy(piece: Piece) -> bool:
    """Whether a piece is laid out as plain text first, and completely on another thread."""
    return piece.look is Look.PICTURE or (piece.look is Look.MARKDOWN and HEAVY < len(piece.text) <= HUGE)


def lay_out(
    piece: Piece, frame: Frame, toggled: bool = False, plain: bool = False, picture: PictureRows | None = None
) -> list[Strip]:
    """The lines of a piece, not padded to the width.

    Args:
        piece: the piece to lay out.
        frame: the width, the theme, and the kinds of pieces that are unfolded.
        toggled: whether this piece is folded although the frame unfolds its kind, or the reverse.
        plain: whether markdown stays plain text, and a picture a line.
        picture: gives the rows of a picture; None leaves it at its line.
    """
    width = max(frame.width, 10)
    match piece.look:
        case Look.MARKDOWN if not plain and len(piece.text) <= HUGE:
            return [_EMPTY, *_markdown(piece.text, width, frame.dark)]
        case Look.MARKDOWN | Look.PLAIN:
            return [_EMPTY, *_wrapped(piece.text, width)]
        case Look.PROMPT:
            return [_EMPTY, *_prompt(piece.text, width, frame.results != toggled)]
        case Look.WAITING:
            return [_EMPTY, *_marked("… ", piece.text, width, _DIM, 3)]
        case Look.THINKING:
            return _thinking(piece.text, width, frame.thinking != toggled)
        case Look.CALL:
            return _call(piece, width, frame.results != toggled)
        case Look.ERROR:
            return [_EMPTY, *_marked("✗ ", piece.text, width, _BAD, _LONGEST)]
        case Look.RULE:
            return [_EMPTY, _rule(piece.text, width)]
        case Look.PICTURE:
            shown: Sequence[Strip] = ()
            if picture is not None and not plain:
                shown = picture(piece.blob, min(width, MOST_COLUMNS))  # most widths want the same rows
            return [*_wrapped(piece.text, width, _DIM), *shown]
        case Look.NOTE | Look.TOLD | Look.STRONG:
            style = {Look.NOTE: _DIM, Look.STRONG: _BOLD}.get(piece.look)
            return list(_wrapped(piece.text, width, style, _LONGEST))


_EMPTY = Strip([])


def _markdown(text: str, width: int, dark: bool) -> list[Strip]:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor", legacy_windows=False,
        markup=False, emoji=False, highlight=False,
    )  # fmt: skip
    markdown = Markdown(text, code_theme="ansi_dark" if dark else "ansi_light", hyperlinks=False)
    lines = console.render_lines(markdown, console.options.update(width=width, height=None), pad=False)
    strips = [Strip(line) for line in lines]
    while strips and not strips[-1].text.strip():
        strips.pop()
    while strips and not strips[0].text.strip():
        strips.pop(0)
    return strips


def _prompt(text: str, width: int, unfolded: bool) -> Iterator[Strip]:
    return _marked("› ", text, width, _BOLD, _LONGEST if unfolded else FOLDED)


def _thinking(text: str, width: int, unfolded: bool) -> list[Strip]:
    if unfolded:
        return list(_marked("▾ ", text, width, _QUIET, _LONGEST))
    line = " ".join(text[: 4 * width].split())
    return [_EMPTY, _short(f"▸ thinking: {line}", width, _QUIET)]


def _call(piece: Piece, width: int, unfolded: bool) -> list[Strip]:
    style = _BAD if piece.failed else _DIM
    if unfolded:
        head = list(_marked("▾ ", piece.text, width, _BAR, _LONGEST))
        return [*head, *(_marked("  ", piece.result, width, style, _LONGEST) if piece.result else ())]
    shown = piece.text if len(piece.text) <= ARGUMENTS else f"{piece.text[:ARGUMENTS]}…"
    head = [_short(f"▸ {shown}", width, _BAR)]
    if piece.result is None:
        return head
    first, *more = piece.result.strip("\n").split("\n") if piece.result.strip() else ["nothing"]
    count = f" (+{len(more)} line{'s' * (len(more) != 1)})" if more else ""
    return [*head, _short(f"  └ {first}", width - len(count), style, count)]


def _rule(text: str, width: int) -> Strip:
    title = Text(f"── {text} ")
    title.truncate(width - 1, overflow="ellipsis")
    rest = max(0, width - title.cell_len)
    return Strip([Segment(title.plain + "─" * rest, _DIM)])


def _short(text: str, width: int, style: Style, after: str = "") -> Strip:
    line = Text(text)
    line.truncate(max(width, 4), overflow="ellipsis")
    return Strip([Segment(line.plain + after, style)])


def _marked(mark: str, text: str, width: int, style: Style, most: int) -> Iterator[Strip]:
    """Wrap plain text, with a mark before its first line."""
    for number, strip in enumerate(_wrapped(text, width - 2, style, most)):
        yield Strip([Segment(mark if number == 0 else "  ", _BAR if style is _BOLD else style), *strip])


def _wrapped(text: str, width: int, style: Style | None = None, most: int = _LONGEST) -> Iterator[Strip]:
    """Wrap plain text, up to ``most`` lines; the next line says how long a longer text is."""
    for number, line in enumerate(_lines(text, width)):
        if number == most:
            yield Strip([Segment(f"… ({len(text):,} characters in all)", _DIM)])
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
