"""Colours the output of subcommands: only at a terminal, and not with ``NO_COLOR`` or ``TERM=dumb``."""

import sys

import click

from ikigai_actors.shell.line.output import is_coloured
from ikigai_actors.verbs.text.colours import Coloured


def show(line: Coloured, dim: bool = False) -> None:
    """Print a line on standard output."""
    click.echo(painted(line, dim) if is_coloured(sys.stdout) else line.text)


def painted(line: Coloured, dim: bool = False) -> str:
    """Return the text with the colours of its parts; ``dim`` is for the whole text. Pure."""
    shown, end = "", 0
    for span in line.spans:
        shown += _styled(line.text[end : span.start], dim)
        shown += click.style(line.text[span.start : span.end], fg=span.meaning.value)
        end = span.end
    return shown + _styled(line.text[end:], dim)


def _styled(text: str, dim: bool) -> str:
    return click.style(text, dim=True) if text and dim else text
