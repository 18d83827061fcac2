"""The texts of skills that a summary keeps, by its message. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.records.messages.messages import Message

SKILLS = "skills"
"""The key in the data of a summary."""


def skills_beside(summary: Message) -> Sequence[Mapping[str, Any]]:
    """The texts that are shown beside a summary, each with ``name``, ``sha256``, ``text`` and ``message``."""
    if summary.kind != "summary":
        return ()
    kept: Sequence[Mapping[str, Any]] = summary.data.get(SKILLS, ())
    return kept
