"""Private directories of the programs behind the fence: a home and temporary files for each agent.

The directories are in ``fence/<random>`` beneath the host's directory. Each has a lock that the kernel frees when the
host ends. So the next host finds the directories of a killed host, and removes them.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from ikigai_actors.tools.removal import remove_all

_LOCK = "lock"

_SECONDS = 10.0
"""The most seconds for removing an agent's files when opening, leaving or closing. The rest is removed later.
"""


class PrivateDirectories:
    """The private directories of agents, with their homes and temporary files, for one toolset."""

    def __init__(self, state: Path, files: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make the directories beneath the host's directory, and remove those of killed hosts.

        Args:
            state: the host's directory.
            files: the files that each home has at first: text by name.
        """
        self._files = files
        (state / "fence").mkdir(mode=0o700, parents=True, exist_ok=True)
        above = (state / "fence").resolve()
        self._place = above / secrets.token_hex(8)
        with _alone(above):
            abandoned = [(place, lock) for place in above.iterdir() if (lock := _locked(place)) is not None]
            self._place.mkdir(mode=0o700)
            self._lock = _locked(self._place)
        until = time.monotonic() + _SECONDS
        for place, lock in abandoned:
            try:
                remove_all(place, seconds=until - time.monotonic())
            finally:
                os.close(lock)
        self.mount_point = self._place / "root"
        """An empty directory, where each program puts its root directory together, unseen by others."""
        self.mount_point.mkdir()
        self.skills = self._place / "skills"
        """The files of skills, which all programs read and none writes."""
        self.skills.mkdir()

    def of(self, name: str) -> Path:
        """Return the directory of an agent, which has ``home`` and ``tmp``."""
        place = self._place / f"of-{name}"
        if not place.exists():
            for inner in ("home", "tmp"):
                (place / inner).mkdir(mode=0o700, parents=True)
            for file, text in self._files.items():
                (place / "home" / file).write_text(text, encoding="utf-8")
        return place

    def remove(self, name: str) -> None:
        """Remove the directory of an agent. If files of it remain, the agent gets a new directory all the same."""
        gone = self._place / f"gone-{secrets.token_hex(8)}"
        try:
            (self._place / f"of-{name}").rename(gone)
        except FileNotFoundError:
            return
        remove_all(gone, seconds=_SECONDS)

    def close(self) -> None:
        """Remove the private directories of all agents."""
        remove_all(self._place, seconds=_SECONDS)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def _alone(above: Path) -> Iterator[None]:
    """Lock the parent directory, so that no process takes a new directory, not yet locked, for an abandoned one."""
    held = os.open(above, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _locked(place: Path) -> int | None:
    """Lock a directory; return the descriptor with the lock. None if another process has it, or it does not exist."""
    try:
        lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
