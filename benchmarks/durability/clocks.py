"""Clocks of drivers that can be set: the wall clock alone, by libfaketime, which reads a file whenever it is asked.

Monotonic clocks stay as they are, and so does the clock of a runtime's server.
"""

from pathlib import Path

HOUR = 3600.0
_LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
"""Debian's package ``faketime`` has it."""


def can_be_set() -> bool:
    """Whether this machine has the library."""
    return bool(_LIBRARIES)


def variables(file: Path) -> dict[str, str]:
    """The environment of a process whose clock the file sets. Makes the file."""
    file.write_text("+0")
    return {
        "LD_PRELOAD": str(_LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def set_clock(file: Path, seconds: float) -> None:
    """Set the clocks of the processes that read the file this far from the right time, at once."""
    new = file.with_suffix(".new")
    new.write_text(f"{seconds:+.0f}")
    new.replace(file)
