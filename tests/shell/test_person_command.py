"""Commands that a person runs at the prompt."""

import threading
from pathlib import Path

import pytest

from ikigai_actors import BadInput
from ikigai_actors.shell.person_command import PersonCommand, Printed, typed_command, with_outputs


def test_a_text_with_a_mark_is_a_command_and_a_blank_before_it_makes_it_a_prompt() -> None:
    assert typed_command("!git status") == ("git status", True)
    assert typed_command("!! env") == ("env", False)
    for prompt in (" !important", "no!", "/help", ""):
        assert typed_command(prompt) is None
    with pytest.raises(BadInput, match="Say what to run"):
        PersonCommand("", Path())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo tea; pwd >&2", "tea\n{directory}"),
        ("exit 3", "[exit code 3]"),
        ("cat", "[no output]"),  # there is nothing to read
        ("kill -9 $$", "[ended by SIGKILL]"),
        ("sleep 60 & echo on", "on"),  # what goes on in the background is not waited for
        ("head -c 70000 /dev/zero | tr '\\0' x; echo end", "[40,004 bytes before this]\n{xs}end"),
    ],
)
def test_what_a_command_prints_is_kept_with_how_it_ended(command: str, shown: str, tmp_path: Path) -> None:
    printed = PersonCommand(command, tmp_path).run()
    assert printed.shown == shown.format(directory=tmp_path, xs="x" * 29_996)


def test_a_command_that_is_stopped_ends_with_what_it_has_started() -> None:
    command = PersonCommand("sleep 60 | cat", Path())
    outcomes: list[Printed] = []
    running = threading.Thread(target=lambda: outcomes.append(command.run()))
    running.start()
    while command._process is None:
        running.join(0.01)
    command.stop()
    running.join()
    assert outcomes[0].shown == "[ended by SIGTERM]"
    stopped_before = PersonCommand("echo no", Path())
    stopped_before.stop()
    assert stopped_before.run().shown == "[ended by SIGTERM]"


def test_an_output_goes_along_below_the_prompt() -> None:
    printed = Printed("make", Path("/tea"), "cc a.c\n", 2)
    assert with_outputs("Why?", [printed.for_prompt]) == "Why?\n\nI ran this in /tea:\n\n$ make\ncc a.c\n[exit code 2]"
    assert with_outputs("Why?", []) == "Why?"
