"""What was acknowledged to one process, in a file: a line for each entry, and the kernel has it when `write` returns.

So no ``kill -9`` takes an entry back. It is written after the library's call has returned; `Trying` alone comes before.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Opened(NamedTuple):
    """The database is open, and all turns that were cut off go on."""

    seconds: float
    resumed: int


class Trying(NamedTuple):
    """A hand is about to give a command to an agent."""

    hand: int
    command: str
    agent: str


class Did(NamedTuple):
    """A command that leaves nothing to look for has returned."""

    hand: int
    command: str


class Refused(NamedTuple):
    """A command was refused or failed."""

    hand: int
    command: str
    token: str
    error: str
    """The exception's name."""
    definite: bool
    """The error says that nothing was written."""


class Sent(NamedTuple):
    """A mail is committed."""

    hand: int
    sender: str | None
    recipient: str
    number: int
    body: str


class Asked(NamedTuple):
    """A prompt was left from outside; it is mail until the agent takes it up."""

    agent: str
    number: int
    body: str


class Took(NamedTuple):
    """An agent's mail was read by its handle."""

    hand: int
    agent: str
    numbers: list[int]


class Ended(NamedTuple):
    """A turn ended: ``assistant``, ``error`` or ``interrupted``."""

    hand: int
    agent: str
    prompt: str
    kind: str
    text: str


class Forked(NamedTuple):
    """A fork returned."""

    hand: int
    parent: str
    child: str


class Buried(NamedTuple):
    """A kill returned; the position of the last message of each who died of it."""

    hand: int
    heads: dict[str, int]


class Wrote(NamedTuple):
    """A version of a document is committed."""

    hand: int
    path: str
    version: int
    line: str


class Trouble(NamedTuple):
    """The host says that its store is in trouble, or that it is well again (None)."""

    reason: str | None
    final: bool


class Figures(NamedTuple):
    """What a process uses while it is at rest."""

    where: str
    """``start``, ``round``, or ``closed``."""
    rss: int
    """Bytes of memory."""
    threads: int
    files: int
    waits: int
    """Agents that wait."""
    records: int
    """Agents in the registry, the dead too."""


class Stopped(NamedTuple):
    """The host has ended by itself, for this reason."""

    reason: str


class Complaint(NamedTuple):
    """Something is wrong already."""

    text: str


Entry = (
    Opened
    | Trying
    | Did
    | Refused
    | Sent
    | Asked
    | Took
    | Ended
    | Forked
    | Buried
    | Wrote
    | Trouble
    | Figures
    | Stopped
    | Complaint
)
_KINDS: dict[str, type[Entry]] = {kind.__name__: kind for kind in Entry.__args__}

PROGRESS = (Sent, Ended, Forked, Buried, Wrote)
"""Entries which show that the store takes what is written."""


class Ledger:
    """The writer's end; any thread may write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, entry: Entry) -> None:
        """Add an entry."""
        os.write(self._file, f"{json.dumps([type(entry).__name__, *entry])}\n".encode())

    def close(self) -> None:
        """Add no more."""
        os.close(self._file)


class LedgerReader:
    """The reader's end, while it is written."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self.entries: list[Entry] = []
        """All that was read so far."""

    def read(self) -> list[Entry]:
        """Read on; returns what is new. A line that is not whole yet comes later."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        new = list(_entries(whole))
        self.entries += new
        return new


def _entries(data: bytes) -> Iterator[Entry]:
    for line in data.splitlines():
        kind, *fields = json.loads(line)
        yield _KINDS[kind](*fields)
