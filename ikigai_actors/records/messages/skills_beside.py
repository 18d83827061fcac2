"""The texts of skills beside a message: those that a summary keeps, and those that a prompt adds. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ikigai_actors.records.messages.messages import Message

SKILLS = "skills"
"""The key of these texts in the data of the message."""


def skills_beside(message: Message) -> Sequence[Mapping[str, Any]]:
    """Return the texts of skills that are shown beside a message, each with ``name``, ``sha256`` and ``text``.

    The texts beside a summary also have ``message``, the position of the message that has loaded the skill.
    """
    if message.kind not in ("summary", "user"):
        return ()
    beside: Sequence[Mapping[str, Any]] = message.data.get(SKILLS, ())
    return beside
