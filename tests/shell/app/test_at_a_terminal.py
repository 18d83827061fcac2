"""The real program at a terminal: keys at the wrong moment, and a tree that no window has room for."""

import re
import time
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.shell.app.widgets.approval_box import KEYS_WAIT
from tests.kit.fullscreen import FullScreen

pytestmark = pytest.mark.thorough("a program at a terminal; the application is asked the same in each run, in process")

LINES = 40
DEPTH, AGENTS = 40, 341

BACKSPACE, CLEAR, F2, F3, END = "\x7f", "\x15", "\x1bOQ", "\x1bOR", "\x1b[F"


def team(database: Path) -> None:
    """Many agents, of which some are deep down."""
    with ActorSystem.open(database, "offline") as system:
        system.root.rename("lead")
        agent = system.root
        for depth in range(1, DEPTH + 1):
            agent = agent.fork(name=f"deep-{depth}")
        for number in range(DEPTH + 1, AGENTS):
            system.root.fork(name=f"wide-{number}")
        system._touch(system.root)


def look(program: FullScreen) -> None:
    """Look at a question for as long as it takes no keys after it has changed."""
    until = time.monotonic() + 2 * KEYS_WAIT
    while (left := until - time.monotonic()) > 0:
        program._read(left)


def test_no_key_does_more_than_a_person_has_seen_in_whatever_window(tmp_path: Path) -> None:
    team(tmp_path / "team.db")
    workspace, signed = tmp_path / "workspace", tmp_path / "workspace" / "signed"
    workspace.mkdir()
    options = "--database", str(tmp_path / "team.db"), "--provider", "offline", "--workspace", str(workspace)
    with FullScreen(*options, "--fence", "none") as program:
        program.expect("301 below")

        program.say("/for")  # half a command: Enter completes it
        program.expect(r"› /fork ")
        program.type(CLEAR)

        command = "\\n".join([*(f"true {number}" for number in range(1, LINES)), "touch signed"])
        program.say(f'@bash {{"command": "{command}"}}')
        program.type("y")  # before the question
        program.expect(r"wants to run bash[\s\S]*F2 answers[\s\S]*› y")
        program.type(BACKSPACE)
        program.expect("more lines below: y shows them")
        program.resize(60, 20)
        program.expect("(?m)^(?=.{60}$)╭─ lead wants[\\s\\S]*more lines below")
        program.resize(80, 24)
        program.expect("(?m)^(?=.{80}$)╭─ lead wants[\\s\\S]*more lines below: y shows them")
        pressed = 0
        while below := re.search(r"\d+ more lines? below", program.text):  # at the question
            assert not signed.exists()
            look(program)
            program.type("y")
            pressed += 1
            program.expect_gone(re.escape(below.group()))
        assert pressed >= LINES // 12
        program.type("\x1b[200~y\x1b[201~")
        program.expect(r"touch signed[\s\S]*› y")
        assert not signed.exists()
        program.type(BACKSPACE + F2)
        for text in ("yes, buy Nilgiri", "and what about it", "no, think about tea"):  # at typing speed
            program.expect("Esc later")
            look(program)
            for letter in text:
                program.type(letter)
                program._read(0.1)
            program.expect(f"› {text}")
            assert not signed.exists()
            program.type(CLEAR + F2)
        program.expect("Esc later")
        look(program)
        program.type("yes")  # at paste speed
        program.expect("› yes")
        program.type(CLEAR + F2)
        program.expect("Esc later")
        look(program)
        program.type("y")
        program.expect_gone("wants to run")
        program.type("y")  # after it
        program.expect("› y")
        program.expect("bash gave")
        assert signed.exists()
        program.type(CLEAR)

        program.type(F3)
        program.expect("○ lead ‹")
        program.resize(100, 30)
        program.expect(r"(?m)^(?=.{100}$).*╭─ lead ")
        program.type(END)
        program.expect(rf"○ wide-{AGENTS - 1}\b")
        program.type("\x06deep-40\r")
        program.expect(rf"┄{DEPTH}┄ ○ deep-{DEPTH}\b")
        program.type(F3)
        program.expect_gone("←→ fold")
        program.type("\x04")
        assert program.ends() == 0
        assert program.is_clean()
