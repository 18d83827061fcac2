"""All checks, fastest first: style, types, tests. ``python -m tests`` from the repository's root."""

import subprocess
import sys

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("pytest", "-q"),
)


def main() -> int:
    """Run every check with this interpreter; the exit status is that of the first one that fails."""
    for check in CHECKS:
        print("$", *check, flush=True)
        status = subprocess.run(
            [sys.executable, "-m", *check, *(sys.argv[1:] if check[0] == "pytest" else ())]
        ).returncode
        if status:
            return status
    return 0


sys.exit(main())
