"""The real program on a whole screen: typed at, resized, killed, started again."""

import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors.store import open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.fullscreen import DOWN, RIGHT, UP, FullScreen
from tests.kit.program import COMMAND, ENDLESS, PATIENCE, environment

pytestmark = pytest.mark.slow("programs at terminals")


def arguments(directory: Path, model: str = "offline") -> tuple[str, ...]:
    return ("--database", str(directory / "team.db"), "--model", model)


@pytest.mark.thorough("a long play at a terminal; every run has keys, and a signal")
def test_type_fork_navigate_resize_interrupt_kill_and_start_again(tmp_path: Path) -> None:
    with FullScreen(*arguments(tmp_path, "offline:0.05")) as program:
        program.expect(r"╭─ (?!starting …)")
        program.say("Our shop sells tea.")
        program.expect("› Our shop sells tea")
        program.expect("talk to a model")
        program.say('/fork "You buy from farms." --name buyer')
        program.expect(r"[─▸] buyer ─")
        program.expect("inherited: 2 messages from")
        program.expect("I remember 2 prompts")
        program.type(UP)
        program.expect(r"╭─ [\w-]+ ─[\s\S]*\^↓ 1 below")
        program.say("/fork --name seller")
        program.expect(r"[─▸] seller ─")
        program.type(RIGHT)
        program.expect(r"▸ buyer ─[\s\S]*\^← seller")
        program.resize(100, 30)
        program.expect(r"(?m)^(?=.{100}$)╭─ .*▸ buyer ─.*╮$")
        program.resize(80, 24)
        program.expect(r"(?m)^(?=.{80}$)╭─ .*▸ buyer ─.*╮$")
        program.say(f"/send buyer {'a ' * 100}")
        program.expect("mail 1 to buyer")
        program.say("@read_mail")
        program.expect("read_mail gave")  # and then, for seconds, a word at a time
        program.type("\x1b")
        program.expect(r"\[interrupted\]")
        program.say(ENDLESS)
        program.expect("running wait")
        program.kill()
    with FullScreen(*arguments(tmp_path)) as program:
        program.expect(r"‖ interrupted.* /resume goes on\n╭─ .*▸ buyer ─")
        program.expect("The last turn was interrupted")
        program.say("/resume")
        program.expect("running wait")
        program.say("/send buyer enough")
        program.expect("wait gave")
        program.say("And once more, please.")
        program.expect("You said “And once more, please.”. I remember 5")
        program.type(UP + DOWN)
        program.expect(r"[─▸] seller ─")
        program.type("\x04")
        assert program.ends() == 0
        assert program.is_clean()


@pytest.mark.thorough("a second program at a terminal")
def test_an_opening_that_takes_long_says_so_until_it_is_done(tmp_path: Path) -> None:
    database = tmp_path / "team.db"
    with closing(open_store(database)) as store:
        ensure_schema(store)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with FullScreen("--plain", *arguments(tmp_path)) as program:
            program.expect(r"Opening\s[^…]*…")
            other.execute("ROLLBACK")
            program.expect(r"(?m)[\w-]>$")
            assert "Opening" not in program.text
            program.type("\x04")
            assert program.ends() == 0
            assert program.sent.rfind(b"\x1b[?25h") > program.sent.rfind(b"\x1b[?25l")  # the cursor is back


@pytest.mark.thorough("a second program at a terminal")
def test_keys_that_edit_are_not_overtaken_by_what_is_typed_behind_them(tmp_path: Path) -> None:
    with FullScreen(*arguments(tmp_path)) as program:
        program.expect(r"╭─ (?!starting …)")
        program.type("".join(f"{letter}x\x7f" for letter in "abcdefghij"))
        program.type("\x01<\x05>\r")
        program.expect("› <abcdefghij>")


@pytest.mark.thorough("a shell and a program at a terminal")
def test_ctrl_z_gives_the_terminal_to_the_shell_and_the_screen_comes_back(tmp_path: Path) -> None:
    shell = ["/bin/bash", "-mc", '"$@"; echo "It is stopped."; read -r line; fg >/dev/null', "bash", *COMMAND]
    with FullScreen(command=[*shell, *arguments(tmp_path)]) as program:
        program.expect(r"╭─ (?!starting …)")
        program.type("before, ")
        program.expect("before,")
        program.type("\x1a")
        program.expect(r"It is stopped\.")
        assert program.is_clean()
        program.type("\n")
        program.expect_sent("\x1b[?2004h", times=2)  # the screen is the program's again, and so is the keyboard
        program.say("and after")
        program.expect("› before, and after")
        program.type("\x04")
        assert program.ends() == 0
        assert program.is_clean()


