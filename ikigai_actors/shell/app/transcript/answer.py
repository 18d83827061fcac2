"""The answer that arrives, as blocks: what is closed is laid out once, what is open again each time."""

from ikigai_actors.shell.app.transcript.block import Block
from ikigai_actors.shell.app.transcript.layout import HEAVY
from ikigai_actors.shell.app.transcript.markdown_chunks import Chunks
from ikigai_actors.shell.app.transcript.pieces import Look, Piece, tidy


class StreamedAnswer:
    """One answer of a model, as far as it has come."""

    def __init__(self) -> None:
        self._thinking = ""
        self._thought: list[Block] = []
        self._chunks = Chunks()
        self._closed: list[Block] = []

    def add(self, kind: str, text: str) -> None:
        """A piece has come, of the text or of the thinking before it."""
        if kind == "thinking":
            self._thinking += tidy(text)
            self._thought = [Block(Piece(Look.THINKING, self._thinking))] if self._thinking.strip() else []
            return
        self._chunks.add(tidy(text))
        new = self._chunks.closed[len(self._closed) :]
        self._closed += [Block(Piece(Look.MARKDOWN, chunk)) for chunk in new]

    @property
    def blocks(self) -> list[Block]:
        """All of it; those that have not changed are the same objects as before."""
        blocks = [*self._thought, *self._closed]
        if (text := self._chunks.open.strip("\n")).strip():
            plain = self._chunks.fenced or len(text) > HEAVY
            blocks.append(Block(Piece(Look.PLAIN if plain else Look.MARKDOWN, text)))
        return blocks
