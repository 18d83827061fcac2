"""Where a text stands in lines of a screen, and how they are marked."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ikigai_actors.shell.app.transcript.layout import Frame, lay_out
from ikigai_actors.shell.app.transcript.pieces import Look, Piece
from ikigai_actors.shell.app.transcript.text_search import HitPart, TextSearch, with_marks

LINES = st.lists(st.text("aB 漢é", max_size=20), max_size=6)


def test_a_hit_is_found_in_capitals_too_and_where_the_layout_has_wrapped_it() -> None:
    lines = ["› a mast of", "  Pine, 漢 pine"]
    assert TextSearch("OF pine").hits(lines) == [(HitPart(0, 9, 11), HitPart(1, 2, 6))]
    assert TextSearch("pine").hits(lines) == [(HitPart(1, 2, 6),), (HitPart(1, 11, 15),)]
    assert TextSearch(" ").hits(lines) == []
    assert TextSearch(".").hits(lines) == []


@given(st.text("ab漢 ", min_size=1, max_size=80), st.integers(4, 30))
def test_each_word_of_a_text_is_found_however_it_is_wrapped(text: str, width: int) -> None:
    lines = [strip.text for strip in lay_out(Piece(Look.PROMPT, text), Frame(width + 20))]
    for word in text.split():
        assert TextSearch(word).hits(lines)


@given(LINES, st.text("aB 漢", min_size=1, max_size=3))
def test_marks_change_the_style_of_the_hits_and_nothing_else(lines: list[str], text: str) -> None:
    style = Style(bold=True)
    for hit in TextSearch(text).hits(lines):
        for part in hit:
            before = Strip([Segment(lines[part.line], Style(italic=True))])
            after = with_marks(before, [(part, style)])
            assert after.text == before.text
            bold = "".join(segment.text for segment in after if segment.style is not None and segment.style.bold)
            assert cell_len(bold) == part.end - part.start
            assert all(segment.style is not None and segment.style.italic for segment in after if segment.text)
