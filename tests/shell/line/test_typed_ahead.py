"""What a person types while an answer arrives: each prompt is in the database before the next line is read."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.system.conversation import take_in
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.program import Program, run
from tests.kit.sessions import Line, OpenSession, Typist
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
        "A line was not done: “FOUR”. Leaving a turn that is in progress: next time shown as interrupted, and /resume "
        "goes on. 2 prompts wait in the database until the agent goes on.\n"
    )


def test_who_leaves_by_ctrl_c_is_told_too(open_session: OpenSession, gate: Gate) -> None:
    session = open_session(gate.provider)
    session.system.root.fork("work")
    gate.wait_until_asked()
    session.by(Typist(*[lambda: signal.raise_signal(signal.SIGINT)] * 2))
    assert session.status == 130
    assert "Leaving a turn that is in progress" in session.notices


def test_a_command_that_was_just_given_is_counted_among_what_is_lost(gate: Gate) -> None:
    with ActorSystem.open(":memory:", gate.provider) as system:
        system.root.prompt("work")
        gate.wait_until_asked()
        for _ in range(50):
            system.root.ask.mark()
        take_in(system, DEADLINE)
        assert system.statistics().pending == 50
        gate.open()


@pytest.mark.slow("starts a program at a terminal")
def test_prompts_that_are_typed_while_the_program_starts_are_answered_once_each(tmp_path: Path) -> None:
    place = ("--database", str(tmp_path / "tea.db"), "--provider", "offline")
    with Program.at_terminal(*place, "--plain") as shell:
        shell.send("ONE\nTWO\n/exit\n")
        assert shell.ends() == 0
    told = run(*place, lines="/resume\n/rename boss\n/wait 60 boss\n/history\n").stdout
    assert [told.count(f"user         {text}\n") for text in ("ONE", "TWO")] == [1, 1]
    assert re.search(r"You said “TWO”\. I remember 2 prompts", told)
