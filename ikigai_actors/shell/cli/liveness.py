"""Heartbeats of a host, for the program that restarts it: systemd, Kubernetes, a parent process.

Each renewal of the lease sends a heartbeat. systemd gets heartbeats by ``sd_notify(3)``, if the unit has
``Type=notify`` and ``WatchdogSec``. Other programs name a file, whose age is that of the last heartbeat, or a pipe,
which gets a line for each heartbeat. Both contain the whole number of seconds without a heartbeat after which the host
should be killed.
"""

import contextlib
import io
import math
import os
import socket
import stat

from ikigai_actors.arguments import check_seconds
from ikigai_actors.errors import BadInput
from ikigai_actors.store.hosts.host import LOST

_PATIENCE = 5.0
"""Seconds to wait until systemd accepts a message that it must get; heartbeats do not wait."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC


def _opened(path: str) -> io.FileIO:
    return io.FileIO(os.open(path, _FLAGS, 0o644), "w")


class Liveness:
    """Sends the heartbeats of a host to the program that restarts it. Sending never waits."""

    def __init__(self, path: str | None, lease: float) -> None:
        """Prepare the heartbeats, and remove ``NOTIFY_SOCKET`` from the environment, so that agents' programs lack it.

        Args:
            path: the file, or a pipe such as ``/dev/fd/3``; None for none.
            lease: seconds that the host counts as living after a renewal.

        Raises:
            BadInput: the file cannot be written; the lease is no time.
        """
        silence = math.ceil(LOST * check_seconds(lease, "lease", zero=False))
        self._path, self._line = path, f"{silence}\n".encode()
        address = os.environ.pop("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        if path is not None:
            try:
                _opened(path).close()
            except OSError as error:
                raise BadInput(f"The file of --alive, {path}, cannot be written: {error.strerror}.") from error

    def ready(self) -> None:
        """Report that the host runs agents."""
        self._tell("READY=1", _PATIENCE)

    def beat(self) -> None:
        """Send a heartbeat."""
        self._tell("WATCHDOG=1")
        if self._path is None:
            return
        with (
            contextlib.suppress(OSError),
            _opened(self._path) as file,
        ):  # a full pipe has signs enough; a full disk none
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file.truncate(0)
            file.write(self._line)

    def stopping(self) -> None:
        """Report that the host gives its agents away and ends."""
        self._tell("STOPPING=1", _PATIENCE)

    def _tell(self, state: str, timeout: float = 0) -> None:
        if self._address:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                notify.settimeout(timeout)
                notify.sendto(state.encode(), self._address)
