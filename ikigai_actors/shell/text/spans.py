"""Lengths of time as people write them."""

import re

from ikigai_actors.errors import BadInput

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9}) ?([smhdw])")


def parse_span(text: str) -> int:
    """A length of time as a person writes it, as ``30d`` or ``12h``, in milliseconds. Raises `BadInput`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise BadInput(f"Expected a length of time such as 30d, 12h or 90m; got {text!r}.")
    return int(found[1]) * _SECONDS[found[2]] * 1_000
