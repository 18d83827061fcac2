"""Folders of skills: finds the skills below a directory, and in documents, and reads their files. Runs nothing.

Links are not followed. Skills that are too large are left out, with a notice, so that a home directory is never read
completely.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.text import described, storable
from ikigai_actors.tools.skills.digests import digest_of_skill
from ikigai_actors.tools.skills.front_matter import SKILL_FILE, FrontMatter, read_front_matter

logger = logging.getLogger(__name__)

SKILL_PLACES = (".claude/skills", ".agents/skills")
"""The directories of skills below a home directory or a workspace. Later ones take precedence."""
SKILL_GROUP = "ikigai_actors.skills"
"""The group of entry points by which a package offers a directory of skills: a path, or a function that returns one."""
SKILL_DOCUMENTS = "skills/"
"""The beginning of the paths of documents that are skills: ``skills/NAME/SKILL.md`` with its other files beside it."""
NO_DOCUMENTS: Mapping[str, str] = {}
MOST_LEVELS, MOST_DIRECTORIES = 6, 2_000
MOST_FILES, MOST_BYTES = 200, 20 * 2**20
"""The most files of a skill, and the most bytes of them."""
LONGEST_DESCRIPTION = 1_024
SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""The directories that are never searched."""


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill that was found on a disk, or in the documents that all agents share."""

    name: str
    description: str
    source: str
    """The folder of the skill; ``documents skills/NAME`` if documents are its files."""
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
        """Return the data of the skill from which its digest is made."""
        files = [
            {**file.stored(), "mode": 0o755 if file.name in self.executable else 0o644}
            for file in sorted(self.files, key=lambda file: file.name)
        ]
        person = {"by_person": True} if self.by_person else {}
        about = {"name": self.name, "description": self.description, "tools": list(self.tools), **person}
        return {**about, "attached": files}


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """The skills below some directories, and the errors in their files."""

    skills: tuple[FoundSkill, ...]
    """The skills, one for each name, sorted."""
    troubles: tuple[str, ...] = ()
    """The skills that were left out or shadowed, in sentences for a person."""


def find_skills(places: Sequence[str | os.PathLike[str]], documents: Mapping[str, str] = NO_DOCUMENTS) -> FoundSkills:
    """Find the skills below some directories and in documents.

    If two have the same name, the one of the later directory counts. One in documents never replaces one on the disk,
    since any agent may write documents.

    Args:
        places: the directories.
        documents: the texts of documents by path.

    Raises `BadInput` where a directory does not exist.
    """
    by_name: dict[str, FoundSkill] = {}
    troubles: list[str] = []
    for source, read in (*_readers_of(documents), *_readers_below(places, troubles)):
        try:
            skill = read()
        except (BadInput, OSError, UnicodeDecodeError) as error:
            troubles.append(f"The skill in {source} is left out: {error}")
            continue
        if (other := by_name.get(skill.name)) is not None:
            troubles.append(f"Skill {skill.name} of {other.source} is shadowed by that of {skill.source}.")
        by_name[skill.name] = skill
    return FoundSkills(tuple(by_name[name] for name in sorted(by_name)), tuple(troubles))


class SkillHead(NamedTuple):
    """A skill of which only the ``SKILL.md`` was read."""

    sha256: str
    """The digest of the ``SKILL.md``."""
    read: Callable[[], FoundSkill]
    """Reads the whole skill. Raises what `read_skill` raises."""


def skill_heads(
    places: Sequence[str | os.PathLike[str]], documents: Mapping[str, str] = NO_DOCUMENTS
) -> dict[str, SkillHead]:
    """Return the skills that `find_skills` finds, by name. Of each, only the ``SKILL.md`` is read."""
    files: list[tuple[str, Callable[[], bytes], Callable[[], FoundSkill]]] = [
        (name, documents[_head_of(name)].encode, partial(read_document_skill, name, documents))
        for name in _names_in(documents)
    ]
    for place in places:
        files += [
            (folder.name, (folder / SKILL_FILE).read_bytes, partial(read_skill, folder))
            for folder in _folders(Path(place).absolute(), [])
        ]
    heads: dict[str, SkillHead] = {}
    for name, read_head, read in files:
        try:
            data = read_head()
            document = read_front_matter(data.decode())
        except (BadInput, OSError, UnicodeDecodeError):
            continue
        if document.text("description"):
            heads[_name_in(document, name)] = SkillHead(sha256(data).hexdigest(), read)
    return heads


def usual_places(directory: Path | None = None) -> list[Path]:
    """Return the directories with skills of installed packages, of the user, and of the workspace.

    ``directory``: the workspace.
    """
    return places_below(SKILL_GROUP, SKILL_PLACES, directory)


def places_below(group: str, names: Sequence[str], directory: Path | None) -> list[Path]:
    """Return the directories in which skills, or files like them, are looked for.

    Packages offer some by the entry points ``group``. The others have these names in the user's home, and in each
    directory from the root of the workspace's repository down to the workspace.
    """
    places = [*_offered(group), *(Path.home() / name for name in names)]
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
    document = _described((folder / SKILL_FILE).read_text(encoding="utf-8"))
    files = tuple(_files(folder))
    executable = frozenset(file.name for file in files if os.access(folder / file.name, os.X_OK))
    return _skill(document, folder.name, str(folder), files, executable)


def read_document_skill(name: str, documents: Mapping[str, str]) -> FoundSkill:
    """Read the skill in the documents below ``skills/NAME/``. None of its files is executable.

    Raises `BadInput` if the skill has no description, or is too large.
    """
    document = _described(documents[_head_of(name)])
    begin = f"{SKILL_DOCUMENTS}{name}/"
    files = [
        Attachment(data, "text/plain", sha256(data).hexdigest(), path.removeprefix(begin))
        for path, data in ((path, text.encode()) for path, text in documents.items())
        if path.startswith(begin)
    ]
    if len(files) > MOST_FILES or sum(len(file.data) for file in files) > MOST_BYTES:
        raise _too_large()
    return _skill(document, name, f"documents {begin[:-1]}", tuple(files), frozenset())


def _described(text: str) -> FrontMatter:
    document = read_front_matter(text)
    if not document.text("description").strip():
        raise BadInput(f"its {SKILL_FILE} has no description.")
    return document


def _skill(
    document: FrontMatter, name: str, source: str, files: tuple[Attachment, ...], executable: frozenset[str]
) -> FoundSkill:
    description = " ".join(storable(document.text("description")).split())[:LONGEST_DESCRIPTION]
    person = document.text("disable-model-invocation").lower() == "true"
    tools = document.texts("allowed-tools")
    return FoundSkill(_name_in(document, name), description, source, tools, person, files, executable)


def _name_in(document: FrontMatter, folder: str) -> str:
    return " ".join(storable(document.text("name")).split()) or folder


def _names_in(documents: Mapping[str, str]) -> list[str]:
    """Return the names of the folders of documents that have a ``SKILL.md``."""
    names = [path.removeprefix(SKILL_DOCUMENTS).removesuffix(f"/{SKILL_FILE}") for path in documents]
    return [name for name in names if "/" not in name and _head_of(name) in documents]


def _head_of(name: str) -> str:
    return f"{SKILL_DOCUMENTS}{name}/{SKILL_FILE}"


def _readers_of(documents: Mapping[str, str]) -> Iterator[tuple[str, Callable[[], FoundSkill]]]:
    for name in _names_in(documents):
        yield f"documents {SKILL_DOCUMENTS}{name}", partial(read_document_skill, name, documents)


def _readers_below(
    places: Sequence[str | os.PathLike[str]], troubles: list[str]
) -> Iterator[tuple[str, Callable[[], FoundSkill]]]:
    for place in places:
        if not os.path.isdir(place):  # noqa: PTH112 - of a path that cannot be, Path.is_dir raises
            raise BadInput(f"Expected a directory with skills, but {place!s:.200} is none.")
        for folder in _folders(Path(place).absolute(), troubles):
            yield str(folder), partial(read_skill, folder)


def _offered(group: str) -> Iterator[Path]:
    """Yield the directories that installed packages offer. A package that fails is left out, with a warning."""
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            place = point.load()
            yield Path(place() if callable(place) else place)
        except (Exception, SystemExit) as error:  # other people's code
            logger.warning("The entry point %s of %s gives no directory: %s", point.name, group, described(error))


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
                raise _too_large()
            data = file.read_bytes()
            media = "text/plain" if b"\0" not in data[:1_024] else "application/octet-stream"
            yield Attachment(data, media, sha256(data).hexdigest(), file.relative_to(folder).as_posix())


def _too_large() -> BadInput:
    return BadInput(f"it has more than {MOST_FILES} files, or than {MOST_BYTES // 2**20} MB.")
