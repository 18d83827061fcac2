"""The shell at a stopped agent: what waits for CONT is told, and neither a pipe nor a keyboard is blocked by it."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, ProviderError, ScriptedProvider, Signal
from ikigai_actors.records.agents.words import words_of
from tests.kit.blocking_provider import Gate
from tests.kit.databases import eventually
from tests.kit.program import Program, run
from tests.kit.sessions import OpenSession, Session, Typist
from tests.system.test_prompts_by_mail import prompted

WAITS = "kid is stopped: your prompt waits for CONT (/signal CONT)"


def test_a_prompt_by_a_pipe_waits_for_the_cont_of_a_later_line(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(prompted))
    printed = session("/fork --name kid", "/signal STOP", "one", "two", "/signal CONT", "three")
    assert printed[2:4] == [WAITS, WAITS]
    assert printed[5:] == ["heard one", "heard two", "heard three"]
    assert session.status == 0


def test_at_the_end_of_a_pipe_nothing_is_waited_for_that_waits_for_cont(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(prompted))
    printed = session("/fork --name kid", "/signal STOP", "one")
    assert printed[2:] == [WAITS]
    kid = session.system.agent("kid")
    kid.signal(Signal.CONT)
    eventually(lambda: kid.history()[-1].content == "heard one", "the answer")


@pytest.mark.slow("takes a tenth of a second")
def test_the_commands_of_a_stopped_idle_agent_are_done_at_once_also_behind_a_prompt(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(prompted))
    printed = session(
        "/fork --name kid", "/signal STOP", "hello", "/mark two words", "/model scripted", "/system Be brief.",
        "/rewind two words", "/clear", "/resume", "/fork --name late",
    )  # fmt: skip
    assert printed[2:9] == [
        WAITS,
        "marked 'two words'",
        "model set to scripted",
        "system set to Be brief.",
        "back at mark 'two words'",
        "cleared: the history starts over, the settings stay",
        "Nothing to resume: the latest turn of kid was neither cut off nor ended by an error.",
    ]
    assert "only a running agent forks. Continue it first." in printed[9]


@pytest.mark.slow("takes a tenth of a second")
def test_a_resume_of_a_stopped_agent_waits_in_the_background(durable: str, capsys: pytest.CaptureFixture[str]) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        kid = system.root.fork("go", name="kid")
        gate.wait_until_asked()
        kid.signal(Signal.STOP)
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        session = Session(system, capsys)
        waits = "kid is stopped: the resume waits for CONT (/signal CONT)"
        printed = session("/switch kid", "/resume", "/mark here")
        assert printed[2] == waits
        assert printed[3].startswith("the mark waits for the end of the turn of kid, which is stopped")
        assert session.status == 0
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        session = Session(system, capsys)
        printed = session("/switch kid", "/resume", "/signal CONT")
        assert printed[2] == waits
        assert printed[-1] == "heard go"


def test_going_to_a_stopped_agent_tells_why_it_is_and_what_helps(session: Session) -> None:
    printed = session("/fork --name kid", "/signal STOP", "/parent", "/switch kid", "/agents")
    assert printed[4] == "it is stopped (STOP by a person): prompts wait for CONT; /signal CONT lets it go on"
    assert printed[6].endswith("own, stopped: STOP by a person")


def test_a_person_at_the_keyboard_is_told_and_can_go_on(session: Session) -> None:
    printed = session.by(Typist("/fork --name kid", "/signal STOP", "hello", "/signal CONT", "", "/agents"))
    assert printed[2] == WAITS
    assert any("You said “hello”." in line for line in printed)


@pytest.mark.thorough("a program that is killed")
def test_a_prompt_to_a_stopped_agent_outlives_kill_9(tmp_path: Path) -> None:
    place = ("--database", str(tmp_path / "p.db"), "--provider", "offline")
    with Program.at_terminal(*place, "--plain") as shell:
        shell.expect("> ")
        for line in ("/fork --name kid", "/signal STOP", "remember the milk"):
            shell.say(line)
        shell.expect("your prompt waits for CONT")
        shell.kill()
    done = run(*place, lines="/switch kid\n/signal CONT\n/wait 60 kid\n/history\n")
    assert done.stdout.count("user         remember the milk") == 1


def test_who_leaves_is_told_what_is_lost(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    session.system.root.prompt("work")
    gate.wait_until_asked()
    session.system.root.prompt("more")

    def both_wait() -> None:
        system = session.system
        assert isinstance(system, ActorSystem)
        eventually(lambda: system.statistics().pending == 2, "two that wait")

    session.by(Typist("/mark here", both_wait, "/exit"))
    assert "Leaving a turn in progress" in session.notices
    assert "2 prompts or commands that wait are lost." in session.notices
    gate.open()


def test_the_status_of_a_pipe_tells_whether_a_prompt_ended_in_an_error(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([ProviderError("no, as planned"), "yes"]))
    assert session("ask") == ["[error: no, as planned]"]
    assert session.status == 1
    assert session("ask") == ["yes"]
    assert session.status == 0
    assert session("/kill nobody")[0].startswith("error: ")
    assert session.status == 0


def test_a_failed_turn_of_a_stopped_agent_is_resumed_when_it_goes_on(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([ProviderError("no, as planned"), "yes"]))
    printed = session("ask", "/signal STOP", "/resume", "/signal CONT")
    short = words_of(session.system.root.uuid)
    assert printed[2] == f"{short} is stopped: the resume waits for CONT (/signal CONT)"
    assert printed[-1] == "yes"
