"""Clocks of drivers that can be set: the wall clock alone, by a small library of our own, ``clock.c``.

Monotonic clocks, timers and sleeps stay as they are, and so does the clock of a runtime's server. A C compiler builds
the library when a play needs it.
"""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

HOUR = 3600
_SOURCE = Path(__file__).with_name("clock.c")


def can_be_set() -> bool:
    """Whether this is Linux with a C compiler."""
    return sys.platform == "linux" and shutil.which("cc") is not None


class Clock:
    """The wall clock of the processes that start with `variables`."""

    def __init__(self, file: Path) -> None:
        """Build the library beside a file, and let the clock be right. Raises `CalledProcessError`."""
        library = file.with_name(f"{file.name}.so").resolve()  # restate.so would be the module restate
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, _SOURCE], check=True)
        file.write_bytes(bytes(8))
        self._file = file
        self.variables = {"LD_PRELOAD": str(library), "DURABILITY_CLOCK": str(file.resolve())}
        """The environment of such a process."""

    def set(self, seconds: int) -> None:
        """Let the clock differ so far from the right time, at once."""
        with self._file.open("r+b") as file:  # the same file: processes have it in their memory
            file.write(struct.pack("=q", seconds))
