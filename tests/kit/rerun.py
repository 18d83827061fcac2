"""pytest, and at its end each test that failed once more, alone: ``python -m tests.kit.rerun [ARGUMENT OF PYTEST …]``.

What fails again fails the run. What passes then is *flaky*: the last lines name it, and the exit status is 0, for a
test that fails by chance shall not hold up what was finished beside it. It is a defect all the same, and fails a run of
the thorough tier.

A run that did not come to its end is never excused: a crash, an interrupt, an error of collection, ``-x``.
"""

import json
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

AT_MOST = 10
"""Failures; so many may be chance. Of a run with more nothing runs again."""

ALONE = ("-n", "0", "--junitxml=")
"""Options of a test's second run: in one process, and without touching the report of the first."""


@dataclass(frozen=True)
class Run:
    """What a run of pytest came to."""

    status: int
    """Its exit status."""
    outcomes: Mapping[str, str]
    """By each test's node id: ``passed``, ``skipped`` or ``failed``."""
    paths: Sequence[str] = ()
    """Arguments that are no options: files, directories, node ids."""
    whole: bool = False
    """Whether every test that was chosen ran to its end."""


def suspects(run: Run) -> tuple[str, ...]:
    """The node ids of the tests that run once more."""
    failed = tuple(test for test, outcome in run.outcomes.items() if outcome == "failed")
    if run.status != pytest.ExitCode.TESTS_FAILED or not run.whole or len(failed) > AT_MOST:
        return ()
    return failed


def passes(run: Run, test: str) -> bool:
    """Whether a run of one test excuses it."""
    return run.status == pytest.ExitCode.OK and run.outcomes == {test: "passed"}


def verdict(run: Run, flaky: Collection[str], seconds: float) -> tuple[int, str]:
    """The exit status, and the closing lines: which tests are flaky, and what ran as pytest says it."""
    lines = [f"flaky: {test} failed, and passed when it ran alone. That is a defect: mend it first." for test in flaky]
    counts = Counter("passed" if test in flaky else outcome for test, outcome in run.outcomes.items())
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("failed", "passed", "skipped") if counts[outcome])
    return (run.status if counts["failed"] else 0), "\n".join([*lines, f"{told} in {seconds:.2f}s"])


def run_pytest(arguments: Sequence[str]) -> Run:
    """Run it in a process of its own, which prints as ever."""
    print("$", shlex.join(["pytest", *arguments]), flush=True)
    with TemporaryDirectory() as folder:
        written = Path(folder) / "outcomes.json"
        watched = ("-p", "tests.kit.outcomes", f"--outcomes={written}")
        status = subprocess.run([sys.executable, "-m", "pytest", *watched, *arguments]).returncode
        return Run(status, **json.loads(written.read_text(encoding="utf-8"))) if written.exists() else Run(status, {})


def main(arguments: Sequence[str]) -> int:
    """Run pytest and what is suspect; the exit status is pytest's unless all that failed are flaky."""
    began = time.monotonic()
    run = run_pytest(arguments)
    tests = suspects(run)
    if not tests:
        return run.status
    options = [argument for argument in arguments if argument not in run.paths]
    flaky = [test for test in tests if passes(run_pytest([*options, *ALONE, test]), test)]
    status, lines = verdict(run, flaky, time.monotonic() - began)
    print(lines, flush=True)
    return run.status if "thorough" in arguments else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
