"""The line mode: a person who presses Ctrl-C, what came of the background, and calls that wait for approval."""

import contextlib
import io
import os
import re
import signal
from collections.abc import Iterator

import pytest

from ikigai_actors import ActorSystem, OfflineProvider, ProviderError, ScriptedProvider, Signal, tool
from ikigai_actors.errors import BadInput, SystemClosed
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.line.input import LONGEST_LINE, Pipe
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually
from tests.kit.echo import kinds
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on
from tests.kit.sessions import OpenSession, Session, Typist


def short(uuid: str) -> str:
    return words_of(uuid)


@tool(policy="ask")
def launch() -> str:
    """Launch."""
    return "launched"


@pytest.fixture
def asking(database: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Session]:
    """A session of a person who is asked before anything is launched."""
    with ActorSystem.open(database, OfflineProvider(), tools=[launch], approvals="ask") as system:
        yield Session(system, capsys)


def test_ctrl_c_at_an_empty_prompt_asks_first_and_forgets_half_a_line(session: Session) -> None:
    keyboard = Typist(lambda: keyboard.ctrl_c("half a li"), "/agents")
    assert session.by(keyboard)[-1] == "1 running, 0 dead"
    assert "again leaves" not in session.notices
    keyboard = Typist(lambda: keyboard.ctrl_c(), "/agents")
    assert session.by(keyboard)[-1] == "1 running, 0 dead"
    assert "Ctrl-C again leaves, and so does Ctrl-D." in session.notices
    assert session.status == 0
    keyboard = Typist(lambda: keyboard.ctrl_c(), lambda: keyboard.ctrl_c(), "/agents")
    assert session.by(keyboard) == []
    assert session.status == 130


def test_ctrl_c_at_the_prompt_ends_the_turn_of_the_current_agent_and_shows_that(open_session: OpenSession) -> None:
    hanging = Hanging("Half of ")
    session = open_session(hanging)
    outcome = session.system.root.prompt("work")
    hanging.wait_until_asked()
    keyboard = Typist(lambda: keyboard.ctrl_c(), "/history")
    printed = session.by(keyboard)
    assert printed[:2] == ["Half of ", "[interrupted]"]
    assert printed[3] == "    2  assistant    Half of [interrupted]"
    assert outcome.done()


def test_ctrl_c_ends_the_turn_of_a_prompt_that_waits(session: Session) -> None:
    keyboard = Typist("/signal STOP", "go", lambda: keyboard.ctrl_c(), "/agents")
    session.by(keyboard)
    eventually(lambda: kinds(session.system.root.history()) == ["user", "interrupted"], "the end of that turn")


def test_a_line_of_many_times_what_is_allowed_is_passed_over_to_its_end() -> None:
    pipe = Pipe(io.BytesIO(b"x" * (2 * LONGEST_LINE + 1) + b"\n/agents\n"))
    with pytest.raises(BadInput, match=f"Line 1 is longer than {LONGEST_LINE} bytes"):
        pipe.read("label")
    assert (pipe.read("label"), pipe.read("label")) == ("/agents", None)


