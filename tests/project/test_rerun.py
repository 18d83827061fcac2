"""What failed in a run of the tests runs once more, alone, and only that excuses it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.program import PATIENCE
from tests.kit.rerun import ALONE, AT_MOST, Run, suspects, verdict

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
CRASH = "import os\ndef test_crash(): os._exit(7)\n"
CRASH_ONCE = """
import os
from pathlib import Path
def test_crash():
    if not Path("crashed").exists():
        Path("crashed").touch()
        os._exit(7)
"""


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


def test_what_passes_alone_is_named_as_flaky_and_does_not_fail_the_run(folder: Path) -> None:
    status, printed = run(folder, good=GOOD, flaky=FLAKY, skipped=SKIPPED)
    assert status == 0
    *flaky, last = closing(printed, 4)
    tests = ["test_by_chance[a b]", "test_by_chance[c::d]", "test_with_a_bad_end"]
    said = "failed, and passed when it ran alone. That is a defect: mend it first."
    assert sorted(flaky) == [f"flaky: test_flaky.py::{test} {said}" for test in tests]
    assert last == "4 passed, 1 skipped"


def test_what_fails_again_fails_the_run(folder: Path) -> None:
    status, printed = run(folder, "-n", "2", good=GOOD, bad=BAD, flaky=FLAKY)
    assert status == 1
    assert printed.count("assert 1 == 2") >= 2
    assert "flaky: test_bad.py" not in printed
    assert closing(printed, 1) == ["1 failed, 4 passed"]


def test_a_test_that_is_skipped_the_second_time_is_not_excused(folder: Path) -> None:
    text = FLAKY.replace("    if not seen.exists():", "    if seen.exists(): pytest.skip()\n    else:")
    status, printed = run(folder, flaky=text)
    assert (status, closing(printed, 1)) == (1, ["3 failed"])


def test_a_process_that_crashes_is_not_excused(folder: Path) -> None:
    status, printed = run(folder, "-n", "2", good=GOOD, crash=CRASH_ONCE, flaky=FLAKY)
    assert status == 1
    assert printed.count("$ pytest") == 1
    assert "crashed while running 'test_crash.py::test_crash'" in printed


def test_a_crash_of_the_whole_run_is_not_excused(folder: Path) -> None:
    status, printed = run(folder, "-n", "0", crash=CRASH)
    assert (status, printed.count("$ pytest")) == (7, 1)


def test_an_error_of_collection_is_not_excused(folder: Path) -> None:
    options = ("-n", "2", "--continue-on-collection-errors")
    status, printed = run(folder, *options, flaky=FLAKY, broken="import not_there\n")
    assert status != 0
    assert printed.count("$ pytest") == 1


def test_nothing_collected_is_told_by_the_status(folder: Path) -> None:
    assert run(folder, "-k", "nothing", good=GOOD)[0] == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_run_that_stopped_at_a_failure_is_not_excused(folder: Path) -> None:
    status, printed = run(folder, "-n", "0", "-x", "test_flaky.py", "test_good.py", flaky=FLAKY, good=GOOD)
    assert status != 0
    assert printed.count("$ pytest") == 1


def test_options_hold_in_the_second_run_and_paths_do_not(folder: Path) -> None:
    arguments = ("-n", "2", "-k", "chance or bad", "--junitxml=report.xml", "-o", "console_output_style=count")
    status, printed = run(folder, *arguments, "test_flaky.py", "test_bad.py", flaky=FLAKY, bad=BAD, good=GOOD)
    assert (status, closing(printed, 1)) == (1, ["1 failed, 3 passed"])
    second = next(line for line in printed.splitlines() if line.startswith("$ pytest") and "[a b]" in line)
    command = ["pytest", "-q", "-p", "xdist.plugin", *arguments, *ALONE, "test_flaky.py::test_by_chance[a b]"]
    assert second == f"$ {shlex.join(command)}"
    assert '<testsuite name="pytest" errors="1" failures="3"' in (folder / "report.xml").read_text(encoding="utf-8")


def test_a_run_without_failures_is_pytests_own(folder: Path) -> None:
    status, printed = run(folder, good=GOOD)
    assert (status, closing(printed, 1)) == (0, ["1 passed"])


def test_of_many_failures_none_runs_again() -> None:
    few = {f"test_{number}": "failed" for number in range(AT_MOST)}
    assert suspects(Run(1, few, whole=True)) == tuple(few)
    assert suspects(Run(1, {**few, "test_more": "failed"}, whole=True)) == ()


@pytest.mark.parametrize("status", sorted(pytest.ExitCode))
def test_only_failures_of_tests_run_again(status: int) -> None:
    assert bool(suspects(Run(status, {"test": "failed"}, whole=True))) == (status == pytest.ExitCode.TESTS_FAILED)
    assert not suspects(Run(status, {"test": "failed"}, whole=False))


def test_the_verdict_is_that_of_the_second_run() -> None:
    first = Run(1, {"a": "failed", "b": "failed", "c": "passed", "d": "skipped"}, whole=True)
    a, b = (f"flaky: {test} failed, and passed when it ran alone. That is a defect: mend it first." for test in "ab")
    assert verdict(first, ["a"], 2.0) == (1, f"{a}\n1 failed, 2 passed, 1 skipped in 2.00s")
    assert verdict(first, ["a", "b"], 2.0) == (0, f"{a}\n{b}\n3 passed, 1 skipped in 2.00s")
