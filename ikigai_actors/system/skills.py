"""Skills for agents: finds them on the disk and in documents, and pins those that a program or a person approves.

system.skills.find("src")                             # what there is; changes nothing
system.root.use_skills("src/.claude/skills", only=["pdf"])
system.root.prompt("Fill it in.", skills=["pdf"])     # its text goes along
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ikigai_actors.agent.turn.skills import files_of, instructions_of
from ikigai_actors.arguments import shown
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.records.documents import listed, read_version
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.skills import blob_of, pinned, with_skills
from ikigai_actors.records.messages.skills_beside import SKILLS
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.tools.function import cut
from ikigai_actors.tools.rules.rule import NewRule
from ikigai_actors.tools.skills.allowed_tools import allowed_tools
from ikigai_actors.tools.skills.folders import (
    SKILL_DOCUMENTS,
    FoundSkill,
    FoundSkills,
    SkillHead,
    find_skills,
    skill_heads,
    usual_places,
)
from ikigai_actors.tools.skills.front_matter import SKILL_FILE
from ikigai_actors.tools.skills.instructions import has_instructions

PathLike = str | os.PathLike[str]

INSTRUCTIONS_NAME = "instructions"
"""The name by which a person takes or refuses the instructions of a project and of the user."""


class Skills:
    """Finds skills on the disk of this process and in documents. See `ActorSystem.skills`."""

    def __init__(self, store: Store, directory: Callable[[], Path]) -> None:
        """Use a store that has the documents, and a function that returns the workspace, or the current directory."""
        self._store, self._directory = store, directory

    def find(self, *places: PathLike) -> FoundSkills:
        """Find the skills in directories. Reads files, and may take a moment.

        Args:
            places: directories in which they are, at any depth up to six. Without one: those of installed packages and
                of the user, those of the workspace, or else of the current directory, and of its repository, and
                the documents ``skills/NAME/SKILL.md``.

        Raises:
            BadInput: one of them is no directory.
        """
        if places:
            return find_skills([check_place(place) for place in places])
        return find_skills(usual_places(self._directory()), self._documents())

    def _heads(self) -> dict[str, SkillHead]:
        """Return the skills in the usual places, by name. Of each, only the ``SKILL.md`` is read."""
        return skill_heads(usual_places(self._directory()), self._documents())

    def _documents(self) -> dict[str, str]:
        """Return the texts of the documents below ``skills/``, by path."""

        def read(tx: Transaction) -> dict[str, str]:
            paths = [document.path for document in listed(tx, SKILL_DOCUMENTS)]
            return {path: read_version(tx, path, None).body for path in paths}

        return self._store.read(read)


class ListedSkill(NamedTuple):
    """A skill that an agent has, or that a directory offers."""

    name: str
    state: str
    """``in use``, ``unlisted`` (in use, but not listed for the model), ``refused``, ``changed``, or ``new``: for the
    last two somebody has to say whether it is used.
    """
    description: str
    sha256: str
    source: str
    tools: tuple[str, ...]
    """The tools that it asks to use."""
    files: int
    size: int
    """The files, and the bytes of them."""


def skills_listed(settings: Mapping[str, Any], listing: FoundSkills) -> list[ListedSkill]:
    """Return the pinned skills of an agent, and the skills that were found, sorted by name."""
    entries = {skill["name"]: skill for skill in settings.get("skills") or ()}
    known: dict[str, Mapping[str, Any]] = {**entries}
    known |= {skill.name: pinned(skill.manifest, skill.source) for skill in listing.skills}
    return [_listed(skill, entries.get(name)) for name, skill in sorted(known.items())]


def _listed(skill: Mapping[str, Any], entry: Mapping[str, Any] | None) -> ListedSkill:
    if entry is not None and entry["sha256"] == skill["sha256"]:
        state = "refused" if entry.get("off") else "unlisted" if entry.get("unlisted") else "in use"
    else:
        state = "new" if entry is None or entry.get("off") else "changed"
    sizes = [file["size"] for file in skill["attached"]]
    tools = tuple(skill["tools"])
    return ListedSkill(
        skill["name"], state, skill["description"], skill["sha256"], skill["from"], tools, len(sizes), sum(sizes)
    )


def unanswered(settings: Mapping[str, Any], skills: Skills, directory: Path) -> list[str]:
    """Return the names of found skills that are neither pinned nor refused, or that have changed since.

    ``directory``: the workspace. `INSTRUCTIONS_NAME` is among the names if it has instructions that were neither taken
    nor refused.
    """
    entries = {skill["name"]: skill for skill in settings.get("skills") or ()}
    heads = sorted(skills._heads().items())
    names = [name for name, head in heads if name not in entries or _has_changed(entries[name], head)]
    taken = settings.get("instructions") is not None
    return [*([] if taken or not has_instructions(directory) else [INSTRUCTIONS_NAME]), *names]


def _has_changed(entry: Mapping[str, Any], head: SkillHead) -> bool:
    """Return whether a found skill differs from the pinned one. The other files are read only if its text is the same.

    A skill that cannot be read any more, for example because it has grown too large, counts as unchanged.
    """
    if blob_of(entry, SKILL_FILE) != head.sha256:
        return True
    try:
        return head.read().sha256 != str(entry["sha256"])
    except (BadInput, OSError, UnicodeDecodeError):
        return False


def chosen(listing: FoundSkills, only: Sequence[str] | None, place: object) -> list[FoundSkill]:
    """Return the found skills with the names ``only``, or all. Raises `BadInput` if one is missing, or none exists."""
    names = [skill.name for skill in listing.skills]
    if missing := sorted(set(only or ()) - set(names)):
        raise BadInput(f"There is no skill {', '.join(missing)} in {place}. Skills: {', '.join(names) or 'none'}.")
    picked = [skill for skill in listing.skills if only is None or skill.name in only]
    if not picked:
        raise BadInput(f"There are no skills in {place}. {' '.join(listing.troubles)}".rstrip())
    return picked


def pin(
    settings: Mapping[str, Any], skills: Iterable[FoundSkill], off: bool = False, unlisted: bool = False
) -> tuple[dict[str, Any], tuple[Attachment, ...]]:
    """Return the settings that pin skills, or that refuse them if ``off``, and the files of the skills."""
    picked = list(skills)
    marks = {"off": True} if off else {"unlisted": True} if unlisted else {}
    entries = [pinned(skill.manifest, skill.source) | marks for skill in picked]
    files = tuple({file.sha256: file for each in picked for file in each.files}.values())
    return {"skills": with_skills(settings, entries)}, files


def skill_texts(store: Store, load: Callable[[], Log], skills: Sequence[str], commands: bool = False) -> dict[str, Any]:
    """Return the data of a prompt with the texts of an agent's skills, also of skills that only a person may load.

    Args:
        store: the store that has the files of the skills.
        load: reads the log of the agent.
        skills: the names of the skills.
        commands: whether the agent can run commands.

    Raises `BadInput` if the agent does not have a skill, or if the bytes of a file differ from the pinned bytes.
    """
    if not skills:
        return {}
    log = load()
    known = {skill["name"]: skill for skill in log.view(log.head).settings.get("skills") or () if not skill.get("off")}
    if missing := [name for name in skills if name not in known]:
        raise BadInput(f"The agent has no skill {', '.join(missing)}. Skills: {', '.join(sorted(known)) or 'none'}.")
    picked = [known[name] for name in dict.fromkeys(skills)]
    hashes = {skill["name"]: blob_of(skill, SKILL_FILE) or "" for skill in picked}
    blobs = store.read(lambda tx: read_blobs(tx, hashes.values()))
    return {SKILLS: [_text_of(skill, blobs.get(hashes[skill["name"]], b""), commands) for skill in picked]}


def _text_of(skill: Mapping[str, Any], data: bytes, commands: bool) -> dict[str, str]:
    if sha256(data).hexdigest() != blob_of(skill, SKILL_FILE):
        raise BadInput(f"Skill {skill['name']} is not in the database as it was pinned. Run ikigai fsck.")
    text = cut(instructions_of(data.decode(errors="replace"), files_of(skill, commands)))
    return {"name": skill["name"], "sha256": skill["sha256"], "text": text}


def check_names(skills: object) -> list[str]:
    """Check the ``skills`` of a prompt, and return the names. Raises `BadInput` if it is no list of names."""
    if not isinstance(skills, list | tuple) or not all(isinstance(name, str) for name in skills):
        raise BadInput(f"Expected skills to be a list of names of skills; got {shown(skills)}.")
    return list(skills)


def check_only(only: object, what: str = "skills") -> list[str] | None:
    """Check an argument ``only``, and return the names; None for None. Raises `BadInput` if it is no list of names."""
    if only is None:
        return None
    if not isinstance(only, list | tuple) or not all(isinstance(name, str) for name in only):
        raise BadInput(f"Expected only to be a list of names of {what}, or None; got {shown(only)}.")
    return list(only)


def check_digests(digests: object) -> list[str]:
    """Check the ``tools_of`` of `use_skills`, and return the digests. Raises `BadInput` if it is no list of texts."""
    if not isinstance(digests, list | tuple) or not all(isinstance(digest, str) for digest in digests):
        raise BadInput(f"Expected tools_of to be a list of digests of skills; got {shown(digests)}.")
    return list(digests)


def rules_of_skills(skills: Sequence[FoundSkill], digests: Sequence[str]) -> dict[str, tuple[NewRule, ...]]:
    """Return the rules for the ``allowed-tools`` of the skills with these digests, by digest.

    Raises `BadInput` if no skill has such a digest: the skill has changed since somebody saw it.
    """
    by_digest = {skill.sha256: skill for skill in skills}
    if gone := [digest for digest in digests if digest not in by_digest]:
        known = ", ".join(f"{skill.name} {digest}" for digest, skill in by_digest.items())
        raise BadInput(f"No skill has the digest {', '.join(gone)} now; these are {known}. Look at what has changed.")
    made = {digest: allowed_tools(by_digest[digest].tools).rules for digest in dict.fromkeys(digests)}
    return {digest: rules for digest, rules in made.items() if rules}


def check_place(place: object) -> PathLike:
    """Check that a value is a path, and return it. Raises `BadInput` for any other value."""
    if not isinstance(place, str | os.PathLike):
        raise BadInput(f"Expected a directory with skills, got {shown(place)}.")
    return place
