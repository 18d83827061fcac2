"""A command that a person runs at the prompt: ``!git status``.

The person's own shell runs it with the person's own rights, outside of any fence, in the directory of the workspace. No
agent can run one. What it prints goes along with the person's next prompt, so that the agent can be asked about it,
unless it begins with two exclamation marks.
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
"""How many of the last bytes of the output are kept."""

_LOOK = 0.1
"""Seconds between two looks at whether the shell has ended: what it left running may hold its output open."""


class TypedCommand(NamedTuple):
    """The command that a person has typed after the mark."""

    command: str
    goes_along: bool
    """Whether the output goes along with the next prompt."""


def typed_command(text: str) -> TypedCommand | None:
    """The command in a text; None for a prompt. A blank before the mark makes it a prompt, too."""
    if not text.startswith(_MARK):
        return None
    return TypedCommand(text.lstrip(_MARK).strip(), not text.startswith(_MARK * 2))


class Printed(NamedTuple):
    """The outcome of a command."""

    command: str
    directory: Path
    output: str
    code: int
    """The exit code; the negative number of the signal that has ended it."""

    @property
    def shown(self) -> str:
        """The output for the person, and how it ended."""
        how = f"[ended by {_name(self.code)}]" if self.code < 0 else f"[exit code {self.code}]" if self.code else ""
        return "\n".join(filter(None, (self.output.rstrip("\n"), how))) or "[no output]"

    @property
    def for_prompt(self) -> str:
        """The text that goes along with a prompt."""
        return f"I ran this in {self.directory}:\n\n$ {self.command}\n{self.shown}"


def with_outputs(prompt: str, outputs: Sequence[str]) -> str:
    """A prompt, and below it what goes along."""
    return "\n\n".join([prompt, *outputs])


class PersonCommand:
    """One command. `run` it on a thread; `stop` may come from any other."""

    def __init__(self, command: str, directory: Path) -> None:
        """Name it. Raises `BadInput` when there is none."""
        if not command:
            raise BadInput("Say what to run: !COMMAND. A text that begins with ! needs a blank before it.")
        self.command, self.directory = command, directory
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._began = monotonic()
        self._starting = threading.Lock()

    @property
    def seconds(self) -> float:
        """How long ago it was given."""
        return monotonic() - self._began

    def run(self) -> Printed:
        """Run it to its end. Raises `BadInput` when it cannot be started."""
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
        """Ask it to end, with all that it has started; the second time, end it."""
        with self._starting:
            number, self._stopped = signal.SIGKILL if self._stopped else signal.SIGTERM, True
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)


def _read(process: "subprocess.Popen[bytes]") -> bytes:
    """Read the output until its end, or until the shell has ended and nothing more is there."""
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
