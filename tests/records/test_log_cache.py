"""The log_cache: each log is read once, no further back than needed, and shared."""

from collections.abc import Sequence
from contextlib import closing

import pytest

from ikigai_actors.errors import AgentNotFound, HistoryError
from ikigai_actors.records.log.chain import EMPTY_HASH, HashChain
from ikigai_actors.records.log.history import ReplayRange
from ikigai_actors.records.log.lineage import read_ranges, read_whole
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.damage import agent, damage
from tests.kit.logs import write_log
from tests.kit.programs import cheaper
from tests.kit.trees import add, change

Row = tuple[str, str | None, int, Sequence[str]]
"""An agent: uuid, parent, fork point, the kinds of its messages."""


def replay(*ranges: tuple[str, int, int]) -> tuple[ReplayRange, ...]:
    return tuple(ReplayRange(*span) for span in ranges)


def plant(store: Store, *agents: Row) -> None:
    """Write agents and their logs as a runtime would have."""

    def work(tx: Transaction) -> None:
        chain = HashChain()
        for uuid, parent, fork, kinds in agents:
            add(tx, uuid, parent, fork=fork)
            write_log(
                tx,
                [Message(uuid, place, kind, f"{uuid}{place}", {}, 1) for place, kind in enumerate(kinds, fork + 1)],
                chain,
            )

    store.write(work)


def break_row(store: Store, uuid: str, position: int, data: str) -> None:
    """Replace a message's data by what no JSON is."""
    store.write(lambda tx: tx.append([(uuid, position, "user", "broken", data, 1, b"")]))


def contents(log_cache: LogCache, uuid: str) -> list[str]:
    return [m.content for m in log_cache.load(uuid).visible()]


def whole(store: Store, uuid: str) -> list[str]:
    return [m.content for m in store.read(lambda tx: read_whole(tx, uuid))]


def load_many(log_cache: LogCache, *uuids: str) -> list[Log]:
    """The logs of these agents, which are all sound."""
    logs = log_cache.load_many(uuids)
    return [log for log in logs if isinstance(log, Log)]


def test_siblings_share_the_log_of_their_parent_which_is_read_once(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("a", "root", 1, ["user"]), ("b", "root", 1, []))
    log_cache = LogCache(store)
    a, b = log_cache.load("a"), log_cache.load("b")
    assert a.parent is b.parent is log_cache.load("root")
    assert log_cache.read_logs == 3
    assert [m.content for m in a.visible()] == ["root1", "a2"]
    assert [m.content for m in b.visible()] == ["root1"]


def test_a_log_that_nobody_uses_any_more_leaves_the_memory(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("a", "root", 1, ["user"]))
    log_cache = LogCache(store)
    log_cache.load("a")
    log_cache.load("a")
    assert log_cache.read_logs == 4


def test_ancestors_before_a_clear_are_not_read_until_somebody_needs_them(store: Store) -> None:
    plant(
        store,
        ("root", None, 0, ["user"]),
        ("a", "root", 1, ["user", "clear", "user"]),
        ("early", "a", 2, ["user"]),
        ("late", "a", 4, ["user"]),
    )
    log_cache = LogCache(store)
    late = log_cache.load("late")
    assert [m.content for m in late.visible()] == ["a4", "late5"]
    assert log_cache.read_logs == 2
    early = log_cache.load("early")
    assert [m.content for m in early.visible()] == ["root1", "a2", "early3"]
    assert log_cache.read_logs == 5
    assert [m.content for m in late.visible()] == ["a4", "late5"]


def test_a_clear_is_read_no_further_back_and_what_lies_before_it_is_shared_by_those_forked_there(store: Store) -> None:
    plant(
        store,
        ("root", None, 0, ["mark", "user", "clear", "mark", "user", "clear", "user"]),
        ("first", "root", 2, []),
        ("second", "root", 5, ["user"]),
        ("third", "root", 5, []),
        ("fourth", "root", 6, []),
    )
    log_cache = LogCache(store)
    root = log_cache.load("root")
    assert [m.id for m in root.messages] == [7]
    assert (root.base, root.fork, log_cache.read_messages) == (6, 0, 1)
    first, second, third, fourth = load_many(log_cache, "first", "second", "third", "fourth")
    assert [[m.id for m in log.visible()] for log in (first, second, third, fourth)] == [[1, 2], [4, 5, 6], [4, 5], []]
    assert [[mark.id for mark in log.view(log.fork).all_marks()] for log in (first, second, fourth)] == [[1], [4], []]
    assert second.parent is third.parent is not first.parent
    assert fourth.parent is root
    assert log_cache.in_memory() == 1 + 2 + 2 + 1
    del first, third
    assert log_cache.in_memory() == 1 + 2 + 1
    with pytest.raises(ValueError, match="6 or more"):
        root.view(5)


