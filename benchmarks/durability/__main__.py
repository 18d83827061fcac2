"""Plays runs of the durability benchmark, judges kept histories, and writes the report."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from subprocess import CalledProcessError

from benchmarks.durability import clocks, report
from benchmarks.durability.convictions import lines
from benchmarks.durability.faults import KILLS, KINDS, Moment, moments_of
from benchmarks.durability.history import Play, append, read
from benchmarks.durability.play import Setting, play
from benchmarks.durability.runtimes import RUNTIMES, Runtime, is_prepared, prepare
from benchmarks.durability.servers import Server, start
from benchmarks.durability.verdict import Verdict, judge

TRIES = 4
"""Times that a play is tried whose fault did not land."""


def main() -> None:
    """Carry out a command line."""
    if sys.argv[1:2] in (["judge"], ["convictions"]):
        for record in (record for file in sys.argv[2:] for record in read(Path(file))):
            if sys.argv[1] == "judge":
                show(record, judge(record))
            else:
                for line in lines(record, judge(record)):
                    print(line)
    elif sys.argv[1:2] == ["report"]:
        print(report.write(Path(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None))
    else:
        run(_options())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durability")
    parser.add_argument("runtimes", nargs="*", help=f"some of {', '.join(RUNTIMES)}")
    parser.add_argument("--repeat", type=int, default=1, help="plays of each moment")
    parser.add_argument(
        "--faults", nargs="*", default=[], type=_fault, metavar="KIND[=N]", help="N in place of --repeat"
    )
    parser.add_argument("--moments", default="", help="only those with this text in their names")
    parser.add_argument("--seed", type=int, default=1, help="gives the order of the plays and the names of the runs")
    parser.add_argument("--prepare", action="store_true", help="install the packages of the runtimes first")
    parser.add_argument("--out", type=Path, default=Path("durability"), help="where histories and logs go")
    options = parser.parse_args()
    if unknown := [name for name in options.runtimes if name not in RUNTIMES]:
        parser.error(f"there is no runtime {', '.join(unknown)}. There are: {', '.join(RUNTIMES)}")
    return options


def _fault(text: str) -> tuple[str, int | None]:
    kind, _, count = text.partition("=")
    if kind not in KINDS or not (count or "1").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no KIND or KIND=N. Kinds: {', '.join(KINDS)}")
    return kind, int(count) if count else None


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
        for again in range(TRIES):
            # One server may hold all plays, so each has runs of other names.
            record = play(replace(setting, seed=setting.seed + again), server, log)
            verdict = judge(record)
            append(histories, record)
            show(record, verdict)
            if verdict.landed:
                break


def _settings(runtime: Runtime, options: argparse.Namespace) -> Iterator[Setting]:
    seed = Random(options.seed)
    for kind, count in (("undisturbed", None), *(options.faults or ((kind, None) for kind in KINDS))):
        if kind == "clock" and not clocks.can_be_set():
            print(f"{runtime.name}: clock: not possible here: it needs Linux and a C compiler", flush=True)
            continue
        for task, moment, keys in _plays(kind, runtime):
            if options.moments in (moment.name if moment else "undisturbed"):
                for _ in range(count or options.repeat):
                    yield Setting(runtime, task, moment, keys, seed.getrandbits(32))


def _plays(kind: str, runtime: Runtime) -> Iterator[tuple[str, Moment | None, bool]]:
    task = kind if kind in ("cancel", "two runs") else "run"
    if kind in ("undisturbed", "two runs"):
        yield task, None, True
    for moment in (KILLS[9], KILLS[10]) if kind == "two runs" else moments_of(kind, runtime):
        yield task, moment, True
        if moment.effect:
            yield task, moment, False


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
