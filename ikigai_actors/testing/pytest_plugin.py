"""The pytest plugin. It is installed with the package, so every run of pytest imports it; it imports nothing by itself.

    def test_a_child_answers(simulated_system):
        system = simulated_system(ScriptedProvider(["done"]))
        assert system.root.fork("go").reply().text == "done"

``IKIGAI_PROFILE=thorough pytest`` chooses a profile of Hypothesis: see `ikigai_actors.testing.profiles`.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ikigai_actors.testing.profiles import PROFILES, VARIABLE, load_chosen, register_profiles

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import OpenSimulated


@pytest.hookimpl(tryfirst=True)  # before the plugin of Hypothesis looks for the profile that its option names
def pytest_configure(config: pytest.Config) -> None:
    """Register the profiles for a run that chooses one."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen:
        load_chosen(chosen)
    elif config.getoption("--hypothesis-profile", None) in PROFILES:
        register_profiles()


@pytest.fixture
def simulated_system() -> "Iterator[OpenSimulated]":
    """Opens a simulated system, as `ActorSystem.open` does a real one; its ``world`` is the `Simulation`.

    Not for ``@given``, whose examples would share it: use ``with simulated(schedule)`` there.
    """
    from ikigai_actors.testing.simulation.world import OpenSimulated, simulated

    with simulated() as world:
        yield OpenSimulated(world)
