"""A call that waits for approval, in line mode: it is shown whole, and one letter answers it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall, tool
from tests.kit.databases import eventually
from tests.kit.sessions import Line, Session, Typist
from tests.shell.line.test_terminal import told_by

LONG = f"echo {'again  and ' * 40}again; rm -rf ~/precious; echo end"

KEYS = "    y runs it, n does not, a runs erase always"

Play = Callable[..., tuple[list[str], list[str]]]


@tool(policy="ask")
def erase(path: str) -> str:
    """Erase something."""
    return f"{path[:5]} is gone"


def asking(*paths: str) -> Reply:
    return Reply(
        tool_calls=tuple(ToolCall("erase", {"path": path}, path[:5]) for path in paths), stop_reason="tool_use"
    )


@pytest.fixture
def play(capsys: pytest.CaptureFixture[str]) -> Play:
    """Says lines to an agent with a script; gives what was printed, and what the agent was told by the person."""

    def play(script: list[Reply | str], *lines: Line) -> tuple[list[str], list[str]]:
        with ActorSystem.open(":memory:", ScriptedProvider(script), tools=[erase], approvals="ask") as system:
            printed = Session(system, capsys).by(Typist(*lines))
            texts = [each.content for agent in system.agents() for each in system.handle(agent.uuid).history()]
            return printed, texts

    return play


@pytest.mark.sample(2, "letters")
@pytest.mark.parametrize(("key", "result"), [(" a ", "a.txt is gone"), ("n", "denied"), ("y", "a.txt is gone")])
def test_a_letter_answers_the_call_of_the_current_agent_and_is_not_sent(play: Play, key: str, result: str) -> None:
    printed, texts = play([asking("a.txt"), "well", "again"], "erase it", key, "y")
    assert printed[0].endswith('asks to run erase {"path": "a.txt"}   /approve 1 or /deny 1')
    assert printed[1] == KEYS
    assert result in printed[2]
    assert printed[3:] == ["well", "again"]  # without a question the letter is a prompt
    assert [each for each in texts if len(each) == 1] == ["y"]


def test_letters_answer_the_calls_one_after_the_other(play: Play) -> None:
    printed, texts = play([asking("a.txt", "b.txt"), "well"], "erase them", "n", "y")
    assert sum("is gone" in line for line in printed) == 1
    assert "b.txt is gone" in texts


def test_a_long_call_is_shown_whole_here_and_by_the_list_of_approvals(play: Play) -> None:
    printed, texts = play([asking(LONG), "well"], "erase it", "/approvals", "y")
    assert [line.strip() for line in printed].count(f"path: {LONG}") == 2
    assert printed[2:4] == ["    /approve 1 or /deny 1", KEYS]
    assert "echo  is gone" in texts


def test_a_call_of_another_agent_is_answered_by_its_number_alone_and_shown_again_on_the_way_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = ScriptedProvider([asking("a.txt"), "for the parent", "well"])
    with ActorSystem.open(":memory:", script, tools=[erase], approvals="ask") as system:
        kid = system.root.fork("erase it", name="kid")
        eventually(system.approvals.pending, "the question")
        printed = Session(system, capsys).by(Typist("/switch kid", "/parent", "y", "/switch kid", "y"))
        assert [line == KEYS for line in printed if "asks to run" in line or line == KEYS] == [
            False,
            *[False, True] * 2,
        ]
        assert "for the parent" in printed
        assert "a.txt is gone" in [each.content for each in kid.history()]


class Hasty(Typist):
    """A person who has typed the first answer before the question was shown."""

    def note_ahead(self) -> None:
        self.ahead = True

    def read(self, label: str) -> str | None:
        line = super().read(label)
        self.ahead = self.ahead and line == "y"
        return line


def test_a_letter_that_was_typed_before_the_question_does_not_answer_it(capsys: pytest.CaptureFixture[str]) -> None:
    with ActorSystem.open(
        ":memory:", ScriptedProvider([asking("a.txt"), "well"]), tools=[erase], approvals="ask"
    ) as system:
        printed = Session(system, capsys).by(Hasty("erase it", "y", "n"))
    assert printed[2] == "error: “y” was typed before the question was shown: read it, and answer again."
    assert "denied" in printed[3]


def test_a_letter_does_not_answer_a_call_that_has_come_unseen(capsys: pytest.CaptureFixture[str]) -> None:
    script = ScriptedProvider([asking("a.txt"), asking("b.txt"), "well"])
    with ActorSystem.open(":memory:", script, tools=[erase], approvals="ask") as system:

        def deny_elsewhere() -> None:
            [first] = system.approvals.pending()
            system.approvals.deny(first)
            eventually(lambda: [call for call in system.approvals.pending() if call != first], "the next question")

        printed = Session(system, capsys).by(Typist("erase it", deny_elsewhere, "y", "y"))
        assert "b.txt is gone" in [message.content for message in system.root.history()]
    assert "error: “y” was typed before the question was shown: read it, and answer again." in printed


READ_AROUND_A_QUESTION = """
until_keys_are_pressed()
terminal.note_ahead()
while (line := terminal.read("agent")) is not None:
    tell(line, terminal.ahead)
"""


@pytest.mark.slow("takes a tenth of a second")
def test_the_terminal_knows_what_was_typed_before_a_question(tmp_path: Path) -> None:
    keys = b"y\ry\r\x04"
    assert told_by(READ_AROUND_A_QUESTION, tmp_path, keys) == ["y True", "y True"]
    late = READ_AROUND_A_QUESTION.replace("until_keys_are_pressed()\nterminal.note_ahead()", "until_keys_are_pressed()")
    assert told_by(late, tmp_path, keys) == ["y False", "y False"]
