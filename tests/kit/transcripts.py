"""Transcripts of the README and of docs/: what they show is typed at a terminal, and compared with what comes.

A transcript is a ``text`` block that begins with ``$ ikigai`` or ``$ python examples/``. ``$`` begins a command: one
that opens a shell goes on with what is typed at its prompts, until the next such; any other runs beside it, to its end.
``Killed`` at the end of a line is a ``kill -9`` there. A command with ``&`` behind it goes on in the background when it
has printed a line; ``$ kill %1`` and ``$ kill -9 %1`` end the first of these.

Left out of the comparison: remarks (``← …``), where a line is wrapped, times, where databases and processes are, and
what ``…`` stands for, on a line of its own for lines. The two words of an agent are others each time, but the same
throughout, and so is a uuid.
"""

import re
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import click

from ikigai_actors.records.agents.words import beginnings
from ikigai_actors.shell.cli.main import cli
from tests.kit.databases import ROOT
from tests.kit.program import COMMAND, PATIENCE, Program, completed

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_BLOCK = re.compile(r"^```text\n(\$ (?:ikigai|python examples/).*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = re.compile(r"[\w-]+(?: \([^()]*\))?> (.+)")
_PROMPT = r"(?:(?<=\n)|\A)[\w-]+(?: \([^()\n]*\))?> \Z"

_VARIABLE = re.compile(
    r"(?P<words>(?<![\w-])[a-z]{3,8}-[a-z]{3,8}(?![\w-]))"
    r"|(?P<id>(?<![\w-])(?=[\w-]*[A-Z0-9])[\w-]{22}(?![\w-]))"
    r"|(?P<time>(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d)|(?P<place>(?:~/|postgresql://)[\w./@-]*[\w])"
    r"|(?P<process>[\w.-]+, pid \d+)|(?P<any>…)|(?P<gap>\s+)"
)


class Transcript(NamedTuple):
    """One that a page shows."""

    page: Path
    number: int
    """Of its kind in the page, from 1."""
    lines: list[str]
    """Without remarks."""

    def __str__(self) -> str:
        return f"{self.page.stem}-{self.number}"


def transcripts() -> list[Transcript]:
    """All that the pages show."""
    return [
        Transcript(page, number, [re.sub(r" {2,}← .*", "", line) for line in block.splitlines()])
        for page in PAGES
        for number, block in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")), 1)
    ]


def play(lines: list[str], directory: Path, places: Mapping[str, str], patience: float = PATIENCE) -> str:
    """Type what was typed.

    Args:
        lines: a transcript's.
        directory: where.
        places: what stands for some arguments of commands.
        patience: seconds that a command beside a shell may take.

    Returns:
        What came, with what was typed.
    """
    printed, prompt = "", ""
    with ExitStack() as stack:
        shell: Program | None = None
        jobs: list[Program] = []
        for number, line in enumerate(lines):
            typed = _TYPED.fullmatch(line)
            if line.startswith("$ "):
                words = [places.get(word, word) for word in shlex.split(line[2:])]
                printed += f"{line}\n"
                if words[-1] == "&":
                    job = Program.at_terminal(command=_command(words[:-1]), directory=directory)
                    jobs.append(stack.enter_context(job))
                    printed += job.expect(r".+\n")[0]
                    continue
                if words[0] == "kill":
                    _end_job(jobs[int(words[-1].removeprefix("%")) - 1], "-9" in words)
                    continue
                if not _opens_a_shell(words):
                    printed += _beside(words, directory, patience)
                    continue
                if shell is not None:
                    _leave(shell)
                shell = stack.enter_context(Program.at_terminal(command=_command(words), directory=directory))
                output, prompt = _until_prompt(shell)
                printed += output
            elif shell is not None and typed:
                shell.say(typed[1])
                printed += prompt
                if typed[1] == "/exit":
                    printed += "/exit\n"
                    _ends(shell)
                    shell = None
                elif (killed := _killed_after(lines, number)) is not None:
                    printed += f"{_killed(shell, killed)} Killed\n"
                    shell = None
                else:
                    output, prompt = _until_prompt(shell)
                    printed += output
        if shell is not None:
            _leave(shell)
    return printed


def differs(shown: list[str], printed: str) -> str:
    """What of a transcript did not come; nothing when all came, and nothing else."""
    known: dict[str, str] = {}
    patterns = [_pattern(f"{line}\n", known) for line in shown]
    if re.fullmatch(r"\s*" + "".join(patterns), printed):
        return ""
    good = max(n for n in range(len(patterns) + 1) if re.match(r"\s*" + "".join(patterns[:n]), printed))
    return f"after {good} lines came not: {shown[good] if good < len(shown) else 'the end'!r}; but:\n{printed}"


def _pattern(line: str, known: dict[str, str]) -> str:
    """What matches a line; words and uuids that were met before are what they were."""
    if line == "…\n":
        return "(?s:.*?)"

    def variable(match: re.Match[str]) -> str:
        match match.lastgroup:
            case "words" if not beginnings(match[0]):
                return re.escape(match[0])
            case "words" | "id" if match[0] in known:
                return f"(?P={known[match[0]]})"
            case "words" | "id" as which:
                known[match[0]] = f"id{len(known)}"
                form = r"[a-z]{3,8}-[a-z]{3,8}" if which == "words" else r"[\w-]{22}"
                return f"(?P<{known[match[0]]}>{form})"
            case "time":
                return r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"
            case "place":
                return r"\S+?"
            case "process":
                return r"\S+, pid \d+"
            case "any":
                return r"[^\n]*?"
        return r"\s+"

    parts, at = [], 0
    for match in _VARIABLE.finditer(line):
        parts += [re.escape(line[at : match.start()]), variable(match)]
        at = match.end()
    return "".join([*parts, re.escape(line[at:])])


def _opens_a_shell(words: list[str]) -> bool:
    if words[0] == "python":
        return words[1] == "examples/supervised.py"
    return not {*words[1:]}.intersection(cli.list_commands(click.Context(cli)))


def _command(words: list[str]) -> list[str]:
    if words[0] == "python":
        return [*COMMAND[:3], str(ROOT / words[1]), *words[2:]]
    return [*COMMAND, *(str(ROOT / word) if word.startswith("examples/") else word for word in words[1:])]


def _beside(words: list[str], directory: Path, patience: float) -> str:
    return completed(_command(words), patience=patience, stderr=subprocess.STDOUT, cwd=directory).stdout


def _end_job(job: Program, at_once: bool) -> None:
    if at_once:
        job.kill()
    else:
        assert job.end() == 0


def _until_prompt(shell: Program) -> tuple[str, str]:
    """What comes before the next prompt, and that."""
    match = shell.expect(_PROMPT)
    return match.string[: match.start()], match[0]


def _killed_after(lines: list[str], number: int) -> str | None:
    """What was to be seen when the program was killed, if that was in the answer to a line."""
    after = lines[number + 1 : number + 2]
    return after[0].removesuffix("Killed").rstrip() if after and after[0].endswith("Killed") else None


def _killed(shell: Program, seen: str) -> str:
    """What came until it was killed."""
    match = shell.expect(re.escape(seen))
    shell.kill()
    return match.string[: match.end()]


def _leave(shell: Program) -> None:
    shell.say("/exit")
    _ends(shell)


def _ends(shell: Program) -> None:
    assert shell.ends() == 0
