"""Removes a directory whatever an agent has left in it.

A program can nest directories deeper than any path reaches and than Python can recurse, take the rights of directories
away, and leave links, pipes and devices. So each directory is emptied by descriptors, and its inner directories are
moved up to the top one before they are emptied themselves. Nothing is followed, two descriptors are open at a time, and
the work grows with the number of names alone. What cannot be removed, as a place where something is mounted, stays.
"""

import contextlib
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_all(place: Path | str, dir_fd: int | None = None) -> bool:
    """Remove a directory, or a file; whether it is gone. What stays is named in one warning.

    Args:
        place: its path.
        dir_fd: a descriptor of the directory to which the path is relative.
    """
    stays = _Removal(str(place), dir_fd).stays
    if stays is not None:
        logger.warning("%s could not be removed: %s. Remove it by hand.", place, stays)
    return stays is None


class _Removal:
    """The removal of one place. ``stays`` is the first reason for which something stayed."""

    def __init__(self, place: str, dir_fd: int | None) -> None:
        self.stays: OSError | None = None
        try:
            if stat.S_ISDIR(os.stat(place, dir_fd=dir_fd, follow_symlinks=False).st_mode):
                with _opened(place, dir_fd) as top:
                    self._empty(top)
                os.rmdir(place, dir_fd=dir_fd)
            else:
                os.unlink(place, dir_fd=dir_fd)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.stays = self.stays or error

    def _empty(self, top: int) -> None:
        """Remove all that is beneath the top directory."""
        left = self._cleared(top)
        while left:
            name = left.pop()
            try:
                with _opened(name, top) as held:
                    left += self._moved_up(self._cleared(held), held, top)
                os.rmdir(name, dir_fd=top)
            except OSError as error:
                self.stays = self.stays or error

    def _cleared(self, held: int) -> list[str]:
        """Remove what is no directory from an open directory; return the names of its directories."""
        with os.scandir(held) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_directory in names:
            if not is_directory:
                try:
                    os.unlink(name, dir_fd=held)
                except OSError as error:
                    self.stays = self.stays or error
        return [name for name, is_directory in names if is_directory]

    def _moved_up(self, names: list[str], held: int, top: int) -> list[str]:
        """Move directories to the top one under names that nobody has; return these."""
        moved = []
        for name in names:
            try:
                os.rmdir(name, dir_fd=held)
                continue
            except OSError:  # it is not empty, or something is mounted there, which the next attempt says
                pass
            free = f".{secrets.token_hex(12)}"
            try:
                with contextlib.suppress(OSError):  # who may not write to a directory may not move it
                    os.close(_open(name, held))
                os.rename(name, free, src_dir_fd=held, dst_dir_fd=top)
                moved.append(free)
            except OSError as error:
                self.stays = self.stays or error
        return moved


@contextlib.contextmanager
def _opened(name: str, dir_fd: int | None) -> Iterator[int]:
    held = _open(name, dir_fd)
    try:
        yield held
    finally:
        os.close(held)


def _open(name: str, dir_fd: int | None) -> int:
    """Open a directory for reading, with all rights for its owner. Raises `OSError`."""
    if hasattr(os, "O_PATH"):
        path = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{path}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor, where a path may lead nowhere
        finally:
            os.close(path)
    else:
        os.chmod(name, stat.S_IRWXU, dir_fd=dir_fd, follow_symlinks=False)
    return os.open(name, _DIRECTORY, dir_fd=dir_fd)
