"""The README cannot rot: its code runs, and its commands are those that are checked."""

import doctest
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_the_code_in_the_readme_runs_as_printed() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    [command] = [
        line for line in README.read_text(encoding="utf-8").splitlines() if "-m tests" in line and "venv" in line
    ]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
