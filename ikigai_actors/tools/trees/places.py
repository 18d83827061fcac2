"""The directories of the agents' layers on this machine, and the order in which they are mounted.

A layer is in ``trees/<agent>/<layer>`` beneath the host's directory. Its directory is made when it is first mounted
to be written to, which is after the commit that names it.
"""

import contextlib
import hashlib
import os
import secrets
import socket
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.flat import flatten
from ikigai_actors.tools.trees.layers import FileView
from ikigai_actors.tools.trees.tree import (
    DIRECTLY,
    GIT_FILE,
    OVERLAY,
    WORKTREE,
    WORKTREE_AT,
    Copied,
    FileTree,
    Layer,
    TreeRows,
    TreeStore,
    layers_of,
)

MOUNTED = 64
"""The most layers that are mounted. If there are more, they are combined into one first; the kernel allows a few
hundred.
"""

UPPER = "0"
"""The name of the first layer of an agent."""

KERNELS = "work"
"""The name of the work directory for the kernel, beside the layers of an agent."""


class Stack(NamedTuple):
    """The directories of the layers that an agent mounts."""

    upper: str
    """The layer to which the agent writes, relative to the directory of all layers."""
    layers: str
    """All layers, in the form that the launcher needs."""


class FilePlaces:
    """The directories on this machine that have the files of agents over one base directory. The methods block."""

    def __init__(self, trees: Path, base: str) -> None:
        self.directory, self.base = trees.resolve(), Path(base)

    def beside(self, tree: FileTree) -> Path:
        """Return the directory that has an agent's layers or worktree."""
        return self.directory / tree.agent

    def worktree(self, tree: FileTree) -> Path:
        """Return the directory in which an agent with a tree of kind `WORKTREE` works."""
        return self.base if tree.parent is None else self.beside(tree) / WORKTREE_AT

    def has_worktree(self, tree: FileTree) -> bool:
        """Return whether the worktree of an agent exists on this machine, even if git does not know it."""
        return tree.parent is not None and self.worktree(tree).is_dir()


