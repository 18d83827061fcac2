"""The page of the durability benchmark shows what its published histories show."""

from benchmarks.durability.picture import drawing
from benchmarks.durability.report import HISTORIES, PAGE, plays_of, tables, with_figures


def test_figures_and_picture_of_the_page_are_those_of_the_published_histories() -> None:
    plays = plays_of(HISTORIES)
    page = PAGE.read_text()
    assert with_figures(page, tables(plays)) == page
    assert drawing([(each.play, each.verdict) for each in plays]) == PAGE.with_suffix(".svg").read_text()
