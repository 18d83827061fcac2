"""The real program attached to another one: on a whole screen, in lines, and when the other one goes away."""

from pathlib import Path

import pytest

from ikigai_actors.records.agents import registry
from ikigai_actors.system.remote.client import Client
from tests.conftest import NewDatabase
from tests.kit.databases import eventually
from tests.kit.fullscreen import DOWN, FullScreen
from tests.kit.program import Program, run

pytestmark = pytest.mark.slow("programs at terminals")


@pytest.mark.thorough("a second attached program; every run has line mode")
def test_a_whole_screen_shows_the_agents_of_another_shell_which_is_killed_and_taken_over(tmp_path: Path) -> None:
    database = ("--database", str(tmp_path / "team.db"), "--model", "offline")
    with Program.by_pipe(*database) as shell:
        shell.say("Our shop sells tea.")
        shell.expect("You said")
        with FullScreen(*database, size=(100, 30)) as screen:
            screen.expect(rf"Attached: these agents are run by host \S+, pid\s+{shell.process.pid}")
            screen.expect(rf"attached to pid {shell.process.pid}")
            screen.expect("You said “Our shop")
            screen.say("Which tea?")
            screen.expect("You said “Which tea\\?”. I remember 2")
            shell.say("/fork --name buyer")
            shell.expect("inherits")
            screen.expect("1 below")
            screen.type(DOWN)
            screen.expect(r"▸ buyer ─")
            shell.say("Assam, please.")
            screen.expect("You said “Assam, please.”")
            screen.say("/mark here")
            screen.expect("┄ mark 'here'")
            shell.kill()
            screen.expect("The process that ran these agents is gone")
            screen.expect("attached, no host")
            screen.type("\x04")
            assert screen.ends() == 0
            assert screen.is_clean()
    done = run(*database, lines="/switch buyer\nAnd milk.\n")
    assert "I remember 4 prompts" in done.stdout
    assert "Attached" not in done.stderr


GONE = "The process that ran these agents is gone"


def waited(attached: Program) -> str:
    """What a shell tells when it has waited for a second."""
    attached.say("/wait 1")
    return attached.expect(r"(?s)^.*kid> $")[0]


@pytest.mark.thorough("a second shell at a terminal, five seconds; test_attached.py shows the events that it gets")
def test_lines_at_a_terminal_see_interrupt_and_leave_the_turn_of_another_shell(new_postgres: NewDatabase) -> None:
    url = new_postgres()
    database = ("--database", url, "--model", "offline:slow")
    with Program.by_pipe(*database) as shell:
        shell.say("/fork --name kid")
        shell.expect("inherits")
        with Program.at_terminal(*database) as attached:
            attached.expect("Attached: these agents are run by")
            attached.expect("kid> ")
            attached.say("Speak slowly.")
            attached.expect("You said")  # it is seen as it comes
            with Client.open(url) as client:
                assert any(agent.turn for agent in client.read(registry.every))
            attached.interrupt(r"\[interrupted\]")
            attached.expect("kid> ")
            attached.say("/signal STOP")
            attached.expect("STOP sent to kid: stopped")
            shell.say("/agents")
            shell.expect("kid +stopped")
            shell.end()
            eventually(lambda: GONE in waited(attached), "the news")
            attached.say("/exit")
            assert attached.ends() == 0
