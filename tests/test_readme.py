"""The README cannot rot: its code runs, and its commands are those that are checked."""

import doctest
import re
from pathlib import Path

import pytest

from tests.program import run

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_the_code_in_the_readme_runs_as_printed() -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False)
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("then", ["@then ", ""], ids=["reply by reply", "in one reply"])
def test_the_fan_out_that_a_reader_can_paste_works(then: str) -> None:
    script = re.search(r"^ikigai --provider offline <<'END'\n(.*?)^END$", README.read_text("utf-8"), re.M | re.S)
    assert script is not None
    done = run("--provider", "offline", lines=script[1].replace("@then ", then))
    assert done.returncode == 0
    assert [len(re.findall(rf"^\[{name}: ", done.stdout, re.M)) for name in ("fork", "wait", "read_mail")] == [3, 1, 1]
    answer = done.stdout[done.stdout.index("read_mail gave: ") :].splitlines()
    assert {"of oak", "of pine", "of elm"} <= set(answer)


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    [command] = [
        line for line in README.read_text(encoding="utf-8").splitlines() if "-m tests" in line and "venv" in line
    ]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