def test_ctrl_c_into_a_pipe_ends_the_session(session: Session) -> None:
    assert session(lambda: signal.raise_signal(signal.SIGINT), "/agents") == []
    assert session.status == 130


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_ends_the_waiting_for_a_commit_and_not_what_is_committed(
    durable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = FaultyStore(open_store(durable))

    def interrupt() -> None:
        store.before = lambda: None
        os.kill(os.getpid(), signal.SIGINT)

    def is_watched() -> None:
        store.before = interrupt

    with open_on(store, lambda request: "done") as system:
        session = Session(system, capsys)
        printed = session(is_watched, "/mark here", "/context")
        assert printed[0].startswith(f"the mark waits for the end of the turn of {short(system.root.uuid)}")
        assert printed[1] == "marked 'here'"


def test_a_system_that_is_closed_ends_the_session_whatever_it_waits_for(open_session: OpenSession) -> None:
    idle = open_session(OfflineProvider())
    with pytest.raises(SystemClosed):
        idle(idle.system.close, "tea")
    gate = Gate()
    in_a_turn = open_session(gate.provider)
    in_a_turn.system.root.prompt("work")
    gate.wait_until_asked()
    with pytest.raises(SystemClosed):
        in_a_turn(in_a_turn.system.close)
    gate.open()
    held = Gate()
    with_an_errand = open_session(held.provider)
    system = with_an_errand.system
    with pytest.raises(SystemClosed):
        with_an_errand(lambda: system.root.prompt("work"), held.wait_until_asked, "/mark", system.close)
    held.open()


class Unplugged(Typist):
    """A terminal that is gone for a moment."""

    gone = True

    def hushed(self) -> contextlib.AbstractContextManager[None]:
        if self.gone:
            self.gone = False
            raise RuntimeError("no terminal")
        return super().hushed()


def test_a_defect_in_the_background_is_told_and_the_session_goes_on(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    session.system.root.prompt("work")
    gate.wait_until_asked()

    def answered() -> None:
        behind_the_session = session.system.root.aio.reply()
        gate.open()
        behind_the_session.get(timeout=DEADLINE)

    printed = session.by(Unplugged(answered, "/agents", "/agents"))
    assert printed.count("error: RuntimeError: no terminal") == 1
    assert printed.count("1 running, 0 dead") == 2


def test_a_defect_is_told_and_the_session_goes_on(open_session: OpenSession, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()  # an answer would be shown behind the error, or behind the agents
    printed = open_session(gate.provider).by(Unplugged("tea", "/agents"))
    gate.open()
    assert printed[0] == "error: RuntimeError: no terminal"
    assert printed[-1] == "1 running, 0 dead"
    assert "Traceback" in caplog.text


def test_a_child_that_nobody_follows_is_told_of_when_it_has_answered(session: Session) -> None:
    root, printed = session.system.root, session("/fork tea --name kid --no-follow")
    assert printed == [
        f"kid: forked from {short(root.uuid)}; /switch kid goes there",
        "kid has answered: /switch kid and /history show it",
    ]


def test_how_a_turn_in_the_background_failed_is_told(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider([ProviderError("no tea")]))
    assert session("/fork tea --name kid --no-follow")[1].endswith(": its turn ended with an error: no tea")
    hanging = open_session(Hanging(""))

    def interrupt() -> None:
        eventually(lambda: hanging.system.agent("one").signal(Signal.INT), "the interrupt")

    def kill() -> None:
        hanging.system.agent("two").kill(reason="enough")

    lines = ("/fork tea --name one --no-follow", interrupt, "/fork tea --name two --no-follow", kill)
    endings = [line.partition(": ")[2] for line in hanging(*lines)]
    assert "its turn was interrupted" in endings
    assert any(" is dead: " in line and "enough" in line for line in endings)


def test_calls_of_other_agents_are_decided_on_by_number(asking: Session) -> None:
    system = asking.system
    assert asking("/approvals", "/approve") == ["No call waits for approval.", "error: No call waits for approval."]
    kids = [system.root.fork("@launch", name=name) for name in ("one", "two")]
    eventually(lambda: len(system.approvals.pending()) == 2, "both questions")
    listed = asking("/approvals", "/approve", "/approve 9")
    assert [line.split(": ")[1] for line in listed[:2]] == ["launch {}", "launch {}"]
    assert listed[2:] == [
        "/approve N lets one run, /deny N does not.",
        "error: 2 calls of other agents wait: give a number; /approvals lists them.",
        "error: No call waits under number 9; /approvals lists those that do.",
    ]
    decided = asking("/approvals", "/approve 1", "/deny 2 not today")[3:]
    assert [line.split(" ", 2)[2] for line in decided if line[0].isdigit()] == ["runs launch", "does not run launch"]
    said = [kid.reply(timeout=20).text for kid in kids]
    assert sorted("launched" in text for text in said) == [False, True]


def test_an_attached_person_is_asked_as_any_other(durable: str, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        ActorSystem.open(durable, OfflineProvider(), tools=[launch], approvals="ask"),
        AttachedSystem.open(durable) as system,
    ):
        printed = Session(system, capsys).by(Typist("@launch", "/approve", ""))
        assert re.search(r"^\[1\] \S+ asks to run launch \{\}   /approve 1 or /deny 1$", printed[0])
        assert "[launch: launched]" in printed
