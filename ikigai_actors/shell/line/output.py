"""The screen: prints all text of line mode, without control characters.

    screen.line("forked from dba", dim=True)    prints a separate line
    screen.stream("Hel"), screen.stream("lo")   pieces of an answer
    screen.block(document.body)                 a text that somebody else has written
    screen.fresh()                              ends the line in progress, if any
    screen.notice("No key is set.")             prints a text that answers no input, on standard error

Answers to a line of input go to standard output: replies, the output of commands, errors. Any other text is a notice.
Bold and dim are used on a terminal only, and not when ``NO_COLOR`` is set.

Text of models and people is printed without control characters (`ikigai_actors.verbs.text.harmless`). At a terminal
such a text never begins at the left edge of a line, so nobody can take it for a prompt
(`ikigai_actors.verbs.text.wrap`).
"""

import os
import sys
from base64 import b64encode
from collections.abc import Callable
from typing import IO

import click

from ikigai_actors.verbs.text.harmless import harmless, one_line
from ikigai_actors.verbs.text.wrap import Margin

USUAL_COLUMNS = 80
"""The width of a line, in columns, if no terminal is known."""


class Screen:
    """The standard output and standard error of the shell, on which lines and notices are printed."""

    def __init__(self, columns: Callable[[], int] | None = None) -> None:
        """Make the screen; ``columns`` returns the width of the terminal, or is None if nobody reads it."""
        self._margin = None if columns is None else Margin(columns)
        self._columns = columns
        self.styled = is_coloured(sys.stdout)
        """Whether bold and dim are used."""
        self._notices_styled = is_coloured(sys.stderr)
        self._open = False
        self.in_words = columns is not None
        """Whether a tree, columns and the activity of an agent are printed as sentences, because a screen reader may
        read them.
        """

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        """Print one line or several. The first line begins with words of the program, not of a model."""
        self.fresh()
        self._print(_style(self._set_off(text, own=True), bold, dim) + self._set_off("\n"))

    def block(self, text: str) -> None:
        """Print a text of one line or several, which a model or another person may have written."""
        self.fresh()
        self._print(self._set_off(f"{text}\n"))

    def whole(self, text: str) -> None:
        """Print a stored text that is the whole output of a command."""
        self.block(text)

    def error(self, text: str) -> None:
        """Print the reason why a line of input failed."""
        self.line(f"error: {one_line(text)}")

    @property
    def columns(self) -> int:
        """Return the width of a line in columns; the usual width if nobody reads the output."""
        return USUAL_COLUMNS if self._columns is None else self._columns()

    def stream(self, text: str) -> None:
        """Print a piece of an answer without ending the line."""
        if text:
            self._print(self._set_off(text))
            self._open = not text.endswith("\n")

    def fresh(self) -> None:
        """End the line in progress, if there is one."""
        if self._open:
            self._open = False
            self._print(self._set_off("\n"))

    def notice(self, text: str) -> None:
        """Print a notice, which answers no line of input."""
        self.fresh()
        shown = harmless(text) if self._columns is None else Margin(self._columns).put(harmless(text), own=True)
        click.echo(_style(shown, dim=True), err=True, color=self._notices_styled)

    def copy(self, text: str) -> None:
        """Have the terminal put a text into its clipboard."""
        self._print(f"\x1b]52;c;{b64encode(text.encode()).decode()}\a")

    def _set_off(self, text: str, own: bool = False) -> str:
        return harmless(text) if self._margin is None else self._margin.put(harmless(text), own)

    def _print(self, text: str) -> None:
        click.echo(text, nl=False, color=self.styled)


def _style(text: str, bold: bool = False, dim: bool = False) -> str:
    return click.style(text, bold=bold or None, dim=dim or None) if text and (bold or dim) else text


def is_coloured(stream: IO[str] | None) -> bool:
    """Return whether output to a stream may have colours: to a terminal, unless the user turned them off."""
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
