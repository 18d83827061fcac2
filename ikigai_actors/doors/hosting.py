"""The host process that a door uses: one that runs already, or one that the door starts.

    hosting = Hosting(database, lambda: started(["--provider", "offline"], database))
    system = hosting.attached(timeout=20)       # attached; a host runs, or is on its way
    hosting.check_hosted(0.8)                   # raises `NoHost`

A thread checks regularly whether a host is alive, and starts one when none is, at most one at a time. The host does not
end with the door: it has its own session, and ends by itself when nobody needs it any more (``ikigai host
--until-idle``). Two doors may start hosts for one file at the same moment: the lock of the file decides, the other host
ends with status 75, and both doors use the host that has the lock.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from time import monotonic
from typing import Protocol

from ikigai_actors.agent.subscriptions import HostChanged
from ikigai_actors.errors import IkigaiError, NoHost, StoreError
from ikigai_actors.reach.databases import kept_of_user
from ikigai_actors.reach.views import is_hosted, is_made
from ikigai_actors.system.attached import AttachedSystem

UNTIL_IDLE = 60
"""The seconds without use after which a host that a door has started ends."""

_LOOK = 0.1
"""Seconds between two checks for a living host, while there is none."""

STARTS = 20.0
"""The seconds within which a started host must run the agents; then it is not waited for any more."""

CALM = 1.0
"""The seconds between two checks while a host is alive."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""The seconds before another start: doubled after each host that ended before it ran the agents, from the first to the
longest.
"""

LOG_SIZE = 1_000_000
"""The bytes after which a new log is begun; the one before is kept."""


class Starting(Protocol):
    """A host process that a door has started."""

    def poll(self) -> int | None:
        """Return the exit status of the process; None while it runs."""


class StartSchedule:
    """Decides when a door starts a host. Pure: times are arguments."""

    def __init__(self) -> None:
        self._due, self._pause = float("-inf"), FIRST_PAUSE

    def starts(self, now: float, *, hosted: bool, starting: bool) -> bool:
        """Return whether to start a host now.

        Args:
            now: seconds of a monotonic clock.
            hosted: whether a host is alive.
            starting: whether the host that was started last is still starting.
        """
        if hosted:
            self._pause = FIRST_PAUSE
        if hosted or starting or now < self._due:
            return False
        self._due, self._pause = now + self._pause, min(2 * self._pause, LONGEST_PAUSE)
        return True


class Hosting:
    """Keeps a host alive for one door, and attaches the door to it."""

    def __init__(self, database: str | None, start: Callable[[], Starting], why: Callable[[], str]) -> None:
        """Begin to keep a host alive, at once.

        Args:
            database: the path or URL of the database; None for the default.
            start: starts a host.
            why: returns the latest log line of a host that could not be started.
        """
        self._database, self._start, self._why = database, start, why
        self._changed = Condition()
        self._system: AttachedSystem | None = None
        self._host: Starting | None = None
        self._hosted = self._looked = self._closed = False
        self._trouble = ""
        self._schedule = StartSchedule()
        self._thread = Thread(target=self._keep, name="ikigai-hosting", daemon=True)
        self._thread.start()

    def attached(self, timeout: float) -> AttachedSystem:
        """Return the attached system, once the database exists. Raises `NoHost` after this many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._system is not None, timeout)
            if self._system is None:
                raise self._no_host()
            return self._system

    def check_hosted(self, timeout: float) -> None:
        """Wait until a host runs the agents. Raises `NoHost` after this many seconds.

        A host that this door has started is waited for up to `STARTS` seconds. So clients that call directly after the
        start are not refused; most of them would never try again.
        """
        until = monotonic() + STARTS
        with self._changed:
            if self._changed.wait_for(lambda: self._hosted, timeout):
                return
            while self._starts() and not self._hosted and monotonic() < until:
                self._changed.wait(_LOOK)
            if not self._hosted:
                raise self._no_host()

    def _starts(self) -> bool:
        """Return whether a host may come soon: no check was made yet, or a started host process runs."""
        return not self._looked or (self._host is not None and self._host.poll() is None)

    def close(self) -> None:
        """Stop checking for hosts, and close the database. The host process runs on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        if self._system is not None:
            self._system.close()

    def _no_host(self) -> NoHost:
        why = f" ({self._trouble})" if self._trouble else ""
        return NoHost(f"No host at the moment{why}: nothing was done.")

    def _keep(self) -> None:
        while True:
            with suppress(IkigaiError, OSError):
                self._look()
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, CALM if self._hosted else _LOOK):
                    return

    def _look(self) -> None:
        system = self._system or self._attach()
        if system is not None and self._system is None and not is_made(system):
            system.close()  # a host is making the database
            system = None
        hosted = system is not None and is_hosted(system)
        status = None if self._host is None else self._host.poll()
        if hosted:
            self._trouble = ""
        elif status:
            self._trouble = self._why()
        with self._changed:
            self._system, self._hosted = system, hosted
            self._changed.notify_all()
        if self._schedule.starts(monotonic(), hosted=hosted, starting=self._host is not None and status is None):
            self._host = self._start()
        self._looked = True

    def _attach(self) -> AttachedSystem | None:
        """Attach to the database, and return the system; None if there is no database yet."""
        try:
            system = AttachedSystem.open(self._database)
        except StoreError as error:
            self._trouble = str(error)
            return None
        system.subscribe(lambda event: None, only=(HostChanged,))  # by this, hosts know that somebody is here
        return system


def start_host(words: Sequence[str], environ: Mapping[str, str], log: Path) -> Starting:
    """Start a host in its own session.

    Args:
        words: the global options of the command line, without the database, because other users could see its password.
        environ: the environment, which names the database.
        log: the file for its output.
    """
    command = [sys.executable, "-m", "ikigai_actors", *words, "host", "--until-idle", str(UNTIL_IDLE)]
    with suppress(OSError):
        if log.stat().st_size > LOG_SIZE:
            log.replace(log.with_suffix(".log.1"))
    descriptor = _opened(log)
    try:
        return subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


def latest_line(log: Path) -> str:
    """Return the latest line of a log; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4_000))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((_said(line.strip()) for line in reversed(lines) if line.strip()), "")


def _said(line: str) -> str:
    """Return the text of a log line, which may be plain or JSON."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(line)["message"])
    return line


def door_log() -> Path:
    """Return the log file of doors and their hosts, which only its user may read. A missing file is made."""
    log = kept_of_user("doors.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    os.close(_opened(log))
    return log


def _opened(log: Path) -> int:
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
