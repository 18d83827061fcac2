"""The first picture has everything where the application draws it."""

from pathlib import Path

import pyte
import pytest

from ikigai_actors.shell.first_picture import first_picture, working

KEPT = sorted((Path(__file__).parent / "screens").glob("talk*.txt"))
"""How the application looks, at some sizes (test_screens.py)."""


def drawn(columns: int, lines: int, more: str = "") -> list[str]:
    screen = pyte.Screen(columns, lines)
    pyte.Stream(screen).feed(first_picture(columns, lines) + more)
    assert (screen.cursor.x, screen.cursor.y) == (4, lines - 3)
    return [line.rstrip() for line in screen.display]


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_box_and_the_foot_are_where_the_application_draws_them(kept: Path) -> None:
    *_, edge, prompt, below, foot = (lines := kept.read_text(encoding="utf-8").split("\n")[:-1])
    picture = drawn(max(len(line) for line in lines), len(lines))
    assert [len(line) for line in picture[-4:-1]] == [len(line) for line in (edge, prompt, below)]
    assert (picture[-4][:3], picture[-3][:3], picture[-2]) == (edge[:3], prompt[:3], below)
    assert foot.endswith(picture[-1].lstrip())
    assert len(foot) == len(picture[-1])
    assert not any(picture[:-4])


def test_what_takes_long_is_said_above_the_box() -> None:
    assert drawn(40, 12, working(12, "Opening tea.db"))[-5:-3] == [" Opening tea.db …", drawn(40, 12)[-4]]


def test_a_window_without_room_for_the_box_stays_empty() -> None:
    assert first_picture(19, 24) == first_picture(80, 5) == ""


def test_no_colour_is_sent_where_none_is_wanted() -> None:
    assert "\x1b[9" in first_picture(80, 24)
    assert "\x1b[9" not in first_picture(80, 24, coloured=False)
