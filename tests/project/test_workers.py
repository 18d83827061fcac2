"""Several processes run the tests. What failed runs once more, alone, and only that excuses it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.program import PATIENCE
from tests.kit.tiers import spread
from tests.kit.workers import SHARE, shares, still_there

ROOT = Path(__file__).parents[2]

SUITE = """
import logging, os, signal
from pathlib import Path
import pytest

def once(name):
    seen = Path(name)
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")

def test_good(): pass

def test_bad():
    logging.error("half \\ud800")
    assert 1 == 2

def test_that_crashes():
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.parametrize("word", ["a b", "c::d"])
def test_by_chance(word):
    once(f"called {word}")

@pytest.fixture
def thing():
    yield
    once("torn down")

def test_with_a_bad_end(thing): pass

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.sample(2, "why")
@pytest.mark.parametrize("case", range(5))
def test_of_a_sample(case): pass
"""


def run(folder: Path, *options: str) -> tuple[int, str]:
    """The exit status of a run of the suite above, and what it printed."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
    plugins = ("-p", "tests.kit.tiers", "-p", "tests.kit.workers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "--workers", "2", *options],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow("a run of pytest")
def test_what_fails_again_fails_the_run_and_what_passes_alone_is_named_as_flaky(tmp_path: Path) -> None:
    status, printed = run(tmp_path)
    assert status == 1
    assert "half \\ud800" in printed
    assert "The process that ran this test ended with -9." in printed
    flaky = [line.strip("= ") for line in printed.splitlines() if "flaky: " in line]
    tests = ["test_by_chance[a b]", "test_by_chance[c::d]", "test_with_a_bad_end"]
    assert sorted(flaky) == [f"flaky: test_it.py::{test}" for test in tests]
    assert "2 failed, 6 passed, 1 skipped, 3 deselected in" in printed.splitlines()[-1]


@pytest.mark.thorough("two runs of pytest")
@pytest.mark.slow("runs of pytest")
def test_a_flaky_test_fails_the_thorough_tier_alone(tmp_path: Path) -> None:
    chosen = ("-k", "good or chance")
    assert run(tmp_path, *chosen)[0] == 0
    for marker in tmp_path.glob("called*"):
        marker.unlink()
    status, printed = run(tmp_path, *chosen, "--tier", "thorough")
    assert (status, printed.count("flaky: ")) == (1, 2)


@pytest.mark.thorough("another run of pytest")
@pytest.mark.slow("a run of pytest")
def test_a_run_can_stop_at_the_first_failure(tmp_path: Path) -> None:
    status, printed = run(tmp_path, "-x", "-k", "bad")
    assert status == 1
    assert "flaky" not in printed


def test_a_sample_is_spread_over_all_cases_from_the_first_on() -> None:
    assert [spread(range(10), count) for count in (1, 2, 3, 20)] == [[0], [0, 5], [0, 3, 6], [*range(10)]]


def test_the_longest_share_is_the_first_and_a_file_may_stay_in_one() -> None:
    files, seconds = ["a", "a", "b", "b", "c", "c"], [0.1, 0.2, SHARE, SHARE, 0.9, 0.9]
    assert shares(files, seconds, whole={"c"}) == [range(4, 6), range(2, 3), range(3, 4), range(2)]


def test_the_seconds_of_a_test_that_is_gone_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "b.py").touch()
    seconds = {"a.py::test_old": 1.0, "a.py::test_new": 2.0, "b.py::test_other": 3.0, "c.py::test_of_no_file": 4.0}
    assert [*still_there(seconds, {"a.py::test_new"}, ["a.py"], tmp_path).values()] == [2.0, 3.0]
    assert [*still_there(seconds, {"a.py::test_new"}, ["a.py::test_new"], tmp_path).values()] == [1.0, 2.0, 3.0]
