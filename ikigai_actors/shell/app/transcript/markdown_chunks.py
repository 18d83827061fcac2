"""Markdown cut into chunks that can be rendered one by one, while it arrives. Pure.

A chunk ends at a blank line outside of a code fence, when the next line begins at the margin: an indented line may
belong to a list. Closed chunks never change, so each is rendered once; only the open one is rendered again. The chunks
of a text do not depend on the pieces in which it arrives.
"""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Chunks:
    """The chunks of a markdown text that arrives in pieces."""

    def __init__(self, text: str = "") -> None:
        self.closed: list[str] = []
        """The chunks that will not change any more."""
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""
        self._blank = False
        self.add(text)

    def add(self, text: str) -> None:
        """Add the next piece of the text that arrives."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)

    @property
    def open(self) -> str:
        """Return the chunk that still grows; blank if there is none."""
        return "\n".join([*self._lines, self._rest])

    @property
    def fenced(self) -> bool:
        """Return whether the open chunk ends within a code fence."""
        return bool(self._fence)

    def _take(self, line: str) -> None:
        blank = not line.strip()
        if self._blank and not blank and not self._fence and not line[0].isspace():
            self.closed.append("\n".join(self._lines).strip("\n"))
            self._lines = []
        if not (blank and not self._lines):
            self._lines.append(line)
        self._blank = blank and bool(self._lines)
        if (fence := _FENCE.match(line)) is not None:
            mark = fence[1]
            if not self._fence:
                self._fence = mark
            elif mark[0] == self._fence[0] and len(mark) >= len(self._fence) and not line.strip().strip(mark[0]):
                self._fence = ""


def chunked(text: str) -> list[str]:
    """Return the chunks of a complete markdown text."""
    chunks = Chunks(text + "\n")
    last = chunks.open.strip("\n")
    return [*chunks.closed, last] if last.strip() else chunks.closed