class TreePlaces(FilePlaces):
    """The directories of agents' layers over one base directory, and their rows in the database.

    The methods block.
    """

    def __init__(self, state: Path, base: str, store: TreeStore, *, kind: str = "", keep_turns: bool = False) -> None:
        """Make the object for one base directory.

        Args:
            state: the host's directory.
            base: the directory that is seen through layers, with links resolved.
            store: has the rows of the trees.
            kind: the kind of files that agents get when they fork: `OVERLAY`, `WORKTREE`, or empty for none.
            keep_turns: whether an agent gets a new layer for each turn in which it writes.
        """
        self._kind, self.keep_turns = kind, keep_turns
        self.machine = machine_of(state / "trees")
        super().__init__(state / "trees", base)
        self.store = store

    def rows(self, agent: str) -> TreeRows:
        """Return the rows of an agent's tree; no rows if it has none.

        Raises `ToolError` if the tree is on another machine.
        """
        rows = self.store.of(agent, str(self.base))
        if rows[0] and rows[0][0].machine != self.machine:
            raise ToolError(
                f"The files of this agent are on machine {rows[0][0].machine}, and this is {self.machine}. Ask the "
                "person to move the agent there."
            )
        return rows

    def begin_write(self, agent: str, position: int) -> TreeRows:
        """Commit that calls are about to write to an agent's topmost layer; return the rows, as `rows` does.

        ``position`` is that of the reply with the calls; 0 for no call.
        """
        rows = self.rows(agent)
        while position and (rows[0] or self._kind):
            copied = Copied(str(self.base), self.machine, self._kind or OVERLAY)
            layer = self.store.begin_write(agent, copied, position, self.keep_turns)
            rows = self.rows(agent)
            if layer == (rows[0][0].upper if rows[0] else DIRECTLY):  # else it was frozen meanwhile
                break
        return rows

    def place(self, layer: Layer) -> Path:
        """Return the directory of a layer, which may not exist yet."""
        return self.directory / layer.agent / layer.name

    def filled(self, layers: Sequence[Layer]) -> list[Path]:
        """Return the directories of those layers that are not empty, in the same order."""
        there = {agent: self._names(agent) for agent in {layer.agent for layer in layers}}
        return [
            self.place(layer)
            for layer in layers
            if layer.name in there[layer.agent] and _has_anything(self.place(layer))
        ]

    def _names(self, agent: str) -> set[str]:
        try:
            return {place.name for place in (self.directory / agent).iterdir()}
        except FileNotFoundError:
            return set()

    def view(self, agent: str) -> FileView | None:
        """Return the directory as an agent sees it; None if the agent has no tree.

        Raises `ToolError` if the tree is on another machine.
        """
        rows = self.rows(agent)
        if rows[0] and rows[0][0].kind == WORKTREE:
            return FileView((), self.worktree(rows[0][0]), self.base)
        return FileView(self.whole(rows), self.base) if rows[0] else None

    def whole(self, rows: TreeRows) -> list[Path]:
        """Return the directories of all layers of an agent's tree, including the one to which it writes."""
        own = rows[0][0]
        return self.filled((Layer(own.agent, own.upper), *layers_of(*rows)))

    def stack(self, rows: TreeRows) -> Stack:
        """Make the directories of the layers that an agent mounts, and return them."""
        own = rows[0][0]
        read = self._few(self.filled(layers_of(*rows)))
        upper, work = (self.directory / own.agent / name for name in (str(own.upper), KERNELS))
        for place in (upper, work):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        upper.chmod(stat.S_IMODE(self.base.stat().st_mode))  # the directory itself is seen with the rights of this one
        paths = [str(place.relative_to(self.directory)) for place in (upper, work, *read)]
        return Stack(paths[0], ":".join(paths))

    def _few(self, layers: list[Path]) -> list[Path]:
        """Return the layers, or fewer layers with the same contents. Combined layers are shared by agents."""
        flat = [layer.with_name(name) for layer, name in zip(layers, _flat_names(layers), strict=True)]
        known = next((count for count, place in enumerate(flat) if place.is_dir()), None)
        few = layers if known is None else [*layers[:known], flat[known]]
        if len(few) <= MOUNTED:
            return few
        flatten(few, flat[0])
        return flat[:1]


def _flat_names(layers: Sequence[Path]) -> list[str]:
    names, digest = list[str](), b""
    for layer in reversed(layers):
        digest = hashlib.sha256(digest + os.fsencode(layer)).digest()
        names.append(f"flat-{digest.hex()[:32]}")
    return names[::-1]


def machine_of(trees: Path) -> str:
    """Return the name by which the rows of trees identify this machine.

    The name is made once, and stored in the directory of the layers.
    """
    trees.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = trees / "machine"
    made = trees / f".{secrets.token_hex(8)}"
    if not file.exists():
        made.write_text(f"{socket.gethostname()}-{secrets.token_hex(4)}", encoding="utf-8")
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(made, file)
        made.unlink()
    return file.read_text(encoding="utf-8")


def unregister_worktree(base: Path, beside: Path) -> None:
    """Remove an agent's worktree and its snapshots from its repository's administration. The branch stays.

    Links are not followed.
    """
    try:
        name = Path((beside / GIT_FILE).read_text(encoding="utf-8").strip()).name
    except OSError:
        name = ""
    for above, gone in (("worktrees", name), ("refs/ikigai", beside.name)):
        held = -1
        try:
            held = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
            for part in (".git", *above.split("/")):
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
                os.close(held)
                held = below
            if gone not in ("", ".", ".."):
                remove_all(gone, dir_fd=held)
        except OSError:  # it is not there
            pass
        finally:
            if held >= 0:
                os.close(held)


def _has_anything(place: Path) -> bool:
    try:
        with os.scandir(place) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
