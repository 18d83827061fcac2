"""Instructions of a project for every agent that works in it: the file ``AGENTS.md``, else ``CLAUDE.md``.

A line ``@FILE`` is replaced by the text of another file of the same directory, once and not within that one. Files in
subdirectories are named to the model, which reads one when it works there.
"""

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.text import storable
from ikigai_actors.tools.skills.digests import LONGEST_INSTRUCTIONS
from ikigai_actors.tools.skills.folders import MOST_DIRECTORIES, MOST_LEVELS, SKIPPED

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
USER_PLACES = (".agents", ".claude")
"""The directories of the user's instructions, below the home directory. The first that has such a file counts."""
_IMPORT = re.compile(r"^@([\w.-]+)[ \t]*$", re.MULTILINE)

_FURTHER = "Further instructions are in these files. Before you work in the directory of one of them, read it:"


class FoundInstructions(NamedTuple):
    """The instructions in a directory: the path and the text of the file."""

    path: str
    """The path of the file."""
    text: str

    @property
    def entry(self) -> dict[str, str]:
        """Return the instructions as the setting of an agent stores them."""
        return {"path": self.path, "text": self.text, "sha256": sha256(self.text.encode()).hexdigest()}


def instructions_of_user() -> FoundInstructions:
    """Read the user's instructions for all projects: in ``~/.agents``, else in ``~/.claude``. Raises `BadInput`."""
    places = [Path.home() / name for name in USER_PLACES]
    with_file = [place for place in places if has_instructions(place)]
    if not with_file:
        raise BadInput(
            f"The user has no instructions: no {' and no '.join(INSTRUCTION_FILES)} in ~/.agents, ~/.claude."
        )
    return read_instructions(with_file[0])


def has_instructions(directory: Path) -> bool:
    """Return whether a directory has a file of instructions."""
    return any((directory / name).is_file() for name in INSTRUCTION_FILES)


def read_instructions(directory: Path) -> FoundInstructions:
    """Read the instructions in a directory. Raises `BadInput` if there are none, or they cannot be used."""
    # Of a path that cannot be, Path.is_file raises.
    file = next((directory / name for name in INSTRUCTION_FILES if os.path.isfile(directory / name)), None)  # noqa: PTH113
    if file is None:
        raise BadInput(f"There are no instructions in {directory!s:.200}: no {' and no '.join(INSTRUCTION_FILES)}.")
    try:
        text = _IMPORT.sub(lambda path: _within(directory, file, path), file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The instructions in {file} cannot be read: {error}.") from error
    text = storable(text).strip()
    if not text or len(text) > LONGEST_INSTRUCTIONS:
        raise BadInput(
            f"Expected 1 to {LONGEST_INSTRUCTIONS:,} characters of instructions in {file}, got {len(text):,}."
        )
    return FoundInstructions(str(file), text)


def naming_further(instructions: FoundInstructions, room: int) -> FoundInstructions:
    """Add to a project's instructions the paths of the instruction files in its subdirectories.

    ``room``: the most characters of the text. Names that do not fit are left out.
    """
    text = f"{instructions.text}\n\n{_FURTHER}"
    for name in _further(Path(instructions.path).parent):
        if len(text) + len(name) + 1 > room:
            break
        text += f"\n{name}"
    return instructions if text.endswith(_FURTHER) else instructions._replace(text=text)


def _further(directory: Path) -> Iterator[str]:
    """Yield the paths of instruction files below a directory, one for each directory.

    Hidden directories are skipped.
    """
    for count, (path, folders, names) in enumerate(os.walk(directory)):
        if count > MOST_DIRECTORIES:
            return
        below = Path(path).relative_to(directory)
        shown = sorted(name for name in folders if name not in SKIPPED and name[0] != "." and name.isprintable())
        folders[:] = shown if len(below.parts) < MOST_LEVELS else []
        name = next((name for name in INSTRUCTION_FILES if name in names), None)
        if name is not None and below.parts:
            yield (below / name).as_posix()


def _within(directory: Path, file: Path, match: re.Match[str]) -> str:
    """Return the text that replaces a line ``@FILE``; the line itself if there is no such file."""
    other = directory / match[1]
    return other.read_text(encoding="utf-8") if other.is_file() and not other.samefile(file) else match[0]
