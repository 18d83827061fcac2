"""Attached pictures in the application: as cells, below the line that names them."""

import io
import sys
from pathlib import Path

import pytest

from ikigai_actors import attachment, tool
from ikigai_actors.shell.app.transcript.pictures import MOST_ROWS, cells_of, picture_rows
from ikigai_actors.types import Attachment
from tests.kit.app_pilot import Stage, on_stage, open_memory
from tests.kit.pictures import BY_TYPE, GARBLED, PDF, painted

pytest.importorskip("PIL", reason="pictures need the extra pictures")

RED, BLUE, CLEAR = (255, 0, 0), (0, 0, 255), (0, 0, 0, 0)
PAINTED = painted([[(*RED, 255), CLEAR], [(*BLUE, 255), (*BLUE, 255)], [(*RED, 255), CLEAR]])
FLAG = painted([[(*RED, 255)] * 7] * 2 + [[(*BLUE, 255)] * 7] * 2)
ROWS = "▀▀▀▀▀▀▀\n▀▀▀▀▀▀▀"


def test_a_cell_is_two_pixels_and_what_is_clear_or_missing_shows_the_screen() -> None:
    assert cells_of(PAINTED) == [[(RED, BLUE), (None, BLUE)], [(RED, None), (None, None)]]
    [first, second] = picture_rows(lambda _: PAINTED)("hash", 60)
    assert (first.text, second.text) == ("▀▄", "▀ ")
    assert [str(segment.style) for segment in first] == ["#ff0000 on #0000ff", "#0000ff"]


def test_a_large_picture_is_made_smaller_in_its_proportions() -> None:
    wide, high = painted([[(*RED, 255)] * 200] * 100), painted([[(*RED, 255)] * 100] * 200)
    assert [(len(rows), len(rows[0])) for rows in (cells_of(wide), cells_of(wide, 20))] == [(15, 60), (5, 20)]
    assert [(len(rows), len(rows[0])) for rows in (cells_of(high), cells_of(high, 5))] == [(MOST_ROWS, 16), (5, 5)]
    assert cells_of(wide)[7][30] == (RED, RED)


def test_a_picture_of_a_camera_that_lay_on_its_side_stands_upright() -> None:
    from PIL import Image

    turned, file = Image.Exif(), io.BytesIO()
    turned[0x0112] = 6  # to be turned by 90 degrees
    Image.new("RGB", (40, 20)).save(file, "JPEG", exif=turned)
    assert [(len(rows), len(rows[0])) for rows in [cells_of(file.getvalue())]] == [(16, 16)]


def test_what_is_no_whole_picture_or_is_too_large_has_no_rows() -> None:
    others = [data for media, listed in BY_TYPE.items() for data in listed if not media.startswith("image/")]
    assert [cells_of(data) for data in (*others, b"", FLAG[:45], GARBLED) if cells_of(data)] == []
    assert cells_of(painted([[(*RED, 255)] * 8_001])) == []


def test_rows_are_kept_for_a_picture_and_not_for_an_error_of_the_reader() -> None:
    read: list[str] = []

    def reader(sha256: str) -> bytes:
        read.append(sha256)
        if len(read) == 1:
            raise OSError("not now")
        return PAINTED

    rows = picture_rows(reader)
    with pytest.raises(OSError, match="not now"):
        rows("a", 60)
    assert rows("a", 60) is rows("a", 60)
    assert read == ["a", "a"]


def test_without_pillow_there_are_no_rows_and_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)  # as if it were not installed
    read: list[str] = []
    assert picture_rows(lambda sha256: read.append(sha256))("hash", 60) == ()
    assert (read, cells_of(PAINTED)) == ([], [])


@pytest.mark.thorough("the screen with a picture; its parts are in every run")
def test_the_picture_of_a_prompt_stands_below_its_line_and_a_damaged_one_stays_a_line(tmp_path: Path) -> None:
    for name, data in {"flag.png": FLAG, "garbled.png": GARBLED, "a.pdf": PDF}.items():
        (tmp_path / name).write_bytes(data)

    async def play(stage: Stage) -> None:
        await stage.say(" ".join(f"@{tmp_path / name}" for name in ("flag.png", "garbled.png", "a.pdf")))
        await stage.until(lambda: ROWS in stage.transcript, "the picture")
        assert (
            f"[attached: flag.png, image/png, {len(FLAG)} bytes]\n{ROWS}\n"
            f"[attached: garbled.png, image/png, {len(GARBLED)} bytes]\n"
            f"[attached: a.pdf, application/pdf, {len(PDF)} bytes]\n\nYou said"
        ) in stage.transcript
        await stage.expect("▀▀▀▀▀▀▀")

    with open_memory() as system:
        on_stage(system, play, size=(200, 40))


@pytest.mark.thorough("an application each; a picture below a prompt is shown in each run")
def test_the_picture_of_a_result_stands_below_its_call_in_the_log_and_when_it_comes() -> None:
    @tool
    def draw() -> Attachment:
        """Draw a flag."""
        return attachment(FLAG, "flag.png")

    def shown(stage: Stage) -> bool:
        line = f"flag.png, image/png, {len(FLAG)} bytes"
        call = f"▸ draw\n  └ {line}\n[attached: {line}]\n{ROWS}\n"
        return call * 2 in stage.transcript

    async def first(stage: Stage) -> None:
        await stage.say("@draw {} @draw {}")
        await stage.until(lambda: shown(stage), "the pictures")

    async def again(stage: Stage) -> None:
        await stage.until(lambda: shown(stage), "the pictures")

    with open_memory(tools=[draw]) as system:
        on_stage(system, first, size=(80, 40))
        on_stage(system, again, size=(80, 40))


@pytest.mark.thorough("the same application without colours")
def test_on_a_screen_without_colours_a_picture_stays_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "flag.png").write_bytes(FLAG)

    async def play(stage: Stage) -> None:
        transcript = stage.application.main.page.transcript
        await stage.say(f"@{tmp_path / 'flag.png'}")
        await stage.until(lambda: "You said" in stage.transcript, "the answer")
        await stage.until(lambda: not any(block.plain for block in transcript._blocks), "all that takes long")
        assert "[attached: flag.png" in stage.transcript
        assert "▀" not in stage.transcript

    with open_memory() as system:
        on_stage(system, play, size=(200, 40))
