"""The command ``ikigai observe``, which serves the observer of a database until a signal ends it."""

import logging
import signal
from contextlib import closing

import click

from ikigai_actors.reach.views import location_of
from ikigai_actors.shell.cli import program_log
from ikigai_actors.shell.line.wakeup import WakeupPipe
from ikigai_actors.sight.observer import OWN_ADDRESSES, observe
from ikigai_actors.sight.served_pages import published
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.opening import Options
from ikigai_actors.verbs.text.harmless import as_json


def run_observer(
    options: Options,
    port: int,
    address: str,
    *,
    read_only: bool,
    allow_remote: bool,
    token_file: str | None,
    json: bool,
) -> int:
    """Serve the page until SIGINT, SIGTERM or SIGHUP; return the exit status.

    Raises `BadInput` when the port cannot be had, or the address is remote and that was not allowed.
    """
    came: list[int] = []  # an event has a lock, which the main thread may hold when a handler wants it

    def leave(number: int, frame: object) -> None:
        came.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        with (
            closing(WakeupPipe()) as wake,
            AttachedSystem.open(options.database) as system,
            observe(system, port, address, read_only, allow_remote=allow_remote, token_file=token_file) as observer,
            published("observe", location_of(system), observer.link),
        ):
            if address not in OWN_ADDRESSES:
                program_log.announce(
                    "Nothing is encrypted: another machine on the way can read the link.", logging.WARNING
                )
            access = {"url": observer.link, "address": observer.address, "token": observer.token}
            click.echo(as_json(access) if json else observer.link)
            while not came:
                wake.wait()
            program_log.announce("Ending.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0 if came[-1] == signal.SIGINT else 128 + came[-1]
