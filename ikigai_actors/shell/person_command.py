"""A command that a person runs at the prompt: ``!git status``.

The person's own shell runs it with the person's own rights, outside of any fence, in the directory of the workspace. No
agent can run one. The output is sent with the person's next prompt, so that the agent can be asked about it, unless the
line begins with two exclamation marks.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from ikigai_actors.errors import BadInput

_MARK = "!"

_KEPT = 30_000
"""The most bytes of the output that are kept, the last ones."""

_LOOK = 0.1
"""Seconds between two checks whether the shell has ended; its children may keep its output open."""


class TypedCommand(NamedTuple):
    """The command that a person has typed after the exclamation mark."""

    command: str
    goes_along: bool
    """Whether the output goes along with the next prompt."""


def typed_command(text: str) -> TypedCommand | None:
    """Return the command in a text; None for a prompt, also for one with a blank before the exclamation mark."""
    if not text.startswith(_MARK):
        return None
    return TypedCommand(text.lstrip(_MARK).strip(), not text.startswith(_MARK * 2))


class Printed(NamedTuple):
    """The outcome of a person's command: its output, and its exit code."""

    command: str
    directory: Path
    output: str
    code: int
    """The exit code; the negative number of the signal that has ended it."""

    @property
    def shown(self) -> str:
        """Return the text that the person sees: the output, and the exit code or signal."""
        how = f"[ended by {_name(self.code)}]" if self.code < 0 else f"[exit code {self.code}]" if self.code else ""
        return "\n".join(filter(None, (self.output.rstrip("\n"), how))) or "[no output]"

    @property
    def for_prompt(self) -> str:
        """Return the text that is sent with a prompt: the command, its output, and the exit code."""
        return f"I ran this in {self.directory}:\n\n$ {self.command}\n{self.shown}"


def with_outputs(prompt: str, outputs: Sequence[str]) -> str:
    """Return a prompt with the outputs of commands below it."""
    return "\n\n".join([prompt, *outputs])


class PersonCommand:
    """A command of a person. Call `run` on a thread; any other thread may call `stop`."""

    def __init__(self, command: str, directory: Path) -> None:
        """Prepare a command. Raises `BadInput` for an empty command."""
        if not command:
            raise BadInput("Say what to run: !COMMAND. A text that begins with ! needs a blank before it.")
        self.command, self.directory = command, directory
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._began = monotonic()
        self._starting = threading.Lock()

    @property
    def seconds(self) -> float:
        """Return the seconds since the command was given."""
        return monotonic() - self._began

    def run(self) -> Printed:
        """Run the command to its end. Raises `BadInput` if it cannot be started."""
        with self._starting:
            if self._stopped:
                return Printed(self.command, self.directory, "", -signal.SIGTERM)
            try:
                process = self._process = subprocess.Popen(
                    [os.environ.get("SHELL") or "/bin/sh", "-c", self.command], cwd=self.directory,
                    env={**os.environ, "TERM": "dumb"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                raise BadInput(f"The command cannot be run: {error}") from error
        output = _read(process)
        return Printed(self.command, self.directory, output.decode(errors="replace"), process.wait())

    def stop(self) -> None:
        """Ask the command and its children to end (SIGTERM); kill them at the second call (SIGKILL)."""
        with self._starting:
            number, self._stopped = signal.SIGKILL if self._stopped else signal.SIGTERM, True
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)


def _read(process: "subprocess.Popen[bytes]") -> bytes:
    """Return the output until its end, or until the shell has ended and no more output is available."""
    assert process.stdout is not None
    kept, left_out = bytearray(), 0
    with process.stdout as pipe:
        while True:
            over = process.poll() is not None
            if not select.select([pipe], [], [], 0 if over else _LOOK)[0]:
                if over:
                    break
                continue
            if not (data := os.read(pipe.fileno(), 65_536)):
                break
            kept += data
            if (surplus := len(kept) - _KEPT) > _KEPT:
                del kept[:surplus]
                left_out += surplus
    if (surplus := len(kept) - _KEPT) > 0:
        left_out += surplus
        del kept[:surplus]
    return (f"[{left_out:,} bytes before this]\n".encode() if left_out else b"") + bytes(kept)


def _name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
