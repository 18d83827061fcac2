"""References to secrets: ``env:NAME``, ``file:PATH``, or ``keyring:NAME``. Pure.

A row has a reference and never the secret. The process that needs the secret looks it up.
"""

import re

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

WAYS_OF_REFERENCE = "env:NAME, file:PATH or keyring:NAME"
"""The forms of a reference, in words."""

_REFERENCE = re.compile(r"(env|file|keyring):.+", re.DOTALL)


def check_reference(reference: object, what: str) -> str:
    """Return a reference, or raise `BadInput`; ``what`` names the secret."""
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        raise BadInput(f"Expected a reference to {what}, {WAYS_OF_REFERENCE}; got {shown(reference)}.")
    return reference
