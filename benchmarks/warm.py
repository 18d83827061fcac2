"""The calls of a warm prompt, turn, mail and fork, and their processor time beside that of other versions.

    python -m benchmarks.warm [TREE …] [--rounds N] [--pairs N]

A tree is a folder in which another version of the package lies, such as a worktree of git. The versions run in
alternation, a block each in each round, in a process each; shown is the least block of each, which other load on the
machine disturbs least. Calls and changes of file are of functions of the package alone (`tests.kit.calls`), on SQLite.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, cast

from benchmarks import warm_acts
from tests.kit.calls import Calls, Counted

RUNS = 50
"""Runs of what is counted."""
BLOCKS = {"turn": 3, "turn-with-a-budget": 3, "at-once": 64, "mail": 8, "fork": 5, "bulk-fork": 100}
"""How often each act is done in a block: what the scheduler of a busy machine leaves undisturbed for once."""
HERE = Path(__file__).parents[1]
SOURCE = Path(warm_acts.__file__)


class Version:
    """The acts of one tree, in a process of its own."""

    def __init__(self, tree: Path, stack: ExitStack) -> None:
        """Start it."""
        command = [sys.executable, "-c", SOURCE.read_text(encoding="utf-8")]
        process = stack.enter_context(
            subprocess.Popen(command, cwd=tree, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        self.name = tree.resolve().name
        self._out, self._in = cast(IO[str], process.stdin), cast(IO[str], process.stdout)
        if self._in.readline().strip() != "ready":
            raise SystemExit(f"The version in {tree} did not start: see above.")

    def block(self, act: str) -> float:
        """Microseconds of the processor for one act, as the mean of a block."""
        print(act, BLOCKS[act], file=self._out, flush=True)
        return float(self._in.readline())


def counted(runs: int = RUNS) -> dict[str, Counted]:
    """The calls of each act, and of a prompt until the model is asked."""
    with Calls() as calls:
        prompting = [False]
        with warm_acts.warm_acts(lambda: calls.end() if prompting[0] else None) as acts:
            result = {name: calls.of(acts[name], runs) for name in ("turn", "mail", "fork")}
            prompting[0] = True
            return {"prompt, until the model is asked": calls.of(acts["turn"], runs)} | result


def print_counts(pairs: int) -> None:
    """Print what each act calls, and between which files a prompt goes to and fro."""
    print(f"{'':36}{'calls':>8}{'files':>8}{'changes of file':>18}")
    all_counted = counted()
    for name, of in all_counted.items():
        print(f"{name:36}{of.calls:8.0f}{of.files:8}{of.changes:18.0f}")
    print("\nChanges of file of a turn, by the two files:")
    for (left, other), changes in all_counted["turn"].between.most_common(pairs):
        print(f"{changes / RUNS:8.1f}  {left} and {other}")


def print_times(trees: Sequence[Path], rounds: int) -> None:
    """Print the processor time of each act in each tree, and today's as a part of the others'."""
    with ExitStack() as stack:
        versions = [Version(tree, stack) for tree in (*trees, HERE)]
        least = {(version.name, act): float("inf") for version in versions for act in BLOCKS}
        for _ in range(rounds):
            for act in BLOCKS:
                for version in versions:
                    key = version.name, act
                    least[key] = min(least[key], version.block(act))
    names = [version.name for version in versions]
    print(f"\n{'processor time, µs':24}" + "".join(f"{name:>12}" for name in names) + "   today's part of each")
    for act in BLOCKS:
        values = [least[name, act] for name in names]
        parts = "".join(f"{values[-1] / value:8.2f}" for value in values[:-1])
        print(f"{act:24}" + "".join(f"{value:12.0f}" for value in values) + parts)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm", description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE", help="a folder with another version")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=25, help="how many pairs of files are shown")
    options = parser.parse_args()
    print_counts(options.pairs)
    print_times(options.trees, options.rounds)


if __name__ == "__main__":
    main()
