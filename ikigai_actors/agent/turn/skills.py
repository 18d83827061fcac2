"""Skills in a conversation: the catalogue in the system prompt, loaded texts, and the texts that a summary keeps. Pure.

The catalogue is a pure text of the settings. A skill that is ``unlisted`` is not in it: the model finds it by
``find_tools``, or knows its name. A loaded text is in the result of ``load_skill``, with ``data.skill``, or in the
``data.skills`` of a prompt: a fork inherits the text, and an undo removes it, so that it can be loaded again. A loaded
text is never replaced by a reference. A summary keeps the texts that were loaded before its cut; they are shown after
the summary, each once. When a turn opens, the machine adds only texts that the model does not see already.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn.found_tools import Findings
from ikigai_actors.agent.turn.kinds import has_tool, kinds_catalogue
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.skills_beside import SKILLS, skills_beside
from ikigai_actors.text import in_catalogue
from ikigai_actors.tools.skills.digests import SKILLS_VARIABLE, directory_of
from ikigai_actors.tools.skills.front_matter import SKILL_FILE, read_front_matter

LOAD_SKILL = "load_skill"
"""The built-in call that loads a skill."""
SKILL = "skill"
"""The key, in the data of a result that is a skill's text, of the skill's name and digest, and of the file, if it is
not ``SKILL.md``.
"""
LONGEST_KEPT, MOST_KEPT = 20_000, 100_000
"""The most characters of one skill's text, and of all skills' texts, that stay beside a summary."""
_MOST_NAMED = 50
"""The most files of a skill that its text names."""
_TOLD = "These are instructions for particular tasks. When a task fits one of them, load it first with load_skill."
_UNLISTED = "There are further ones, which find_tools finds."
_NONE_LISTED = "There are instructions for particular tasks. find_tools finds them, and load_skill loads them."


def system_of(settings: Mapping[str, Any]) -> str:
    """Return the system prompt with the instructions of projects, the skills that the model may load, and its kinds."""
    entries = settings.get("instructions")
    read = [entry for entry in entries if not entry.get("off")] if isinstance(entries, list) else []
    system = "\n\n".join([settings.get("system") or "", *map(_instructions, read)])
    system = system.removeprefix("\n\n")
    parts = [system, _catalogue(settings), kinds_catalogue(settings) if settings.get("kinds") else ""]
    return "\n\n".join(filter(None, parts))


def _catalogue(settings: Mapping[str, Any]) -> str:
    if not settings.get("skills") or not has_tool(settings, LOAD_SKILL):
        return ""
    lines = [f"- {described_skill(skill)}" for skill in loadable(settings) if not skill.get("unlisted")]
    further = has_tool(settings, FIND_TOOLS) and bool(unlisted_in(settings))
    if not lines:
        return f"<skills>\n{_NONE_LISTED}\n</skills>" if further else ""
    return "\n".join(["<skills>", _TOLD, *([_UNLISTED] if further else []), *lines, "</skills>"])


def described_skill(skill: Mapping[str, Any]) -> str:
    """Return the name and the description of a skill, as one line for a model."""
    return f"{in_catalogue(skill['name'], SKILLS)}: {in_catalogue(skill['description'], SKILLS)}"


def unlisted_in(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the skills that the model may load, and that its system prompt does not list, by name."""
    return {skill["name"]: skill for skill in loadable(settings) if skill.get("unlisted")}


def loadable(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the skills in the settings that the model may load; none if the setting cannot be read."""
    entries = settings.get("skills")
    mappings = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [entry for entry in mappings if not entry.get("off") and not entry.get("by_person")]


def loaded_in(log: Findings, head: int) -> dict[tuple[str, str], int]:
    """Return the files of skills whose texts the model sees.

    Keys are the digest of the skill and the file; values are the positions of the messages.
    """
    summary, _ = log.opening(head)
    loaded: dict[tuple[str, str], int] = {}
    for kept in skills_beside(summary) if summary is not None else ():
        loaded[kept["sha256"], ""] = kept["message"]
    for message in log.finds(head):
        if isinstance(skill := message.data.get(SKILL), Mapping):
            loaded[str(skill.get("sha256")), str(skill.get("file") or "")] = message.id
        loaded |= {(skill["sha256"], ""): message.id for skill in skills_beside(message)}
    return loaded


def loaded_skills(settings: Mapping[str, Any], log: Findings, head: int) -> list[Mapping[str, Any]]:
    """Return the pinned skills of an agent that its model has loaded."""
    entries = settings.get("skills")
    if not isinstance(entries, list) or not entries:
        return []
    loaded = {digest for digest, _ in loaded_in(log, head)}
    return [entry for entry in entries if isinstance(entry, Mapping) and entry.get("sha256") in loaded]


def without_loaded(data: Mapping[str, Any], loaded: Mapping[tuple[str, str], int]) -> Mapping[str, Any]:
    """Return the data of a prompt without the texts of skills that the model sees already."""
    left = [skill for skill in data[SKILLS] if (skill["sha256"], "") not in loaded]
    others = {name: value for name, value in data.items() if name != SKILLS}
    return {**others, SKILLS: left} if left else others


def kept_by_summary(opening: Iterable[Message], past: Iterable[Message]) -> list[Mapping[str, Any]]:
    """Return the texts of skills that a summary keeps: as many of the latest as there is room for.

    Args:
        opening: the summary in force, and the prompt that is shown with it.
        past: the messages that the new summary replaces, oldest first.
    """
    texts: dict[str, Mapping[str, Any]] = {}
    for entry in opening:
        texts |= {kept["name"]: kept for kept in skills_beside(entry)}
    for message in past:
        skill = message.data.get(SKILL)
        loaded = [*skills_beside(message)]
        if isinstance(skill, Mapping) and not skill.get("file"):
            loaded.append({**skill, "text": message.content})
        for each in loaded:
            name, text = str(each["name"]), str(each["text"])
            if len(text) > LONGEST_KEPT:
                text = f"{text[:LONGEST_KEPT]}\n[cut: recall({message.id}) shows all of it]"
            texts.pop(name, None)
            texts[name] = {"name": name, "sha256": each["sha256"], "text": text, "message": message.id}
    left, kept = MOST_KEPT, list[Mapping[str, Any]]()
    for latest in reversed(texts.values()):
        left -= len(latest["text"])
        if left < 0:
            break
        kept.append(latest)
    return kept[::-1]


def data_of_kept(kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the data of a summary's message that keeps these texts of skills; empty without texts."""
    return {SKILLS: [*kept]} if kept else {}


def files_of(skill: Mapping[str, Any], commands: bool = False) -> str:
    """Return a sentence that names the other files of a skill."""
    names = [file["name"] for file in skill["attached"] if file["name"] != SKILL_FILE]
    if not names:
        return "It has no other files."
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    where = f" Commands find them in ${SKILLS_VARIABLE}/{directory_of(skill)}." if commands else ""
    return f"Its other files, which load_skill shows: {', '.join(names[:_MOST_NAMED])}{more}.{where}"


def instructions_of(document: str, files: str) -> str:
    """Return the text of a ``SKILL.md`` without its front matter, followed by the sentence about the other files."""
    try:
        body = read_front_matter(document).body
    except BadInput:
        body = document
    return f"{body}\n\n[{files}]"


def _instructions(instruction: Mapping[str, Any]) -> str:
    text = re.sub(r"<(?=\s*/\s*instructions\b)", "&lt;", str(instruction["text"]), flags=re.IGNORECASE)
    return f"<instructions>\n{text}\n</instructions>"
