"""Verdicts: what the journal tells whoever submitted a unit. See journal.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ikigai_actors.errors import IkigaiError


@dataclass(frozen=True, slots=True)
class Committed:
    """The unit is durable."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The unit found a reason not to be written."""

    error: IkigaiError


@dataclass(frozen=True, slots=True)
class Failed:
    """The unit could not be written."""

    error: IkigaiError


Verdict = Committed | Refused | Failed
Done = Callable[[Verdict], None]
"""Takes the verdict on a unit."""
