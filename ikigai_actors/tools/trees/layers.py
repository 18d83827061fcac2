"""Reads files through layers above a base directory, from outside, without a mount.

overlayfs marks a removed file by a device file 0/0, and a directory that replaces the one beneath it by an attribute.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ikigai_actors.errors import BadInput

OPAQUE = "user.overlay.opaque"
"""The extended attribute of a directory that hides everything beneath it."""

_LINKS = 40
"""The most links that are followed on the way to a file."""

_LONGEST = 3_000
"""The most bytes of a path beneath a directory. What a system takes, 4,096 on Linux, is for the directory as well."""

_SHOWN = 200
"""The most characters of a path that an error shows."""

WAS_THERE = "user.overlay.origin"
"""The extended attribute of a file that existed before it was changed."""


class FileView:
    """A directory as it appears beneath layers of changes. Paths are relative to the directory.

    The path ``.`` is the directory itself.
    """

    def __init__(self, layers: Sequence[Path], base: Path, shown_at: Path | None = None) -> None:
        """View a base directory through layers, the topmost first.

        ``shown_at`` is where programs see it, if not at ``base``.
        """
        self.layers, self.base = tuple(layers), base
        self._shown_at = base if shown_at is None else shown_at

    def find(self, path: str) -> Path | None:
        """Return the real file for a path of the view; None if the view has no such path."""
        parts = [] if path == "." else path.split("/")
        for layer in self.layers:
            entry, hides = _look(layer, parts)
            if entry is not None or hides:
                return entry
        return _look(self.base, parts)[0]

    def names(self, path: str) -> set[str]:
        """Return the names in a directory of the view; empty if the path is no directory."""
        names, seen = set[str](), set[str]()
        parts = [] if path == "." else path.split("/")
        for place in (*self.layers, self.base):
            entry, hides = _look(place, parts)
            if entry is not None and is_directory(entry):
                entries = {entry.name: entry.stat(follow_symlinks=False) for entry in os.scandir(entry)}
                names |= {name for name, entry in entries.items() if name not in seen and not _is_whiteout(entry)}
                seen |= entries.keys()
            if hides:
                break
        return names

    def shown(self, path: str) -> str:
        """Resolve the links of a path of the view.

        The result is relative to the directory, or absolute if it is outside.
        """
        to_go, gone, links = path.split("/"), list[str](), 0
        while to_go:
            name = to_go.pop(0)
            if name in ("", "."):
                continue
            place = self.find("/".join([*gone, name])) if name != ".." else None
            if place is not None and place.is_symlink() and (links := links + 1) <= _LINKS:
                text = str(place.readlink())
                inner = os.path.relpath(text, self._shown_at) if text.startswith("/") else text
                to_go, gone = [*inner.split("/"), *to_go], [] if text.startswith("/") else gone
            elif name != "..":
                gone.append(name)
            elif not gone:
                return os.path.normpath("/".join([str(self._shown_at), "..", *to_go]))
            else:
                gone.pop()
        return "/".join(gone) or "."

    def beneath(self, path: str) -> Iterator[str]:
        """Yield a path of the view and all paths beneath it; nothing if the view has no such path."""
        waiting = [path]
        while waiting:
            path = waiting.pop()
            place = self.find(path)
            if place is None:
                continue
            yield path
            if is_directory(place):
                waiting += [name if path == "." else f"{path}/{name}" for name in self.names(path)]


def touched(layers: Sequence[Path], beneath: FileView) -> set[str]:
    """Return the paths that may differ between a view through layers and the view without them.

    Args:
        layers: the layers with the changes.
        beneath: the view without them.
    """
    paths = set[str]()
    for layer in layers:
        for path in paths_beneath(layer):
            entry = layer / path
            paths.add(path)
            if not is_directory(entry) or is_opaque(entry):  # it hides what was there
                paths.update(beneath.beneath(path))
    return paths


def paths_beneath(top: Path) -> Iterator[str]:
    """Yield all paths beneath a directory, relative to it, each directory before its contents.

    Raises `BadInput` for a directory that cannot be read, or a path that is too long.
    """
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        try:
            with os.scandir(top / inner) as entries:
                names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            raise _unusable(inner, f"cannot be read: {error.strerror}") from None
        for name, is_inner in names:
            path = f"{inner}/{name}" if inner else name
            if len(os.fsencode(path)) > _LONGEST:
                raise _unusable(path, "is nested too deeply for a path")
            yield path
            if is_inner:
                waiting.append(path)


def _unusable(path: str, why: str) -> BadInput:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    return BadInput(f"{shown!r} among an agent's files {why}. Remove it, and try again.")


def is_same(path: Path | None, other: Path | None) -> bool:
    """Return whether two files have the same type, rights and contents; for directories, whether both exist."""
    if path == other:
        return True
    if path is None or other is None:
        return False
    first, second = path.lstat(), other.lstat()
    kind = stat.S_IFMT(first.st_mode)
    if kind != stat.S_IFMT(second.st_mode):
        return False
    if kind == stat.S_IFDIR:
        return True
    if kind == stat.S_IFLNK:
        return path.readlink() == other.readlink()
    if stat.S_IMODE(first.st_mode) != stat.S_IMODE(second.st_mode) or first.st_size != second.st_size:
        return False
    if kind != stat.S_IFREG or (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino):
        return True
    with path.open("rb") as left, other.open("rb") as right:
        while (piece := left.read(1 << 20)) == right.read(1 << 20):
            if not piece:
                return True
    return False


def is_directory(place: Path) -> bool:
    """Return whether a path is a directory; False for a link to a directory."""
    return stat.S_ISDIR(place.lstat().st_mode)


def is_opaque(directory: Path) -> bool:
    """Return whether a directory of a layer hides everything beneath it."""
    return _attribute(directory, OPAQUE) == b"y"


def was_there(file: Path) -> bool:
    """Return whether a file in a layer replaces a file beneath; False for a new file."""
    return _attribute(file, WAS_THERE) is not None


def _attribute(place: Path, name: str) -> bytes | None:
    with contextlib.suppress(OSError):
        return os.getxattr(place, name, follow_symlinks=False)
    return None


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _look(place: Path, parts: Sequence[str]) -> tuple[Path | None, bool]:
    """Return the entry of a layer at a path, or None, and whether the layer hides the path in the layers beneath."""
    opaque = False
    for count, part in enumerate(("", *parts)):
        place = place / part if part else place
        try:
            status = place.lstat()
        except FileNotFoundError:
            return None, opaque
        if _is_whiteout(status):
            return None, True
        if not stat.S_ISDIR(status.st_mode):
            return (place, True) if count == len(parts) else (None, True)
        opaque = opaque or is_opaque(place)
    return place, opaque
