"""History: the walk and the fold, against an oracle that copies the whole history at each fork."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.log.history import EMPTY, Ancestor, ReplayRange, merge, play_all, walk
from ikigai_actors.records.log.lineage import read_whole
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.logs import write_log
from tests.kit.trees import add

NO_STORE = cast("Store", None)  # nothing is read here


def replay(*ranges: tuple[str, int, int]) -> tuple[ReplayRange, ...]:
    return tuple(ReplayRange(*span) for span in ranges)


def message(uuid: str, position: int, kind: str, content: str = "", **data: Any) -> Message:
    return Message(uuid, position, kind, content, data, 0)


class Tree:
    """Agents with logs, as the runtime keeps them: a child refers to its parent's log, and a clear begins a new one."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {"root": Log("root", 0, None)}
        self.parents: dict[str, str | None] = {"root": None}
        self.written: dict[str, list[Message]] = {"root": []}
        self._log_cache = LogCache(NO_STORE)

    def add(self, uuid: str, kind: str, content: str = "", **data: Any) -> Message:
        log = self.logs[uuid]
        new = message(uuid, log.head + 1, kind, content, **data)
        self.logs[uuid] = self._log_cache.grow(log, [new])
        self.written[uuid].append(new)
        return new

    def fork(self, parent: str, child: str, at: int | None = None) -> None:
        log = self.logs[parent]
        self.logs[child] = Log(child, log.head if at is None else at, log)
        self.parents[child], self.written[child] = parent, []

    def begin(self, uuid: str) -> int:
        """The first position of an agent's history that is in memory: the clear that it follows, or 0."""
        log = self.logs[uuid]
        while log.parent is not None:
            log = log.parent
        return log.base

    def ranges(self, uuid: str) -> tuple[ReplayRange, ...]:
        def ancestor(name: str) -> Ancestor:
            return Ancestor(name, self.parents[name], self.logs[name].fork)

        def last_clear(name: str, bound: int) -> int:
            ids = [m.id for m in self.written[name] if m.kind == "clear" and (bound == 0 or m.id <= bound)]
            return max(ids, default=0)

        return walk(uuid, ancestor, last_clear)

    def stored(self, ranges: tuple[ReplayRange, ...]) -> Iterator[Message]:
        """What the ranges select, as the store's query would."""
        for span in ranges:
            for m in self.written[span.agent_uuid]:
                if span.start_id < m.id and (span.end_id == 0 or m.id <= span.end_id):
                    yield m

    def contents(self, uuid: str) -> list[str]:
        return [m.content for m in self.logs[uuid].visible()]


