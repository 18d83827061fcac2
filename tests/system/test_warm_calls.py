"""How many functions a warm turn, a mail and a fork call: a rise is seen at the commit that brings it.

Counts are free of the noise in which a rise of a few percent of time is lost. Who adds calls takes others out, or says
in the commit why they are worth their time; `python -m benchmarks.warm` shows where they are.
"""

import sys

import pytest

from benchmarks.warm_acts import warm_acts
from tests.kit.calls import Calls

RUNS = 40

CALLS = {"turn": 737, "mail": 124, "fork": 319}
"""Calls of one, the mean of some."""

MORE, FEWER = 1.02, 0.9
"""Parts of them: on a busy machine a caller finds its answer there more often, and does not wait."""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each version of Python has calls of its own")
def test_a_warm_turn_a_mail_and_a_fork_call_as_many_functions_as_is_known() -> None:
    with Calls() as calls, warm_acts() as acts:
        counted = {act: calls.of(acts[act], RUNS).calls for act in CALLS}
    assert {act: calls for act, calls in counted.items() if not CALLS[act] * FEWER < calls < CALLS[act] * MORE} == {}
