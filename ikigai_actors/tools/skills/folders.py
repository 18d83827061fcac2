"""Folders of skills: finds the skills below a directory, and reads their files. Runs nothing.

Links are not followed. Skills that are too large are left out, with a notice, so that a home directory is never read
completely.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.text import storable
from ikigai_actors.tools.skills.digests import digest_of_skill
from ikigai_actors.tools.skills.front_matter import SKILL_FILE, FrontMatter, read_front_matter

SKILL_PLACES = (".claude/skills", ".agents/skills")
"""The directories of skills below a home directory or a workspace. Later ones take precedence."""
SKILL_GROUP = "ikigai_actors.skills"
"""The group of entry points by which a package offers a directory of skills: a path, or a function that returns one."""
MOST_LEVELS, MOST_DIRECTORIES = 6, 2_000
MOST_FILES, MOST_BYTES = 200, 20 * 2**20
"""The most files of a skill, and the most bytes of them."""
LONGEST_DESCRIPTION = 1_024
SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""The directories that are never searched."""


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill that was found on a disk."""

    name: str
    description: str
    source: str
    """The folder of the skill."""
    tools: tuple[str, ...]
    """The tools that the skill asks to use, by its ``allowed-tools``. They get no rights by this."""
    by_person: bool
    """Whether only a person may load the skill."""
    files: tuple[Attachment, ...]
    """The files of the skill; their names are paths within the folder."""
    executable: frozenset[str] = frozenset()
    """The paths of the executable files."""

    @property
    def sha256(self) -> str:
        """Return the digest of the skill's name, description and files."""
        return digest_of_skill(self.manifest)

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the content of the skill, from which the digest is made."""
        files = [
            {**file.stored(), "mode": 0o755 if file.name in self.executable else 0o644}
            for file in sorted(self.files, key=lambda file: file.name)
        ]
        person = {"by_person": True} if self.by_person else {}
        about = {"name": self.name, "description": self.description, "tools": list(self.tools), **person}
        return {**about, "attached": files}


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """The skills that were found below some directories."""

    skills: tuple[FoundSkill, ...]
    """The skills, one for each name, sorted."""
    troubles: tuple[str, ...] = ()
    """The skills that were left out or shadowed, in sentences for a person."""


def find_skills(places: Sequence[str | os.PathLike[str]]) -> FoundSkills:
    """Find the skills below some directories. If two have the same name, the one of the later directory counts.

    Raises `BadInput` where a directory does not exist.
    """
    by_name: dict[str, FoundSkill] = {}
    troubles: list[str] = []
    for place in places:
        if not os.path.isdir(place):  # noqa: PTH112 - of a path that cannot be, Path.is_dir raises
            raise BadInput(f"Expected a directory with skills, but {place!s:.200} is none.")
        root = Path(place).absolute()
        for folder in _folders(root, troubles):
            try:
                skill = read_skill(folder)
            except (BadInput, OSError, UnicodeDecodeError) as error:
                troubles.append(f"The skill in {folder} is left out: {error}")
                continue
            if (other := by_name.get(skill.name)) is not None:
                troubles.append(f"Skill {skill.name} of {other.source} is shadowed by that of {skill.source}.")
            by_name[skill.name] = skill
    return FoundSkills(tuple(by_name[name] for name in sorted(by_name)), tuple(troubles))


def skill_heads(places: Sequence[str | os.PathLike[str]]) -> dict[str, str]:
    """Return the names of the skills below directories, with the digest of each ``SKILL.md``. Reads no other files."""
    digests: dict[str, str] = {}
    for place in places:
        for folder in _folders(Path(place).absolute(), []):
            try:
                data = (folder / SKILL_FILE).read_bytes()
                document = read_front_matter(data.decode())
            except (BadInput, OSError, UnicodeDecodeError):
                continue
            if document.text("description"):
                digests[_name_in(document, folder)] = sha256(data).hexdigest()
    return digests


def usual_places(directory: Path | None = None) -> list[Path]:
    """Return the directories with skills of installed packages, of the user, and of the workspace.

    ``directory``: the workspace.
    """
    return places_below(SKILL_GROUP, SKILL_PLACES, directory)


def places_below(group: str, names: Sequence[str], directory: Path | None) -> list[Path]:
    """Return the directories that packages offer by entry points, and those with these names of user and workspace.

    For the workspace, each directory from the root of its repository down to the workspace is searched.
    """
    packages = [Path(str(place() if callable(place) else place)) for place in _offered(group)]
    places = [*packages, *(Path.home() / name for name in names)]
    if directory is not None:
        above = [directory, *directory.parents]
        root = next((folder for folder in above if (folder / ".git").exists()), directory)
        places += [folder / name for folder in reversed(above[: above.index(root) + 1]) for name in names]
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def read_skill(folder: Path) -> FoundSkill:
    """Read the skill in a folder. If the skill has no name, the folder's name is used.

    Raises:
        BadInput: the skill has no description, or is too large.
        OSError, UnicodeDecodeError: it cannot be read.
    """
    document = read_front_matter((folder / SKILL_FILE).read_text(encoding="utf-8"))
    name = _name_in(document, folder)
    description = " ".join(storable(document.text("description")).split())[:LONGEST_DESCRIPTION]
    if not description:
        raise BadInput(f"its {SKILL_FILE} has no description.")
    files = tuple(_files(folder))
    executable = frozenset(file.name for file in files if os.access(folder / file.name, os.X_OK))
    person = document.text("disable-model-invocation").lower() == "true"
    return FoundSkill(name, description, str(folder), document.texts("allowed-tools"), person, files, executable)


def _name_in(document: FrontMatter, folder: Path) -> str:
    return " ".join(storable(document.text("name")).split()) or folder.name


def _offered(group: str) -> Iterator[Any]:
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        yield point.load()


def _folders(root: Path, troubles: list[str]) -> Iterator[Path]:
    """Yield the folders with a skill, at or below a directory. Folders within a skill are not searched."""
    waiting, seen = [(root, 0)], 0
    while waiting:
        folder, level = waiting.pop(0)
        seen += 1
        if seen > MOST_DIRECTORIES:
            troubles.append(f"Below {root} are more than {MOST_DIRECTORIES:,} directories: the rest was not looked at.")
            return
        if (folder / SKILL_FILE).is_file():
            yield folder
        elif level < MOST_LEVELS:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            waiting += [(folder / name, level + 1) for name in names if name not in SKIPPED]


def _files(folder: Path) -> Iterator[Attachment]:
    count = size = 0
    for path, directories, names in os.walk(folder):
        directories[:] = sorted(name for name in directories if name not in SKIPPED)
        for name in sorted(names):
            file = Path(path) / name
            if file.is_symlink() or not file.is_file():
                continue
            count, size = count + 1, size + file.stat().st_size
            if count > MOST_FILES or size > MOST_BYTES:
                raise BadInput(f"it has more than {MOST_FILES} files, or than {MOST_BYTES // 2**20} MB.")
            data = file.read_bytes()
            media = "text/plain" if b"\0" not in data[:1_024] else "application/octet-stream"
            yield Attachment(data, media, sha256(data).hexdigest(), file.relative_to(folder).as_posix())
