"""Signals as a person sends them: in the shell, and from a second terminal beside it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider, Signal
from ikigai_actors.records.agents.words import words_of
from tests.kit import outside
from tests.kit.databases import eventually
from tests.kit.program import Program, run
from tests.kit.sessions import Session


def test_the_commands_of_the_shell_stop_continue_kill_and_finish(session: Session) -> None:
    printed = session(
        "/fork --name a",
        "/fork --name b",
        "/signal stop a",
        "/signal stop a",
        "/signal cont a",
        "/kill a --cascade --reason 'not needed'",
        "/agents",
        "/kill",
        "/signal fly",
        "/kill nobody",
    )
    root = words_of(session.system.root.uuid)
    assert printed[2:9] == [
        "STOP sent to a: stopped",
        "STOP changes nothing for a: stopped",
        "CONT sent to a: running",
        "a is dead, and 1 below it",
        f"b is dead (not needed): now with {root}",
        f"* {root}  idle  0 inherited + 1 own, 2 unread",
        "1 running, 2 dead",
    ]
    protected, flying, nobody = printed[9:]
    assert "agent 0" in protected
    assert "'fly' is not one of" in flying
    assert "No agent is named 'nobody'" in nobody


def test_kill_and_signal_alone_mean_the_current_agent(session: Session) -> None:
    printed = session("/fork --name a", "/fork --name b", "/signal stop", "/signal cont", "/kill", "/signal stop")
    assert printed[2:7] == [
        "STOP sent to b: stopped",
        "CONT sent to b: running",
        "b is dead",
        "b is dead (KILL by a person): now with a",
        "STOP sent to a: stopped",
    ]


def test_who_dies_while_a_person_is_with_it_is_left_for_the_nearest_living_one_above(
    new_sqlite: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    with ActorSystem.open(new_sqlite(), OfflineProvider()) as system:

        def kill_both() -> None:
            outside.signal(system._store.location, "a", Signal.KILL, cascade=True, reason="from outside", grace=0)
            eventually(lambda: len(list(system._processes)) == 1, "the end of both")

        session = Session(system, capsys)
        printed = session("/fork --name a", "/fork --name b", kill_both, "who is there?", "/agents")
        root = words_of(system.root.uuid)
    assert printed[2:4] == [
        "error: Agent b is dead: from outside.",  # what was typed for one agent is not given to another
        f"b is dead (from outside): now with {root}",
    ]
    assert printed[-2:] == [f"* {root}  idle  0 inherited + 1 own, 2 unread", "1 running, 2 dead"]


def test_finish_adopt_orphans_and_supervise(session: Session) -> None:
    printed = session(
        "/fork --name a",
        "/orphans",
        "/orphans stop",
        "/supervise --strategy one_for_all --intensity 5 --period 60",
        "/supervise",
        "/fork --name kid",
        "/parent",
        "/finish all done",
        "/agents",
        "/adopt kid",
        "/agents",
        "/read-mail",
    )
    root = words_of(session.system.root.uuid)
    assert "when a dies, its children: stop" in printed
    assert printed.count("a: one_for_all, 5 restarts in 60 s") == 2
    assert "a has ended" in printed
    assert f"{root} looks after kid from now on" in printed
    assert any(line.startswith("  └─ kid ") and "stopped" in line for line in printed)
    assert "  all done" in printed


@pytest.mark.slow("takes half a second")
def test_a_second_process_kills_and_signals_beside_a_running_shell(durable: str, tmp_path: Path) -> None:
    with Program.by_pipe("--database", durable, "--provider", "offline") as program:
        program.say("/fork --name victim")
        program.expect("forked from")
        program.say("/parent")
        program.expect("now with")
        done = run("--database", durable, "signal", "stop", "victim")
        assert (done.returncode, done.stdout.strip()) == (0, "STOP sent to victim")
        program.say("/agents")
        program.expect(r"victim +stopped")
        assert " victim " in run("--database", durable, "agents").stdout
        assert run("--database", durable, "signal", "cont", "victim").returncode == 0
        done = run("--database", durable, "kill", "victim", "--reason", "from outside")
        assert (done.returncode, done.stdout.strip()) == (0, "victim is dead")
        program.say("/agents --all")
        program.expect(r"1 running, 1 dead\n")
        done = run("--database", durable, "kill", "victim")
        assert done.returncode == 1
        assert "it is dead already" in done.stderr
