"""The pytest plugin: installed with the package, and so imported by every run of pytest; it imports nothing by itself.

def test_a_child_answers(simulated_system):
    system = simulated_system(ScriptedProvider(["done"]))
    assert system.root.fork("go").reply().text == "done"
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation import OpenSimulated


@pytest.fixture
def simulated_system() -> "Iterator[OpenSimulated]":
    """Opens a simulated system, as `ActorSystem.open` does a real one; its ``world`` is the `Simulation`.

    Not for ``@given``, whose examples would share it: use ``with simulated(schedule)`` there.
    """
    from ikigai_actors.testing.simulation import OpenSimulated, simulated

    with simulated() as world:
        yield OpenSimulated(world)
