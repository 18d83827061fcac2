"""Agents whose files fork, against a model that copies directories: births, writes, merges, kills at commits."""

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef
from ikigai_actors.errors import FilesConflict
from ikigai_actors.records.agents.trees import tree_at
from ikigai_actors.records.fsck.check import check
from ikigai_actors.tools.trees.layers import FileView
from ikigai_actors.tools.trees.places import TreePlaces
from ikigai_actors.tools.trees.tree import OVERLAY, Copied, Layer, TreeMerge, TreeRows, TreeStore, layers_of
from ikigai_actors.tools.workspace.merging import merge_child, write_to_base
from tests.kit.file_trees import layer_of, made_up, put, seen
from tests.kit.tool_scripts import scripted
from tests.system.test_trees import Copying

STEPS = 25

Files = dict[str, str | None]


class Killed(BaseException):
    """The process was killed, before a commit or after it."""

    def __init__(self, before: bool) -> None:
        super().__init__(before)
        self.before = before


class Mortal(TreeStore):
    """Kills the process before or after its commits, if it is to."""

    def __init__(self, store: TreeStore) -> None:
        self._store = store
        self.kill = ""

    def of(self, agent: str, base: str) -> TreeRows:
        return self._store.of(agent, base)

    def begin_write(self, agent: str, copied: Copied, position: int, keep_turns: bool) -> int:
        return self._store.begin_write(agent, copied, position, keep_turns)

    def merge(self, merge: TreeMerge, upper: int) -> None:
        self._committing(lambda: self._store.merge(merge, upper))

    def applied(self, agent: str, base: str) -> None:
        self._committing(lambda: self._store.applied(agent, base))

    def _committing(self, commit: Callable[[], None]) -> None:
        if self.kill == "before":
            raise Killed(before=True)
        commit()
        if self.kill == "after":
            raise Killed(before=False)


