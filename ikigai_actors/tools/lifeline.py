"""A lifeline: it ends the processes of a session with our process, also when that is killed.

The host keeps one end of a pipe. In the session a guard reads the other one: it sees the end of the pipe when the host
closes it, or is gone, and kills every process of the session, in whatever process group. It does not find a process
that began a session of its own (``setsid``, a daemon); and a process that kills the guard is safe from it.
"""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

_START = r"""
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


class Lifeline:
    """The pipe of one session. As a context manager, it closes the end that the session inherits."""

    def __init__(self) -> None:
        """Make it."""
        self.reading, self._writing = os.pipe()
        """The end of the pipe that the session inherits."""

    def command(self, bash: str, program: Sequence[str]) -> list[str]:
        """The command that starts a program as the leader of a guarded session.

        Args:
            bash: the path of bash.
            program: the program and its arguments.
        """
        return [bash, "--noprofile", "--norc", "-c", _START, "bash", str(self.reading), *program]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.reading)
        if error is not None:
            self.cut()

    def cut(self) -> None:
        """End the rest of the session; once."""
        os.close(self._writing)
