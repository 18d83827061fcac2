"""Search: where a text is in lines that are laid out, and how these lines are marked. Pure.

A hit may begin in one line and end in the next: the layout has wrapped it there.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


class HitPart(NamedTuple):
    """The part of a line that a hit covers: the number of the line, and its first and last columns."""

    line: int
    start: int
    """The first column, from 0."""
    end: int


Hit = tuple[HitPart, ...]
"""One place of the text: a part of each line that it covers."""


class TextSearch:
    """A text to search for, ignoring case."""

    def __init__(self, text: str) -> None:
        self.text = text
        words = [re.escape(word) for word in text.split()]
        self._pattern = re.compile(r"\s+".join(words) if words else r"(?!)", re.IGNORECASE)

    def is_in(self, text: str) -> bool:
        """Return whether a text contains the search text, before layout."""
        return self._pattern.search(text) is not None

    def hits(self, lines: Sequence[str]) -> list[Hit]:
        """Return all places of the search text in lines of the screen."""
        joined, starts, indents = _joined(lines)
        return [
            tuple(_parts(lines, starts, indents, match.start(), match.end()))
            for match in self._pattern.finditer(joined)
        ]


def _joined(lines: Sequence[str]) -> tuple[str, list[int], list[int]]:
    """Return the lines as one text without margins, the offset of each line in it, and the width of each margin."""
    texts, starts, indents, at = [], [], [], 0
    for line in lines:
        text = line.strip()
        starts.append(at)
        indents.append(len(line) - len(line.lstrip()) if text else 0)
        texts.append(text)
        at += len(text) + 1
    return "\n".join(texts), starts, indents


def _parts(
    lines: Sequence[str], starts: Sequence[int], indents: Sequence[int], start: int, end: int
) -> Iterator[HitPart]:
    at = bisect_right(starts, start) - 1
    while at < len(lines) and starts[at] < end:
        shift = indents[at] - starts[at]
        first, last = max(start + shift, indents[at]), min(end + shift, len(lines[at].rstrip()))
        if first < last:
            yield HitPart(at, cell_len(lines[at][:first]), cell_len(lines[at][:last]))
        at += 1


def with_marks(line: Strip, parts: Sequence[tuple[HitPart, Style]]) -> Strip:
    """Return a line with the given parts, which are in order, in other styles."""
    pieces, at = [], 0
    for part, style in parts:
        pieces += [line.crop(at, part.start), restyled(line.crop(part.start, part.end), style)]
        at = part.end
    return Strip.join([*pieces, line.crop(at)])


def restyled(line: Strip, style: Style) -> Strip:
    """Return a line with a style added to the styles of its segments."""
    return Strip([Segment(text, (own or Style()) + style, control) for text, own, control in line])
