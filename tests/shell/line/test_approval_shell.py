"""Approvals as a person sees them: the real program with a workspace, at a terminal and by a pipe."""

from pathlib import Path

import pytest

from tests.kit.program import Program, run

WRITE = '@write {{"file_path": "{name}", "content": "hello\\n"}}'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace; the database is beside it."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def arguments(work: Path) -> tuple[str, ...]:
    return ("--database", str(work.parent / "notes.db"), "--provider", "offline", "--workspace", str(work))


def write(name: str) -> str:
    return WRITE.format(name=name)


def test_a_person_is_asked_and_approves_denies_and_approves_for_good(work: Path) -> None:
    with Program.at_terminal(*arguments(work)) as program:
        program.expect("> ")
        program.say(write("a.txt"))
        program.expect(r"\[1\] [\w-]+ asks to run write \{.*a\.txt.*/approve 1 or /deny 1")
        program.expect(r"\(1 to approve\)> ")
        assert not (work / "a.txt").exists()
        program.say("/agents")
        program.expect("waiting for approval")
        program.say("/approve")
        program.expect(r"\[write: ")
        program.expect(r"[\w-]> ")
        assert (work / "a.txt").read_text() == "hello\n"
        program.say(write("b.txt"))
        program.expect(r"\[2\] ")
        program.say("/deny not in this directory")
        program.expect("This call was denied: not in this directory")
        program.expect("write failed: This call was denied")
        program.expect(r"[\w-]> ")  # what is typed before would be said into the turn
        assert not (work / "b.txt").exists()
        program.say(write("c.txt"))
        program.expect(r"\[3\] ")
        program.say("/approve 3 --always")
        program.expect(r"\[write: ")
        program.expect(r"[\w-]> ")
        program.say(write("d.txt"))
        program.expect(r"\[write: ")
        assert (work / "d.txt").exists()
        program.say("/approve")
        program.expect("No call waits for approval")


@pytest.mark.thorough("a second program; every run has the person who is asked")
def test_from_a_pipe_nobody_can_be_asked_and_the_model_is_told_how_it_could_be_allowed(work: Path) -> None:
    done = run(*arguments(work), lines=write("a.txt"))
    assert "needs somebody's approval" in done.stdout
    assert not (work / "a.txt").exists()
    done = run(*arguments(work), "--yes", lines=write("a.txt"))
    assert done.returncode == 0
    assert (work / "a.txt").exists()
