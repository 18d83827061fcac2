"""Git repositories in merges of files: commits are merged, and the internal state of each repository stays.

Even reading a repository changes ``.git/index`` and other files, so these are not compared. Objects are named by their
content and never conflict. The latest commit of the other side becomes a branch.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.tools.trees.layers import FileView, is_directory
from ikigai_actors.tools.trees.merge import FileChange

CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
"""Directories that programs fill by merely running. They are not merged."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LARGEST = 1 << 24
"""The most bytes of a file of references; a larger file is not read."""


class Divided(NamedTuple):
    """Paths that may have changed, divided into plain files, objects of git and repositories."""

    files: set[str]
    """The paths that are compared as plain files."""
    objects: set[str]
    """The paths of git objects."""
    repositories: set[str]
    """The ``.git`` directories of repositories that both sides have."""


def divided(paths: Iterable[str], here: FileView) -> Divided:
    """Divide paths into plain files, objects of git and repositories of git. Caches are left out.

    Args:
        paths: the paths that may have changed.
        here: the files into which the changes are to be merged.
    """
    division = Divided(set(), set(), set())
    for path in paths:
        if not CACHES.isdisjoint(path.split("/")):
            continue
        above, name, inner = f"/{path}/".partition("/.git/")
        repository = f"{above}{name}".strip("/")
        place = here.find(repository) if name else None
        if place is None or not is_directory(place):
            division.files.add(path)
            continue
        division.repositories.add(repository)
        if inner.startswith("objects/") and inner != "objects/":
            division.objects.add(path)
    return division


def repository_changes(paths: Divided, here: FileView, there: FileView, branch: str, scratch: Path) -> list[FileChange]:
    """Plan the changes to repositories: new objects, and a branch for the other side's commit.

    Args:
        paths: the paths that may have changed.
        here: the files into which the changes are merged.
        there: the files with the changes.
        branch: the name of the branch.
        scratch: an empty directory for temporary files.
    """
    changes = [
        FileChange(path, place)
        for path in sorted(paths.objects)
        if (place := there.find(path)) is not None and not is_directory(place) and here.find(path) is None
    ]
    for number, repository in enumerate(sorted(paths.repositories)):
        commit = head_of(there, repository)
        if commit is not None and commit not in (head_of(here, repository), _read(here, f"{repository}/{_of(branch)}")):
            file = scratch / str(number)
            file.write_text(f"{commit}\n", encoding="ascii")
            changes.append(FileChange(f"{repository}/{_of(branch)}", file))
    return changes


def head_of(view: FileView, repository: str) -> str | None:
    """Return the commit that a repository has checked out; None if there is none."""
    text = _read(view, f"{repository}/HEAD")
    if not text.startswith("ref: "):
        return text if _COMMIT.fullmatch(text) else None
    name = text.removeprefix("ref: ").strip()
    if _COMMIT.fullmatch(head := _read(view, f"{repository}/{name}")):
        return head
    lines = (line.split(" ", 1) for line in _read(view, f"{repository}/packed-refs").splitlines())
    return next((line[0] for line in lines if line[1:] == [name] and _COMMIT.fullmatch(line[0])), None)


def _of(branch: str) -> str:
    return f"refs/heads/{branch}"


def _read(view: FileView, path: str) -> str:
    """Return the text of a file of a view; empty if it is no regular file, too large, or outside."""
    parts = path.split("/")
    place = None if ".." in parts or "" in parts else view.find(path)
    if place is None or place.is_symlink() or not place.is_file() or place.stat().st_size > _LARGEST:
        return ""
    return place.read_text(encoding="utf-8", errors="replace").strip()
