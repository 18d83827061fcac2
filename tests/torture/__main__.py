"""Torture SQLite and PostgreSQL, print what was seen; the exit status is 1 when something was violated.

PostgreSQL is the server that the tests use: the one that ``IKIGAI_TEST_DATABASE_URL`` names, else one from a wheel.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from tests.kit.databases import postgres_database, postgres_server
from tests.torture.campaign import torture


@contextmanager
def databases(kind: str, place: Path) -> Iterator[Callable[[], str]]:
    """A source of empty databases."""
    if kind == "sqlite":
        numbers = count(1)
        yield lambda: f"sqlite:///{place / f'{next(numbers)}.db'}"
        return
    with postgres_server() as url, psycopg.connect(url, autocommit=True) as admin, ExitStack() as made:
        yield lambda: made.enter_context(postgres_database(url, admin))


def main() -> int:
    """Read the arguments, run the campaigns."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many, on each database")
    parser.add_argument("--seed", type=int, default=1, help="chooses moments, agents and commands")
    parser.add_argument("--database", choices=("sqlite", "postgres"), help="this one only")
    options = parser.parse_args()
    violated = False
    for kind in (options.database,) if options.database else ("sqlite", "postgres"):
        with TemporaryDirectory() as directory, databases(kind, Path(directory)) as new_database:
            tally = torture(new_database, Path(directory), options.kills, options.seed)
        print(tally.summary(kind, options.seed), flush=True)
        violated = violated or bool(tally.violations)
    return int(violated)


if __name__ == "__main__":
    sys.exit(main())
