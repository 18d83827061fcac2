"""The tour: a team is killed in the middle of an answer, and comes back."""

import io
import re
import subprocess
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from ikigai_actors.shell.cli import demo
from ikigai_actors.shell.cli.demo import play_demo
from tests.kit.zygote import PYTHON, popen


def forked(command: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
    """The program of the tour, without the second that the imports of a fresh interpreter take."""
    assert command[1:3] == ["-m", "ikigai_actors.shell.cli.demo_team"]
    work = "import sys; from ikigai_actors.shell.cli.demo_team import work; work(sys.argv[1])"
    return popen((*PYTHON, "-c", work, *command[3:]), **options)


@pytest.mark.slow("starts a program, which is killed")
def test_the_tour_kills_a_team_that_comes_back_in_colour_and_within_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo, "subprocess", SimpleNamespace(Popen=forked, PIPE=subprocess.PIPE))
    screen = io.StringIO()
    assert play_demo(Console(file=screen, force_terminal=True, width=80, color_system="standard"))
    plain = re.sub(r"\x1b\[[\d;]*m", "", screen.getvalue())
    assert plain != screen.getvalue()
    assert max(map(len, plain.splitlines())) <= 80
    killed, back = plain.split("The same database, opened again")
    assert re.search(r"kill -9 \d+, in the middle of the seller's answer", killed)
    assert "waiting for the model" in killed
    assert "interrupted" in back
    assert "3 agents are back" in back
    assert back.index("The interrupted turn goes on") < back.index("A merge brings") < back.index("What next?")
