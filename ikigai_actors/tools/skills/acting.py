"""The skills that the acting agent has loaded, for a tool that writes their files to the disk."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

acting_skills: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar("acting_skills", default=())
"""The skills that the acting agent's model has loaded, as they were pinned."""
