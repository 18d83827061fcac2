"""How many functions a warm turn, a mail and a fork call: a rise is seen at the commit that brings it.

Counts are free of the noise in which a rise of a few percent of time is lost. Who adds calls takes others out, or says
in the commit why they are worth their time; `python -m benchmarks.warm` shows where they are.
"""

import sys

import pytest

from benchmarks.warm import counted

CALLS = {"prompt, until the model is asked": 402, "turn": 663, "mail": 123, "fork": 298}
"""Calls of one, the mean of some."""

CHANGES = {"prompt, until the model is asked": 230}
"""Calls of a function in another file than that of the call before."""

MORE, FEWER = 1.03, 0.9
"""Parts of them: on a busy machine a caller finds its answer there more often, and does not wait."""


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each version of Python has calls of its own")
def test_a_warm_turn_a_mail_and_a_fork_call_as_many_functions_as_is_known() -> None:
    acts = counted(runs=5)
    calls = {act: acts[act].calls for act, known in CALLS.items() if not known * FEWER < acts[act].calls < known * MORE}
    assert calls == {}
    assert {act: changes for act, known in CHANGES.items() if (changes := acts[act].changes) > known * MORE} == {}
