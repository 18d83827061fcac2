"""The table of what was found of which mutant:

python -m tests.mutants [--hosts | --memory | --budgets | --later | --behaviour | --rules | --spending | --steering |
                         --hashes | --sleep | --interleavings | --killing | --decisions | --durable | --street |
                         --questions | --builds | --batches | --accounts]
                        [--examples N] [--seconds S] [NAME …]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.mutants import MUTANTS, Mutant
from tests.mutants.accounts import ACCOUNT_MUTANTS
from tests.mutants.batches import BATCH_MUTANTS
from tests.mutants.behaviour import BEHAVIOUR_MUTANTS
from tests.mutants.budgets import BUDGET_MUTANTS
from tests.mutants.builds import BUILD_MUTANTS
from tests.mutants.decisions import DECISION_MUTANTS
from tests.mutants.durable import DURABLE_MUTANTS
from tests.mutants.hashes import HASH_MUTANTS
from tests.mutants.hosts import HOST_MUTANTS
from tests.mutants.interleavings import INTERLEAVING_MUTANTS
from tests.mutants.killing import KILLING_MUTANTS
from tests.mutants.later import LATER_MUTANTS
from tests.mutants.memory import MEMORY_MUTANTS
from tests.mutants.questions import QUESTION_MUTANTS
from tests.mutants.rules import RULE_MUTANTS
from tests.mutants.sleep import SLEEP_MUTANTS
from tests.mutants.spending import SPENDING_MUTANTS
from tests.mutants.steering import STEERING_MUTANTS, STEERING_MUTANTS_OF_HOSTS
from tests.mutants.street import STREET_MUTANTS

ROOT = Path(__file__).parents[2]

HUNTED = {
    "hosts": (*HOST_MUTANTS, *STEERING_MUTANTS_OF_HOSTS),
    "budgets": (*BUDGET_MUTANTS, *SPENDING_MUTANTS),
    "behaviour": BEHAVIOUR_MUTANTS,
}
"""The mutants that have a machine of their own, by the name under which it hunts."""

LOADED = 15
"""So many times as long as the processor works on it a hunt may last, on a machine that has other work."""


def changed(mutant: Mutant) -> dict[str, str]:
    """The files below the package that a mutant changes, as it has them. Raises `ValueError` when it has no place."""
    texts: dict[str, str] = {}
    for edit in mutant.edits:
        text = texts.get(edit.file) or (ROOT / "ikigai_actors" / edit.file).read_text(encoding="utf-8")
        if (count := text.count(edit.before)) != 1:
            raise ValueError(f"{mutant.name}: {edit.file} has the text {edit.before!r} {count} times, expected once.")
        texts[edit.file] = text.replace(edit.before, edit.after)
    return texts


def plant(mutant: Mutant, where: Path) -> None:
    """Copy the runtime, with this one bug. Raises `ValueError` when there is no place for it."""
    texts = changed(mutant)
    for part in ("ikigai_actors", "supervisors", "tests"):
        shutil.copytree(ROOT / part, where / part, ignore=shutil.ignore_patterns("__pycache__"))
    (where / "docs" / "integrate").mkdir(parents=True)
    for part in ("schema.sql", "pyproject.toml", "docs/integrate/openapi.json"):
        shutil.copy(ROOT / part, where / part)
    for name, text in texts.items():
        (where / "ikigai_actors" / name).write_text(text, encoding="utf-8")


def hunt(mutant: Mutant, examples: int, seconds: float, shrink: bool) -> dict[str, Any]:
    """What the machine finds of a mutant: ``found`` and ``by``, and ``steps`` when it shrinks; nothing, if nothing.

    Args:
        mutant: the bug.
        examples: how many programs are tried.
        seconds: of the processor's time, shrinking included.
        shrink: whether the program that was found is shrunk.
    """
    with tempfile.TemporaryDirectory() as made:
        where = Path(made)
        plant(mutant, where)
        if mutant.test:
            return found_by_test(mutant, where)
        if mutant in INTERLEAVING_MUTANTS:
            return found_by_interleavings(examples, where)
        command = [
            sys.executable,
            "-m",
            "tests.mutants.hunt",
            str(examples),
            str(seconds),
            *(["shrink"] if shrink else []),
            *(kind for kind, some in HUNTED.items() if mutant in some),
        ]
        known = {"HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis")}  # what it finds out once for all
        environment = {**known, **os.environ, "PYTHONPATH": str(where)}
        with (where / "out").open("w+", encoding="utf-8") as out:
            process = subprocess.Popen(command, cwd=where, env=environment, stdout=out, stderr=subprocess.DEVNULL)
            try:
                process.wait(seconds * LOADED)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            out.seek(0)
            finding: dict[str, Any] = {}
            for line in out.read().splitlines():
                if line.startswith("{"):  # Hypothesis prints too
                    finding |= json.loads(line)
            return finding


def found_by_test(mutant: Mutant, where: Path) -> dict[str, Any]:
    """Which test of its file fails first in a copy of the runtime; nothing, if none does.

    Raises `RuntimeError` where no test ran.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--tier", mutant.tier, mutant.test]
    environment = {**os.environ, "PYTHONPATH": str(where)}
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    try:
        return finding_in(done.stdout)
    except ValueError:
        raise RuntimeError(f"{mutant.name}: no test of {mutant.test} ran:\n{done.stdout}{done.stderr}") from None


