"""Disks that can be filled: under the database of SQLite, and under nothing else."""

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SIZE = 1 << 30
"""Bytes of the file system in memory at most."""


class Disk(NamedTuple):
    """Where a database is, and how its disk is filled."""

    place: Path
    fill: Callable[[int], object]
    """Leaves no room for what the process with this id writes."""
    free: Callable[[int], object]
    """Gives the room back."""
    note: str
    """What kind of full disk it is, for the report."""


@contextmanager
def full_disk(place: Path, mounts: bool) -> Iterator[Disk]:
    """A disk of its own below a directory, if one can and may be mounted; else a limit on the size of files."""
    mounted = place / "disk"
    mounted.mkdir()
    problem = _mount(mounted) if mounts else "not asked for"
    if problem is None:
        try:
            yield Disk(mounted, lambda _: _fill(mounted), lambda _: _ballast(mounted).unlink(), "a full tmpfs (ENOSPC)")
        finally:
            subprocess.run(["umount", "--lazy", mounted], check=False, capture_output=True)
    else:
        note = f"files that may not grow (EFBIG), since a tmpfs was not mounted: {problem}"
        yield Disk(mounted, lambda pid: _limit(pid, mounted), _lift, note)


def _mount(place: Path) -> str | None:
    """Mount a file system in memory; returns why that is not possible."""
    if shutil.which("mount") is None or os.geteuid() != 0:
        return "it takes root and mount"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", place], capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else done.stderr.strip() or "mount failed"


def _ballast(place: Path) -> Path:
    return place / "ballast"


def _fill(place: Path) -> None:
    """Take all the room that is left; that of the database's log too, which else would do for a while."""
    for path in place.glob("*.db"):
        with contextlib.closing(sqlite3.connect(path, timeout=30.0)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    free = os.statvfs(place)
    size, step = 0, free.f_bavail * free.f_frsize
    with _ballast(place).open("wb") as file:
        while step >= free.f_frsize:
            try:
                os.posix_fallocate(file.fileno(), size, step)
                size += step
            except OSError:  # all or nothing; and the database takes room at the same time
                step //= 2


def _limit(pid: int, place: Path) -> None:
    """Let no file of a process grow beyond the log of its database; the files of the soak itself are smaller."""
    size = max(path.stat().st_size for path in place.glob("*-wal"))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _lift(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
