"""``--app MODULE:FUNCTION``: a function of the user that returns the arguments of `ActorSystem.open`.

With this option commands run agents with the user's own providers and tools.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click


def app_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--app`` to a command that runs agents; the option may also come before the command."""

    def note_app(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.obj = replace(context.obj, app=value)

    description = "A function that returns arguments of ActorSystem.open: provider, tools, …"
    option = click.option("--app", metavar="MODULE:FUNCTION", expose_value=False, callback=note_app, help=description)
    decorated: Callable[..., Any] = option(command)
    return decorated
