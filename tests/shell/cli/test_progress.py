"""The bar of long commands: what it says, and that a pipe gets none of it."""

import io
import re

import pytest
from rich.console import Console

from ikigai_actors.shell.cli.bars import bar_on
from ikigai_actors.shell.cli.experiments import show_notice
from ikigai_actors.shell.cli.progress import progress_bar


def test_a_bar_says_how_many_how_fast_and_how_long() -> None:
    written, now = io.StringIO(), [0.0]
    console = Console(file=written, force_terminal=True, width=100, color_system=None)
    with bar_on(console, "trials", get_time=lambda: now[0], refreshed=False) as advance:
        for done in range(1, 5):
            now[0] += 2.0
            advance(done, 16)
    shown = written.getvalue()
    assert "1 of 16 trials" in shown
    assert "4 of 16 trials" in shown
    assert "30.0/min" in shown
    assert "0:00:24 left" in shown


def test_a_notice_stands_on_a_line_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(written, encoding="utf-8", write_through=True))
    console = Console(stderr=True, force_terminal=True, width=100, color_system=None)
    with bar_on(console, "trials", refreshed=False) as advance:
        for done in range(1, 3):
            show_notice(f"turn {done}: 1")
            advance(done, 2)
    lines = written.getvalue().decode().splitlines()
    assert [re.sub(r"\x1b\[[\d?]*[A-Za-z]", "", line) for line in lines if "turn" in line] == [
        "ikigai: turn 1: 1", "ikigai: turn 2: 1"
    ]  # fmt: skip


def test_nothing_of_a_bar_is_shown_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("trials") as advance:
        advance(3, 16)
    assert capsys.readouterr() == ("", "")
