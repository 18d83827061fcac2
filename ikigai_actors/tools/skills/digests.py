"""The digest of a skill: of its name, its description and all its files, wherever the files are. Pure."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

LONGEST_INSTRUCTIONS = 32_768
"""The most characters of an agent's instructions."""
SKILLS_VARIABLE = "IKIGAI_SKILLS"
"""The environment variable with the directory in which commands find the files of skills."""
BESIDE_MANIFESTS = ("sha256", "from", "off", "unlisted")
"""The keys of an entry that are not part of the skill's content."""


def digest_of_skill(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a skill's content. Its origin does not count."""
    kept = {key: value for key, value in manifest.items() if key not in BESIDE_MANIFESTS}
    return sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def first_digits(digest: str) -> str:
    """Return the digits of a skill's digest that a person sees."""
    return digest[:12]


def directory_of(skill: Mapping[str, Any]) -> str:
    """Return the name of the directory in which commands find the files of a skill.

    The same files give the same name.
    """
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', skill['name'])[:60]}-{first_digits(skill['sha256'])}"