def test_an_agent_that_clears_goes_on_in_a_new_log_and_its_earlier_child_keeps_the_old_one(store: Store) -> None:
    plant(store, ("root", None, 0, ["user", "assistant"]), ("child", "root", 2, ["user"]))
    log_cache = LogCache(store)
    old, child = load_many(log_cache, "root", "child")
    messages = [Message("root", 3 + n, kind, "", {}, 1) for n, kind in enumerate(("interrupted", "clear", "configure"))]
    store.write(lambda tx: write_log(tx, messages))
    new = log_cache.grow(old, messages)
    assert (new.base, new.head, old.head, log_cache.at_hand("root")) == (4, 5, 3, new)
    assert new.ended is not None
    assert new.ended.id == 3
    assert [m.id for m in child.visible()] == [1, 2, 3]
    del old
    assert log_cache.in_memory() == 1 + 3 + 1
    child = new
    assert log_cache.in_memory() == 1
    assert [m.id for m in log_cache.load("root").visible()] == [5]


def test_a_log_that_fell_behind_is_read_on_for_who_needs_more_and_never_has_a_hole(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("first", "root", 1, ["user"]))
    log_cache = LogCache(store)
    root, first = load_many(log_cache, "root", "first")
    log_cache.forget("root")  # as its actor does when it writes without a log
    more = [Message("root", 2, "fork", "", {}, 1), Message("root", 3, "user", "", {}, 1)]
    store.write(lambda tx: write_log(tx, more))
    plant(store, ("second", "root", 2, ["user"]))
    assert root.head == 1
    [second] = load_many(log_cache, "second")
    assert second.parent is root
    assert [m.id for m in second.visible()] == [1, 2, 3]
    assert log_cache.load("root") is root
    assert root.head == 3
    root.extend(more)  # its owner hears of its commit after somebody has read it
    assert [m.id for m in root.messages] == [1, 2, 3]
    assert [m.id for m in first.visible()] == [1, 2]


def test_who_reads_from_outside_gets_what_is_committed_before_its_owner_hears_of_it(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("child", "root", 0, ["user"]))
    log_cache = LogCache(store)
    root, child = load_many(log_cache, "root", "child")
    reply = Message("child", 2, "assistant", "", {}, 1)
    clear = [Message("root", 2, "clear", "", {}, 1), Message("root", 3, "user", "", {}, 1)]
    store.write(lambda tx: write_log(tx, (reply, *clear)))
    assert [m.id for m in log_cache.load("child").visible()] == [1, 2]
    after = log_cache.load("root")
    assert [m.id for m in after.visible()] == [3]
    child = log_cache.grow(child, [reply])
    assert [m.id for m in child.visible()] == [1, 2]
    assert log_cache.grow(root, clear) is after
    assert log_cache.load("root") is after


def test_a_whole_history_goes_back_beyond_the_clear(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("a", "root", 1, ["clear", "user"]))
    log_cache = LogCache(store)
    assert contents(log_cache, "a") == ["a3"]
    assert whole(store, "a") == ["root1", "a2", "a3"]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "thousands of logs")
@cheaper("levels", 1_500, 5_000, "more levels")
def test_thousands_of_levels_are_read_in_a_few_queries(store: Store, levels: int) -> None:
    def work(tx: Transaction) -> None:
        chain, latest = HashChain(), EMPTY_HASH
        for n in range(levels):  # not by `plant`, which would walk each lineage
            add(tx, f"level{n}", f"level{n - 1}" if n else None, fork=n)
            rows = chain.link(tx, [Message(f"level{n}", n + 1, "user", "hello", {}, 1).row()], latest)
            tx.append(rows)
            latest = rows[-1][-1]

    store.write(work)
    deepest = f"level{levels - 1}"
    assert len(contents(LogCache(store), deepest)) == levels
    assert len(store.read(lambda tx: read_ranges(tx, deepest))) == levels


def test_ranges_are_those_of_the_walk(store: Store) -> None:
    plant(
        store,
        ("root", None, 0, ["user", "clear", "user"]),
        ("silent", "root", 3, []),
        ("leaf", "silent", 3, ["user"]),
        ("first", "root", 0, ["user"]),
    )
    assert store.read(lambda tx: read_ranges(tx, "leaf")) == replay(("root", 2, 3), ("leaf", 3, 0))
    assert store.read(lambda tx: read_ranges(tx, "first")) == replay(("first", 0, 0))


def test_an_unknown_agent_is_not_found(store: Store) -> None:
    with pytest.raises(AgentNotFound):
        LogCache(store).load("nobody")


