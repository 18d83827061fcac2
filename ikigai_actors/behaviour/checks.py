"""Checks: whether a turn that was replayed is still right.

A check gets the recorded turn and the replayed turn. It returns True or False, a number from 0 to 1, or None if it
cannot judge; None never counts as right.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ikigai_actors.arguments import check_choice, check_mapping
from ikigai_actors.behaviour.differences import compared
from ikigai_actors.behaviour.fingerprints import known_as
from ikigai_actors.behaviour.plans.plan import Verdict
from ikigai_actors.behaviour.turns import ANSWERED, DIVERGED, Turn
from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.outputs import expected, problems

Check = Callable[[Turn, Turn], float | bool | Verdict | None]

EXACT, ANY_ORDER, SUBSET, SUPERSET = MATCHES = ("exact", "any order", "subset", "superset")


def calls(match: str = EXACT, ignore: Mapping[str, Sequence[str]] | None = None) -> Check:
    """Return a check that compares the calls of both turns, with their arguments.

    Args:
        match: ``exact``: the same calls in the same order, where calls of one reply have no order; ``any order``: the
            same calls; ``subset``: only recorded calls; ``superset``: all recorded calls.
        ignore: arguments not to compare, by tool, as ``{"send": ["body"]}``.

    Raises:
        BadInput: there is no such match, or ``ignore`` is no such dict.
    """
    check_choice(match, "match", MATCHES)
    left_out = check_mapping(ignore or {}, "ignore", "a dict from tools' names to lists of arguments")
    for tool, names in left_out.items():
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise BadInput(f"Expected ignore[{tool!r}] to be a list of arguments' names; got {names!r}.")

    @known_as("calls", match, {tool: list(names) for tool, names in left_out.items()})
    def check(recorded: Turn, again: Turn) -> bool | None:
        then, now = compared(recorded.calls, left_out), compared(again.calls, left_out)
        more, less = Counter(now) - Counter(then), Counter(then) - Counter(now)
        if match == SUBSET:
            return not more
        if less and again.how == DIVERGED and (match == SUPERSET or not more):
            is_right_so_far = match != EXACT or then[: len(now)] == now
            return None if is_right_so_far else False  # it was cut off before it could make the others
        if match == SUPERSET:
            return not less
        return not more and not less and (match == ANY_ORDER or then == now)

    return check


@known_as("calls", EXACT, {})
def same_calls(recorded: Turn, again: Turn) -> float | bool | Verdict | None:
    """Check that both turns made the same calls with the same arguments in the same order.

    Calls of one reply have no order.
    """
    return calls()(recorded, again)


def same_text(recorded: Turn, again: Turn) -> bool | None:
    """Check that both answers are equal, character for character; None if the replay gave no answer."""
    return recorded.text == again.text if again.how == ANSWERED else None


def schema(output: Any) -> Check:
    """Return a check that the answer is JSON that fits a type.

    Args:
        output: a type that pydantic knows, or a JSON schema as a dict.

    Raises:
        BadInput: there is no such type.
    """
    wanted = expected(output)

    @known_as("schema", wanted.stored())
    def check(recorded: Turn, again: Turn) -> bool | None:
        if again.how != ANSWERED:
            return None
        try:
            value = json.loads(again.text)
        except (ValueError, RecursionError):
            return False
        return not problems(wanted, value)

    return check
