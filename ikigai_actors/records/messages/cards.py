"""The setting ``card``: how an agent presents itself to agents of other systems. Pure.

    {"name": "Triage", "description": "Sorts bug reports.", "version": "1.0",
     "skills": [{"id": "sort", "name": "Sort", "description": "Labels a report.", "tags": ["bugs"], "examples": []}]}

Everybody who knows the agent's address can read the card, even without a token. An agent without the setting is hidden
from them.
"""

import json
from collections.abc import Mapping
from typing import Any

LARGEST_CARD = 16_384
"""The most characters of a card, as JSON."""

_TEXTS = {"name", "description", "version"}
_OF_SKILLS = {"id", "name", "description"}
_LISTS = {"tags", "examples"}

AgentCard = Mapping[str, Any]


def is_card(value: object) -> bool:
    """Return whether a value can be the setting ``card``."""
    if not isinstance(value, dict) or not {"name", "description"} <= value.keys() <= {*_TEXTS, "skills"}:
        return False
    skills = value.get("skills", [])
    if not _are_texts(value, _TEXTS) or not isinstance(skills, list) or not all(map(_is_skill, skills)):
        return False
    return len({skill["id"] for skill in skills}) == len(skills) and len(json.dumps(value)) <= LARGEST_CARD


def _is_skill(value: object) -> bool:
    if not isinstance(value, dict) or not _OF_SKILLS <= value.keys() <= {*_OF_SKILLS, *_LISTS}:
        return False
    listed = [value.get(name, []) for name in _LISTS]
    return _are_texts(value, _OF_SKILLS) and all(
        isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in listed
    )


def _are_texts(value: Mapping[str, Any], names: set[str]) -> bool:
    return all(isinstance(value[name], str) and value[name].strip() for name in names & value.keys())
