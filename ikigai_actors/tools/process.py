"""Starts and ends child processes, for bash, MCP servers and ripgrep.

A child leads its own session. So a signal to its process group reaches the processes that it started, and never this
process. It gets only the variables and descriptors that are passed. A guard may run in its session: a bash that reads a
pipe, the lifeline, whose other end only this process has. When that end is closed, or this process is gone, the guard
kills every process of the session, in whatever process group. The guard does not find a process that began its own
session (``setsid``, a daemon), and a process that kills the guard escapes. A fence closes both gaps: the child is then
the outer process of the fence, which is also the guard (see `ikigai_actors.tools.fence.launcher`).

    state      lasts until                                     what a kill -9 of our process leaves
    starting   exec, or an error, which leaves nothing         nothing: the guard begins before the program
    running    its own end, `terminate`, `kill`, a waiter      nothing
    ending     its own end, within `_GRACE` of the end of      after `terminate` nothing; after the TERM of a waiter,
               its input or of TERM, or KILL after that        which ends the guard too, all that is deaf to TERM
    dead       `reap`: the guard ends when no process of the session runs, and nobody waits for the child any longer

Without a guard, all that was not sent KILL yet goes on until it reads the end of its input or writes to us. If this
process only fails or is cancelled, the code that has started a child kills and reaps it before the event loop closes.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Self

from ikigai_actors.actors.threads import current_threads, in_thread
from ikigai_actors.tools.fence.seatbelt import seatbelt_command

if TYPE_CHECKING:
    from ikigai_actors.tools.fence.launch import FencedStart

logger = logging.getLogger(__name__)

_GRACE = 2.0
"""Seconds that a child has to end after its input was closed, after TERM, and after KILL."""

_LOOK_AGAIN = 0.01
"""Seconds between two looks at the processes of sessions that are being ended."""

_PROC = Path("/proc")
"""Linux's directory of processes, with their sessions. Without it only the leader's process group is found."""

_GUARD = r"""
set -m   # a process group of its own for the guard: what ends all others of the session is not to end it first
(
    read -r -u "$1"   # ends when the host has closed the other end of the pipe, or is gone
    for ((round = 0; round < 1000; round++)); do
        found=
        for stat in /proc/[0-9]*/stat; do
            read -r line < "$stat" || continue
            set -- ${line##*) }   # state, parent, group, session
            pid=${stat//[^0-9]/}
            if [ "$4" = "$$" ] && [ "$1" != Z ] && [ "$pid" != "$BASHPID" ]; then kill -KILL "$pid" && found=1; fi
        done
        [ -n "$found" ] || break
    done
    kill -KILL -- "-$$"   # where there is no /proc
) < /dev/null > /dev/null 2>&1 &
set +m
eval "exec $1<&-"
shift
exec "$@"
"""
"""The beginning of a session, in bash: first the guard, then the program in its own place."""


class ChildProcess:
    """A child process. It belongs to the event loop that starts it, once, with `spawn`."""

    def __init__(self, limit: int = 2**16) -> None:
        """Prepare a child process. ``limit`` is the most bytes of a line that is read from `stdout`."""
        self._loop = asyncio.get_running_loop()
        self.limit = limit
        self.stdout = asyncio.StreamReader(limit, self._loop)
        """The options of the process that it writes; not what a class takes for itself in `received`."""
        self.stdin: asyncio.StreamWriter | None = None
        """The input, when that is a pipe."""
        self.handed: list[int] = []
        """The descriptors that its fence has handed over; the code that starts it closes them."""
        self._child: subprocess.Popen[bytes]
        self._reading: asyncio.ReadTransport
        self._exited = asyncio.Event()
        self._pipes = contextlib.ExitStack()
        self._lifeline = contextlib.ExitStack()

    async def spawn(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        stderr: int,
        stdin: int = PIPE,
        directory: Path | None = None,
        hand_over: tuple[int, ...] = (),
        guard: str | None = None,
        fence: "FencedStart | None" = None,
    ) -> Self:
        """Start the process, with its output in a pipe.

        Args:
            command: the program and its arguments.
            environment: all environment variables of the process.
            stderr: the descriptor for its standard error.
            stdin: the descriptor of its input.
            directory: the working directory; the current one when None.
            hand_over: descriptors that the process inherits.
            guard: the path of the bash that guards the session; None for no guard.
            fence: starts the process in a fence, whose outer process then guards it; None for no fence.

        Raises:
            OSError: the process cannot be started, or its fence cannot be made.
        """
        report: socket.socket | None = None
        with contextlib.ExitStack() as theirs:
            if fence is not None and fence.profile:
                command, fence = seatbelt_command(fence.profile, command), None
            if fence is not None:
                file, reading, (report, status) = fence.open(), self._hold_lifeline(theirs), socket.socketpair()
                theirs.callback(os.close, file)
                theirs.callback(status.close)
                own = (file, reading, status.fileno())
                command = fence.command(*own, command)
                hand_over += own
            elif guard is not None:
                reading = self._hold_lifeline(theirs)
                command = [guard, "--noprofile", "--norc", "-c", _GUARD, "bash", str(reading), *command]
                hand_over += (reading,)
            try:
                self._child = subprocess.Popen(
                    command, bufsize=0, stdin=stdin, stdout=PIPE, stderr=stderr, env=environment, cwd=directory,
                    pass_fds=hand_over, start_new_session=True,
                )  # fmt: skip
            except BaseException:
                self._lifeline.close()
                if report is not None:
                    report.close()
                raise
        connecting = self._loop.create_task(self._connect(report))
        try:
            await asyncio.shield(connecting)
        except BaseException:
            self.kill()
            self._lifeline.close()
            while not connecting.done():  # a few turns of the loop, after which every pipe can be closed
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({connecting})
            await self.reap()
            raise
        return self

    def _hold_lifeline(self, theirs: contextlib.ExitStack) -> int:
        """Make the pipe by which a guard learns of our end; return its end for the child, which ``theirs`` closes."""
        reading, writing = os.pipe()
        theirs.callback(os.close, reading)
        self._lifeline.callback(os.close, writing)
        return reading

    async def _connect(self, report: socket.socket | None) -> None:
        """Connect the pipes of the process, and wait for its fence, which reports by the socket ``report``, if any."""
        assert self._child.stdout is not None
        self._pipes.callback(self._child.stdout.close)
        if self._child.stdin is not None:
            self._pipes.callback(self._child.stdin.close)
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=self._loop), loop=self._loop)
            writing, _ = await self._loop.connect_write_pipe(lambda: protocol, self._child.stdin)
            self._pipes.callback(_drop, writing)
            self.stdin = asyncio.StreamWriter(writing, protocol, None, self._loop)
        self._reading, _ = await self._loop.connect_read_pipe(lambda: _Output(self), self._child.stdout)
        self._pipes.callback(self._reading.close)
        current_threads().thread(self._wait, "ikigai-child").start()
        if report is not None:
            await self._check_fence(report)

    async def _check_fence(self, report: socket.socket) -> None:
        """Wait until the program runs, and receive its descriptors. Raises `OSError` if the fence could not be made."""
        words = b""
        try:
            while True:
                await self._readable(report)
                piece, handed, _, _ = socket.recv_fds(report, 4096, 2)
                self.handed += handed
                if not piece:
                    break
                words += piece
            if failure := words.strip(b"\0").decode(errors="replace"):
                raise OSError(f"the fence could not be made: {failure}. Nothing was run")
        except BaseException:
            while self.handed:
                os.close(self.handed.pop())
            raise
        finally:
            report.close()

    async def _readable(self, report: socket.socket) -> None:
        ready = asyncio.Event()
        self._loop.add_reader(report, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(report)

    def _wait(self) -> None:
        self._child.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self.process_exited)

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its process group and session."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._child.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill the process and its process group at once."""
        self.signal(signal.SIGKILL)

    async def ended(self, seconds: float | None = _GRACE) -> bool:
        """Wait until the process has ended; return False if it runs on after ``seconds``. None waits forever."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), seconds)
        return self._exited.is_set()

    async def terminate(self) -> None:
        """Close the input of the process. If it does not end, send TERM. The process may ignore both."""
        assert self.stdin is not None
        self.stdin.close()
        if not await self.ended():
            self.signal(signal.SIGTERM)
            await self.ended()

    async def reap(self) -> None:
        """Let the guard end the rest of the session, wait until it has ended, and close the pipes."""
        self._lifeline.close()
        try:
            await self.ended()  # when the loop closes, nobody could wait for its end any more
        finally:
            self._close()

    def _close(self) -> None:
        if not self._exited.is_set():
            self.kill()
        self._pipes.close()

    def received(self, data: bytes) -> None:
        """Handle output of the process; subclasses override it."""
        self.stdout.feed_data(data)

    def process_exited(self) -> None:
        """Handle the end of the process; subclasses override it."""
        self._exited.set()


class _Output(asyncio.Protocol):
    def __init__(self, child: ChildProcess) -> None:
        self._child = child

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._child.stdout.set_transport(transport)

    def data_received(self, data: bytes) -> None:
        self._child.received(data)

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            self._child.stdout.feed_eof()
        else:
            self._child.stdout.set_exception(error)


def _drop(pipe: asyncio.WriteTransport) -> None:
    """Close a pipe, and discard the data that are not yet written."""
    if pipe.get_write_buffer_size():
        pipe.abort()
    else:
        pipe.close()


def living_processes(leaders: Collection[int]) -> dict[int, list[int]]:
    """Return the living processes of sessions, by the session leader, each as the arguments of `os.kill`."""
    if not (_PROC / "self" / "stat").exists():
        return {leader: [-leader] for leader in leaders if _group_lives(leader)}
    processes: dict[int, list[int]] = {}
    for place in _PROC.iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                state, _, _, session = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[:4]
                if int(session) in leaders and state not in "ZX":  # a zombie is only waited for
                    processes.setdefault(int(session), []).append(int(place.name))
    return processes


@dataclass(slots=True)
class _Ending:
    kill_at: float
    over: asyncio.Future[None]
    warned: set[int] = field(default_factory=set)
    """The processes that were sent TERM."""


class ExitWaiter:
    """Ends the processes of sessions: sends TERM, and KILL after `_GRACE` seconds.

    One scan of all processes serves all sessions. When it is cancelled, for example because the system closes, it sends
    KILL at once.
    """

    def __init__(self) -> None:
        self._exits: dict[int, _Ending] = {}
        self._work: asyncio.Task[None] | None = None

    def wait_for(self, leader: int) -> "asyncio.Future[None]":
        """End every process of a session, on the running event loop; the future is done when they are gone."""
        loop = asyncio.get_running_loop()
        ending = self._exits.setdefault(leader, _Ending(loop.time() + _GRACE, loop.create_future()))
        if self._work is None:
            self._work = loop.create_task(self._end_all())
        return ending.over

    async def _end_all(self) -> None:
        now = asyncio.get_running_loop().time
        while self._exits:
            try:
                processes = await in_thread(lambda: living_processes(set(self._exits)), "ikigai-ending")
                for leader, ending in list(self._exits.items()):
                    self._go_on(leader, ending, processes.get(leader, []), now())
                await asyncio.sleep(_LOOK_AGAIN)
            except asyncio.CancelledError:
                for ending in self._exits.values():
                    ending.kill_at = min(ending.kill_at, now())
        self._work = None

    def _go_on(self, leader: int, ending: _Ending, left: list[int], now: float) -> None:
        given_up = now > ending.kill_at + _GRACE
        if left and given_up:
            logger.warning("Processes %s of a shell could not be killed", left)
        if not left or given_up:
            ending.over.set_result(None)
            del self._exits[leader]
        elif now >= ending.kill_at:
            _send(left, signal.SIGKILL)
        else:
            _send([target for target in left if target not in ending.warned], signal.SIGTERM)
            ending.warned.update(left)


def _send(targets: list[int], number: signal.Signals) -> None:
    for target in targets:
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
            os.kill(target, number)


def _group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except OSError:
        return False
    return True
