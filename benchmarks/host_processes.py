"""Hosts as processes, as a person starts them: `ikigai host`, each with the app below."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from ikigai_actors import FunctionProvider

TIMEOUT = 120.0
"""Seconds after which a benchmark has failed."""


def app() -> dict[str, Any]:
    """The options of a host whose model answers at once."""
    return {"provider": FunctionProvider(lambda request: "yes", "yes"), "balance": None}


def silent_app() -> dict[str, Any]:
    """The options of a host whose model never answers."""

    def never(request: object) -> str:
        Event().wait()
        return ""

    return {"provider": FunctionProvider(never, "yes"), "balance": None}


@contextmanager
def host(url: str, name: str, app: str = "app") -> Iterator["subprocess.Popen[bytes]"]:
    """Run a host for the length of a block."""
    command = ["-m", "ikigai_actors", "host", "--app", f"{__name__}:{app}", "--name", name]
    with process(command, IKIGAI_DATABASE_URL=url) as running:
        yield running


@contextmanager
def process(arguments: list[str], **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Python with these arguments and variables for the length of a block. It may be spoken to by pipes."""
    running = subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=os.environ | variables,
    )  # fmt: skip
    try:
        yield running
    finally:
        if running.poll() is None:
            running.terminate()
        try:
            running.wait(TIMEOUT)
        finally:
            running.kill()
            for pipe in (running.stdin, running.stdout):
                if pipe is not None:
                    pipe.close()


def tell(running: "subprocess.Popen[bytes]", line: str = "") -> None:
    """Have a process do what a line says, if any, and wait until it says ``done``."""
    if (said := asked(running, line)) != "done":
        raise AssertionError(f"A process did not do {line!r}, but said {said!r}.")


def asked(running: "subprocess.Popen[bytes]", line: str = "") -> str:
    """The line that a process says next, after it has got a line, if any."""
    assert running.stdin is not None
    assert running.stdout is not None
    if line:
        running.stdin.write(f"{line}\n".encode())
        running.stdin.flush()
    return running.stdout.readline().decode().removesuffix("\n")


def until(done: Callable[[], object], what: str) -> None:
    """Wait for something that is not measured."""
    deadline = time.monotonic() + TIMEOUT
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"It was waited in vain for {what}.")
        time.sleep(0.05)  # what another process did shows only when one looks
