"""Where the layers of agents are on this machine, and in which order they are mounted.

They lie in ``trees/<agent>/<layer>`` beneath the host's directory. A layer's directory is made when it is first mounted
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
"""The most layers that are mounted; of more, one is made that shows the same. The kernel takes some hundred."""

UPPER = "0"
"""The name of the first layer of an agent."""

KERNELS = "work"
"""The name of a directory for the kernel beside the layers of an agent."""


class Stack(NamedTuple):
    """The mounts of an agent."""

    upper: str
    """The layer that it writes to, beneath the directory of all layers."""
    layers: str
    """All of them, as the launcher wants them."""


class FilePlaces:
    """Where the files of agents are, of one directory's trees. Its methods block."""

    def __init__(self, trees: Path, base: str) -> None:
        """Name the directory of all layers, and the one of which agents have files of their own, without links."""
        self.directory, self.base = trees.resolve(), Path(base)

    def beside(self, tree: FileTree) -> Path:
        """The directory of what is kept for an agent."""
        return self.directory / tree.agent

    def worktree(self, tree: FileTree) -> Path:
        """Where an agent with a tree of kind `WORKTREE` works."""
        return self.base if tree.parent is None else self.beside(tree) / WORKTREE_AT

    def has_worktree(self, tree: FileTree) -> bool:
        """Whether an agent has a worktree, of which at least the files are there."""
        return tree.parent is not None and self.worktree(tree).is_dir()


class TreePlaces(FilePlaces):
    """The layers of one directory's trees, with what the database says of them. Its methods block."""

    def __init__(self, state: Path, base: str, store: TreeStore, *, kind: str = "", keep_turns: bool = False) -> None:
        """Look at the machine.

        Args:
            state: the host's directory.
            base: the directory that is seen through layers, without links.
            store: knows the rows.
            kind: what agents get as they fork: `OVERLAY`, `WORKTREE`, or nothing.
            keep_turns: whether each turn in which an agent writes has a layer of its own.
        """
        self._kind, self.keep_turns = kind, keep_turns
        self.machine = machine_of(state / "trees")
        super().__init__(state / "trees", base)
        self.store = store

    def rows(self, agent: str) -> TreeRows:
        """The rows of an agent's tree; no rows where it has none. Raises `ToolError`: it is elsewhere."""
        found = self.store.of(agent, str(self.base))
        if found[0] and found[0][0].machine != self.machine:
            raise ToolError(
                f"The files of this agent are on machine {found[0][0].machine}, and this is {self.machine}. Ask the "
                "person to move the agent there."
            )
        return found

    def begin_write(self, agent: str, position: int) -> TreeRows:
        """As `rows`, after the commit that calls of the reply at a position write to the topmost layer; 0: none do."""
        rows = self.rows(agent)
        while position and (rows[0] or self._kind):
            copied = Copied(str(self.base), self.machine, self._kind or OVERLAY)
            layer = self.store.begin_write(agent, copied, position, self.keep_turns)
            rows = self.rows(agent)
            if layer == (rows[0][0].upper if rows[0] else DIRECTLY):  # else it was frozen meanwhile
                break
        return rows

    def place(self, layer: Layer) -> Path:
        """Where a layer is, or would be."""
        return self.directory / layer.agent / layer.name

    def filled(self, layers: Sequence[Layer]) -> list[Path]:
        """The directories of layers that have anything, in the same order."""
        there = {agent: self._names(agent) for agent in {layer.agent for layer in layers}}
        return [self.place(one) for one in layers if one.name in there[one.agent] and _has_anything(self.place(one))]

    def _names(self, agent: str) -> set[str]:
        try:
            return {place.name for place in (self.directory / agent).iterdir()}
        except FileNotFoundError:
            return set()

    def view(self, agent: str) -> FileView | None:
        """The directory as an agent sees it; None where it has no tree. Raises `ToolError` as `rows` does."""
        rows = self.rows(agent)
        if rows[0] and rows[0][0].kind == WORKTREE:
            return FileView((), self.worktree(rows[0][0]), self.base)
        return FileView(self.whole(rows), self.base) if rows[0] else None

    def whole(self, rows: TreeRows) -> list[Path]:
        """The directories of all layers of an agent with a tree, with that of the one that it writes to."""
        own = rows[0][0]
        return self.filled((Layer(own.agent, own.upper), *layers_of(*rows)))

    def stack(self, rows: TreeRows) -> Stack:
        """Make what an agent with a tree needs to mount it."""
        own = rows[0][0]
        read = self._few(self.filled(layers_of(*rows)))
        upper, work = (self.directory / own.agent / name for name in (str(own.upper), KERNELS))
        for place in (upper, work):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        upper.chmod(stat.S_IMODE(self.base.stat().st_mode))  # the directory itself is seen with the rights of this one
        paths = [str(place.relative_to(self.directory)) for place in (upper, work, *read)]
        return Stack(paths[0], ":".join(paths))

    def _few(self, layers: list[Path]) -> list[Path]:
        """The same layers, or fewer that show the same; these are for all agents that see the same."""
        flat = [layer.with_name(name) for layer, name in zip(layers, _flat_names(layers), strict=True)]
        known = next((count for count, place in enumerate(flat) if place.is_dir()), None)
        few = layers if known is None else [*layers[:known], flat[known]]
        if len(few) <= MOUNTED:
            return few
        flatten(few, flat[0])
        return flat[:1]


def _flat_names(layers: Sequence[Path]) -> list[str]:
    """For each layer, the name of the one that shows what it and all beneath it do."""
    names, digest = list[str](), b""
    for layer in reversed(layers):
        digest = hashlib.sha256(digest + os.fsencode(layer)).digest()
        names.append(f"flat-{digest.hex()[:32]}")
    return names[::-1]


def machine_of(trees: Path) -> str:
    """By what name trees know this machine: made once, in the directory of its layers."""
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
    """Have a repository forget the worktree of an agent, and its snapshots. Its branch stays. No link is followed.

    Args:
        base: the directory of the repository.
        beside: the directory of the agent.
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