@dataclass
class Oracle:
    """One agent's history by the plainest means: lists, copied at each fork."""

    everything: list[Message] = field(default_factory=list)
    visible: list[Message] = field(default_factory=list)
    marks: list[tuple[str, int, list[Message]]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    before: dict[int, tuple[list[Message], list[tuple[str, int, list[Message]]]]] = field(default_factory=dict)
    """What was visible before each message, and the marks that were in force."""
    lenses: list[tuple[Message, Message | None, list[Message]]] = field(default_factory=list)
    """The summaries in force: each with the one whose text is shown, and all that this text stands for."""

    def fork(self) -> "Oracle":
        copies = list(self.everything), list(self.visible), list(self.marks), dict(self.settings), dict(self.before)
        return Oracle(*copies, list(self.lenses))

    def beginning(self, end: int) -> "Oracle":
        """One agent's history as it was at a position: all of it is written anew."""
        copy = Oracle()
        for m in self.everything[:end]:
            copy.add(m)
        return copy

    def shown(self) -> list[Message]:
        """What a model sees: a text in place of what it stands for."""
        _, text, covered = self.lenses[-1] if self.lenses else (None, None, [])
        kept = [m for m in self.visible[len(covered) :] if m.kind != "summary"]
        if text is None:
            return kept
        return [text, *(m for m in covered if m.id == text.data["prompt"]), *kept]

    @property
    def elided(self) -> int:
        """Before which position long results are shown by reference."""
        elided = 0
        for lens, _, _ in self.lenses:
            own: int = lens.data["elide"]
            elided = max(own, elided) if lens.content else own
        return elided

    def _look(self, m: Message) -> None:
        """Follow what changes how the past is shown."""
        if m.kind == "uncompact" and self.lenses:
            self.lenses.pop()
        if m.kind == "summary" and m.content:
            self.lenses.append((m, m, [seen for seen in self.visible if seen.id < m.data["keep_from"]]))
        elif m.kind == "summary":
            _, text, covered = self.lenses[-1] if self.lenses else (None, None, [])
            self.lenses.append((m, text, covered))

    def _drop(self, end: int) -> None:
        """Nothing behind a position counts any more: a text that stands for any of it is not true."""
        while self.lenses and (text := self.lenses[-1][1]) is not None and text.data["keep_from"] - 1 > end:
            self.lenses.pop()

    def add(self, m: Message) -> None:
        self.everything.append(m)
        self._look(m)
        if m.kind == "rewind" and any(seen.id == m.data.get("before") for seen in self.visible):
            visible, marks = self.before[m.data["before"]]
            self.visible, self.marks = list(visible), list(marks)
            self._drop(m.data["before"] - 1)
        self.before[m.id] = list(self.visible), list(self.marks)
        if m.kind == "clear":
            self.visible, self.marks, self.settings, self.lenses = [], [], {}, []
            return
        if m.kind == "rewind" and "mark" in m.data:
            for place in reversed(range(len(self.marks))):
                if self.marks[place][1] == m.data.get("mark"):
                    self.visible = list(self.marks[place][2])
                    del self.marks[place + 1 :]
                    self._drop(self.marks[-1][1])
                    break
        self.visible.append(m)
        if m.kind == "configure":
            self.settings = {k: v for k, v in {**self.settings, **m.data}.items() if v is not None}
        if m.kind == "mark":
            self.marks.append((m.content, m.id, list(self.visible)))


def looks_equal(log: Log, oracle: Oracle) -> None:
    """A history shows what the oracle's shows, and each text in force stands for exactly what counts before its cut."""
    assert list(log.visible()) == oracle.shown()
    view = log.view(log.head)
    assert (view.lens.elide if view.lens else 0) == oracle.elided
    lens, known = view.lens, list(oracle.lenses)
    while lens is not None:
        written, text, covered = known.pop()
        assert (lens.agent, lens.id) == (written.agent_uuid, written.id)
        assert lens.summary == (text.id if text is not None else 0)
        assert covered == [m for m in oracle.visible if m.id < lens.keep_from]
        lens = lens.earlier
    assert known == []


def planned(oracle: Oracle, place: int, choice: int) -> tuple[str, dict[str, Any]]:
    """A summary that an agent might write now: its text, and its data."""
    if choice == 0:
        return "", {"keep_from": 0, "prompt": 0, "elide": place % (len(oracle.everything) + 1)}
    cuts = [text.data["keep_from"] for _, text, _ in oracle.lenses if text is not None]
    lowest = max([cleared.id for cleared in oracle.everything if cleared.kind == "clear"] + [0]) + 1
    lowest = max([lowest, *cuts[-1:]])
    keep_from = lowest + place % (len(oracle.everything) + 2 - lowest)
    places = [m.id + choice // 2 for m in oracle.visible if m.kind in ("mark", "user") and m.id >= lowest]
    if choice < 4 and places:  # just before or behind a place to which a rewind goes back
        keep_from = places[-1 - place % min(2, len(places))]
    prompts = [m.id for m in oracle.visible if m.kind == "user" and m.id < keep_from]
    data = {"keep_from": keep_from, "prompt": prompts[-1] if prompts and choice % 2 else 0, "elide": place % 7}
    return f"text{choice}", data


def agree(tree: Tree, oracles: dict[str, Oracle]) -> None:
    """Every agent's history equals the oracle's: folded in memory, and played from the stored ranges."""
    for uuid, oracle in oracles.items():
        log = tree.logs[uuid]
        view = log.view(log.head)
        assert log.head == len(oracle.everything)
        looks_equal(log, oracle)
        assert [(mark.label, mark.id) for mark in view.all_marks()] == [(label, at) for label, at, _ in oracle.marks]
        assert view.settings == oracle.settings
        stored = list(tree.stored(tree.ranges(uuid)))
        replayed = play_all(EMPTY, stored)
        assert replayed.settings == oracle.settings
        assert [mark.id for mark in replayed.all_marks()] == [at for _, at, _ in oracle.marks]
        shown = [m for start, end in replayed.visible(log.head) for m in stored if start < m.id <= end]
        assert shown == oracle.visible
        assert replayed.lens == view.lens


ACTIONS = (
    *("user", "assistant", "clear", "mark", "rewind", "undo", "configure", "fork", "made-in-the-future"),
    *("summary", "summary", "uncompact", "fork at", "merge"),
)


def scripts(acts: Sequence[str] = ACTIONS, fewest: int = 0) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    """Actions, each with an agent to act (by place) and a choice that the action needs."""
    action = st.tuples(st.sampled_from(acts), st.integers(0, 30), st.integers(0, 5))
    return st.lists(action, min_size=fewest, max_size=60)


@pytest.mark.slow("takes half a second")
@settings(max_examples=300)
@given(scripts())
def test_every_history_equals_the_oracle_that_copies(script: list[tuple[str, int, int]]) -> None:
    _play(script)


@pytest.mark.slow("takes a second")
@settings(max_examples=200)
@given(scripts((*("user", "mark", "rewind", "undo", "summary", "summary", "uncompact"), "fork"), fewest=30))
def test_a_text_stands_for_exactly_what_counts_before_its_cut_whatever_is_taken_back(
    script: list[tuple[str, int, int]],
) -> None:
    _play(script)


def _play(script: Sequence[tuple[str, int, int]]) -> None:
    tree, oracles, names = Tree(), {"root": Oracle()}, ["root"]
    for action, who, choice in script:
        uuid = names[who % len(names)]
        if action in ("fork", "fork at"):
            child = f"agent{len(names)}"
            begin, head = tree.begin(uuid), tree.logs[uuid].head
            at = None if action == "fork" else begin + (who * 6 + choice) % (head - begin + 1)
            tree.fork(uuid, child, at)
            oracles[child] = oracles[uuid].fork() if at is None else oracles[uuid].beginning(at)
            names.append(child)
            continue
        data: dict[str, Any] = {}
        if action == "configure":
            data = {f"setting{choice % 3}": None if choice == 5 else choice}
        if action == "rewind":
            marks = oracles[uuid].marks
            data = {"mark": marks[choice % len(marks)][1] if marks and choice < 5 else choice}
        if action == "undo":
            latest = tree.logs[uuid].latest_prompt()
            prompts = [m for m in oracles[uuid].visible if m.kind == "user"]
            assert latest == (prompts[-1] if prompts else None)
            # Mostly the latest prompt, as an agent does it; now and then any that is seen, and one that nobody sees.
            prompt = latest if choice < 4 or not prompts else prompts[who % len(prompts)]
            action, data = "rewind", {"before": prompt.id if prompt is not None and choice < 5 else 1_000}
        text = f"label{choice % 2}"
        if action == "summary":
            text, data = planned(oracles[uuid], who, choice)
        oracles[uuid].add(tree.add(uuid, action, text, **data))
    agree(tree, oracles)


class Stored:
    """Agents in a store. Their owners hold their logs, drop them and read them again; some write without a log.

    What is written waits until somebody reads: each look is one transaction, whatever the database.
    """

    def __init__(self, store: Store, root: str = "root", above: str | None = None) -> None:
        self.store, self.log_cache = store, LogCache(store)
        self.root = root
        self.held: dict[str, Log] = {}
        self.oracles = {root: Oracle()}
        self._births = 0
        self._waiting: list[Callable[[Transaction], object]] = []
        self._register(root, above, 0)

    def _register(self, uuid: str, parent: str | None, fork: int) -> None:
        self._births += 1
        self._waiting.append(partial(add, uuid=uuid, parent=parent, fork=fork, now=self._births))

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.store.write(lambda tx: [write(tx) for write in waiting])

    def write(self, uuid: str, kind: str, content: str = "", **data: Any) -> None:
        """The agent writes; without a log when its owner holds none, and then no control message."""
        new = message(uuid, len(self.oracles[uuid].everything) + 1, kind, content, **data)
        self.oracles[uuid].add(new)
        self._waiting.append(lambda tx: write_log(tx, [new]))
        if uuid in self.held:
            self.held[uuid] = self.log_cache.grow(self.held[uuid], [new])
        else:
            self.log_cache.forget(uuid)

    def load(self, uuid: str) -> None:
        """Its owner reads its log."""
        self._flush()
        self.held[uuid] = self.log_cache.load(uuid)

    def look(self, uuid: str) -> None:
        """Somebody reads the log of an agent."""
        self._flush()
        assert list(self.log_cache.load(uuid).visible()) == self.oracles[uuid].shown()

    def drop(self, uuid: str) -> None:
        """Its owner forgets its log."""
        self.held.pop(uuid, None)
        self.log_cache.forget(uuid)

    def fork(self, uuid: str, at: int | None = None) -> None:
        """A child, perhaps at an earlier position; one at the head has a log at once when its parent's is held."""
        child = f"{self.root}{len(self.oracles)}"
        head = len(self.oracles[uuid].everything)
        self._register(child, uuid, head if at is None else at)
        self.oracles[child] = self.oracles[uuid].fork() if at is None else self.oracles[uuid].beginning(at)
        if uuid in self.held and at is None:
            self.held[child] = self.log_cache.keep(Log(child, head, self.held[uuid]))
        self.write(child, "fork")
        self.write(uuid, "fork")

    def agree(self) -> None:
        """Every history equals the oracle's: as it is held, as the log_cache gives it, read anew, and whole."""
        self._flush()
        fresh = LogCache(self.store)
        for uuid, oracle in self.oracles.items():
            held = [self.held[uuid]] if uuid in self.held else []
            for log in (*held, self.log_cache.load(uuid), fresh.load(uuid)):
                view = log.view(log.head)
                looks_equal(log, oracle)
                assert [(mark.label, mark.id) for mark in view.all_marks()] == [mark[:2] for mark in oracle.marks]
                assert view.settings == oracle.settings
            assert self.store.read(partial(read_whole, uuid=uuid)) == oracle.everything
        together = LogCache(self.store).load_many(list(self.oracles))
        assert [list(log.visible()) for log in together if isinstance(log, Log)] == [
            oracle.shown() for oracle in self.oracles.values()
        ]


STEPS = (*ACTIONS, "fork", "clear", "load", "drop", "look")

Scripts = list[tuple[str, int, int]]

stored_scripts = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 5)), max_size=50)


