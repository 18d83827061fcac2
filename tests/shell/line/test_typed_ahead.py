"""What a person types while an answer arrives: each prompt is in the database before the next line is read."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.reach.conversation import take_in
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.turn_follower import TurnFollower
from ikigai_actors.store import open_store
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.faults import HeldStore
from tests.kit.open_on import open_on
from tests.kit.program import Program, run
from tests.kit.sessions import Line, OpenSession, Session, Typist
from tests.system.test_stopped_prompts import kept, said


class Ahead(Typist):
    """A person who has typed all lines before the first answer comes."""

    def __init__(self, *lines: Line, after: tuple[str, ...] = ()) -> None:
        super().__init__(*lines)
        self._ready, self._writing = os.pipe()
        os.write(self._writing, b"\n")
        self._after = after

    def descriptor(self) -> int:
        return self._ready

    def consume(self) -> bool:
        return True

    def untaken(self) -> list[str]:
        return [*self._after]

    def note_ahead(self) -> None:
        self.ahead = True

    def close(self) -> None:
        os.close(self._ready)
        os.close(self._writing)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


def test_each_prompt_is_in_the_database_before_the_next_line_is_read(open_session: OpenSession, gate: Gate) -> None:
    session = open_session(gate.provider)
    root, seen = session.system.root, list[tuple[list[str], list[str]]]()

    def look() -> None:
        seen.append((said(root), kept(root)))

    keyboard = Ahead("ONE", look, "TWO", look, "THREE", look, "/exit", after=("FOUR",))
    printed = session.by(keyboard)
    keyboard.close()
    assert seen == [(["ONE"], []), (["ONE"], ["TWO"]), (["ONE"], ["TWO", "THREE"])]
    assert printed == ["[goes on in the background; Enter shows the rest]"] * 3
    assert session.notices == (
        "A line was not done: “FOUR”. Leaving a turn in progress: /resume finishes it. "
        "2 prompts wait in the database until the agent goes on.\n"
    )


def test_the_next_line_is_not_read_before_the_commit(
    durable: str, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[str] = []
    store = HeldStore(open_store(durable))

    def commit() -> None:
        assert store.held.wait(DEADLINE)
        order.append("commit")
        store.let_go()

    with open_on(store, gate.provider) as system:
        store.hold()
        committing = threading.Thread(target=commit)
        committing.start()
        keyboard = Ahead("ONE", lambda: order.append("next line"), "/exit")
        Session(system, capsys).by(keyboard)
        keyboard.close()
        committing.join()
        gate.open()
    assert order == ["commit", "next line"]


@pytest.mark.usefixtures("uncollected")
def test_a_prompt_that_is_given_up_before_the_commit_is_undone(durable: str, gate: Gate) -> None:
    store, interrupts = HeldStore(open_store(durable)), Interrupts().install()

    def give_up() -> None:
        raise KeyboardInterrupt

    def press() -> None:
        assert store.held.wait(DEADLINE)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    try:
        with open_on(store, gate.provider) as system:
            follower = TurnFollower(system, Typist(), Screen(), interrupts, give_up)
            store.hold()
            pressing = threading.Thread(target=press)
            pressing.start()
            with pytest.raises(KeyboardInterrupt):
                follower.prompt(system.root, "ONE")
            assert follower.unstored() == ["ONE"]
            store.let_go()
            eventually(lambda: not follower.unstored(), "the commit")
            pressing.join()
            follower.close()
            gate.open()
    finally:
        interrupts.remove()


def test_who_leaves_by_ctrl_c_is_told_too(open_session: OpenSession, gate: Gate) -> None:
    session = open_session(gate.provider)
    session.system.root.fork("work")
    gate.wait_until_asked()
    session.by(Typist(*[lambda: signal.raise_signal(signal.SIGINT)] * 2))
    assert session.status == 130
    assert "Leaving a turn in progress" in session.notices


def test_a_command_that_was_just_given_is_counted_among_what_is_lost(gate: Gate) -> None:
    with ActorSystem.open(":memory:", gate.provider) as system:
        system.root.prompt("work")
        gate.wait_until_asked()
        for _ in range(50):
            system.root.aio.mark()
        take_in(system, DEADLINE)
        assert system.statistics().pending == 50
        gate.open()


@pytest.mark.slow("starts a program at a terminal")
def test_prompts_that_are_typed_while_the_program_starts_are_answered_once_each(tmp_path: Path) -> None:
    place = ("--database", str(tmp_path / "tea.db"), "--provider", "offline")
    with Program.at_terminal(*place, "--plain") as shell:
        shell.send("ONE\nTWO\n/exit\n")
        assert shell.ends() == 0
    output = run(*place, lines="/resume\n/rename boss\n/wait 60 boss\n/history\n").stdout
    assert re.findall(r"(?:user|steer) +(ONE|TWO)\n", output) == ["ONE", "TWO"]  # TWO said into the turn, or after it
    assert re.search(r"You said “TWO”\. I remember 2 prompts", output)
