"""The command line: run the benchmarks that are named (all when none is), print their tables, keep their results."""

import argparse
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from benchmarks import (
    actors,
    batches,
    behaviour,
    budgets,
    cache,
    cascade,
    crowds,
    failover,
    fork,
    hooks,
    hosts,
    journal,
    keyboard,
    lifetime,
    long,
    mail,
    parked,
    plans,
    programs,
    reach,
    replay,
    replies,
    signals,
    simulation,
    sleepers,
    spread,
    streams,
    turn,
    words,
)
from benchmarks.machine import load, machine, versions
from benchmarks.places import Place, open_places
from benchmarks.results import RESULTS, Results, Row, Run, beside_ours, read, write
from benchmarks.table import figure, tables, times

BENCHMARKS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        fork,
        turn,
        long,
        replay,
        sleepers,
        parked,
        plans,
        programs,
        hooks,
        batches,
        lifetime,
        journal,
        hosts,
        budgets,
        actors,
        cache,
        streams,
        mail,
        reach,
        replies,
        failover,
        spread,
        keyboard,
        cascade,
        crowds,
        signals,
        simulation,
        behaviour,
        words,
    )
}
"""Each has ``run(places, quick)``, which gives its rows, and says in its docstring what they mean."""

SETS = {
    "scale": (
        "sleepers", "plans", "turn", "long", "budgets", "actors", "cascade", "hosts", "reach", "signals", "replies",
    ),
}  # fmt: skip
"""Names for several: ``scale`` is what shows how far one database goes, in less than 25 minutes."""


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure ikigai-actors beside its peers.")
    names = ", ".join((*BENCHMARKS, *SETS))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {names}; all when none is named")
    parser.add_argument("--results", type=Path, metavar="FILE", help="put the runs into this file; others in it stay")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repetitions")
    parser.add_argument("--only", metavar="DATABASE", help="SQLite or PostgreSQL; both when not given")
    options = parser.parse_args()
    named = [each for name in options.names for each in SETS.get(name, (name,))]
    if unknown := [name for name in named if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]!r}; expected {names}")
    chosen = list(dict.fromkeys(named)) or list(BENCHMARKS)
    _expect(chosen, read(RESULTS), options.quick)
    began, failed = time.monotonic(), []
    with ExitStack() as stack:
        places = open_places(stack, options.only)
        for name in chosen:
            try:
                run = _run(BENCHMARKS[name], places, options.quick)
            except Exception:  # the others are worth having all the same
                traceback.print_exc()
                failed.append(name)
                continue
            print(f"\n## {name}\n\n{inspect.getdoc(BENCHMARKS[name])}\n\n{tables(run.rows)}", flush=True)
            if options.results is not None:
                write(options.results, _ordered(read(options.results) | {name: run}))
    print(f"\nAll of it took {time.monotonic() - began:.0f} s.")
    if failed:
        sys.exit(f"Failed, see above: {', '.join(failed)}.")


def _run(module: ModuleType, places: list[Place], quick: bool) -> Run:
    measure: Callable[[list[Place], bool], Iterator[Row]] = module.run
    date, began, before = datetime.now(UTC), time.monotonic(), load()
    rows: list[Row] = []
    for row in measure(places, quick):
        print(
            f"{row.name}, {row.who}, {row.backend} {row.size:,} {row.counted}: {figure(row)} {times(row.ratio)}",
            file=sys.stderr,
        )
        rows.append(row)
    return Run(
        date=date.isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - began, 1),
        quick=quick,
        load=(before, load()),
        machine=machine(),
        versions=versions(places),
        rows=tuple(beside_ours(rows)),
    )


def _expect(names: list[str], known: Results, quick: bool) -> None:
    """Say how long it took when the committed results were made."""
    if quick:
        print("Small sizes: about five minutes for all.", flush=True)
    elif taken := {name: known[name].seconds for name in names if name in known and not known[name].quick}:
        each = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in taken.items())
        print(f"Last time this took {sum(taken.values()) / 60:.0f} minutes: {each}.", flush=True)


def _ordered(results: Results) -> Results:
    return {name: results[name] for name in BENCHMARKS if name in results}


if __name__ == "__main__":
    main()
