"""``python -m tests.mutants [--examples N] [--seconds S] [--shrink] [NAME …]``: the table of what was found."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


def plant(mutant: Mutant, where: Path) -> None:
    """Copy the runtime, with this one bug. Raises `ValueError` when there is no place for it."""
    for part in ("ikigai_actors", "supervisors", "tests"):
        shutil.copytree(ROOT / part, where / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "schema.sql", where)
    file = where / "ikigai_actors" / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.before) != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} has its text {text.count(mutant.before)} times, expected once.")
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")


def hunt(mutant: Mutant, examples: int, seconds: float, shrink: bool) -> dict[str, Any]:
    """What the machine finds of a mutant."""
    with tempfile.TemporaryDirectory() as made:
        where = Path(made)
        plant(mutant, where)
        command = [sys.executable, "-m", "tests.mutants.hunt", str(examples), *(["shrink"] if shrink else [])]
        environment = {**os.environ, "PYTHONPATH": str(where)}
        with (where / "out").open("w+", encoding="utf-8") as out:
            process = subprocess.Popen(command, cwd=where, env=environment, stdout=out, stderr=subprocess.DEVNULL)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            out.seek(0)
            found: dict[str, Any] = {}
            for line in out.read().splitlines():
                if line.startswith("{"):  # Hypothesis prints too
                    found |= json.loads(line)
            return found


def main() -> None:
    """Hunt them, two at a time."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--shrink", action="store_true")
    given = parser.parse_args()
    chosen = [one for one in MUTANTS if not given.names or any(name in one.name for name in given.names)]
    print("| mutant | found at example | by | shrunk to |\n|---|---|---|---|")
    with ThreadPoolExecutor(2) as pool:
        for mutant, found in zip(
            chosen,
            pool.map(lambda one: hunt(one, given.examples, given.seconds, given.shrink), chosen),
            strict=True,
        ):
            steps = found.get("steps", "") if given.shrink else ""
            print(f"| {mutant.name} | {found.get('found', '-')} | {found.get('by', '-')} | {steps} |", flush=True)


if __name__ == "__main__":
    main()