def test_a_hole_or_a_body_that_does_not_parse_is_an_error_for_its_agent(store: Store) -> None:
    plant(
        store,
        ("root", None, 0, ["user"]),
        ("hole", "root", 1, []),
        ("bad", "root", 1, ["user"]),
        ("array", "root", 1, []),
        ("deep", "root", 1, []),
    )
    break_row(store, "hole", 3, "{}")
    break_row(store, "bad", 3, "{no json")
    break_row(store, "array", 2, "[]")
    break_row(store, "deep", 2, "[" * 100_000)
    for uuid, reason in (("deep", "no JSON"), ("hole", "hole"), ("bad", "no JSON"), ("array", "no JSON object")):
        with pytest.raises(HistoryError, match=reason):
            LogCache(store).load(uuid)


def test_a_child_forked_before_the_damage_has_its_history_and_one_forked_after_has_not(store: Store) -> None:
    plant(store, ("root", None, 0, ["user", "user"]))
    break_row(store, "root", 4, "{}")
    plant(store, ("before", "root", 2, ["user"]), ("after", "root", 4, ["user"]))
    log_cache = LogCache(store)
    assert contents(log_cache, "before") == ["root1", "root2", "before3"]
    with pytest.raises(HistoryError, match="hole"):
        log_cache.load("after")
    with pytest.raises(HistoryError, match="hole"):
        log_cache.load("root")


def test_a_fork_point_past_the_parents_head_is_an_error(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("child", "root", 7, ["user"]))
    with pytest.raises(HistoryError, match="whose log ends at 1"):
        LogCache(store).load("child")


def test_many_logs_are_read_together_and_shared_like_those_read_alone(store: Store) -> None:
    plant(
        store,
        ("root", None, 0, ["user"]),
        ("a", "root", 1, ["user", "clear", "user"]),
        ("early", "a", 2, ["user"]),
        ("late", "a", 4, ["user"]),
        ("b", "root", 1, []),
    )
    log_cache = LogCache(store)
    late, early, b = load_many(log_cache, "late", "early", "b")
    assert [[m.content for m in log.visible()] for log in (late, early, b)] == [
        ["a4", "late5"],
        ["root1", "a2", "early3"],
        ["root1"],
    ]
    assert late.parent is log_cache.load("a")
    assert early.parent is not None
    assert early.parent.parent is b.parent is log_cache.load("root")
    assert log_cache.read_logs == 6
    assert load_many(log_cache, "b", "b") == [b, b]
    a, nobody = log_cache.load_many(["a", "nobody"])
    assert a is late.parent
    assert isinstance(nobody, AgentNotFound)


def test_a_damaged_log_among_many_says_so_and_the_others_are_whole(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("bad", "root", 1, ["user"]), ("good", "root", 1, ["user"]))
    break_row(store, "bad", 3, "{no json")
    bad, good = LogCache(store).load_many(["bad", "good"])
    assert isinstance(bad, HistoryError)
    assert "no JSON" in str(bad)
    assert isinstance(good, Log)
    assert [m.content for m in good.visible()] == ["root1", "good2"]


def test_the_conversation_leaves_out_what_a_model_never_sees(store: Store) -> None:
    kinds = ["user", "fork", "assistant", "mark", "user", "rewind", "fork", "tool_call", "tool_result", "mail"]
    plant(store, ("root", None, 0, kinds), ("child", "root", 10, ["fork", "user"]))
    store.write(
        lambda tx: write_log(tx, [Message("child", 13, "rewind", "", {"mark": 4}, 1)]),
    )
    log = LogCache(store).load("child")
    assert [entry.message.id for entry in log.conversation(12)] == [12, 10, 9, 5, 3, 1]
    assert [entry.message.id for entry in log.conversation(13)] == [3, 1]
    assert [entry.message.id for entry in log.conversation(3)] == [3, 1]
    assert [entry.message.id for entry in log.conversation(12, 9)] == [9, 5, 3, 1]


def test_ancestors_that_run_in_a_circle_are_an_error(store: Store) -> None:
    plant(store, ("root", None, 0, ["user"]), ("a", "root", 1, ["user"]), ("b", "a", 2, ["user"]))
    change(store, "a", "parent_uuid = 'b'")
    with pytest.raises(HistoryError, match="b descends from itself"):
        LogCache(store).load("b")


def test_an_ancestor_that_is_missing_is_an_error_for_all_who_need_it(durable: str) -> None:
    with closing(open_store(durable)) as store:
        ensure_schema(store)
        plant(
            store,
            ("root", None, 0, ["user"]),
            ("a", "root", 1, ["user", "clear"]),
            ("needs", "a", 2, ["user"]),
            ("cleared", "a", 3, ["user"]),
        )
        damage(durable, agent("a", "parent_uuid = 'nobody'"))
        with pytest.raises(HistoryError, match="agent needs cannot be followed beyond a"):
            LogCache(store).load("needs")
        with pytest.raises(HistoryError, match="agent cleared cannot be followed beyond a"):
            whole(store, "cleared")
        assert contents(LogCache(store), "cleared") == ["cleared4"]