AGAIN = pytest.mark.thorough("a program at a terminal for another way to the same end")


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=AGAIN),
        pytest.param(signal.SIGINT, 130, marks=AGAIN),
    ],
)
def test_a_signal_ends_it_in_order_and_leaves_the_terminal_clean(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    with FullScreen(*arguments(tmp_path)) as program:
        program.expect(r"╭─ (?!starting …)")
        program.process.send_signal(number)
        assert program.ends() == status
        assert program.is_clean()


@pytest.mark.thorough("a second way to end a program; every run has a signal")
@pytest.mark.parametrize(
    "controlling", [True, pytest.param(False, marks=AGAIN)], ids=["with SIGHUP", "without a signal"]
)
def test_a_window_that_is_closed_ends_it(tmp_path: Path, controlling: bool) -> None:
    with FullScreen(*arguments(tmp_path), controlling=controlling) as program:
        program.expect(r"╭─ (?!starting …)")
        assert program.hang_up() == 129


@pytest.mark.thorough("a program at a terminal; one is stopped and continued in each run")
@pytest.mark.parametrize("leave", ["key", "window"])
def test_a_program_that_is_continued_without_a_stop_reads_each_key_once_and_ends(tmp_path: Path, leave: str) -> None:
    with FullScreen(*arguments(tmp_path)) as program:
        program.expect(r"╭─ (?!starting …)")
        for times, prompt in enumerate(("one one", "two two", "three three", "four four", "five five"), start=2):
            program.process.send_signal(signal.SIGCONT)
            program.expect_sent("\x1b[?2004h", times=times)  # the keyboard is the program's again
            program.say(prompt)
            program.expect(f"› {prompt}")
        if leave == "window":
            assert program.hang_up() == 129
            return
        program.type("\x04")
        assert program.ends() == 0
        assert program.is_clean()


@pytest.mark.thorough("a program at a terminal; what is drawn is compared with kept screens in each run")
def test_no_color_sends_no_colours(tmp_path: Path) -> None:
    with FullScreen(*arguments(tmp_path), NO_COLOR="1") as program:
        program.expect(r"╭─ (?!starting …)")
        program.say("```python\nprint(1)\n```")
        program.say("/nonsense")
        program.expect("✗ There is no command")
        program.type("\x04")
        assert program.ends() == 0
        for codes in re.findall(rb"\x1b\[([0-9;]*)m", program.sent):
            assert not re.search(rb"(^|;)(3[0-8]|4[0-8]|9[0-7]|10[0-7])(;|$)", codes), codes


@pytest.mark.thorough("a program at a terminal; what is drawn is compared with kept screens in each run")
def test_wide_characters_keep_their_columns(tmp_path: Path) -> None:
    with FullScreen(*arguments(tmp_path)) as program:
        program.expect(r"╭─ (?!starting …)")
        program.say("茶と器 " * 10)
        program.expect("You said")
        program.expect("茶 ?と ?器")
        program.type("\x04")
        assert program.ends() == 0


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_knows_nothing_gets_lines(tmp_path: Path, term: str) -> None:
    with FullScreen(*arguments(tmp_path), TERM=term) as program:
        program.expect("What you type goes to the agent named at the prompt")
        program.expect(r"(?m)[\w-]>$")
        assert b"\x1b[?1049h" not in program.sent


@pytest.mark.thorough("a program at a terminal; pipes are in every run")
def test_when_standard_error_is_no_terminal_there_are_lines(tmp_path: Path) -> None:
    shell = ["/bin/sh", "-c", 'exec "$@" 2>"$0"', str(tmp_path / "errors"), *COMMAND, *arguments(tmp_path)]
    with FullScreen(command=shell) as program:
        program.expect(r"(?m)[\w-]>$")
        program.say("hello")
        program.expect("You said “hello”")
    assert "What you type goes to the agent" in (tmp_path / "errors").read_text()


@pytest.mark.thorough("a fresh interpreter; every run has one in tests/project/test_layers.py")
def test_textual_is_imported_by_the_application_alone(tmp_path: Path) -> None:
    code = f"""
        import atexit, sys
        atexit.register(lambda: print('LOADED', {{'textual', 'rich'}} & {{*sys.modules}}))
        import ikigai_actors
        from ikigai_actors.shell import first_picture, ground
        from ikigai_actors.shell.cli.main import cli
        ikigai_actors.ActorSystem
        cli(['--database', {str(tmp_path / "a.db")!r}, '--plain'])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], input="", capture_output=True, text=True, timeout=PATIENCE,
        env=environment(), check=False,
    )  # fmt: skip
    assert "LOADED set()" in done.stdout, done


@pytest.mark.thorough("a second program at a terminal")
def test_an_editor_gets_the_terminal_and_gives_it_back(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "# Edited" > "$1"\n')
    editor.chmod(0o700)
    with FullScreen(*arguments(tmp_path), EDITOR=str(editor), VISUAL=str(editor)) as program:
        program.expect(r"╭─ (?!starting …)")
        program.say("/doc write plan.md")
        program.expect(r"plan\.md: version 1")
        program.say("/doc show plan.md")
        program.expect("# Edited")
        program.type("draft\x1b[20~")  # F9
        program.expect(r"› # Edited")
        program.type("\x15\x04")
        assert program.ends() == 0
