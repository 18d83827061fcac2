"""Programs that start in milliseconds: they are forked from a process that has imported the package already.

    popen(COMMAND, stdin=…, stdout=…, terminal=True)      as `subprocess.Popen`

A fresh interpreter with the package, its client of a model service and its application takes about a second of
processor time, and the tests start hundreds. A command of this interpreter with ``-W error`` is forked instead, where
its start is not what is tested: the child gets the command's arguments, environment, directory, streams and session,
and runs it from its first line. Nothing but the modules is inherited. What is not such a command, and each program
whose coverage is measured, is executed as ever.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]

PYTHON = (sys.executable, "-W", "error")
"""How a command begins that can be forked."""

MOST_FDS = 64
SIZE = 180 * 1024
"""Bytes that a request may have; a datagram of a socket holds no more."""

WARM = ("anthropic.types", "click", "filelock", "psycopg", "rich.console", "textual.app", "textual.widgets")
"""What the package imports late; not readline, which asks for the terminal when it is imported."""

COLD = ("ikigai_actors.__main__", "ikigai_actors.testing", "ikigai_actors.cluster")
"""What it does not import for itself."""

GUESTS = {"ikigai_actors.guests.langgraph_saver": "langgraph"}
"""Modules that extend a class of a library which the tests do not bring."""


class Request(NamedTuple):
    """What a child is to run. The descriptors that go with it are its standard streams, and those that it inherits."""

    arguments: list[str]
    """The command's, behind `PYTHON`."""
    environment: dict[str, str]
    directory: str
    session: bool
    """Whether it leads a session of its own; then its standard input may be the terminal that controls it."""
    terminal: bool
    numbers: list[int]
    """The numbers that the inherited descriptors have."""


