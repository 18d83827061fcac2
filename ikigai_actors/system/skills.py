"""Skills for agents: which there are, and which of them a program, or a person, pins.

system.skills.find("src")                             # what there is; changes nothing
system.root.use_skills("src/.claude/skills", only=["pdf"])
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ikigai_actors.arguments import shown
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.skills import pinned, with_skills
from ikigai_actors.tools.skills.folders import FoundSkill, FoundSkills, find_skills, usual_places

PathLike = str | os.PathLike[str]


class Skills:
    """The skills on the disk of this process."""

    def find(self, *places: PathLike) -> FoundSkills:
        """Look for skills. Reads files, and may take a moment.

        Args:
            places: directories in which they are, at any depth up to six. Without one: those of installed packages and
                of the user, and those of the current directory and of its repository.

        Raises:
            BadInput: one of them is no directory.
        """
        return find_skills([check_place(place) for place in places] or usual_places(Path.cwd()))


def chosen(found: FoundSkills, only: Sequence[str] | None, place: object) -> list[FoundSkill]:
    """The skills that are to be pinned. Raises `BadInput` where one is not there, or none is."""
    names = [one.name for one in found.skills]
    if missing := sorted(set(only or ()) - set(names)):
        raise BadInput(f"There is no skill {', '.join(missing)} in {place}. Skills: {', '.join(names) or 'none'}.")
    picked = [one for one in found.skills if only is None or one.name in only]
    if not picked:
        raise BadInput(f"There are no skills in {place}. {' '.join(found.troubles)}".rstrip())
    return picked


def pin(settings: Mapping[str, Any], skills: Iterable[FoundSkill]) -> tuple[dict[str, Any], tuple[Attachment, ...]]:
    """The change of settings that pins skills, and the files that they have."""
    picked = list(skills)
    entries = [pinned(one.manifest, one.source) for one in picked]
    files = tuple({file.sha256: file for one in picked for file in one.files}.values())
    return {"skills": with_skills(settings, entries)}, files


def check_only(only: object) -> list[str] | None:
    """The names of skills as they were given. Raises `BadInput` for what is no list of names."""
    if only is None:
        return None
    if not isinstance(only, list | tuple) or not all(isinstance(name, str) for name in only):
        raise BadInput(f"Expected only to be a list of names of skills, or None; got {shown(only)}.")
    return list(only)


def check_place(place: object) -> PathLike:
    """A directory as it was given. Raises `BadInput` for what is no path."""
    if not isinstance(place, str | os.PathLike):
        raise BadInput(f"Expected a directory with skills, got {shown(place)}.")
    return place
