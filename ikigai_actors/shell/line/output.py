r"""The screen: where everything is printed, made harmless.

    screen.line("forked from dba", dim=True)    a line of its own
    screen.stream("Hel"), screen.stream("lo")   pieces of an answer
    screen.block(document.body)                 a text that somebody else has written
    screen.fresh()                              ends the line in progress, if any
    screen.notice("No key is set.")             what nobody asked for, on standard error

What answers a line of input goes to standard output: answers, what commands tell, errors. All else is a notice. Bold
and dim are used on a terminal only, and not when ``NO_COLOR`` is set.

Text of models and people may hold control characters, which could move the cursor or paint a prompt. They are printed
as ``\x1b``: C0 (but newline and tab), DEL, C1, the signs that turn the direction of writing or separate lines, and
halves of characters, which no terminal takes. At a terminal such text never begins a line at the left edge, so it
cannot be taken for a prompt either (wrap.py). To a pipe it is printed as it is.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import IO, Any

import click

from ikigai_actors.shell.line.wrap import Margin

_CONTROLS = [
    *(code for code in range(0x20) if chr(code) not in "\n\t"),
    *range(0x7F, 0xA0),
    *range(0x2028, 0x202F),  # separators of lines and paragraphs; embeddings and overrides of direction
    *range(0x2066, 0x206A),  # isolates
    *range(0xD800, 0xE000),  # lone surrogates
]
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}

_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in _CONTROLS if code >= 0x7F}
"""JSON itself spells the others out, and has none of these but in its texts."""


def harmless(text: str) -> str:
    """The text with its control characters spelled out. Carriage returns before a newline are dropped."""
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def one_line(text: str) -> str:
    """The text as one harmless line."""
    return harmless(" ".join(text.split()))


def as_json(value: Any, indent: int | None = None) -> str:
    """A value as JSON that does a terminal no harm: control characters become JSON's own escapes."""
    return json.dumps(value, indent=indent, ensure_ascii=False).translate(_JSON_ESCAPES)


class HarmlessFormatter(logging.Formatter):
    """Formats log lines. Text of models and people in them moves no cursor and begins no line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging calls it
        """The message in one line; a traceback has its own."""
        record.message = " ".join(record.message.split())
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record)).replace("\n", "\n  ")


class Screen:
    """Standard output and standard error, as the shell uses them."""

    def __init__(self, columns: Callable[[], int] | None = None) -> None:
        """Make it; ``columns`` gives the width of the terminal, or None when no person is there."""
        self._margin = None if columns is None else Margin(columns)
        self.styled = _styled(sys.stdout)
        """Whether bold and dim are used."""
        self._notices_styled = _styled(sys.stderr)
        self._open = False

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        """Print a line of its own, or several; the first begins with the program's words."""
        self.fresh()
        self._print(_style(self._set_off(text, own=True), bold, dim) + self._set_off("\n"))

    def block(self, text: str) -> None:
        """Print a text, of any number of lines, that a model or another person may have written."""
        self.fresh()
        self._print(self._set_off(f"{text}\n"))

    def error(self, text: str) -> None:
        """Print why a line of input failed."""
        self.line(f"error: {one_line(text)}")

    def stream(self, text: str) -> None:
        """Print a piece of an answer."""
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
        click.echo(_style(harmless(text), dim=True), err=True, color=self._notices_styled)

    def _set_off(self, text: str, own: bool = False) -> str:
        return harmless(text) if self._margin is None else self._margin.put(harmless(text), own)

    def _print(self, text: str) -> None:
        click.echo(text, nl=False, color=self.styled)


def _style(text: str, bold: bool = False, dim: bool = False) -> str:
    return click.style(text, bold=bold or None, dim=dim or None) if text and (bold or dim) else text


def _styled(stream: IO[str] | None) -> bool:
    return (
        stream is not None and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