def finding_in(output: str) -> dict[str, Any]:
    """What pytest says: which test failed first, or nothing. Raises `ValueError` where no test ran at all.

    A selection without tests finds nothing of any mutant, so it must not look like a test that passes.
    """
    failed = re.search(r"^(?:FAILED|ERROR) \S+::(\w+)", output, re.MULTILINE)
    if failed is not None:
        return {"by": failed[1]}
    if re.search(r"^(?:.*\D)?[1-9]\d* passed", output, re.MULTILINE) is None:
        raise ValueError
    return {}


def found_by_interleavings(most: int, where: Path) -> dict[str, Any]:
    """The first interleaving of `tests.jar` that goes wrong in a copy of the runtime; nothing, if none does."""
    command = [sys.executable, "-m", "tests.jar", "--first", "--interleavings", str(most)]
    environment = {**os.environ, "PYTHONPATH": str(where)}
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    wrong = re.search(r"^seed (\d+): ([^;\n]*)", done.stdout, re.MULTILINE)
    return {"found": int(wrong[1]), "by": wrong[2]} if wrong is not None else {}


def main() -> None:
    """Hunt them, some at a time."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--examples", type=int, default=2500)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--hosts", action="store_true", help="those of several hosts")
    parser.add_argument("--memory", action="store_true", help="those of what agents remember")
    parser.add_argument("--budgets", action="store_true", help="those of budgets")
    parser.add_argument("--behaviour", action="store_true", help="those of experiments")
    parser.add_argument("--later", action="store_true", help="those of timers, heartbeats, groups and monitors")
    parser.add_argument("--rules", action="store_true", help="those of rules about tools")
    parser.add_argument("--spending", action="store_true", help="those of keys, labels and their sums")
    parser.add_argument("--steering", action="store_true", help="those of words into turns")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--hashes", action="store_true", help="those of the hashes of histories")
    parser.add_argument("--sleep", action="store_true", help="those of agents that sleep")
    parser.add_argument("--killing", action="store_true", help="those of the kill of a branch")
    parser.add_argument("--interleavings", action="store_true", help="those of transactions on PostgreSQL")
    parser.add_argument(
        "--decisions", action="store_true", help="those of decisions that are gone through case by case"
    )
    parser.add_argument("--durable", action="store_true", help="those of INT in order, turns that go on, and keys")
    parser.add_argument("--street", action="store_true", help="those of the network API")
    parser.add_argument("--questions", action="store_true", help="those of questions to people")
    parser.add_argument("--builds", action="store_true", help="those of builds and versions beside one another")
    parser.add_argument("--accounts", action="store_true", help="those of accounts at remote MCP servers")
    parser.add_argument("--batches", action="store_true", help="those of requests that wait for a batch")
    options = parser.parse_args()
    kinds = {
        "hosts": HOST_MUTANTS,
        "memory": MEMORY_MUTANTS,
        "budgets": BUDGET_MUTANTS,
        "later": LATER_MUTANTS,
        "behaviour": BEHAVIOUR_MUTANTS,
        "rules": RULE_MUTANTS,
        "spending": SPENDING_MUTANTS,
        "hashes": HASH_MUTANTS,
        "sleep": SLEEP_MUTANTS,
        "killing": KILLING_MUTANTS,
        "interleavings": INTERLEAVING_MUTANTS,
        "decisions": DECISION_MUTANTS,
        "durable": DURABLE_MUTANTS,
        "street": STREET_MUTANTS,
        "questions": QUESTION_MUTANTS,
        "builds": BUILD_MUTANTS,
        "accounts": ACCOUNT_MUTANTS,
        "batches": BATCH_MUTANTS,
        "steering": (*STEERING_MUTANTS, *STEERING_MUTANTS_OF_HOSTS),
    }
    mutants = next((some for kind, some in kinds.items() if getattr(options, kind)), MUTANTS)
    chosen = [each for each in mutants if not options.names or any(name in each.name for name in options.names)]
    print("| mutant | found at example | by | shrunk to steps |\n|---|---:|---|---:|", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, finding in zip(
            chosen,
            pool.map(lambda mutant: hunt(mutant, options.examples, options.seconds, options.shrink), chosen),
            strict=True,
        ):
            steps = finding.get("steps", "") if options.shrink else ""
            print(f"| {mutant.name} | {finding.get('found', '-')} | {finding.get('by', '-')} | {steps} |", flush=True)


if __name__ == "__main__":
    main()
