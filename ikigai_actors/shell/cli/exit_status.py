"""Exit statuses of subcommands that ended early."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from ikigai_actors.shell.cli.progress import show_notice
from ikigai_actors.shell.start import ENDED_BY_CTRL_C

TIMED_OUT = 3
"""A wait was over too early."""


@contextmanager
def ended_early(context: click.Context) -> Iterator[None]:
    """Turn Ctrl-C and an expired wait into their exit statuses."""
    try:
        yield
    except KeyboardInterrupt:
        context.exit(ENDED_BY_CTRL_C)
    except TimeoutError as late:
        show_notice(str(late))
        context.exit(TIMED_OUT)
