"""Removes a directory, whatever an agent has left in it.

A program can nest directories deeper than any path reaches and than Python can recurse, take the rights of directories
away, and leave links, pipes and devices. So each directory is emptied by descriptors, and its inner directories are
moved up to the top one before they are emptied themselves. Links are not followed, two descriptors are open at a time,
and the work is proportional to the number of names. Entries that cannot be removed, such as mount points, stay.

Files of the top directory go last, so that a lock among them holds to the end. Several may remove a directory at once.
"""

import contextlib
import errno
import logging
import math
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_ROUNDS = 20
"""The most attempts to empty a directory to which somebody else keeps adding files."""


def remove_all(place: Path | str, dir_fd: int | None = None, seconds: float = math.inf) -> bool:
    """Remove a directory or a file; return whether it is gone. A warning names an entry that cannot be removed.

    Args:
        place: the path.
        dir_fd: a descriptor of the directory to which the path is relative; None for the current one.
        seconds: the most seconds that this may take. The rest stays for a later attempt.
    """
    removal = _Removal(str(place), dir_fd, time.monotonic() + seconds)
    if removal.stays is not None:
        logger.warning("%s could not be removed: %s. Remove it by hand.", place, removal.stays)
    elif removal.is_late:
        logger.info("%s has more in it than %.0f s remove; the rest goes later.", place, seconds)
    return removal.stays is None and not removal.is_late


class _Removal:
    """The removal of a file or directory. ``stays`` is the first error for which an entry could not be removed."""

    def __init__(self, place: str, dir_fd: int | None, until: float) -> None:
        self.stays: OSError | None = None
        self.is_late = False
        self._until = until
        with self._noted():
            if not stat.S_ISDIR(os.stat(place, dir_fd=dir_fd, follow_symlinks=False).st_mode):
                os.unlink(place, dir_fd=dir_fd)
                return
            for again in range(_ROUNDS, -1, -1):
                with _opened(place, dir_fd) as top:
                    self._empty(top)
                if self.is_late or self._is_removed(place, dir_fd, again > 0):
                    return

    def _is_removed(self, place: str, dir_fd: int | None, again: bool) -> bool:
        """Remove a directory if it is empty, and return True. Return False if it must be emptied first.

        Raises `OSError` for other errors, and for a directory that is not empty if ``again`` is False or an entry must
        stay.
        """
        try:
            os.rmdir(place, dir_fd=dir_fd)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or self.stays is not None or not again:
                raise
            return False
        return True

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Note in ``stays`` the first error of the block, and suppress it. A missing file is no error."""
        try:
            yield
        except FileNotFoundError:
            pass
        except OSError as error:
            self.stays = self.stays or error

    def _empty(self, top: int) -> None:
        files, left = _names(top)
        while left and time.monotonic() < self._until:
            name = left.pop()
            with self._noted():
                with _opened(name, top) as held:
                    inner_files, inner = _names(held)
                    self._unlink(inner_files, held)
                    left += self._moved_up(inner, held, top)
                os.rmdir(name, dir_fd=top)
        self.is_late = bool(left)
        if not self.is_late:
            self._unlink(files, top)

    def _unlink(self, names: list[str], held: int) -> None:
        for name in names:
            with self._noted():
                os.unlink(name, dir_fd=held)

    def _moved_up(self, names: list[str], held: int, top: int) -> list[str]:
        """Remove empty directories, and move others to the top directory under new random names; return these names."""
        moved = []
        for name in names:
            try:
                os.rmdir(name, dir_fd=held)
                continue
            except OSError:  # it is not empty, or something is mounted there, which the next attempt says
                pass
            free = f".{secrets.token_hex(12)}"
            with self._noted():
                try:
                    os.rename(name, free, src_dir_fd=held, dst_dir_fd=top)
                except PermissionError:  # who may not write to a directory may not move it
                    os.close(_open(name, held))
                    os.rename(name, free, src_dir_fd=held, dst_dir_fd=top)
                moved.append(free)
        return moved


def _names(held: int) -> tuple[list[str], list[str]]:
    with os.scandir(held) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return [name for name, is_inner in names if not is_inner], [name for name, is_inner in names if is_inner]


@contextlib.contextmanager
def _opened(name: str, dir_fd: int | None) -> Iterator[int]:
    held = _open(name, dir_fd)
    try:
        yield held
    finally:
        os.close(held)


def _open(name: str, dir_fd: int | None) -> int:
    """Open a directory for reading, with all rights for its owner. Raises `OSError`."""
    with contextlib.suppress(PermissionError):
        held = os.open(name, _DIRECTORY, dir_fd=dir_fd)
        if os.fstat(held).st_mode & stat.S_IRWXU == stat.S_IRWXU:
            return held
        os.close(held)
    if hasattr(os, "O_PATH"):
        path = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{path}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor, where a path may lead nowhere
        finally:
            os.close(path)
    else:
        os.chmod(name, stat.S_IRWXU, dir_fd=dir_fd, follow_symlinks=False)
    return os.open(name, _DIRECTORY, dir_fd=dir_fd)
