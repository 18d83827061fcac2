"""Our supervisor, and the oracle, beside the real one of Erlang/OTP: ``python -m tests.kit.erlang_check``.

Its arguments are a number and a seed. It plays that many random scenarios (2,000 unless told) with all three and
compares the events. It needs `erl` and `erlc`, and half a minute of real time: Erlang's supervisor reads the clock
itself. No part of the everyday tests.
"""

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import accumulate
from pathlib import Path
from random import Random

from tests.kit.sequences import Otps, Ours, Scenario, play, random_scenario

SOURCE = Path(__file__).with_suffix(".erl")


def main(number: int = 2000, seed: int = 1) -> int:
    """Print how many agreed, and the first that did not; the exit status is 1 if there is one."""
    missing = [program for program in ("erl", "erlc") if shutil.which(program) is None]
    if missing:
        print(
            f"Expected Erlang/OTP, found no {' and no '.join(missing)} on the path. Install it (Debian: erlang-base)."
        )
        return 2
    random = Random(seed)
    scenarios = [random_scenario(random, at_once=True) for _ in range(number)]
    verdicts: Counter[str] = Counter()
    events: Counter[str] = Counter()
    for scenario, theirs in zip(scenarios, erlang(scenarios), strict=True):
        own, oracle = play(Ours(scenario), scenario), play(Otps(scenario), scenario)
        verdict = "too late to tell" if theirs == ["late"] else "agreed" if own == oracle == theirs else "DIFFERED"
        verdicts[verdict] += 1
        events.update(event.split()[0] for event in theirs)
        if verdict == "DIFFERED" and verdicts[verdict] == 1:
            print(scenario, f"ours:   {own}", f"oracle: {oracle}", f"OTP:    {theirs}", sep="\n")
    kinds = ", ".join(f"{events[kind]} {name}" for kind, name in NAMES.items())
    print(
        f"{number} scenarios (seed {seed}): {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}."
    )
    print(f"In them {kinds}.")
    return int("DIFFERED" in verdicts)


NAMES = {"start": "starts", "fail": "failed starts", "stop": "stops", "gave": "times given up"}


def erlang(scenarios: list[Scenario]) -> list[list[str]]:
    """The events of each scenario, from OTP's supervisor."""
    with tempfile.TemporaryDirectory(prefix="ikigai-erlang-") as directory:
        subprocess.run(["erlc", "-o", directory, str(SOURCE)], check=True)
        terms = Path(directory) / "scenarios"
        terms.write_text("\n".join(term(place, scenario) for place, scenario in enumerate(scenarios)), encoding="utf-8")
        program = ["erl", "-noshell", "-pa", directory, "-run", SOURCE.stem, "main", str(terms), "-s", "init", "stop"]
        lines = subprocess.run(program, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    answers = dict(line.partition(" ")[::2] for line in lines)
    return [answers[str(place)].split("|") if answers[str(place)] else [] for place in range(len(scenarios))]


def term(place: int, scenario: Scenario) -> str:
    """A scenario as Erlang reads it."""
    seconds = accumulate(op.wait for op in scenario.ops)
    children = ",".join(f"{{{name},{restart}}}" for name, restart in scenario.children)
    ops = ",".join(f"{{{op.what},{op.child},{op.restart},{at}}}" for op, at in zip(scenario.ops, seconds, strict=True))
    failing = ",".join(map(str, sorted(scenario.failing)))
    flags = f"{scenario.strategy},{scenario.intensity},{scenario.period}"
    return f"{{{place},{flags},[{children}],[{ops}],[{failing}]}}."


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
