"""All checks: style, types, tests. ``python -m tests`` from the repository's root.

    python -m tests quick          after each change
    python -m tests                before each stop, and in CI
    python -m tests thorough       before a release: every test, and then the campaigns

What follows goes to pytest: ``python -m tests quick -x tests/store`` runs one folder, and stops at a failure. What each
tier holds is said by `tests.kit.tiers`, and how the tests run by `tests.kit.workers`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# Tracebacks without carets: to place them CPython 3.11 parses the line, and of two threads that do so at once one gets
# a SystemError. It may be the one that reports a failure.
os.environ["PYTHONNODEBUGRANGES"] = "1"

# The tests start hundreds of programs: each would compile the package anew, which takes half of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

TIERS = ("quick", "standard", "thorough")

PROCESSORS = os.cpu_count() or 1

WORKERS = {"quick": PROCESSORS + 1, "standard": 4 * PROCESSORS, "thorough": 2 * PROCESSORS}
"""Processes that run tests, at most 12: many a test beyond the quick ones waits."""

STYLE = (("ruff", "check", "."), ("ruff", "format", "--check", "."))

PLUGINS = ("pytest_timeout", "_hypothesis_pytestplugin", "ikigai_actors.testing.pytest_plugin")
"""Those of pytest that are loaded. Where it looks for plugins itself it finds one in our package, all of whose modules
it then rewrites for the sake of their assertions: seconds of a first run."""

TYPED = ("ikigai_actors", "supervisors", "examples")
"""Whose types each run checks; those of tests and benchmarks are a third of the time, for the thorough tier and CI."""


CAMPAIGNS = (
    ("tests.mutants", "--shrink", "--seconds", "300"),
    ("tests.mutants", "--hosts", "--seconds", "300"),
    ("tests.mutants", "--memory", "--shrink", "--seconds", "300"),
    ("tests.fuzz",),
    ("tests.torture", "--kills", "300"),
    ("tests.torture.fleet", "--faults", "300"),
    ("tests.soak", "--minutes", "60"),
)
"""What runs for hours, behind the tests of the thorough tier."""


MEMORY = Path("/dev/shm")
"""Where files cost no disk. What a crash of the machine would leave is no test's matter."""

ROOM = 4 * 1024**3
"""Bytes that must be free there."""


def temporary_files(tier: str) -> "tempfile.TemporaryDirectory[str]":
    """Where tests make their files."""
    in_memory = tier != "thorough" and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    return tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None, ignore_cleanup_errors=True)


def command(module: Sequence[str]) -> list[str]:
    """Run a module with this interpreter; it is told."""
    print("$", *module, flush=True)
    return [sys.executable, "-m", *module]


def main(arguments: Sequence[str]) -> int:
    """Run every check; the exit status is that of the first one that fails."""
    tier, rest = (arguments[0], arguments[1:]) if arguments and arguments[0] in TIERS else ("standard", arguments)
    for check in STYLE:
        if status := subprocess.run(command(check)).returncode:
            return status
    plugins = ["--disable-plugin-autoload", *(f"-p{name}" for name in PLUGINS)]
    options = [*plugins, "-q", "--workers", str(min(12, WORKERS[tier])), "--tier", tier]
    with (
        temporary_files(tier) as folder,
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            command(["mypy", *(() if tier == "thorough" else TYPED)]), stdout=output, stderr=output
        ) as types,
    ):
        Path(folder).chmod(0o755)  # the user of PostgreSQL must be able to enter it
        environment = {**os.environ, "TMPDIR": folder}
        status = subprocess.run(command(["pytest", *options, *rest]), env=environment).returncode
        if types.wait():
            output.seek(0)
            print("$ mypy", output.read().decode(), sep="\n", flush=True)
        if status := status or types.returncode:
            return status
    if tier != "thorough" or rest:
        return 0
    return next((status for campaign in CAMPAIGNS if (status := subprocess.run(command(campaign)).returncode)), 0)


sys.exit(main(sys.argv[1:]))