def _play_stored(agents: Stored, script: Scripts) -> None:
    for action, who, choice in script:
        uuid = list(agents.oracles)[who % len(agents.oracles)]
        oracle = agents.oracles[uuid]
        match action:
            case "fork" | "load" | "drop" | "look":
                getattr(agents, action)(uuid)
            case "fork at":
                agents.fork(uuid, (who * 6 + choice) % (len(oracle.everything) + 1))
            case "configure":
                change: dict[str, Any] = {f"setting{choice % 3}": None if choice == 5 else choice}
                agents.write(uuid, action, **change)
            case "rewind":
                marks = oracle.marks
                agents.write(uuid, action, mark=marks[choice % len(marks)][1] if marks and choice < 5 else choice)
            case "undo":
                prompts = [m.id for m in oracle.visible if m.kind == "user"]
                agents.write(uuid, "rewind", before=prompts[who % len(prompts)] if prompts else 1_000)
            case "summary":
                text, data = planned(oracle, who, choice)
                agents.write(uuid, action, text, **data)
            case _:
                agents.write(uuid, action, f"label{choice % 2}")
    agents.agree()
    agents.held.clear()
    assert agents.log_cache.in_memory() == 0


@pytest.mark.slow("takes half a second")
@settings(max_examples=150)
@given(stored_scripts)
def test_stored_histories_equal_the_oracles_whoever_holds_drops_and_clears_his_log(script: Scripts) -> None:
    with closing(open_store(":memory:")) as store:
        ensure_schema(store)
        _play_stored(Stored(store), script)


