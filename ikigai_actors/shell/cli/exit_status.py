"""Exit statuses of subcommands that ended early."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from ikigai_actors.shell.cli.progress import show_notice
from ikigai_actors.shell.start import ENDED_BY_CTRL_C

TIMED_OUT = 3
"""The exit status after a timeout."""


@contextmanager
def ended_early(context: click.Context) -> Iterator[None]:
    """Convert Ctrl-C and a timeout in the block to their exit statuses."""
    try:
        yield
    except KeyboardInterrupt:
        context.exit(ENDED_BY_CTRL_C)
    except TimeoutError as late:
        show_notice(str(late))
        context.exit(TIMED_OUT)
