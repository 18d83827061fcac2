"""The setting ``kinds``: kinds of agents that an agent may fork, each pinned by the digest of its contents. Pure.

    [{"name": "reviewer", "description": "Reviews code.", "system": "You review.", "sha256": …, "from": …,
      "tools": ["read", "grep"], "max_steps": 20, "skills": [{"name": "pdf", "sha256": …, "text": …}]}]

An entry is complete, and no file is read when a child is born: a changed file on a disk changes no agent. The digest is
that of the entry without ``from`` and ``off``, so an entry that was changed by hand is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.forms import is_skill_text
from ikigai_actors.tools.skills.digests import digest_of_skill
from supervisors.children import RestartType

MOST_KINDS = 50
"""The most kinds of an agent."""
LONGEST_KINDS = 16_384
"""The most characters of the names and descriptions of an agent's kinds, which each request contains."""
LONGEST_KIND = 131_072
"""The most characters of a kind's system prompt and of the texts of its skills."""
INHERIT = "inherit"
"""The value of ``history`` for a kind whose children inherit their parent's history."""

PinnedKind = Mapping[str, Any]
"""An entry of the setting ``kinds``."""

_TEXTS = ("name", "description", "sha256", "from")
_FURTHER: Mapping[str, Callable[[Any], bool]] = {
    "system": lambda value: isinstance(value, str),
    "tools": lambda value: _are_texts(value),
    "without": lambda value: _are_texts(value),
    "model": lambda value: isinstance(value, str),
    "max_steps": lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
    "skills": lambda value: isinstance(value, list) and all(map(_is_skill, value)),
    "budget": lambda value: isinstance(value, str),
    "output": lambda value: isinstance(value, dict) and isinstance(value.get("schema"), dict),
    "history": lambda value: value == INHERIT,
    "restart": lambda value: value in tuple(RestartType),
    "off": lambda value: value is True,
}  # fmt: skip


def pinned_kind(manifest: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the entry for a kind that was read from a file."""
    return {**manifest, "sha256": digest_of_skill(manifest), "from": source}


def with_kinds(settings: Mapping[str, Any], new: Sequence[PinnedKind]) -> list[PinnedKind]:
    """Return the setting with further kinds, which replace those of the same name.

    Raises `BadInput` if they are too many.
    """
    by_name = {kind["name"]: kind for kind in (*(settings.get("kinds") or ()), *new)}
    entries = [by_name[name] for name in sorted(by_name)]
    length = _length(entries)
    if len(entries) > MOST_KINDS or length > LONGEST_KINDS:
        raise BadInput(
            f"An agent has {MOST_KINDS} kinds at most, whose names and descriptions have {LONGEST_KINDS:,} characters; "
            f"these are {len(entries)} with {length:,}. Name those that it needs: only=[...]."
        )
    return entries


def kinds_in(settings: Mapping[str, Any]) -> list[PinnedKind]:
    """Return the kinds of which an agent may fork children; none if the setting cannot be read."""
    entries = settings.get("kinds")
    mappings = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [entry for entry in mappings if not entry.get("off")]


def kind_named(settings: Mapping[str, Any], name: str) -> PinnedKind:
    """Return the kind with this name. Raises `BadInput` if there is none."""
    known = kinds_in(settings)
    for entry in known:
        if entry["name"] == name and is_kind(entry):
            return entry
    raise BadInput(f"There is no kind {name!r}. Kinds: {', '.join(entry['name'] for entry in known) or 'none'}.")


def are_kinds(value: Any) -> bool:
    """Return whether a value is a valid setting ``kinds``."""
    if not isinstance(value, list) or not all(map(is_kind, value)) or len(value) > MOST_KINDS:
        return False
    names = [kind["name"] for kind in value]
    return names == sorted(set(names)) and _length(value) <= LONGEST_KINDS


def is_kind(kind: Any) -> bool:
    """Return whether a value is a valid, unchanged entry of the setting."""
    if not isinstance(kind, dict) or not all(isinstance(kind.get(key), str) and kind[key] for key in _TEXTS):
        return False
    further = {key: value for key, value in kind.items() if key not in _TEXTS}
    fits = all(key in _FURTHER and _FURTHER[key](value) for key, value in further.items())
    return fits and kind_length(kind) <= LONGEST_KIND and digest_of_skill(kind) == kind["sha256"]


def kind_length(kind: PinnedKind) -> int:
    """Return the number of characters in a kind's system prompt and in the texts of its skills."""
    return len(kind.get("system", "")) + sum(len(skill["text"]) for skill in kind.get("skills", ()))


def _length(entries: Sequence[PinnedKind]) -> int:
    return sum(len(entry["name"]) + len(entry["description"]) for entry in entries)


def _is_skill(value: Any) -> bool:
    return isinstance(value, dict) and is_skill_text(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)
