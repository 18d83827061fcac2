"""What failed in a run of the tests runs once more, alone, and only that excuses it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.program import PATIENCE
from tests.kit.rerun import AT_MOST, Run, suspects, verdict

ROOT = Path(__file__).parents[2]

GOOD = "def test_good(): pass\n"
BAD = "def test_bad(): assert 1 == 2\n"
FLAKY = """
from pathlib import Path
import pytest
def once(name):
    seen = Path(name)
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
@pytest.mark.parametrize("word", ["a b", "c::d"])
def test_by_chance(word):
    once(f"called {word}")
@pytest.fixture
def thing():
    yield
    once("torn down")
def test_with_a_bad_end(thing): pass
"""
SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_skipped(): pass\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a suite is made up; pytest takes nothing from elsewhere."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str, **files: str) -> tuple[int, str]:
    """The exit status of a run of these test files, and what it printed."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.kit.rerun", "-q", "-p", "xdist.plugin", *arguments],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def closing(printed: str, lines: int) -> list[str]:
    """The last lines, without seconds."""
    return [re.sub(r" in \d+\.\d\ds$", "", line) for line in printed.splitlines()[-lines:]]


@pytest.mark.slow("a run of pytest, and others for what failed")
def test_what_passes_alone_is_named_as_flaky_and_does_not_fail_the_run(folder: Path) -> None:
    status, printed = run(folder, good=GOOD, flaky=FLAKY, skipped=SKIPPED)
    assert status == 0
    *flaky, last = closing(printed, 4)
    tests = ["test_by_chance[a b]", "test_by_chance[c::d]", "test_with_a_bad_end"]
    said = "failed, and passed when it ran alone. That is a defect: mend it first."
    assert sorted(flaky) == [f"flaky: test_flaky.py::{test} {said}" for test in tests]
    assert last == "4 passed, 1 skipped"


@pytest.mark.slow("a run of pytest, and others for what failed")
def test_what_fails_again_fails_the_run(folder: Path) -> None:
    status, printed = run(folder, "-n", "2", good=GOOD, bad=BAD, flaky=FLAKY)
    assert status == 1
    assert printed.count("assert 1 == 2") >= 2
    assert "flaky: test_bad.py" not in printed
    assert closing(printed, 1) == ["1 failed, 4 passed"]


def test_of_many_failures_none_runs_again() -> None:
    few = {f"test_{number}": "failed" for number in range(AT_MOST)}
    assert suspects(Run(1, few, whole=True)) == tuple(few)
    assert suspects(Run(1, {**few, "test_more": "failed"}, whole=True)) == ()


@pytest.mark.slow("takes half a second")
@pytest.mark.parametrize("status", sorted(pytest.ExitCode))
def test_only_failures_of_tests_run_again(status: int) -> None:
    assert bool(suspects(Run(status, {"test": "failed"}, whole=True))) == (status == pytest.ExitCode.TESTS_FAILED)
    assert not suspects(Run(status, {"test": "failed"}, whole=False))


def test_the_verdict_is_that_of_the_second_run() -> None:
    first = Run(1, {"a": "failed", "b": "failed", "c": "passed", "d": "skipped"}, whole=True)
    a, b = (f"flaky: {test} failed, and passed when it ran alone. That is a defect: mend it first." for test in "ab")
    assert verdict(first, ["a"], 2.0) == (1, f"{a}\n1 failed, 2 passed, 1 skipped in 2.00s")
    assert verdict(first, ["a", "b"], 2.0) == (0, f"{a}\n{b}\n3 passed, 1 skipped in 2.00s")
