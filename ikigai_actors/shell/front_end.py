"""The shell over a running system: on the whole screen of a terminal, or in lines.

    with ActorSystem.open("team.db", Mine(), approvals="ask") as system:
        sys.exit(run(system))

`run` is for programs that bring their own system; ``ikigai`` does the same by `show_front`.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from ikigai_actors.arguments import check_flag, shown
from ikigai_actors.errors import BadInput, SystemClosed
from ikigai_actors.shell import start

if TYPE_CHECKING:
    from ikigai_actors.shell.line.input import Complete, Keyboard
    from ikigai_actors.shell.line.interrupts import Interrupts
    from ikigai_actors.system.handles.ref import System


@dataclass(frozen=True, slots=True)
class Front:
    """The way in which the shell is shown: at a terminal or by a pipe, on the whole screen or in lines."""

    is_interactive: bool
    """Whether a person is at a terminal."""
    fills_screen: bool
    """Whether the shell takes the whole screen."""
    follow: bool = True
    """Whether a fork goes to the child."""
    is_named: bool = True
    """Whether a person or a program has named the default model."""
    config: str | None = None
    """The path of the ``ikigai.toml`` that has prices; None for the usual one."""


def run(system: "System", *, plain: bool = False, follow: bool = True) -> int:
    """Run the shell over the system of a program, until the person leaves. The system stays open.

    At a terminal it takes the whole screen; by a pipe, and where TERM is dumb, it reads lines. Approvals are asked of
    the person where the system was opened with ``approvals="ask"``.

    Args:
        system: the system, its own or attached.
        plain: lines at a terminal, too.
        follow: whether a fork goes to the child.

    Returns:
        The exit status.

    Raises:
        BadInput: it is not called on the main thread, which alone hears signals.
        SystemClosed: the system was closed, or has stopped.
    """
    from ikigai_actors.reach.views import check_open, stand_in_notice
    from ikigai_actors.shell.line.interrupts import Interrupts
    from ikigai_actors.system.handles.ref import System

    if not isinstance(system, System):
        raise BadInput(f"Expected system to be an open ActorSystem, or an attached one; got {shown(system)}.")
    front = front_of(check_flag(plain, "plain"), check_flag(follow, "follow"))
    if threading.current_thread() is not threading.main_thread():
        raise BadInput("Call run() on the main thread: no other one hears Ctrl-C.")
    check_open(system)
    notice = stand_in_notice(system)
    interrupts = Interrupts().install()
    try:
        return show_front(system, front, [notice] if notice else [], interrupts)
    finally:
        interrupts.remove()


def front_of(plain: bool, follow: bool = True, is_named: bool = True, config: str | None = None) -> Front:
    """Return the front end that fits the standard input and output of this process."""
    is_interactive = _are_terminals(sys.stdin, sys.stdout)
    # Textual draws on standard error.
    fills_screen = is_interactive and _are_terminals(sys.stderr) and os.environ.get("TERM", "") not in ("", "dumb")
    return Front(is_interactive, fills_screen and not plain, follow, is_named, config)


def draw_first_picture() -> None:
    """Draw the empty prompt before slow imports; text typed meanwhile is kept for the prompt."""
    from ikigai_actors.shell.first_picture import first_picture
    from ikigai_actors.shell.ground import question

    columns, lines = shutil.get_terminal_size()
    start.cover(question(os.environ) + first_picture(columns, lines, "NO_COLOR" not in os.environ))


def show_front(system: "System", front: Front, notices: Sequence[str], interrupts: "Interrupts") -> int:
    """Show a system until the person leaves; return the exit status. Raises `SystemClosed`.

    Args:
        system: the system.
        front: how.
        notices: what the person should know at first.
        interrupts: the signals of this process.
    """
    if front.fills_screen:
        return fill_screen(system, front, notices, interrupts)
    return _line_mode(system, front, notices, interrupts)


def fill_screen(system: "System", front: Front, notices: Sequence[str], interrupts: "Interrupts | None" = None) -> int:
    """Show a system on the whole screen until the person leaves; return the exit status, as `show_front` does."""
    from ikigai_actors.reach.views import default_model_of, usual_model_of
    from ikigai_actors.shell.app.application import Application
    from ikigai_actors.shell.app.logs import logged_to
    from ikigai_actors.shell.app.terminal import is_gone, terminal
    from ikigai_actors.shell.ground import without_answer
    from ikigai_actors.shell.line.interrupts import Interrupts
    from ikigai_actors.shell.line.repl import leaving

    default = default_model_of(system)
    provider = usual_model_of(system)
    model = default if front.is_named or ":" in default else ""
    lines = [f"{greeting(system)} · F1 keys, /help commands", *notices]
    shown = terminal()
    start.take_typed()
    _, light = without_answer(start.typed().decode("utf-8", "replace"))
    application = Application(
        system, _home() / "history", front.follow, provider, lines, model, interrupts, front.config, light
    )
    with logged_to(_home() / "ikigai.log", application.events.notice):
        status = application.run_it()
    if shown is not None and is_gone(shown):
        write_nowhere(1, 2)
    Interrupts().install()  # signals must not interrupt the closing
    if notice := leaving(system, application.undone):
        click.echo(notice, err=True)
    return status


def _line_mode(system: "System", front: Front, notices: Sequence[str], interrupts: "Interrupts") -> int:
    from ikigai_actors.shell.completion import completions
    from ikigai_actors.shell.line.output import Screen
    from ikigai_actors.shell.line.repl import LineMode
    from ikigai_actors.shell.line.session import Shell

    start.give_back()  # before readline reads the settings of the terminal
    screen = Screen(_columns if front.is_interactive else None)
    keyboard = _keyboard(front.is_interactive, lambda line: completions(shell.current, line), screen.styled)
    shell = Shell(system, keyboard, screen, interrupts, front.follow)
    if keyboard.interactive:
        screen.notice(greeting(system))
        screen.notice("What you type goes to the agent named at the prompt. /help lists the commands, Ctrl-D leaves.")
    for notice in notices:
        screen.notice(notice)
    return while_it_lasts(system, LineMode(shell).run)


def while_it_lasts(system: "System", wait: Callable[[], int]) -> int:
    """Run a loop that waits for a person, and return its result. If the system stops by itself, raise the reason."""
    from ikigai_actors.agent.subscriptions import Event, StoreTrouble
    from ikigai_actors.reach.views import check_open

    waiting, why = threading.get_ident(), list[str]()

    def hear(event: Event) -> None:
        if isinstance(event, StoreTrouble) and event.final:
            why.append(f"The system stopped: {event.reason}")
            signal.pthread_kill(waiting, signal.SIGTERM)

    subscription = system.subscribe(hear, only=(StoreTrouble,))
    try:
        status = wait()
    except SystemExit:
        if not why:
            raise
        status = 1
    finally:
        subscription.close()
    if why:
        check_open(system)  # raises with the cause
        raise SystemClosed(why[0])
    return status


def greeting(system: "System") -> str:
    """Return the program's first line: its version, the database, and the number of agents."""
    from importlib.metadata import version

    from ikigai_actors.reach.views import census_of, location_of
    from ikigai_actors.verbs.text.tree import summary

    counts = summary(census_of(system).by_status)
    return f"ikigai {version('ikigai-actors')} · {location_of(system)} · {counts}"


def write_nowhere(*descriptors: int) -> None:
    """Discard all further output of a broken standard output; else the interpreter would fail at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in descriptors:
        os.dup2(nowhere, descriptor)


def closed_output() -> TextIO:
    """Return a standard output for a process that was started without one. Every write to the returned file fails."""
    unwritable = os.open(os.devnull, os.O_RDONLY)
    if unwritable != 1:
        os.dup2(unwritable, 1)
        os.close(unwritable)
    return os.fdopen(1, "w", closefd=False)


def _are_terminals(*streams: "TextIO | None") -> bool:
    return all(stream is not None and stream.isatty() for stream in streams)


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _keyboard(interactive: bool, complete: "Complete", styled: bool) -> "Keyboard":
    from ikigai_actors.shell.line.input import Pipe, Terminal

    if not interactive:
        return Pipe(sys.stdin.buffer if sys.stdin is not None else None)
    return Terminal(_home() / "history", complete, styled)


def _home() -> Path:
    """Return the directory for files that belong to the user rather than to a database."""
    from ikigai_actors.reach.databases import shells_folder

    return shells_folder()
