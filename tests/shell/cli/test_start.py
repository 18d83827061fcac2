"""The first moments of the real program at a terminal: what is typed meanwhile, and Ctrl-C."""

import sqlite3
import string
import termios
import time
from contextlib import closing
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem
from ikigai_actors.shell.app.pastes import END, START, Pastes
from ikigai_actors.store import open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.databases import printed, python
from tests.kit.fullscreen import FullScreen
from tests.kit.program import COMMAND, PATIENCE

pytestmark = pytest.mark.slow("programs that import everything")


def arguments(directory: Path) -> tuple[str, ...]:
    return ("--database", str(directory / "team.db"), "--model", "offline")


start = partial(FullScreen, fresh=True)
"""The program as a person starts it: it has imported nothing."""


WHITE_GROUND = b"48;5;231m"
"""What draws on the paper of the light theme, in a terminal of 256 colours."""


def is_echoing(program: FullScreen) -> bool:
    return bool(termios.tcgetattr(program._terminal)[3] & termios.ECHO)


def begun(program: FullScreen) -> None:
    """Wait until the program has seen to the terminal, before it imports."""
    deadline = time.monotonic() + PATIENCE
    while is_echoing(program):
        assert time.monotonic() < deadline, "It does not begin."
        program._read(0.001)


def locked(directory: Path) -> "closing[sqlite3.Connection]":
    """The database, locked by another process's transaction."""
    with closing(open_store(directory / "team.db")) as store:
        ensure_schema(store)
    other = sqlite3.connect(directory / "team.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return closing(other)


LATER = pytest.mark.thorough("a program at a terminal; keys within its start are pressed below")


@pytest.mark.thorough("a program at a terminal; every key of a start is pressed in every run")
@pytest.mark.parametrize("early", [True, pytest.param(False, marks=LATER)], ids=["at once", "while it imports"])
def test_what_is_typed_before_the_screen_is_there_is_as_if_typed_later(tmp_path: Path, early: bool) -> None:
    with start(*arguments(tmp_path)) as program:
        if not early:
            begun(program)
        program.type("We sell tea.\r/fork --name buyer --no-follow\rand this stax\x7fy")
        program.type("\x1b]11;rgb:ffff/ffff/ffff\x07s")  # a light terminal's answer comes in between
        program.expect("You said “We sell tea.”")
        program.expect("1 below")
        program.type("!")
        program.expect(r"and this stays!")
        assert WHITE_GROUND in program.sent
        program.type("\x15\x04")
        assert program.ends() == 0
        assert program.text.strip() == ""  # the normal screen, as it was
        assert program.is_clean()


@pytest.mark.thorough("a start for each key")
def test_every_key_that_is_pressed_in_the_start_arrives_once_and_in_order(tmp_path: Path) -> None:
    typed, letters = "", cycle(string.ascii_lowercase)
    with start(*arguments(tmp_path), size=(200, 24)) as program:
        begun(program)
        while " in · " not in program.text:
            letter = next(letters)
            typed += letter
            program.type(letter)
            program._read(0.02)
        program.say(".")
        program.expect(f"› {typed}\\.") if len(typed) < 90 else program.expect(f"{typed[-30:]}")
        program.type("\x04")
        assert program.ends() == 0
    with closing(sqlite3.connect(tmp_path / "team.db")) as connection:
        assert connection.execute("SELECT content FROM messages WHERE kind = 'user'").fetchall() == [(f"{typed}.",)]


@pytest.mark.thorough("a program at a terminal; every key of a start is pressed in every run")
def test_what_is_typed_before_the_prompt_of_line_mode_is_there_for_it(tmp_path: Path) -> None:
    with start("--plain", *arguments(tmp_path)) as program:
        begun(program)
        program.type("on")
        program.expect(r"(?m)[\w-]> on$")
        program.type("e\r")
        program.expect("You said “one”")
        program.expect(r"(?m)said “one”(.|\n)*[\w-]> *$")  # between two prompts nobody reads the end of input
        program.type("\x04")
        assert program.ends() == 0
        assert termios.tcgetattr(program._terminal) == program.before


@pytest.mark.thorough("a program at a terminal; the prompt of line mode and of the screen are typed to in each run")
def test_ctrl_d_that_is_pressed_in_the_start_leaves(tmp_path: Path) -> None:
    with start(*arguments(tmp_path)) as program:
        begun(program)
        program.type("\x04")
        assert program.ends() == 0
        assert program.is_clean()


@pytest.mark.sample(1, "a program at a terminal for each")
@pytest.mark.parametrize("options", [(), ("--plain",), ("agents",)], ids=["screen", "lines", "a command"])
def test_ctrl_c_while_it_imports_ends_it_without_a_word(tmp_path: Path, options: tuple[str, ...]) -> None:
    with start(*arguments(tmp_path), *options) as program:
        begun(program)
        program.type("half a li\x03")
        assert program.ends() == 130
        assert program.text.strip() == ""
        assert termios.tcgetattr(program._terminal) == program.before


@pytest.mark.thorough("ten seconds of a locked database; a Ctrl-C just before is in each run")
def test_ctrl_c_while_the_database_is_opened_ends_it_without_a_word(tmp_path: Path) -> None:
    with locked(tmp_path), FullScreen(*arguments(tmp_path)) as program:
        program.expect(r"Opening\s[^…]*…")
        program.type("\x03")
        assert program.ends() == 130
        assert "Traceback" not in program.text
        assert "Aborted" not in program.text
        assert termios.tcgetattr(program._terminal) == program.before


@pytest.mark.thorough("a program at a terminal; every key of a start is pressed in every run")
def test_a_command_leaves_the_terminal_as_it_was_and_what_is_typed_to_the_next_one(tmp_path: Path) -> None:
    shell = ["/bin/sh", "-c", '"$@" >/dev/null; "$@"; read -r line; echo "read: $line"', "sh"]
    ActorSystem.open(tmp_path / "team.db", "offline").close()
    with start(command=[*shell, *COMMAND, *arguments(tmp_path), "agents"]) as program:
        program.expect("idle|running")
        program.type("for the shell\r")
        program.expect("read: for the shell")
        program.ends()
        assert termios.tcgetattr(program._terminal) == program.before


TEXT = st.text(alphabet=st.sampled_from("ab\x1b[201~\r"), max_size=30)


@given(st.lists(st.tuples(TEXT, TEXT.filter(lambda text: END not in text)), max_size=4), st.data())
def test_pastes_lose_their_escapes_and_all_else_goes_through(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    """However what comes is cut up."""
    typed = [(outside.replace("\x1b[2", ""), pasted) for outside, pasted in parts]
    sent = "".join(f"{outside}{START}{pasted}{END}" for outside, pasted in typed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    pastes, given_on = Pastes(), ""
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        given_on += pastes.feed(sent[begin:end])
    wanted = "".join(f"{outside}{START}{_spelled(pasted)}{END}" for outside, pasted in typed)
    assert given_on == wanted


def _spelled(pasted: str) -> str:
    """A paste ends at the first mark, which its own end and the mark may make together."""
    return pasted.replace("\x1b", "\\x1b")


def test_ctrl_c_before_the_program_has_seen_to_it_ends_it_without_a_word() -> None:
    script = """
        import os, signal, sys
        class CtrlC:
            def __init__(self, at):
                self.at = at
            def find_spec(self, name, path, target=None):
                if name == self.at:
                    os.kill(os.getpid(), signal.SIGINT)
        def status(at):
            child = os.fork()
            if not child:
                sys.meta_path.insert(0, CtrlC(at))
                from ikigai_actors.__main__ import main
                main()
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        import ikigai_actors
        parts = ["shell", "shell.cli", "shell.start", "shell.cli.main"]
        print([status(f"ikigai_actors.{part}") for part in parts])
    """
    assert printed(python(script, fresh=True)) == "[130, 130, 130, 130]"
