"""The digest of a skill: of its name, its description and all its files, wherever they are. Pure."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

LONGEST_INSTRUCTIONS = 32_768
"""How many characters of instructions an agent has at most."""
BESIDE_MANIFESTS = ("sha256", "from", "off")
"""The keys of an entry that say nothing of what the skill is."""


def digest_of_skill(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of what a skill is. Where it came from does not count."""
    told = {key: value for key, value in manifest.items() if key not in BESIDE_MANIFESTS}
    return sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
