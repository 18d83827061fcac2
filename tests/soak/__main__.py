"""Soak SQLite and PostgreSQL, print what was seen; the exit status is 1 when something was violated.

PostgreSQL is a server from a wheel, or the one that ``IKIGAI_TEST_DATABASE_URL`` names, which is then not restarted.
"""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.conductor import long, soak


def main() -> int:
    """Read the arguments, run the soaks one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long, on each database")
    parser.add_argument("--seed", type=int, default=1, help="chooses disturbances, commands and the model's moods")
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--crowd", type=int, default=10_000, help="agents that wait, in the end")
    parser.add_argument("--report", type=Path, help="a file for the report, as JSON")
    options = parser.parse_args()
    reports = []
    for kind in ("sqlite", "postgres") if options.database == "both" else (options.database,):
        with TemporaryDirectory() as directory:
            report = soak(kind, long(options.minutes, options.crowd), options.seed, Path(directory))
        print(report.summary(), flush=True)
        reports.append(report)
        if options.report is not None:
            options.report.write_text(json.dumps([result.as_json() for result in reports], indent=2) + "\n")
    return int(any(report.violations for report in reports))


if __name__ == "__main__":
    sys.exit(main())
