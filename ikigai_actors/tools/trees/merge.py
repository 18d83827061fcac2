"""Merges of files: compares three views, and writes all changes of a child or none."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.layers import FileView, is_directory, is_same, paths_beneath, was_there


class FileChange(NamedTuple):
    """A path that a merge must make equal to the same path in the child's files."""

    path: str
    theirs: Path | None
    """The child's file; None if the path must be removed."""


class FilePlan(NamedTuple):
    """The changes of a merge, and its conflicts."""

    changes: tuple[FileChange, ...]
    """The changes in the order of their paths. A directory comes before its contents."""
    conflicts: tuple[str, ...]
    """The paths that both sides have changed in different ways."""


def plan_merge(base: FileView, ours: FileView, theirs: FileView, paths: Iterable[str]) -> FilePlan:
    """Compare three views, and plan the merge.

    Args:
        base: the files with which both sides began.
        ours: the files into which the changes are merged.
        theirs: the files with the changes.
        paths: the paths that may have changed.
    """
    changes, conflicts = list[FileChange](), set[str]()
    for path in sorted(paths):
        before, mine, new = base.find(path), ours.find(path), theirs.find(path)
        if is_same(new, before) or is_same(new, mine) or (new is not None and not _can_be_copied(new)):
            continue
        if not is_same(mine, before):
            conflicts.add(path)
            continue
        changes.append(FileChange(path, new))
        if mine is not None and is_directory(mine):
            conflicts.update(inner for inner in ours.beneath(path) if base.find(inner) is None)
    replaced = {change.path for change in changes}
    for path, new in changes:
        above = path.rpartition("/")[0] or "."
        there = ours.find(above)
        if new is not None and above not in replaced and there is not None and not is_directory(there):
            conflicts.add(above)
    return FilePlan(tuple(changes), tuple(sorted(conflicts)))


def _can_be_copied(place: Path) -> bool:
    kind = place.lstat().st_mode
    return stat.S_ISREG(kind) or stat.S_ISLNK(kind) or stat.S_ISDIR(kind)


def changed_outside(plan: FilePlan, directory: FileView, since: int) -> tuple[str, ...]:
    """Return the paths of a plan that people or programs may have changed in the directory meanwhile.

    No earlier copy of the directory exists, so the times of files decide.

    Args:
        directory: the directory as it is now. The plan was made with it as the base.
        since: the time when the agent's tree was made, in milliseconds since 1970.
    """
    paths = []
    for path, new in plan.changes:
        mine = directory.find(path)
        if mine is None:
            late = new is not None and not is_directory(new) and was_there(new)
        else:
            late = not is_directory(mine) and mine.lstat().st_ctime_ns // 1_000_000 > since
        if late:
            paths.append(path)
    return tuple(paths)


def write_layer(layer: Path, plan: FilePlan, ours: FileView) -> None:
    """Write the changes of a plan to a new layer, which is put above the layers of ``ours``."""
    layer.mkdir(parents=True)
    gone = set[str]()
    for path, new in plan.changes:
        if any(path.startswith(f"{above}/") for above in gone):
            continue
        _make_directories(layer, path, ours)
        place = layer / path
        if new is None:
            gone.add(path)
            os.mknod(place, stat.S_IFCHR, 0)
        elif is_directory(new):
            place.mkdir(mode=stat.S_IMODE(new.lstat().st_mode) | stat.S_IRWXU)
        else:
            gone.add(path)  # if it was a directory, that is gone
            copy_file(new, place)
    sync_directories(layer)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file with its rights and times, or a link."""
    status = source.lstat()
    if stat.S_ISLNK(status.st_mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(status.st_mode):
        shutil.copyfile(source, target)
        sync(target)
        target.chmod(stat.S_IMODE(status.st_mode) & 0o777)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def sync(place: Path) -> None:
    """Sync a file, or the entries of a directory, to the disk, so that they survive a power cut."""
    held = os.open(place, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def sync_directories(place: Path) -> None:
    """Sync a directory and all entries beneath it to the disk, before a commit refers to it."""
    sync(place)
    for path in paths_beneath(place):
        if is_directory(place / path):
            sync(place / path)
    sync(place.parent)


def _make_directories(layer: Path, path: str, ours: FileView) -> None:
    """Make the directories above a path in a layer, with the rights that they have in the view ``ours``."""
    inner: Sequence[str] = path.split("/")[:-1]
    for count in range(1, len(inner) + 1):
        above = "/".join(inner[:count])
        if not (layer / above).exists():
            seen = ours.find(above)
            (layer / above).mkdir(mode=0o777 if seen is None else stat.S_IMODE(seen.lstat().st_mode) | stat.S_IRWXU)


def write_directory(directory: Path, plan: FilePlan) -> None:
    """Apply the changes of a plan to a directory. Links in it are not followed. All changes are synced to the disk."""
    for path, new in plan.changes:
        if new is not None:
            with _parent(directory, path, make=True) as (held, name):
                _put(held, name, new)
    for path, new in reversed(plan.changes):
        if new is None:
            gone = contextlib.suppress(FileNotFoundError, NotADirectoryError)  # with a directory above it
            with gone, _parent(directory, path) as (held, name):
                _remove(held, name)


def _put(held: int, name: str, new: Path) -> None:
    """Put a file or directory under a name at once. An entry there that cannot be replaced is removed first."""
    is_new_directory = is_directory(new)
    try:
        there = os.stat(name, dir_fd=held, follow_symlinks=False)
    except FileNotFoundError:
        pass
    else:
        if stat.S_ISDIR(there.st_mode) and not is_new_directory:
            remove_all(name, dir_fd=held)
        elif is_new_directory and not stat.S_ISDIR(there.st_mode):
            os.unlink(name, dir_fd=held)
    if is_new_directory:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, stat.S_IMODE(new.lstat().st_mode), dir_fd=held)
        return
    beside = f".{name[:100]}.{secrets.token_hex(6)}"
    copy_file(new, Path(f"/proc/self/fd/{held}", beside))
    try:
        os.rename(beside, name, src_dir_fd=held, dst_dir_fd=held)
    except BaseException:
        os.unlink(beside, dir_fd=held)
        raise


def _remove(held: int, name: str) -> None:
    status = os.stat(name, dir_fd=held, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        os.rmdir(name, dir_fd=held)
    else:
        os.unlink(name, dir_fd=held)


@contextmanager
def _parent(directory: Path, path: str, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the open directory that contains a path, and the name in it. Links are not followed.

    With ``make``, missing directories are created.
    """
    *above, name = path.split("/")
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in above:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=held)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = below
        yield held, name
        os.fsync(held)
    finally:
        os.close(held)