@pytest.mark.thorough("ten thousand trees take minutes")
@pytest.mark.timeout(1_200)
def test_ten_thousand_stored_trees_equal_the_oracle_that_copies(durable: str) -> None:
    """All in one database, whose other agents have no part in what an agent remembers."""
    trees = count()
    with closing(open_store(durable)) as store:
        ensure_schema(store)
        store.write(lambda tx: add(tx, "root", None))

        @settings(max_examples=int(os.environ.get(TREES, "10000")), phases=[Phase.generate])
        @given(stored_scripts)
        def play(script: Scripts) -> None:
            _play_stored(Stored(store, f"tree{next(trees)}-", "root"), script)

        play()
    print(f"{next(trees):,} trees on {durable.partition(':')[0]}")


TREES = "IKIGAI_TREES"
"""Names how many trees are tried in place of ten thousand."""


def test_the_root_alone_is_one_range_without_a_limit() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    assert tree.ranges("root") == replay(("root", 0, 0))


def test_a_childs_parent_range_ends_at_the_fork_and_its_own_begins_there() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.fork("root", "child")
    tree.add("root", Kind.USER, "later")
    tree.add("child", Kind.USER, "b")
    assert tree.ranges("child") == replay(("root", 0, 1), ("child", 1, 0))
    assert tree.contents("child") == ["a", "b"]


