"""A host without a shell: runs the agents in the foreground, for shells, commands and programs elsewhere.

On PostgreSQL several share the agents: each runs a part of them, and the others take that over when it ends or dies.
SIGTERM and Ctrl-C give the agents to the others, if there are any, and then close the system. When the database takes
the agents away from this host, or does not answer when it begins or for too long, the exit status says: start me again.
"""

import contextlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.agent.subscriptions import Event, HostEnded
from ikigai_actors.arguments import a_value, shown
from ikigai_actors.errors import (
    BadInput,
    Fenced,
    NoHost,
    StoreConflict,
    StoreError,
    StoreInUse,
    StoreUnavailable,
    SystemClosed,
)
from ikigai_actors.shell.cli.liveness import Liveness
from ikigai_actors.shell.cli.options import Options
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.text.harmless import harmless, one_line
from ikigai_actors.shell.text.hosts import host_ended
from ikigai_actors.shell.text.tree import summary
from ikigai_actors.store.hosts.host import LEASE
from ikigai_actors.store.location import locate
from ikigai_actors.system.system import ActorSystem

START_AGAIN = 75
"""Exit status of a host that was not told to end, and that may run when it is started again: sysexits' EX_TEMPFAIL."""

_PASSES = (StoreUnavailable, StoreInUse, StoreConflict)
"""Why a host could not be started this time."""

DRAIN = 25.0
"""Seconds for giving the agents away: less than those after which systemd and Kubernetes send SIGKILL."""

_OURS = {"database", "join", "name", "on_renewal", "on_wait", "parts"}  # what an app does not decide


def run_host(
    options: Options,
    app: str | None,
    name: str | None,
    resume: bool | None,
    alive: str | None,
    until: Callable[[ActorSystem, Callable[[], int]], int],
    tell: Callable[[str], object],
) -> int:
    """Run a host until it is told to end.

    Args:
        options: the global options of the command line.
        app: ``MODULE:FUNCTION``, which gives further arguments of `ActorSystem.open`; None for those of the options.
        name: by which it is known to the hosts with which it shares the agents; None for one of its own.
        resume: whether to go on with turns that were cut off; None does so where hosts share agents.
        alive: a file or pipe for signs of life; None for none.
        until: runs a loop, and raises `SystemClosed` when the system stops by itself.
        tell: takes a line for the person who started it.

    Returns:
        The exit status.

    Raises:
        BadInput, StoreError: it cannot be started so, and another try would not help.
    """
    arguments = _of_options(options) if app is None else _of_app(app, options)
    shares = locate(options.database).url is not None
    if resume is not None:
        arguments["resume"] = resume
    if shares:
        arguments |= {"join": True, "name": name, "on_wait": lambda owner: tell(f"waits: {owner} runs the agents")}
    elif name is not None:
        raise BadInput(f"--name {name} is for hosts that share agents on PostgreSQL; a file has one host.")
    liveness = Liveness(alive, arguments.get("lease", LEASE))
    arguments["on_renewal"] = liveness.beat
    interrupts, runs = Interrupts().install(), False
    try:
        with interrupts.heard():
            system = ActorSystem.open(options.database, **arguments)
        with system:
            tell(f"runs {system.store.location}: {summary(system.agents())}")
            system.subscribe(lambda event: _tell_of_hosts(event, tell), only=(HostEnded,))
            liveness.beat()
            liveness.ready()
            runs = True
            status = until(system, lambda: _wait(interrupts, None if shares else liveness))
            liveness.stopping()
            if shares:
                _drain(system, tell)
            return status
    except (SystemExit, KeyboardInterrupt):  # told to end while it waited
        return 0
    except (Fenced, SystemClosed) as error:
        tell(one_line(str(error)))
        return START_AGAIN
    except StoreError as error:
        if runs or not isinstance(error, _PASSES):
            raise
        tell(one_line(str(error)))
        return START_AGAIN


def _wait(interrupts: Interrupts, liveness: Liveness | None) -> int:
    """Wait for a signal. The owner of a file has no lease to renew: it gives its signs of life from here."""
    with contextlib.suppress(SystemExit, KeyboardInterrupt), interrupts.heard():
        while not threading.Event().wait(None if liveness is None else LEASE / 4):
            if liveness is not None:
                liveness.beat()
    return 0


def _tell_of_hosts(event: Event, tell: Callable[[str], object]) -> None:
    if isinstance(event, HostEnded):
        tell(host_ended(event))


def _drain(system: ActorSystem, tell: Callable[[str], object]) -> None:
    """Give the agents to the other hosts, if there are any, for a while."""
    try:
        system.drain(timeout=DRAIN)
    except NoHost:  # it is the last one
        pass
    except TimedOut:
        tell("not all agents could be given away in time; the other hosts take them now")


def _of_options(options: Options) -> dict[str, Any]:
    return {
        "provider": options.default_provider(),
        "providers": options.providers(),
        "config": options.config,
        "tools": options.tools(),
        "approvals": "allow" if options.yes else "ask",
        "settings": options.default_settings(),
        "budget": options.limits(),
    }


def _of_app(app: str, options: Options) -> dict[str, Any]:
    """Call the user's function. Raises `BadInput` for what cannot be used, with the cause of it."""
    for name in ("provider", "provider_url", "config", "model", "settings", "workspace", "mcp", "yes"):
        if getattr(options, name):
            raise BadInput(
                f"Leave out --{'set' if name == 'settings' else name.replace('_', '-')}: with --app the app decides."
            )
    module, colon, function = app.partition(":")
    if not (module and colon and function):
        raise BadInput(f"Expected --app MODULE:FUNCTION, got {harmless(app)!r}. For one: --app shop.agents:app")
    sys.path.insert(0, str(Path.cwd()))
    try:
        named = getattr(importlib.import_module(module), function)
        if not callable(named) or inspect.iscoroutinefunction(named):
            what = "an async function" if callable(named) else f"{a_value(named)} and no function"
            raise BadInput(f"--app {harmless(app)} is {what}. It names a function that returns a dict of arguments.")
        made = named()
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's module does
        raise BadInput(
            f"--app {harmless(app)} could not be called: {type(error).__name__}: {one_line(str(error))}. It names a "
            "function without arguments in a module that can be imported from here."
        ) from error
    if not isinstance(made, Mapping):
        raise BadInput(f"Expected --app {harmless(app)} to return a dict of arguments; got {shown(made)}.")
    known = inspect.signature(ActorSystem.open).parameters.keys() - _OURS
    if wrong := [key for key in made if key not in known]:
        raise BadInput(
            f"--app {harmless(app)} returns an argument {harmless(str(wrong[0]))!r} that it cannot set. Those of "
            f"ActorSystem.open: {', '.join(sorted(known))}."
        )
    return dict(made)
