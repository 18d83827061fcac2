"""Interleave transactions on PostgreSQL; the exit status is 1 when one equals no order, or a wait did not come.

PostgreSQL is the server that the tests use: the one that ``IKIGAI_TEST_DATABASE_URL`` names, else one from a wheel.
"""

import argparse
import sys

import psycopg

from tests.jar.run import interleave
from tests.kit.databases import SchemaPool, postgres_server


def main() -> int:
    """Read the arguments, run the interleavings, print those that are wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.jar", description=__doc__)
    parser.add_argument("--interleavings", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first; each has the next one")
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--units", type=int, default=3, help="of each session")
    parser.add_argument("--first", action="store_true", help="end with the first one that is wrong")
    options = parser.parse_args()
    done = wrong = waits = 0
    with postgres_server() as server, psycopg.connect(server, autocommit=True) as admin:
        pool = SchemaPool(server, admin)
        for seed in range(options.seed, options.seed + options.interleavings):
            with pool.lend() as url:
                seen = interleave(url, admin, seed, options.sessions, options.units)
            done, waits = done + 1, waits + seen.waits
            if seen.problems:
                wrong += 1
                print(*seen.lines(), sep="\n", flush=True)
                if options.first:
                    break
        pool.close()
    print(f"{done} interleavings, {waits} waits, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
