"""The answer in progress, as blocks of lines: a complete chunk of markdown is laid out once, the last chunk often."""

from ikigai_actors.shell.app.transcript.block import ShownBlock
from ikigai_actors.shell.app.transcript.layout import HEAVY
from ikigai_actors.shell.app.transcript.markdown_chunks import Chunks
from ikigai_actors.shell.app.transcript.pieces import Look, Piece, tidy


class StreamedAnswer:
    """An answer of a model, as far as it has arrived."""

    def __init__(self) -> None:
        self._thinking = ""
        self._thought: list[ShownBlock] = []
        self._chunks = Chunks()
        self._closed: list[ShownBlock] = []
        self.size = 0
        """Characters that have arrived."""

    def add(self, kind: str, text: str) -> None:
        """Add a piece: of the thinking if ``kind`` is ``"thinking"``, else of the text."""
        self.size += len(text)
        if kind == "thinking":
            self._thinking += tidy(text)
            self._thought = [ShownBlock(Piece(Look.THINKING, self._thinking))] if self._thinking.strip() else []
            return
        self._chunks.add(tidy(text))
        new = self._chunks.closed[len(self._closed) :]
        self._closed += [ShownBlock(Piece(Look.MARKDOWN, chunk)) for chunk in new]

    @property
    def speaks(self) -> bool:
        """Return whether text of the answer has arrived, besides thinking."""
        return bool(self._closed or self._chunks.open.strip())

    @property
    def blocks(self) -> list[ShownBlock]:
        """Return all blocks. Only the block of the open chunk is a new object at each call."""
        blocks = [*self._thought, *self._closed]
        if (text := self._chunks.open.strip("\n")).strip():
            plain = self._chunks.fenced or len(text) > HEAVY
            blocks.append(ShownBlock(Piece(Look.PLAIN if plain else Look.MARKDOWN, text)))
        return blocks
