r"""The margin of a terminal: only the program's own lines begin at the left edge.

    margin = Margin(lambda: 80)
    margin.put("Hel")               "  Hel"
    margin.put("lo\n6AW-t-> ")      "lo\n  6AW-t-> "

Text of models and other people is indented by two blanks at the beginning of each line. A line that is longer than the
terminal is wrapped, between words if possible, because the terminal would continue at the edge. Tabs become blanks.
"""

import re
from collections.abc import Callable, Iterator

MARGIN = "  "
_TAB = 8
_WORDS = re.compile(r"\S+|\s")
_NARROWEST = 10


def width(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # slow to import, and not needed for ASCII

    return cell_len(text)


class Margin:
    """Indents a text for a terminal as its pieces arrive."""

    def __init__(self, columns: Callable[[], int]) -> None:
        """Begin at the left edge; ``columns`` returns the width of the terminal."""
        self._columns = columns
        self._column = 0

    def put(self, text: str, own: bool = False) -> str:
        """Return a piece of text as the terminal is to print it, indented and wrapped.

        Args:
            text: the piece, safe for a terminal except for tabs and newlines.
            own: whether it begins with the program's own text, which is indented already.
        """
        columns = max(self._columns(), _NARROWEST)
        first, *others = text.split("\n")
        lines = ["".join(self._line(first, columns, bare=own))]
        for line in others:
            self._column = 0
            lines.append("".join(self._line(line, columns, bare=own and line.startswith(" "))))
        return "\n".join(lines)

    def _line(self, line: str, columns: int, bare: bool) -> Iterator[str]:
        if line and not self._column and not bare:
            self._column = len(MARGIN)
            yield MARGIN
        if line.isascii() and "\t" not in line and self._column + len(line) <= columns:
            self._column += len(line)
            yield line
            return
        for part in _WORDS.findall(line):
            if part == "\t":
                part = " " * (_TAB - self._column % _TAB)
            pieces = (part,) if width(part) <= columns - len(MARGIN) else part  # a word longer than a line is cut
            for piece in pieces:
                taken = width(piece)
                if self._column + taken > columns:
                    self._column = len(MARGIN)
                    yield f"\n{MARGIN}"
                self._column += taken
                yield piece