def test_a_grandchild_sees_three_ranges_root_first() -> None:
    tree = Tree()
    for uuid, child in (("root", "child"), ("child", "grandchild")):
        tree.add(uuid, Kind.USER, uuid)
        tree.fork(uuid, child)
    tree.add("grandchild", Kind.USER, "leaf")
    assert tree.ranges("grandchild") == replay(("root", 0, 1), ("child", 1, 2), ("grandchild", 2, 0))
    assert tree.contents("grandchild") == ["root", "child", "leaf"]


@pytest.mark.parametrize("parent_speaks_later", [False, True])
def test_a_child_of_a_parent_that_had_said_nothing_never_sees_its_future(parent_speaks_later: bool) -> None:
    tree = Tree()
    tree.fork("root", "child")
    if parent_speaks_later:
        tree.add("root", Kind.USER, "future")
    tree.add("child", Kind.USER, "own")
    assert tree.ranges("child") == replay(("child", 0, 0))
    assert tree.contents("child") == ["own"]


def test_an_ancestor_that_had_said_nothing_is_left_out_of_the_ranges() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.fork("root", "silent")
    tree.fork("silent", "leaf")
    tree.add("silent", Kind.USER, "future")
    assert tree.ranges("leaf") == replay(("root", 0, 1), ("leaf", 1, 0))


def test_a_clear_in_the_leaf_ends_the_walk_there() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.fork("root", "child")
    tree.add("child", Kind.CLEAR)
    tree.add("child", Kind.USER, "b")
    assert tree.ranges("child") == replay(("child", 2, 0))
    assert tree.contents("child") == ["b"]


def test_a_clear_in_the_parent_before_the_fork_ends_the_walk_at_the_parent() -> None:
    tree = Tree()
    for kind, text in ((Kind.USER, "a"), (Kind.CLEAR, ""), (Kind.USER, "b")):
        tree.add("root", kind, text)
    tree.fork("root", "child")
    assert tree.ranges("child") == replay(("root", 2, 3), ("child", 3, 0))
    assert tree.contents("child") == ["b"]


def test_a_clear_at_the_fork_point_leaves_the_parent_out() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.add("root", Kind.CLEAR)
    tree.fork("root", "child")
    assert tree.ranges("child") == replay(("child", 2, 0))
    assert tree.contents("child") == []


