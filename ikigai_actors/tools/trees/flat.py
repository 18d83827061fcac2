"""Combines many layers into one, because the kernel mounts only a few hundred.

A frozen layer never changes. So the combination of several is made once, beside them, and is mounted in their place
from then on.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.layers import OPAQUE, WAS_THERE, is_directory, is_opaque
from ikigai_actors.tools.trees.merge import copy_file, sync_directories


def flatten(layers: Sequence[Path], place: Path) -> None:
    """Combine several layers, the topmost first, into one at ``place``.

    Another process may do the same at the same time.
    """
    made = place.with_name(f".{secrets.token_hex(8)}")
    made.mkdir(parents=True)
    _merge(layers, made)
    sync_directories(made)
    try:
        made.rename(place)
    except OSError:  # another one was faster
        remove_all(made)


def _merge(directories: Sequence[Path], target: Path) -> None:
    waiting = [(directories, target)]
    while waiting:
        waiting += _merge_one(*waiting.pop())


def _merge_one(directories: Sequence[Path], target: Path) -> list[tuple[Sequence[Path], Path]]:
    """Merge the entries of directories, but not those of inner directories.

    Return for each inner directory the directories to merge, and its target.
    """
    inner = list[tuple[Sequence[Path], Path]]()
    for name in sorted({entry.name for directory in directories for entry in os.scandir(directory)}):
        entries = [directory / name for directory in directories if os.path.lexists(directory / name)]
        if not is_directory(entries[0]):
            _take(entries[0], target / name)
            continue
        merged, hides = list[Path](), False
        for place in entries:
            if hides := not is_directory(place):
                break
            merged.append(place)
            if hides := is_opaque(place):
                break
        (target / name).mkdir(mode=stat.S_IMODE(entries[0].lstat().st_mode) | stat.S_IRWXU)
        if hides:
            os.setxattr(target / name, OPAQUE, b"y")
        inner.append((merged, target / name))
    return inner


def _take(source: Path, target: Path) -> None:
    status = source.lstat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        os.link(source, target, follow_symlinks=False)  # the mark of what was removed, a pipe
        return
    copy_file(source, target)
    with contextlib.suppress(OSError):
        os.setxattr(target, WAS_THERE, os.getxattr(source, WAS_THERE, follow_symlinks=False), follow_symlinks=False)
