"""A host as a child of this process: it ends when this process does, and is killed when it hangs.

The child sends heartbeats by a pipe (``ikigai host --alive``): a line at each renewal of its lease, which says after
how many seconds of silence it hangs. Before its lease begins it sends none, and may take its time. Its output goes to
the standard error of this process, and the last line of it is stored, since it explains why a host could not be
started.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO

_PR_SET_PDEATHSIG = 1  # of Linux
_LOOK = 1.0  # seconds between two looks at a child that says nothing
_KEPT = 4_000  # characters of what it has printed


@dataclass(frozen=True, slots=True)
class Launch:
    """The arguments with which each host of a fleet is started."""

    url: str = field(repr=False)
    """The database, with its password."""
    app: str
    """``MODULE:FUNCTION``, as for ``ikigai host``."""
    directory: str | None
    """The directory from which the app is imported; None for the one in which Ray starts the shim."""
    cpus: float
    """The resources that Ray reserves for each host."""
    resources: Mapping[str, float]
    """Further requirements of a node."""

    def command(self, name: str) -> list[str]:
        """Return the command line that starts the host with this name."""
        return [sys.executable, "-m", "ikigai_actors", "host", "--name", name, "--app", self.app]


class HostProcess:
    """A host that runs as a child process."""

    def __init__(self, name: str, launch: Launch, on_end: Callable[[int], object]) -> None:
        """Start a host. If it ends without a call of `stop`, ``on_end`` gets its exit status on another thread."""
        self.status: int | None = None
        """The exit status, less than 0 for a signal; None while it runs."""
        self._name, self._launch, self._on_end = name, launch, on_end
        self._printed = ""
        self._told = False
        self._process: subprocess.Popen[bytes] | None = None
        self._begun, self._ended = threading.Event(), threading.Event()
        # The child dies with the thread that has started it, so that one lives as long as the child.
        threading.Thread(target=self._run, name="ikigai-child", daemon=True).start()
        self._begun.wait()

    @property
    def pid(self) -> int | None:
        """Return the process id; None if the host could not be started."""
        return None if self._process is None else self._process.pid

    @property
    def said(self) -> str:
        """Return the latest line that the host has printed."""
        return next((line for line in reversed(self._printed.splitlines()) if line.strip()), "")

    def stop(self, timeout: float) -> int | None:
        """Let the host give its agents away and end; kill it after ``timeout`` seconds. Returns its exit status."""
        self._told = True
        self._send(signal.SIGTERM)
        if not self._ended.wait(timeout):
            self._send(signal.SIGKILL)
            self._ended.wait()
        return self.status

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and not self._ended.is_set():
            self._process.send_signal(number)

    def _run(self) -> None:
        beats, written = os.pipe()
        with os.fdopen(beats, "rb", buffering=0) as signs:
            try:
                self._process = self._start(written)
            except OSError as error:  # the directory is not there, no process can be made
                self._printed = f"{error.strerror}: {error.filename}"
                status = 1
            finally:
                os.close(written)
                self._begun.set()
            if self._process is not None:
                self._follow(self._process, signs)
                status = self._process.wait()
        self.status = status
        self._ended.set()
        if not self._told:
            self._on_end(status)

    def _start(self, written: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*self._launch.command(self._name), "--alive", f"/dev/fd/{written}"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "IKIGAI_DATABASE_URL": self._launch.url},  # a command line is public
            cwd=self._launch.directory,
            pass_fds=[written],
            preexec_fn=_dying_with(os.getpid()),
        )

    def _follow(self, process: "subprocess.Popen[bytes]", signs: IO[bytes]) -> None:
        """Read the host's output and heartbeats until it has ended; kill the host if it hangs."""
        assert process.stderr is not None
        open_, heard, silence = [signs, process.stderr], time.monotonic(), float("inf")
        with process.stderr:
            while open_ and process.poll() is None:
                for stream in select.select(open_, [], [], _LOOK)[0]:
                    data = os.read(stream.fileno(), 65_536)
                    if not data:
                        open_.remove(stream)
                    elif stream is signs:
                        heard, silence = time.monotonic(), float(data.split()[-1])
                    else:
                        self._hear(data)
                if time.monotonic() - heard > silence:
                    self._hear(f"host {self._name} has sent no heartbeat for {silence:g} s\n".encode())
                    process.kill()
            os.set_blocking(process.stderr.fileno(), False)  # what it has started may hold it open
            with contextlib.suppress(BlockingIOError):
                while data := os.read(process.stderr.fileno(), 65_536):
                    self._hear(data)

    def _hear(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        self._printed = (self._printed + text)[-_KEPT:]
        sys.stderr.write(text)
        sys.stderr.flush()


def _dying_with(parent: int) -> Callable[[], None]:
    """Return a function that a child calls first. On Linux the kernel then kills the child when its parent ends.

    On other systems the child goes on until the next host of its name takes its place.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])  # threads of Ray block some
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return prepare
