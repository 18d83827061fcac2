"""Files at random, layers that have them, and what is seen through layers."""

import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from ikigai_actors.tools.trees.layers import FileView, is_directory
from ikigai_actors.tools.trees.merge import FilePlan, plan_merge, write_layer
from ikigai_actors.tools.trees.tree import OVERLAY, Copied, FileTree, TreeMerge, TreeRows, TreeStore

Files = Mapping[str, str | None]
"""Files by their paths, each with its text, and empty directories, with None."""

NAMES = ("a", "b", "c")


def whiteout(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(place, 0o020000)


def put(directory: Path, files: Files) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_text(text)
    return directory


def seen(view: FileView) -> dict[str, str | None]:
    texts: dict[str, str | None] = {}
    for path in view.beneath("."):
        place = view.find(path)
        assert place is not None
        if not is_directory(place):
            texts[path] = place.read_text()
        elif path != "." and not view.names(path):
            texts[path] = None
    return texts


def made_up(random: random.Random, depth: int = 2) -> Iterator[tuple[str, str | None]]:
    """Files and directories at random."""
    for name in NAMES:
        kind = random.randrange(4)
        if kind == 1:
            yield name, random.choice("xy")
        elif kind == 2 and depth:
            inner = list(made_up(random, depth - 1))
            yield from ((f"{name}/{path}", text) for path, text in inner)
            if not inner:
                yield name, None


def layer_of(place: Path, before: FileView, after: Path) -> FilePlan:
    """Write a layer above a view, by which it shows what a directory has."""
    there = FileView((), after)
    paths = {*before.beneath("."), *there.beneath(".")} - {"."}
    plan = plan_merge(before, before, there, paths)
    assert plan.conflicts == ()
    write_layer(place, plan, before)
    return plan


def text_at(place: Path) -> str | None:
    """The text of a file, a word for a directory, None for nothing."""
    if place.is_dir():
        return "a directory"
    return place.read_text() if place.is_file() else None


class OneTree(TreeStore):
    """Every agent has a tree, which is built on no other one."""

    def __init__(self, upper: int = 0) -> None:
        self._upper = upper

    def of(self, agent: str, base: str) -> TreeRows:
        return (FileTree(agent, base, "here", OVERLAY, None, 0, self._upper, 0, 1),), ()

    def begin_write(self, agent: str, copied: Copied, position: int, keep_turns: bool) -> int:
        return self._upper

    def merge(self, merge: TreeMerge, upper: int) -> None:
        raise AssertionError

    def applied(self, agent: str, base: str) -> None:
        raise AssertionError
