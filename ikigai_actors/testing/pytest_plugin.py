"""The pytest plugin.

The plugin is installed with the package, so every run of pytest imports the plugin; the plugin itself imports nothing
else.

    def test_a_child_answers(simulated_system):
        system = simulated_system(ScriptedProvider(["done"]))
        assert system.root.fork("go").reply().text == "done"

    @pytest.mark.recorded("support.jsonl")               # a test for each turn of a file of ikigai export
    def test_support(turn):
        assert turn.replay(change={"system": PROMPT}).calls == turn.calls

``IKIGAI_PROFILE=thorough pytest`` chooses a profile of Hypothesis: see `ikigai_actors.testing.profiles`.
"""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from ikigai_actors.testing.profiles import PROFILES, VARIABLE, load_chosen, register_profiles

if TYPE_CHECKING:
    from ikigai_actors.testing.recorded_turns import ReplayableTurn, TurnFiles
    from ikigai_actors.testing.simulation.world import OpenSimulated

RECORDED = "recorded"
"""The marker that names a file of ``ikigai export``. Each turn of the file becomes a case of the test."""


@pytest.hookimpl(tryfirst=True)  # before the plugin of Hypothesis looks for the profile that its option names
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker ``recorded``, and the profiles of Hypothesis if this run of pytest chooses one."""
    config.addinivalue_line("markers", f"{RECORDED}(file): a test for each turn of a file of ikigai export")
    chosen = os.environ.get(VARIABLE, "")
    if chosen:
        load_chosen(chosen)
    elif config.getoption("--hypothesis-profile", None) in PROFILES:
        register_profiles()


@pytest.fixture
def simulated_system() -> "Iterator[OpenSimulated]":
    """Yield a function that opens a simulated system, with the arguments of `ActorSystem.open`.

    The attribute ``world`` of the function is the `Simulation`.

    Not for ``@given``, whose examples would share it: use ``with simulated(schedule)`` there.
    """
    from ikigai_actors.testing.simulation.world import OpenSimulated, simulated

    with simulated() as world:
        yield OpenSimulated(world)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a case of each turn of the file that the marker names. The path is relative to the test's file."""
    marker = metafunc.definition.get_closest_marker(RECORDED)
    if marker is None or "turn" not in metafunc.fixturenames:
        return
    from ikigai_actors.testing.recorded_turns import cases_in, file_of

    file = metafunc.definition.path.parent / file_of(marker)
    cases = cases_in(file)
    metafunc.parametrize("turn", [(file, place) for place in range(len(cases))], ids=cases, indirect=True)


@pytest.fixture(scope="session")
def ikigai_parts() -> Mapping[str, Any]:
    """Return arguments of `ActorSystem.open` for recorded turns: provider, tools and so on. Override this fixture."""
    return {}


@pytest.fixture(scope="session")
def ikigai_turn_files() -> "Iterator[TurnFiles]":
    """Yield the open files of recorded turns, and close them at the end of the session."""
    from ikigai_actors.testing.recorded_turns import TurnFiles

    files = TurnFiles()
    yield files
    files.close()


@pytest.fixture(name="turn")
def recorded_turn(
    request: pytest.FixtureRequest, ikigai_parts: Mapping[str, Any], ikigai_turn_files: "TurnFiles"
) -> "ReplayableTurn":
    """Return a recorded turn, whose `replay` runs it again with the present agent; for tests marked ``recorded``."""
    if not hasattr(request, "param"):
        pytest.fail('The fixture turn needs a file: @pytest.mark.recorded("support.jsonl").', pytrace=False)
    file, place = request.param
    return ikigai_turn_files.turn(file, place, ikigai_parts)
