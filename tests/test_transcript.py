"""What the README shows of supervision is what the program prints."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.databases import ROOT
from tests.program import Program, environment, run

FORKS = ["/fork --name lyon", "/parent", "/fork --name buyer", "/fork --name assam", "/parent", "/fork --name nilgiri"]
"""What the README only tells of."""

TYPED = re.compile(r"[\w-]+(?: \(\d+ unread\))?> (.*)")
IN_TREE = re.compile(r"^[* ] (?:[│ ]*[├└]─ )?([\w-]{6})(?: (\w+))?  ", re.MULTILINE)


def transcript() -> list[str]:
    """The lines of the session, without remarks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```text\n(\$ python examples/supervised\.py.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r" {2,}← .*", "", line) for line in block.splitlines()]


def anonymous(printed: str) -> list[str]:
    """The lines, with a name in the place of each uuid."""
    for uuid, name in {uuid: name or "agent0" for uuid, name in IN_TREE.findall(printed)}.items():
        printed = re.sub(rf"(?<![\w-]){re.escape(uuid)}(?:[\w-]{{16}})?(?![\w-])", f"<{name}>", printed)
    return printed.splitlines()


def play(lines: list[str], database: Path) -> str:
    """Type what was typed, in both windows; returns what was printed."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "examples/supervised.py", str(database)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), cwd=ROOT,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    printed, told = "", 0
    with Program(process, os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())) as program:
        for number, line in enumerate(lines):
            if typed := TYPED.fullmatch(line):
                program.say(typed[1])
            elif "are forked" in line:
                for fork in FORKS:
                    program.say(fork)
            elif line.startswith("$ ikigai"):
                program.expect(f"{re.escape(lines[number - 1])}\n")
                words = [str(database) if word == "tea.db" else word for word in shlex.split(line)[2:]]
                printed, told = program.said + run(*words).stdout, len(program.said)
        program.end_input()
        assert program.ends() == 0
        return printed + program.said[told:]


def test_the_transcript_of_supervision_is_true(tmp_path: Path) -> None:
    shown = transcript()
    told = [line for line in shown if not line.startswith("$ ") and not TYPED.fullmatch(line)]
    forked = next(number for number, line in enumerate(told) if "are forked" in line)
    printed = anonymous(play(shown, tmp_path / "tea.db"))
    del printed[forked : forked + len(FORKS)], told[forked]
    assert printed == anonymous("\n".join(told))
