"""The ways of a merge to take over another agent's work."""

from collections.abc import Sequence

from ikigai_actors.arguments import check_choice, check_count, shown
from ikigai_actors.errors import BadInput

RESULT, SUMMARY, PICK = "result", "summary", "pick"
WAYS = (RESULT, SUMMARY, PICK)
"""The ways of a merge: its result, a summary, or picked messages."""


def check_merge(how: object, positions: object) -> tuple[int, ...]:
    """Return the positions of the messages to pick as a tuple; empty unless ``how`` is ``pick``.

    Raises `BadInput` for another way, or for positions that do not fit.
    """
    check_choice(how, "how", WAYS)
    if isinstance(positions, str) or not isinstance(positions, Sequence):
        raise BadInput(f"Expected positions to be a list of positions of messages; got {shown(positions)}.")
    picked = tuple(check_count(position, "each of positions", least=1) for position in positions)
    if (how == PICK) is not bool(picked):
        raise BadInput("Expected positions for how='pick', and for that alone: those of the messages to take in.")
    return picked
