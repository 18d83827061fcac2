"""The arguments of built-in calls: which are missing, which are empty, and which do not fit."""

from typing import Any, ClassVar

import pytest

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall
from ikigai_actors.errors import BadInput

VALUES: dict[str, Any] = {"integer": 0, "number": 0.0, "boolean": False, "string": "a", "array": ["a"]}
"""For each type of an argument the value that is most easily taken for none."""


def wanting(kind: str, may_be_empty: bool = False) -> BuiltinCall:
    """A call with one required argument of this type."""

    class WantsOne(BuiltinCall):
        name = "wants_one"
        description = "Wants one argument."
        arguments: ClassVar = {"it": Argument(kind, "It.", required=True, may_be_empty=may_be_empty)}

    return WantsOne()


@pytest.mark.parametrize(("kind", "value"), VALUES.items())
def test_a_required_argument_that_is_given_is_not_missing(kind: str, value: object) -> None:
    wanting(kind).check({"it": value})


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("arguments", [{}, {"it": None}])
def test_a_required_argument_that_is_left_out_is_missing(kind: str, arguments: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="wants_one needs it"):
        wanting(kind, may_be_empty=True).check(arguments)


@pytest.mark.parametrize(("kind", "empty"), [("string", ""), ("array", [])])
def test_an_empty_argument_counts_as_missing_unless_it_may_be_empty(kind: str, empty: object) -> None:
    wanting(kind, may_be_empty=True).check({"it": empty})
    with pytest.raises(BadInput, match="wants_one needs it"):
        wanting(kind).check({"it": empty})
