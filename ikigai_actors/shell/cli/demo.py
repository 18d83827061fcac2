"""A tour that plays itself, without a key: three agents work, their process is killed, and all of them come back.

    play_demo(Console())     # True when everything came back

The agents live in a process of their own (`ikigai_actors.shell.cli.demo_team`), on a database in a temporary directory.
The process is killed with ``kill -9`` in the middle of an answer. The tour then opens the database itself, and
compares: each committed message must be there again. The cut-off turn goes on, and one agent merges the answer of
another agent.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.text import Text

from ikigai_actors.shell.cli.demo_team import (
    FIRST,
    HISTORIES,
    PIECE,
    SAYS,
    SLOW_ONE,
    TOLD,
    TREE,
    Word,
    drawn_tree,
    histories,
    open_team,
)
from ikigai_actors.verbs.text.harmless import harmless

_PATIENCE = 30.0
"""The most seconds to wait for an answer."""

_PIECES = 5
"""The number of words of the slow answer after which the team is killed."""

_WIDEST = 100
"""The most columns of a line of text."""

_NEXT = """\
[bold]What next?[/]
  source .venv/bin/activate      once in each terminal
  ikigai                         the shell: type to talk, F1 shows the keys
  ikigai --model offline:slow    slow answers: kill -9 it yourself, then /resume
  ikigai --help                  commands for scripts
With ANTHROPIC_API_KEY set a real model answers. docs/start/first-hour.md goes on."""


def play_demo(console: Console) -> bool:
    """Play the tour; return whether everything came back."""
    tour = Tour(console)
    with tempfile.TemporaryDirectory(prefix="ikigai-demo-") as directory:
        database = str(Path(directory) / "demo.db")
        before = tour.work_and_die(database)
        return before is not None and tour.come_back(database, before)


class Tour:
    """Plays the tour, and prints its lines in order."""

    def __init__(self, console: Console) -> None:
        self._console, self._begun = console, time.perf_counter()
        self._console.width = min(console.width, _WIDEST)

    def work_and_die(self, database: str) -> dict[str, list[str]] | None:
        """Run the team in a process, and kill it; return the committed histories by agent, None if the team failed."""
        self._title("Three agents work, in a process of their own")
        command = [sys.executable, "-m", "ikigai_actors.shell.cli.demo_team", database]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as team:
            assert team.stdout is not None
            assert team.stderr is not None
            before = self._follow(team.stdout)
            os.kill(team.pid, signal.SIGKILL)
            why = team.stderr.read().strip()
        if before is None:
            self._say(f"The team did not begin: {why or f'exit status {team.returncode}'}", "red")
            return None
        self._console.print()
        self._say(f"kill -9 {team.pid}, in the middle of the {SLOW_ONE}'s answer.", "bold red")
        return before

    def _follow(self, output: IO[str]) -> dict[str, list[str]] | None:
        """Print the team's lines until it is in the middle of the slow answer; return the histories, or None."""
        before, pieces = None, 0
        for word in _words(output):
            match word.kind:
                case _ if word.kind == TREE:
                    self._tree(word.text)
                case _ if word.kind == HISTORIES:
                    before = json.loads(word.text)
                case _ if word.kind == PIECE:
                    if not pieces:
                        self._console.print(f"  [bold]{word.agent}[/] ", end="")
                    self._console.print(word.text, end="", markup=False, highlight=False, soft_wrap=True)
                    pieces += 1
                    if pieces == _PIECES:
                        return before
                case _:
                    self._talk(word)
        return None

    def come_back(self, database: str, before: dict[str, list[str]]) -> bool:
        """Open the database again, compare the histories, and continue; return whether everything came back."""
        self._title("The same database, opened again")
        opening = time.perf_counter()
        with open_team(database, pace=0.01) as system:
            took = time.perf_counter() - opening
            self._tree(drawn_tree(system))
            if histories(system) != before:
                self._say("Something did not come back as it was: this is a defect, please report it.", "bold red")
                return False
            self._say(f"{len(before)} agents are back after {took * 1000:.0f} ms, each with its history.", "green")
            self._title("The interrupted turn goes on")
            slow = system.agent(SLOW_ONE)
            slow.resume()
            self._talk(Word(SAYS, SLOW_ONE, slow.reply(timeout=_PATIENCE).text))
            self._title("A merge brings a child's work home")
            merged = system.root.merge(slow, timeout=_PATIENCE)
            self._say(f"{FIRST} takes in what {SLOW_ONE} has said: message {merged.position} of its history.")
            self._talk(Word(TOLD, FIRST, "What do we know?"))
            self._talk(Word(SAYS, FIRST, system.root.prompt("What do we know?").get(timeout=_PATIENCE).text))
        self._console.print()
        self._console.print(_NEXT, highlight=False)
        self._say(f"Done in {time.perf_counter() - self._begun:.1f} s.", "dim")
        return True

    def _title(self, text: str) -> None:
        self._console.print()
        self._console.print(text, style="bold cyan")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False)

    def _tree(self, text: str) -> None:
        self._console.print(text, style="yellow", markup=False, highlight=False, no_wrap=True, overflow="ellipsis")

    def _talk(self, word: Word) -> None:
        sign, style = ("›", "dim") if word.kind == TOLD else (" ", "")
        line = Text.assemble(f"{sign} ", (word.agent, "bold"), " ", (harmless(word.text), style))
        self._console.print(line, highlight=False)


def _words(output: IO[str]) -> Iterator[Word]:
    for line in output:
        yield Word(*json.loads(line))
