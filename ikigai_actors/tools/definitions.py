"""Definitions of tools: what models and people see of a tool, known by its digest.

A question about a call holds for one definition. Where the tool has another one when the call is to begin, as after an
upgrade of an MCP server, the question is asked again.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from ikigai_actors.tools.policy import ToolTraits


def digest_of_definition(described: Mapping[str, Any], traits: ToolTraits) -> str:
    """The SHA-256 of a tool's definition: its name, description and schema, and the traits that decide on its calls.

    Args:
        described: what `Tool.describe` gives.
        traits: as the tool has them, not as this process decides on them.
    """
    decisive = [traits.idempotent, traits.read_only, traits.alone, traits.policy.value]
    text = json.dumps([described, *decisive], sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