class World:
    """A system, the files of its agents, and a model of them."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.random = place, random.Random(seed)
        self.keep_turns = self.random.random() < 0.5
        self.base = put(place / "work", dict(made_up(self.random)))
        self.model: dict[str, Files] = {}
        self.then: dict[str, dict[int, Files]] = {}
        """By agent, what it had at positions of its log."""
        self.began: dict[str, tuple[str, Files]] = {}
        """By child, its parent, and the files from which both have gone on."""
        self.numbers = iter(range(1_000_000))
        self.closing = ExitStack()
        self.open()
        self.model[self.system.root.uuid] = self.seen(self.system.root.uuid)

    def open(self) -> None:
        copying = Copying()
        copying.copied = Copied(str(self.base), "machine")
        (self.place / "trees").mkdir(exist_ok=True)
        (self.place / "trees" / "machine").write_text("machine")
        self.system = self.closing.enter_context(ActorSystem.open(self.place / "d.db", scripted(), tools=[copying]))
        assert copying.trees is not None
        self.store = Mortal(copying.trees)
        self.places = TreePlaces(self.place, str(self.base), self.store, kind=OVERLAY, keep_turns=self.keep_turns)

    def reopen(self) -> None:
        self.closing.close()
        self.open()

    def view(self, agent: str, upper: bool = True) -> FileView:
        rows = self.places.rows(agent)
        own = [Layer(agent, rows[0][0].upper)] if rows[0] and upper else []
        return FileView(self.places.filled((*own, *layers_of(*rows))), self.base)

    def seen(self, agent: str) -> Files:
        return seen(self.view(agent))

    def fork(self) -> None:
        parent = self.chosen()
        child = AgentRef(self.system, parent).fork()
        self.model[child.uuid] = dict(self.model[parent])
        self.began[child.uuid] = parent, self.model[parent]

    def fork_early(self) -> None:
        """Have an agent fork where it was once: the child gets the files of then where they are known."""
        places = [(agent, at) for agent, then in sorted(self.then.items()) for at in then]
        self.random.shuffle(places)
        for parent, at in sorted(places, key=lambda place: not self.knows(*place))[:1]:
            then = self.then[parent][at] if self.knows(parent, at) else self.model[parent]
            child = AgentRef(self.system, parent).fork(at=at)
            self.model[child.uuid] = dict(then)

    def knows(self, agent: str, at: int) -> bool:
        return self.system._store.read(lambda tx: tree_at(tx, agent, str(self.base), at))[1] is not None

    def write(self) -> None:
        """Have an agent change its files, as a program behind its fence does."""
        agent = self.chosen()
        position = AgentRef(self.system, agent).note({"write": next(self.numbers)})
        self.then.setdefault(agent, {})[position - 1] = self.model[agent]
        self.places.begin_write(agent, position)
        kept = {path: text for path, text in self.model[agent].items() if self.random.random() < 0.9}
        drawn = put(self.place / f"drawn-{next(self.numbers)}", kept)
        for path, text in made_up(self.random):
            free = not (drawn / path).exists() or ((drawn / path).is_file() and text is not None)
            if free and self.random.random() < 0.2 and not any(above.is_file() for above in (drawn / path).parents):
                put(drawn, {path: text})
        rows = self.places.rows(agent)
        if not rows[0]:
            shutil.rmtree(self.base)
            shutil.copytree(drawn, self.base)
        else:
            upper = self.places.place(Layer(agent, rows[0][0].upper))
            shutil.rmtree(upper, ignore_errors=True)
            layer_of(upper, self.view(agent, upper=False), drawn)
        self.model[agent] = seen(FileView((), drawn))

    def merge(self) -> None:
        if not self.began:
            return
        child = self.random.choice(sorted(self.began))
        parent, before = self.began[child]
        mine, new = self.model[parent], self.model[child]
        self.store.kill = self.random.choice(["", "", "before", "after"])
        conflicts = changed_otherwise(before, mine, new)
        came = self.outcome(lambda: merge_child(self.places, parent, child))
        if isinstance(came, FilesConflict):
            assert came.paths
            assert {*conflicts} <= {*came.paths}
        if isinstance(came, FilesConflict) or (isinstance(came, Killed) and came.before):
            return
        assert conflicts == []
        after = self.seen(parent)
        assert {path: text for path, text in after.items() if text is not None} == merged(before, mine, new)
        if any(merge.child == child for merge in self.places.rows(parent)[1]):
            self.began[child] = parent, new
        self.model[parent] = after

    def outcome(self, merge: Callable[[], object]) -> FilesConflict | Killed | None:
        """What comes of a merge, which may kill the process; another one goes on then."""
        try:
            merge()
        except FilesConflict as error:
            return error
        except Killed as error:
            self.reopen()
            return error
        finally:
            self.store.kill = ""
        return None

    def chosen(self) -> str:
        return self.random.choice(sorted(self.model))

    def check(self) -> None:
        for agent, files in self.model.items():
            assert self.seen(agent) == files


def changed_otherwise(before: Files, mine: Files, new: Files) -> list[str]:
    """The files that two sides have changed, each in its own way."""
    paths = {path for files in (before, mine, new) for path, text in files.items() if text is not None}
    texts = {path: (before.get(path), mine.get(path), new.get(path)) for path in paths}
    return sorted(path for path, (first, two, three) in texts.items() if first != two != three != first)


def merged(before: Files, mine: Files, new: Files) -> Files:
    """The files after a merge without a conflict."""
    paths = {*mine, *new}
    taken = {path: mine.get(path) if new.get(path) == before.get(path) else new.get(path) for path in paths}
    return {path: text for path, text in taken.items() if text is not None}


@contextmanager
def world(place: Path, seed: int) -> Iterator[World]:
    made = World(place, seed)
    with made.closing:
        yield made


FEW, MORE, MOST = range(3), range(3, 12), range(12, 60)
SEEDS = [
    *FEW,
    *(pytest.param(seed, marks=pytest.mark.slow("more of them")) for seed in MORE),
    *(pytest.param(seed, marks=pytest.mark.thorough("many more of them")) for seed in MOST),
]


@pytest.mark.sample(1, "a random tree each")
@pytest.mark.parametrize("seed", SEEDS)
def test_each_agent_has_the_files_of_a_directory_that_was_copied_at_its_birth(tmp_path: Path, seed: int) -> None:
    with world(tmp_path, seed) as made:
        for _ in range(STEPS):
            made.random.choice(
                [made.fork, made.fork_early, made.write, made.write, made.write, made.merge, made.merge, made.merge]
            )()
            made.check()
        made.reopen()
        assert check(made.system._store) == []
        agent = made.chosen()
        if made.places.rows(agent)[0]:
            made.store.kill = "before"
            with pytest.raises(Killed):
                write_to_base(made.places, agent)
            made.store.kill = ""
            assert write_to_base(made.places, agent) == []
            assert seen(FileView((), made.base)) == made.model[agent]
