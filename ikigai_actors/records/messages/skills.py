"""The setting ``skills``: the skills that are pinned for an agent, each by the digest of all its files. Pure.

    [{"name": "pdf", "description": "…", "tools": [], "attached": [{"sha256": …, "name": "SKILL.md", …}], "sha256": …,
      "from": "/home/ann/.claude/skills/pdf"}]

The bytes of the files are blobs in the same database as the log: a changed file on a disk changes no agent. The digest
is that of the entry without ``from``, ``off`` and ``unlisted``, so an entry that was changed by hand is refused.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.forms import are_references
from ikigai_actors.tools.skills.digests import LONGEST_INSTRUCTIONS, digest_of_skill

MOST_SKILLS, LONGEST_CATALOGUE = 100, 32_768
"""The most skills of an agent, and the most characters of their names and descriptions, which each request contains."""

Pinned = Mapping[str, Any]
"""An entry of the setting ``skills``."""


def pinned(manifest: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the entry of the setting ``skills`` for a skill, from its manifest. ``source`` is its directory."""
    return {**manifest, "sha256": digest_of_skill(manifest), "from": source}


def blob_of(skill: Pinned, path: str) -> str | None:
    """Return the digest of the file at a path of a skill; None if the skill has no such file."""
    return next((file["sha256"] for file in skill["attached"] if file["name"] == path), None)


def with_skills(settings: Mapping[str, Any], new: Sequence[Pinned]) -> list[Pinned]:
    """Return the setting with further skills, which replace those of the same name.

    Raises `BadInput` if they are too many.
    """
    by_name = {skill["name"]: skill for skill in (*(settings.get("skills") or ()), *new)}
    entries = [by_name[name] for name in sorted(by_name)]
    length = catalogue_length(entries)
    if len(entries) > MOST_SKILLS or length > LONGEST_CATALOGUE:
        largest = max(entries, key=lambda entry: len(entry["description"]))["name"]
        raise BadInput(
            f"An agent has {MOST_SKILLS} skills at most, whose names and descriptions have {LONGEST_CATALOGUE:,} "
            f"characters; these are {len(entries)} with {length:,}. Name those that it needs: only=[...]. The longest "
            f"description is that of {largest}."
        )
    return entries


def catalogue_length(entries: Sequence[Pinned]) -> int:
    """Return the number of characters of these entries in a catalogue."""
    return sum(len(entry["name"]) + len(entry["description"]) for entry in entries if not entry.get("unlisted"))


def are_skills(value: Any) -> bool:
    """Return whether a value is a valid setting ``skills``."""
    if not isinstance(value, list) or not all(map(_is_entry, value)) or len(value) > MOST_SKILLS:
        return False
    names = [skill["name"] for skill in value]
    return names == sorted(set(names)) and catalogue_length(value) <= LONGEST_CATALOGUE


def are_instructions(value: Any) -> bool:
    """Return whether a value is a valid setting ``instructions``: texts with their paths and digests."""
    if not isinstance(value, list) or not all(map(_is_instruction, value)):
        return False
    return sum(len(instruction["text"]) for instruction in value) <= LONGEST_INSTRUCTIONS


def _is_instruction(instruction: Any) -> bool:
    if not isinstance(instruction, dict) or instruction.keys() - {"off"} != {"path", "text", "sha256"}:
        return False
    texts = all(isinstance(instruction[name], str) and instruction[name] for name in ("path", "text", "sha256"))
    return texts and sha256(instruction["text"].encode(errors="surrogatepass")).hexdigest() == instruction["sha256"]


def _is_entry(entry: Any) -> bool:
    texts = ("name", "description", "sha256", "from")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) and entry[key] for key in texts):
        return False
    tools = entry.get("tools")
    listed = isinstance(tools, list) and all(isinstance(name, str) for name in tools)
    return listed and are_references(entry.get("attached")) and digest_of_skill(entry) == entry["sha256"]
