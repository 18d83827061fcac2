"""All checks, fastest first: style, types, tests. ``python -m tests`` from the repository's root.

What follows goes to pytest: ``python -m tests -n 0 -x tests/store`` runs one folder, and stops at a failure.
A test that fails runs once more, alone: see `tests.kit.rerun`.
"""

import os
import subprocess
import sys

# Tracebacks without carets: to place them CPython 3.11 parses the line, and of two threads that do so at once one gets
# a SystemError. It may be the one that reports a failure.
os.environ["PYTHONNODEBUGRANGES"] = "1"

# The tests start about a thousand programs: each would compile the package anew, which takes half of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

WORKERS = min(8, (os.cpu_count() or 1) + 1)
"""Processes that run tests. One more than there are processors: many a test waits for a program."""

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("tests.kit.rerun", "-q", "-n", str(WORKERS), "--dist", "worksteal"),
)


def main() -> int:
    """Run every check with this interpreter; the exit status is that of the first one that fails."""
    for check in CHECKS:
        print("$", *check, flush=True)
        status = subprocess.run(
            [sys.executable, "-m", *check, *(sys.argv[1:] if check[0] == "tests.kit.rerun" else ())]
        ).returncode
        if status:
            return status
    return 0


sys.exit(main())
