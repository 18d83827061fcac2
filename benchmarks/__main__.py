"""The command line: run the benchmarks that are named (all when none is), print their tables as Markdown."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks import actors, cache, cascade, fork, journal, keyboard, machine, mail, replay, signals, streams
from benchmarks.places import Place, open_places
from benchmarks.table import Table

BENCHMARKS: dict[str, Callable[[list[Place], bool], Iterator[Table]]] = {
    "fork": fork.run,
    "replay": replay.run,
    "journal": journal.run,
    "actors": actors.run,
    "cache": cache.run,
    "streams": streams.run,
    "mail": mail.run,
    "keyboard": keyboard.run,
    "cascade": cascade.run,
    "signals": signals.run,
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure ikigai-actors beside its peers.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)}; all when none is named"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few repetitions: a minute instead of many"
    )
    parser.add_argument("--only", metavar="DATABASE", help="SQLite or PostgreSQL; both when not given")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; expected {', '.join(BENCHMARKS)}")
    tables: list[Table] = []
    with ExitStack() as stack:
        places = open_places(stack, options.only)
        description = machine.describe(places)
        print(description, flush=True)
        for name in options.names or BENCHMARKS:
            for table in BENCHMARKS[name](places, options.quick):
                print(f"\n{table}", flush=True)
                tables.append(table)
    if options.json is not None:
        figures = {"machine": description, "quick": options.quick, "tables": [table.figures() for table in tables]}
        options.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
