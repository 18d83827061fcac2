"""The skills that an acting agent has loaded, for a tool that lays out their files."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

acting_skills: ContextVar[Sequence[Mapping[str, Any]]] = ContextVar("acting_skills", default=())
"""The skills before the model of the agent whose call runs in this context, each as it is pinned."""
