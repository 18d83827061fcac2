"""A block: a piece with its laid-out lines, which are made again only if the frame changes."""

from textual.strip import Strip

from ikigai_actors.shell.app.transcript.layout import Frame, is_heavy, lay_out
from ikigai_actors.shell.app.transcript.pieces import Piece
from ikigai_actors.shell.app.transcript.text_search import Hit, TextSearch


class ShownBlock:
    """One piece of a transcript with its lines. Use it on the application's thread only."""

    __slots__ = ("_frame", "_hits", "_lines", "_searched", "asked", "piece", "plain", "toggled")

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.toggled = False
        """Whether it is folded although the frame unfolds its kind, or the reverse."""
        self.plain = is_heavy(piece)
        """Whether its lines are plain text, until another thread has laid out the markdown or the picture."""
        self.asked: Frame | None = None
        """The frame for which another thread was asked to lay it out."""
        self._lines: list[Strip] = []
        self._frame: Frame | None = None
        self._searched: tuple[TextSearch, list[Strip]] | None = None
        self._hits: list[Hit] = []

    def is_laid_out(self, frame: Frame) -> bool:
        """Return whether the lines for this frame are cached."""
        return frame == self._frame

    def lines(self, frame: Frame) -> list[Strip]:
        """Return the lines for this frame; lays the piece out if needed."""
        if frame != self._frame:
            self.plain = is_heavy(self.piece)
            self._lines, self._frame = lay_out(self.piece, frame, self.toggled, self.plain), frame
        return self._lines

    def hits(self, search: TextSearch, frame: Frame) -> list[Hit]:
        """Return the places of the searched text in the lines that the block draws for a frame."""
        lines, before = self.lines(frame), self._searched
        if before is None or before[0] is not search or before[1] is not lines:
            self._searched, self._hits = (search, lines), search.hits([line.text for line in lines])
        return self._hits

    def settle(self, lines: list[Strip], frame: Frame) -> bool:
        """Take lines that another thread made for a frame; return whether they are still needed."""
        if frame != self._frame or not self.plain:
            return False
        self._lines, self.plain = lines, False
        return True

    def show(self, piece: Piece) -> None:
        """Show another piece in place of the present one."""
        self.piece, self._frame, self.plain, self.asked = piece, None, is_heavy(piece), None

    def toggle(self) -> None:
        """Fold the piece if it is unfolded, or the reverse."""
        self.toggled, self._frame = not self.toggled, None
