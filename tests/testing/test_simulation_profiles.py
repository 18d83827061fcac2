"""Profiles of Hypothesis that the pytest plugin brings, and how a run chooses one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
from hypothesis import settings

def test_it():
    print(settings.default.max_examples, settings.default.stateful_step_count, settings.default.derandomize)
"""


def chosen(folder: Path, *options: str, profile: str = "") -> str:
    """What a run of pytest in an empty folder says."""
    (folder / "test_it.py").write_text(TEST, encoding="utf-8")
    paths = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ("-p", "ikigai_actors.testing.pytest_plugin", "-p", "_hypothesis_pytestplugin")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *plugins, *options, "test_it.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **paths, "IKIGAI_PROFILE": profile},
        check=False,
    )
    return run.stdout + run.stderr


@pytest.mark.thorough("a run of pytest")
@pytest.mark.sample(1, "an interpreter for each")
@pytest.mark.parametrize(
    ("options", "profile", "expected"),
    [
        ((), "fast", "50 20 True"),
        (("--hypothesis-profile", "thorough"), "", "10000 50 False"),
        ((), "quick", "Expected IKIGAI_PROFILE to name a profile of Hypothesis, as in fast or thorough; got 'quick'."),
    ],
)
def test_a_run_chooses_a_profile(tmp_path: Path, options: tuple[str, ...], profile: str, expected: str) -> None:
    assert expected in chosen(tmp_path, *options, profile=profile)
