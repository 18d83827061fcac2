"""``--app MODULE:FUNCTION``: a function of the user's that returns the arguments of `ActorSystem.open`.

So commands run agents with providers and tools of one's own.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from ikigai_actors.arguments import a_value, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.verbs.text.harmless import harmless, one_line

_OURS = {"database", "join", "name", "on_renewal", "on_wait", "parts"}
"""The options that an app does not decide."""


def app_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option ``--app`` of a command that runs agents; it may come before the command, too."""

    def note_app(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.obj = replace(context.obj, app=value)

    told = "A function that returns arguments of ActorSystem.open: provider, tools, …"
    option = click.option("--app", metavar="MODULE:FUNCTION", expose_value=False, callback=note_app, help=told)
    decorated: Callable[..., Any] = option(command)
    return decorated


def app_arguments(app: str) -> dict[str, Any]:
    """Call the user's function. Raises `BadInput` for what cannot be used, with the cause of it."""
    from ikigai_actors.providers.named import imported
    from ikigai_actors.reach.apps import with_build
    from ikigai_actors.system.system import ActorSystem

    named = imported(app, "--app", "FUNCTION")
    if not callable(named) or inspect.iscoroutinefunction(named):
        what = "an async function" if callable(named) else f"{a_value(named)} and no function"
        raise BadInput(f"--app {harmless(app)} is {what}. It names a function that returns a dict of arguments.")
    try:
        made = named()
    except (Exception, SystemExit) as error:  # whatever the user's function does
        raise BadInput(
            f"--app {harmless(app)} could not be called: {type(error).__name__}: {one_line(str(error))}. It names a "
            "function without arguments."
        ) from error
    if not isinstance(made, Mapping):
        raise BadInput(f"Expected --app {harmless(app)} to return a dict of arguments; got {shown(made)}.")
    known = inspect.signature(ActorSystem.open).parameters.keys() - _OURS
    if wrong := [key for key in made if key not in known]:
        raise BadInput(
            f"--app {harmless(app)} returns an argument {harmless(str(wrong[0]))!r} that it cannot set. Those of "
            f"ActorSystem.open: {', '.join(sorted(known))}."
        )
    return with_build(made, named)
