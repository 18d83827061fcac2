"""Plays runs of the durability benchmark, judges kept histories, and writes the report."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from random import Random
from subprocess import CalledProcessError

from benchmarks.durability import clocks, report
from benchmarks.durability.faults import CANCELS, CLOCKS, CRASHES, CUTS, KILLS, KINDS, SLOW, STOPS, Moment
from benchmarks.durability.history import Play, append, read
from benchmarks.durability.play import Setting, play
from benchmarks.durability.runtimes import RUNTIMES, Runtime, is_prepared, prepare
from benchmarks.durability.servers import Server, start
from benchmarks.durability.verdict import Verdict, judge

TRIES = 4
"""Times that a play is tried whose fault did not land."""


def main() -> None:
    """Carry out a command line."""
    if sys.argv[1:2] == ["judge"]:
        for file in sys.argv[2:]:
            for record in read(Path(file)):
                show(record, judge(record))
    elif sys.argv[1:2] == ["report"]:
        print(report.write(Path(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None))
    else:
        run(_options())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durability")
    parser.add_argument("runtimes", nargs="*", help=f"some of {', '.join(RUNTIMES)}")
    parser.add_argument("--repeat", type=int, default=1, help="plays of each moment")
    parser.add_argument("--faults", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--moments", default="", help="only those with this text in their names")
    parser.add_argument("--seed", type=int, default=1, help="gives the order of the plays and the names of the runs")
    parser.add_argument("--prepare", action="store_true", help="install the packages of the runtimes first")
    parser.add_argument("--out", type=Path, default=Path("durability"), help="where histories and logs go")
    options = parser.parse_args()
    if unknown := [name for name in options.runtimes if name not in RUNTIMES]:
        parser.error(f"there is no runtime {', '.join(unknown)}. There are: {', '.join(RUNTIMES)}")
    return options


def run(options: argparse.Namespace) -> None:
    """Play all that is asked for. Each history is kept as soon as its play has ended."""
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.runtimes or [name for name in RUNTIMES if name != "naive"]:
        runtime = RUNTIMES[name]
        if options.prepare:
            try:
                prepare(runtime)
            except CalledProcessError as error:
                print(f"{name}: not run: its packages could not be installed ({error})", flush=True)
                continue
        if not is_prepared(runtime):
            print(f"{name}: not run: its packages are not installed. --prepare installs them.", flush=True)
            continue
        with ExitStack() as stack:
            _measure(runtime, start(stack, runtime), options)


def _measure(runtime: Runtime, server: Server, options: argparse.Namespace) -> None:
    histories, log = options.out / f"{runtime.name}.jsonl.gz", (options.out / f"{runtime.name}.log").resolve()
    settings = list(_settings(runtime, options))
    Random(options.seed).shuffle(settings)
    for setting in settings:
        for _ in range(TRIES):
            record = play(setting, server, log)
            verdict = judge(record)
            append(histories, record)
            show(record, verdict)
            if verdict.landed:
                break


def _settings(runtime: Runtime, options: argparse.Namespace) -> Iterator[Setting]:
    seed = Random(options.seed)
    for task, moment, keys in _plays(runtime, options.faults):
        if options.moments in (moment.name if moment else "undisturbed"):
            for _ in range(options.repeat):
                yield Setting(runtime, task, moment, keys, seed.getrandbits(32))


def _plays(runtime: Runtime, faults: list[str]) -> Iterator[tuple[str, Moment | None, bool]]:
    yield "run", None, True
    kinds: dict[str, tuple[Moment, ...]] = {
        "kill": KILLS,
        "stop": STOPS if runtime.hosts > 1 else (),
        "cut": CUTS if runtime.store == "postgresql" else (),
        "server": CRASHES if runtime.store != "directory" else (),
        "slow": SLOW,
        "clock": CLOCKS if clocks.can_be_set() else (),
    }
    for kind, moments in kinds.items():
        for moment in moments if kind in faults else ():
            yield "run", moment, True
            if moment.effect:
                yield "run", moment, False
    if "cancel" in faults and runtime.cancels:
        for moment in CANCELS:
            yield "cancel", moment, True
    if "two runs" in faults:
        yield "two runs", None, True
        yield "two runs", KILLS[9], True
        yield "two runs", KILLS[10], True


def show(record: Play, verdict: Verdict) -> None:
    """Print a play in a line."""
    values = {name: value for name, value in asdict(verdict).items() if value not in (0, None, "", False)}
    keys = "" if record.keys else ", no keys"
    text = ", ".join(
        f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
    print(f"{record.runtime}: {record.task}, {record.moment}{keys}: {text}", flush=True)


if __name__ == "__main__":
    main()