class Zygote:
    """A connection to the process that forks, which is started when it is first needed.

    A process that is forked from this one connects to the same; it ends when nobody is connected.
    """

    _nearest: "Zygote | None" = None
    """Of this process, or of the one that it was forked from."""

    def __init__(self, address: bytes | None = None) -> None:
        self.address = address or self._start()
        self.process = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(self.address)

    @classmethod
    def get(cls) -> "Zygote":
        """The one of this process."""
        nearest = cls._nearest
        if nearest is None:
            cls._nearest = nearest = cls()
        elif nearest.process != os.getpid():
            nearest._socket.close()
            cls._nearest = nearest = cls(nearest.address)
        return nearest

    @staticmethod
    def _start() -> bytes:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("")  # the kernel chooses a name
            listener.listen()
            process = subprocess.Popen(
                [*PYTHON, "-m", "tests.kit.zygote", str(listener.fileno())],
                pass_fds=(listener.fileno(),),
                cwd=ROOT,
                env={**environment, "PYTHONUTF8": "1"},
                stdin=subprocess.DEVNULL,
            )
            atexit.register(_end, process)
            address: bytes = listener.getsockname()
            return address

    def fork(self, request: Request, descriptors: Sequence[int]) -> tuple[int, int]:
        """Start a child. Returns its process id, and a descriptor from which its wait status can be read."""
        status, theirs = os.pipe()
        try:
            data = json.dumps(request).encode()
            assert len(data) < SIZE, "The command and its environment are too long for a datagram."
            socket.send_fds(self._socket, [data], [theirs, *descriptors])
        finally:
            os.close(theirs)
        return int(self._socket.recv(64)), status


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Close our connection, and wait for the end of the zygote."""
    if Zygote._nearest:
        Zygote._nearest._socket.close()
    process.wait()


class Forked(subprocess.Popen[Any]):
    """A child of the zygote. Its parent is another process, so its end is read from a pipe."""

    def __init__(self, command: Sequence[str], terminal: bool, **options: Any) -> None:
        self._terminal = terminal
        self._status = -1
        super().__init__(command, **options)

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        """What `subprocess.Popen` does when it has made the pipes. Its arguments are those of CPython 3.11 to 3.13."""
        (_, _, _, pass_fds, cwd, env, _, _, _), pipes, (*_, session, _) = rest[:9], rest[9:15], rest[15:]
        streams = [own if own >= 0 else number for number, own in enumerate((pipes[0], pipes[3], pipes[5]))]
        request = Request(
            [str(word) for word in args[len(PYTHON) :]], dict(os.environ if env is None else env),
            str(cwd or Path.cwd()), bool(session or self._terminal), self._terminal, sorted(pass_fds),
        )  # fmt: skip
        try:
            self.pid, self._status = Zygote.get().fork(request, [*streams, *sorted(pass_fds)])
            self._child_created = True
        finally:
            for theirs, ours in ((pipes[0], pipes[1]), (pipes[3], pipes[2]), (pipes[5], pipes[4])):
                if theirs >= 0 and ours >= 0:
                    os.close(theirs)
            if (null := getattr(self, "_devnull", None)) is not None:
                os.close(null)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            status = os.read(self._status, 64)
            os.close(self._status)
            self.returncode = os.waitstatus_to_exitcode(int(status or b"9"))  # the zygote's end kills nobody
        return self.returncode


def popen(
    command: Sequence[str], *, terminal: bool = False, fresh: bool = False, **options: Any
) -> "subprocess.Popen[Any]":
    """Start a command, forked where that is possible.

    Args:
        command: the program and its arguments.
        terminal: the standard input is a terminal, which is to control the new session of the program.
        fresh: execute it: its imports are what is tested, or that it is a child of this process.
        options: those of `subprocess.Popen`.
    """
    if not fresh and tuple(command[: len(PYTHON)]) == PYTHON and "COVERAGE_PROCESS_CONFIG" not in os.environ:
        return Forked(command, terminal, **options)
    if terminal:
        return subprocess.Popen(
            [sys.executable, "-c", _AT_TERMINAL, *command], **{**options, "start_new_session": True}
        )
    return subprocess.Popen(command, **options)


# The terminal becomes the one that Ctrl-C of the new session goes through; then the program takes this one's place.
_AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def serve(listener: socket.socket) -> Request | None:
    """Fork a child for each request. Returns its request in the child, and None when nobody asks any more."""
    children: dict[int, int] = {}  # by process id, where its status is written
    asking = [listener.accept()[0]]
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while asking:
        waited: list[socket.socket | int] = [listener, reading, *asking]
        ready, _, _ = select.select(waited, [], [])
        if reading in ready:
            os.read(reading, 4096)
            _reap(children)
        if listener in ready:
            asking.append(listener.accept()[0])
        for link in [link for link in asking if link in ready]:
            data, descriptors, _, _ = socket.recv_fds(link, SIZE, MOST_FDS)
            if not data:
                asking.remove(link)
                link.close()
                continue
            status, *files = descriptors
            if child := os.fork():
                for descriptor in files:
                    os.close(descriptor)
                children[child] = status
                link.send(str(child).encode())
                continue
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for descriptor in (reading, writing, status, *children.values()):
                os.close(descriptor)
            for other in (listener, *asking):
                other.close()
            request = Request(*json.loads(data))
            _become(request, files)
            return request
    return None


def _reap(children: dict[int, int]) -> None:
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(children[child], str(status).encode())
        os.close(children.pop(child))


def _become(request: Request, files: Sequence[int]) -> None:
    """Take the request's session, streams, directory and environment."""
    if request.session:
        os.setsid()
    above = max([2, *request.numbers, *files]) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, above) for descriptor in files]
    for descriptor in files:
        os.close(descriptor)
    for descriptor, number in zip(moved, [0, 1, 2, *request.numbers], strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request.terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    for number, name, mode, errors in ((0, "stdin", "r", ""), (1, "stdout", "w", ""), (2, "stderr", "w", "backslash")):
        stream = open(  # noqa: SIM115
            number, mode, buffering=1 if os.isatty(number) or number == 2 else -1, encoding="utf-8",
            errors=f"{errors}replace" if errors else "surrogateescape", closefd=False,
        )  # fmt: skip
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def run(request: Request) -> None:
    """Run the command as the interpreter would, and end. To take the modules apart would take ten times a fork."""
    try:
        _execute(request.arguments)
        status = 0
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise  # it is a text, which the interpreter prints
        status = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if (left := vars(sys.modules["__main__"])) is not globals():
        left.clear()
    gc.collect()  # what is still open complains
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def _execute(arguments: Sequence[str]) -> None:
    kind, *rest = arguments
    if kind == "-m":
        sys.argv, sys.path[0] = rest, str(Path.cwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv, sys.path[0] = list(arguments), str(Path(kind).parent)
        runpy.run_path(kind, run_name="__main__")


def guests_missing() -> tuple[str, ...]:
    """Those of which the library is not installed."""
    return tuple(name for name, library in GUESTS.items() if importlib.util.find_spec(library) is None)


def warm_up() -> None:
    """Import the package, and what it imports late."""
    import ikigai_actors

    for module in pkgutil.walk_packages(ikigai_actors.__path__, "ikigai_actors."):
        if not module.name.startswith((*COLD, *guests_missing())):
            importlib.import_module(module.name)
    for name in WARM:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    warm_up()
    with socket.socket(fileno=int(sys.argv[1])) as named:
        asked = serve(named)
    if asked is not None:
        run(asked)
