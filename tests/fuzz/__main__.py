"""Try many examples of each property, new ones each time; the exit status is 1 when one failed."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.hostile import EXAMPLES

HERE = Path(__file__).parent


def main() -> int:
    """Read the arguments, and run the properties."""
    surfaces = sorted(file.stem.removeprefix("test_") for file in HERE.glob("test_*.py"))
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=1000, help="how many of each property")
    parser.add_argument("--surface", choices=surfaces, action="append", help="these alone")
    options = parser.parse_args()
    files = [str(HERE / f"test_{surface}.py") for surface in options.surface or surfaces]
    command = [sys.executable, "-m", "pytest", "-q", "-o", "timeout=0", "--durations=0", *files]
    return subprocess.run(command, env={**os.environ, EXAMPLES: str(options.examples)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
