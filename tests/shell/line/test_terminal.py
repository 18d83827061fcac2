"""The terminal of line mode: what is pressed while nobody reads the keyboard is not lost."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.databases import DEADLINE

BEGIN = """
import sys, termios, tty
from pathlib import Path
from ikigai_actors.shell.line.input import Terminal

def tell(*words):
    print(*words, file=sys.stderr, flush=True)

def until_keys_are_pressed():
    tell("ready")
    assert open(int(sys.argv[2])).read() == "pressed"

terminal = Terminal(Path(sys.argv[1]), lambda line: [])
"""

READ_LINES = """
until_keys_are_pressed()
while (line := terminal.read("agent")) is not None:
    tell("line", line)
tell("end")
"""

READ_LINES_THAT_COME_LATE = """
with terminal.end_as_key():
    until_keys_are_pressed()
    while (line := terminal.read("agent")) is not None:
        tell("line", line)
tell("end")
"""

READ_A_KEY = """
with terminal.end_as_key():
    until_keys_are_pressed()
    tty.setcbreak(0, termios.TCSANOW)
    tell("key", sys.stdin.buffer.raw.read(1))
"""


def told_by(script: str, home: Path, keys: bytes) -> list[str]:
    """What a program on a terminal tells, on which these keys are pressed while it does not read."""
    ours, theirs = pty.openpty()
    gate, opener = os.pipe()
    arguments = [sys.executable, "-c", BEGIN + script, str(home / "history"), str(gate)]
    with subprocess.Popen(
        arguments, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, pass_fds=(gate,)
    ) as process:
        os.close(theirs)
        os.close(gate)
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "ready\n"
            os.write(ours, keys)
            os.write(opener, b"pressed")
            os.close(opener)
            return process.communicate(timeout=DEADLINE)[1].splitlines()
        finally:
            process.kill()
            os.close(ours)


@pytest.mark.sample(2, "lines")
@pytest.mark.parametrize("keys", [b"one\rtwo\r\x04", b"one\rtwo\r\x04three\r"])
@pytest.mark.parametrize("script", [READ_LINES, READ_LINES_THAT_COME_LATE])
def test_lines_and_ctrl_d_that_were_pressed_before_the_prompt_are_read(
    tmp_path: Path, script: str, keys: bytes
) -> None:
    assert told_by(script, tmp_path, keys) == ["line one", "line two", "end"]


def test_ctrl_d_alone_that_was_pressed_before_the_prompt_is_the_end(tmp_path: Path) -> None:
    assert told_by(READ_LINES, tmp_path, b"\x04") == ["end"]


def test_ctrl_d_is_still_a_key_when_the_terminal_changes_its_mode_before_it_is_read(tmp_path: Path) -> None:
    assert told_by(READ_A_KEY, tmp_path, b"\x04") == [r"key b'\x04'"]