def test_a_clear_in_the_parent_after_the_fork_does_not_touch_the_child() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.fork("root", "child")
    tree.add("root", Kind.CLEAR)
    assert tree.contents("child") == ["a"]
    assert tree.contents("root") == []


def test_a_fork_after_a_rewind_does_not_inherit_what_was_rewound() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "kept")
    mark = tree.add("root", Kind.MARK, "m")
    tree.add("root", Kind.USER, "gone")
    tree.add("root", Kind.REWIND, "back", mark=mark.id)
    tree.fork("root", "child")
    assert tree.contents("child") == ["kept", "m", "back"]


def test_a_child_rewinds_to_an_inherited_mark() -> None:
    tree = Tree()
    mark = tree.add("root", Kind.MARK, "m")
    tree.add("root", Kind.USER, "inherited")
    tree.fork("root", "child")
    tree.add("child", Kind.USER, "own")
    tree.add("child", Kind.REWIND, "back", mark=mark.id)
    assert tree.contents("child") == ["m", "back"]
    assert tree.contents("root") == ["m", "inherited"]


def test_of_two_marks_with_one_label_the_latest_is_found() -> None:
    tree = Tree()
    tree.add("root", Kind.MARK, "m")
    latest = tree.add("root", Kind.MARK, "m")
    view = tree.logs["root"].view(2)
    assert view.find_mark("m") is not None
    assert view.find_mark("m") == view.find_mark(None)
    assert view.find_mark("m")._replace(closed=None, earlier=None) == ("m", latest.id, 0, None, None)  # type: ignore[union-attr]  # asserted above
    assert view.find_mark("n") is None


def test_a_rewind_to_no_mark_changes_nothing() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.add("root", Kind.REWIND, "lost", mark=7)
    assert tree.contents("root") == ["a", "lost"]


def test_settings_are_inherited_and_overridden_and_never_rewound() -> None:
    tree = Tree()
    tree.add("root", Kind.CONFIGURE, model="offline", system="be brief")
    mark = tree.add("root", Kind.MARK)
    tree.add("root", Kind.CONFIGURE, model="offline:slow")
    tree.add("root", Kind.REWIND, mark=mark.id)
    tree.fork("root", "child")
    tree.add("child", Kind.CONFIGURE, system=None)
    assert tree.logs["root"].view(4).settings == {"model": "offline:slow", "system": "be brief"}
    assert tree.logs["child"].view(5).settings == {"model": "offline:slow"}


def test_a_setting_given_as_none_is_removed() -> None:
    assert merge({"a": 1, "b": 2}, {"a": None, "c": 3}) == {"b": 2, "c": 3}


def test_an_agent_without_messages_has_an_empty_history() -> None:
    tree = Tree()
    assert tree.contents("root") == []
    assert tree.ranges("root") == replay(("root", 0, 0))


@pytest.mark.slow("takes a tenth of a second")
def test_five_thousand_levels_are_walked_and_folded_without_recursion() -> None:
    tree, parent = Tree(), "root"
    for level in range(5_000):
        tree.add(parent, Kind.USER, str(level))
        tree.fork(parent, f"agent{level}")
        parent = f"agent{level}"
    assert len(tree.ranges(parent)) == 5_001
    assert tree.contents(parent) == [str(level) for level in range(5_000)]


def test_a_lineage_that_runs_in_a_circle_is_an_error() -> None:
    with pytest.raises(HistoryError, match="descends from itself"):
        walk("a", lambda uuid: Ancestor(uuid, "b" if uuid == "a" else "a", 3), lambda uuid, bound: 0)


def test_a_hole_in_a_log_is_an_error() -> None:
    with pytest.raises(HistoryError, match="hole"):
        Log("root", 0, None, [message("root", 2, Kind.USER)])


def test_a_fork_shares_its_parents_messages_instead_of_copying_them() -> None:
    tree = Tree()
    tree.add("root", Kind.USER, "a")
    tree.fork("root", "child")
    assert tree.logs["child"].messages == []
    assert next(tree.logs["child"].visible()) is tree.logs["root"].messages[0]
