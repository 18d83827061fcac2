"""The shim: an actor of Ray that runs one host as its child, and ends with it.

Ray restarts an actor that has ended, if necessary on another node. So the host comes back under its name, and replaces
its earlier process. Ray does not notice a host that hangs: the shim kills it, and ends. The shim runs no other code of
this package, and the host runs no code of Ray.

If another host of that name, which Ray does not run, has replaced it, the shim stays without a host: if Ray restarted
it, the two hosts would end each other in turns.
"""

import os
import socket
import threading
import time
from typing import NamedTuple

from ikigai_actors.cluster.child import HostProcess, Launch

_SHORT = 10.0
"""Seconds of running. A host that ended sooner may be unable to start."""

_REPLACED = 76
"""Exit status of a host whose place another one of its name has taken (`ikigai_actors.shell.cli.host`)."""

_REST = 2.0
"""Seconds after which such a host is started again; meanwhile the shim says why."""


class ShimReport(NamedTuple):
    """The state of a host, as reported by its shim."""

    launch: Launch
    node: str
    """The machine's name."""
    pid: int | None
    """The process id of the host; None if it could not be started."""
    status: int | None
    """The exit status of the host; None while it runs."""
    said: str
    """The latest line that the host has printed."""

    @property
    def is_replaced(self) -> bool:
        """Return whether the host ended because another host of its name has taken its place."""
        return self.status == _REPLACED


class Shim:
    """The actor of Ray that runs one host as a child process. Ray calls the methods on its own threads."""

    def __init__(self, name: str, launch: Launch) -> None:
        self._launch, self._began = launch, time.monotonic()
        self._child = HostProcess(name, launch, self._end_with_it)

    def report(self) -> ShimReport:
        """Return the state of the host."""
        child = self._child
        return ShimReport(self._launch, socket.gethostname(), child.pid, child.status, child.said)

    def stop(self, timeout: float) -> int | None:
        """End the host, and return its exit status.

        The shim itself stays: the program that called this ends it, too.
        """
        return self._child.stop(timeout)

    def _end_with_it(self, status: int) -> None:
        if status == _REPLACED:
            return
        if time.monotonic() - self._began < _SHORT:
            threading.Event().wait(_REST)
        os._exit(1)
