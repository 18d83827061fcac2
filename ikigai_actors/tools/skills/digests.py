"""The digest of a skill: of its name, its description and all its files, wherever they are. Pure."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

LONGEST_INSTRUCTIONS = 32_768
"""How many characters of instructions an agent has at most."""
SKILLS_VARIABLE = "IKIGAI_SKILLS"
"""The variable that names the directory in which commands find the files of skills."""
BESIDE_MANIFESTS = ("sha256", "from", "off")
"""The keys of an entry that say nothing of what the skill is."""


def digest_of_skill(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of what a skill is. Where it came from does not count."""
    told = {key: value for key, value in manifest.items() if key not in BESIDE_MANIFESTS}
    return sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def directory_of(skill: Mapping[str, Any]) -> str:
    """The name of the directory in which commands find the files of a skill: always the same for the same files."""
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', skill['name'])[:60]}-{skill['sha256'][:12]}"
