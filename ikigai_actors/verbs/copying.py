"""The verb ``copy``, which copies an answer to the clipboard."""

import re
from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import ShellPlace

MOST_COPIED = 74_000
"""The most bytes that are copied through the terminal: xterm takes 100,000 characters of base64."""

_CODE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1`*~*[ \t]*$", re.MULTILINE | re.DOTALL)


@verb("copy", needs=Right.LOOK, callers=Callers.PEOPLE)
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), default=1)
@click.option("--code", is_flag=True, help="Only its last block of code.")
def copy(shell: "ShellPlace", agent: "AgentRef", number: int, code: bool) -> object:
    """Copy the latest answer to the clipboard of the terminal, or the Nth latest.

    The copy goes through the terminal (OSC 52), so it works over ssh. In tmux: set -g set-clipboard on. A text that is
    too long for terminals goes to a file.
    """
    from ikigai_actors.errors import BadInput

    answers = [
        message.content for message in agent.history() if message.kind == "assistant" and message.content.strip()
    ]
    if len(answers) < number:
        few = {0: "There is no answer to copy yet.", 1: "There is one answer to copy."}
        raise BadInput(few.get(len(answers), f"There are {len(answers)} answers to copy."))
    text = answers[-number]
    if code:
        blocks = [match[2] for match in _CODE.finditer(text)]
        if not blocks:
            raise BadInput("The answer has no block of code.")
        text = blocks[-1]
    if len(text.encode()) > MOST_COPIED:
        shell.screen.line(f"Terminals copy {MOST_COPIED:,} bytes at most. All of it is in {_written(text)}")
        return None
    shell.copy(text)
    shell.screen.line(f"Copied {len(text):,} characters.")
    return None


def _written(text: str) -> str:
    """Write a text to a new file that only its user may read; return the path."""
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile("w", prefix="ikigai-", suffix=".md", delete=False, encoding="utf-8") as file:
        file.write(text)
    return file.name
