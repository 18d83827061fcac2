"""What every database must do: one contract, run over each of them."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ikigai_actors.errors import StoreConflict, StoreError
from ikigai_actors.store import Row, Store, Transaction, open_store
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.migrations import ensure_schema, newest, require_schema, schema_version
from tests.kit.databases import DEADLINE, add_agents, sql, tree_version
from tests.kit.trees import HOST, add_host


class Refused(Exception):
    """What a unit raises that refuses."""


def message(agent: str, number: int, content: str = "hello", data: str | None = None) -> Row:
    return (agent, number, "user", content, data, 1_700_000_000_000, b"hash")


def messages(store: Store) -> list[Row]:
    return store.read(lambda tx: sql(tx, "SELECT agent_uuid, id, content, data FROM messages ORDER BY id"))


def test_what_is_written_is_read(store: Store) -> None:
    store.write(lambda tx: tx.run("tree_change"))
    assert store.read(tree_version) == 1


def test_a_transaction_gives_what_its_work_returns(store: Store) -> None:
    assert store.write(lambda tx: "written") == "written"
    assert store.read(lambda tx: "read") == "read"


def test_a_transaction_reads_what_it_wrote(store: Store) -> None:
    def work(tx: Transaction) -> int:
        tx.run("tree_change")
        return tree_version(tx)

    assert store.write(work) == 1


def test_a_statement_without_rows_gives_an_empty_list(store: Store) -> None:
    assert store.write(lambda tx: tx.run("tree_change")) == []
    assert store.read(lambda tx: tx.run("agent_by_uuid", uuid="nobody")) == []


def test_rows_are_tuples_of_texts_integers_and_none(store: Store) -> None:
    store.write(lambda tx: add_agents(tx, root=None))
    [row] = store.read(lambda tx: tx.run("agent_by_uuid", uuid="root"))
    assert type(row) is tuple
    assert {type(value) for value in row} == {str, int, type(None)}


def test_a_refusal_passes_through_and_nothing_is_written(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run("tree_change")
        tx.defer("tree_change")
        raise Refused

    with pytest.raises(Refused):
        store.write(work)
    assert store.read(tree_version) == 0


def test_an_interrupt_from_the_keyboard_leaves_the_store_usable(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run("tree_change")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.write(work)
    store.write(lambda tx: tx.run("tree_change"))
    assert store.read(tree_version) == 1


def test_an_unknown_query_is_named(store: Store) -> None:
    with pytest.raises(KeyError, match="no_such_query"):
        store.write(lambda tx: tx.run("no_such_query"))
    with pytest.raises(KeyError, match="no_such_query"):
        store.write(lambda tx: tx.defer("no_such_query"))
    store.write(lambda tx: tx.run("tree_change"))


def test_a_missing_parameter_is_an_error_of_ours(store: Store) -> None:
    with pytest.raises(StoreError):
        store.read(lambda tx: tx.run("agent_by_uuid"))


def test_lists_of_any_length_find_their_rows(store: Store) -> None:
    many = [f"agent {number}" for number in range(1500)]
    store.write(lambda tx: add_agents(tx, **{"root": None, "agent 7": "root", "agent 11": "root", "it''s": "root"}))

    def names_in(uuids: list[str] | tuple[str, ...]) -> set[str]:
        return {row[0] for row in store.write(lambda tx: tx.run("lock_agents", uuids=uuids, writers=[]))}

    assert names_in(many) == {"agent 7", "agent 11"}
    assert names_in(("it's", '"', "\\")) == {"it's"}
    assert names_in([]) == set()


def test_none_is_null(store: Store) -> None:
    assert store.read(lambda tx: tx.run("agent_by_uuid", uuid=None)) == []
    assert store.write(lambda tx: tx.run("lock_agents", uuids=None, writers=None)) == []


def test_texts_and_integers_come_back_as_they_were(store: Store) -> None:
    text = "100% of :name 'quoted' \\ \n\t ü 漢字 🦀 -- now_ms() ;"
    store.write(lambda tx: add_agents(tx, root=None))
    store.write(lambda tx: tx.append([message("root", 2**63 - 1, text, '{"a":1}'), message("root", 1, "", None)]))
    assert messages(store) == [("root", 1, "", None), ("root", 2**63 - 1, text, '{"a":1}')]


def test_deferred_statements_run_before_the_commit_and_in_order(store: Store) -> None:
    def work(tx: Transaction) -> int:
        for version in (1, 2, 3):
            tx.defer("set_schema_version", version=version, least=1)
        [(now,)] = tx.run("schema_version")
        return int(now)

    before = store.read(lambda tx: tx.run("schema_version"))
    assert [(store.write(work),)] == before
    assert store.read(lambda tx: tx.run("schema_version")) == [(3,)]


def test_appended_rows_come_after_the_deferred_statements(store: Store) -> None:
    def work(tx: Transaction) -> list[Row]:
        tx.append([message("root", 1)])
        tx.append([message("root", 2), message("root", 3)])
        tx.defer("tree_change")
        add_agents(tx, root=None)
        return sql(tx, "SELECT id FROM messages")

    assert store.write(work) == []
    assert [row[1] for row in messages(store)] == [1, 2, 3]


def test_a_thousand_rows_are_appended_at_once(store: Store) -> None:
    store.write(lambda tx: add_agents(tx, root=None))
    store.write(lambda tx: tx.append([message("root", number) for number in range(1, 1001)]))
    assert len(messages(store)) == 1000


def test_a_row_that_is_there_already_is_a_conflict_and_nothing_is_written(store: Store) -> None:
    store.write(lambda tx: add_agents(tx, root=None))
    store.write(lambda tx: tx.append([message("root", 2)]))

    def work(tx: Transaction) -> None:
        tx.run("tree_change")
        tx.append([message("root", 1), message("root", 2), message("root", 3)])

    with pytest.raises(StoreConflict) as caught:
        store.write(work)
    assert caught.value.__cause__ is not None
    assert [row[1] for row in messages(store)] == [2]
    assert store.read(tree_version) == 0


def test_a_row_about_nobody_is_a_conflict(store: Store) -> None:
    with pytest.raises(StoreConflict):
        store.write(lambda tx: tx.run("add_monitor", agent="nobody", watcher="nobody", now=1))


def test_a_second_root_is_a_conflict(store: Store) -> None:
    store.write(lambda tx: add_agents(tx, root=None))
    with pytest.raises(StoreConflict):
        store.write(
            lambda tx: sql(
                tx,
                "INSERT INTO agents (uuid, fork_message_id, status, created_at) VALUES ('other', 0, 'running', 1)",
            )
        )


def test_a_value_that_no_database_holds_is_an_error_of_ours(store: Store) -> None:
    def refused(value: str | int, row: Row) -> None:
        works: list[Callable[[Transaction], object]] = [
            lambda tx: tx.append([row]),
            lambda tx: tx.run("set_batch", host="h", last=0, batch=value),
            lambda tx: tx.defer("set_batch", host="h", last=0, batch=value),
        ]
        for work in works:
            with pytest.raises(StoreError):
                store.write(work)

    store.write(lambda tx: add_agents(tx, root=None))
    refused("\ud800", message("root", 1, "\ud800"))
    for number in (2**63, -(2**63) - 1):
        refused(number, message("root", number))
    assert messages(store) == []


def test_a_statement_that_failed_ends_its_transaction_even_when_the_work_goes_on(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run("tree_change")
        with pytest.raises(StoreConflict):
            add_agents(tx, orphan="nobody")
        with pytest.raises(StoreConflict):
            tx.run("tree_change")

    with pytest.raises(StoreConflict):
        store.write(work)
    assert store.read(tree_version) == 0


def test_what_is_asked_for_is_answered_in_any_order_and_sees_what_was_written_before(store: Store) -> None:
    def work(tx: Transaction) -> tuple[list[Row], list[Row], list[Row]]:
        before = tx.ask("root")
        add_agents(tx, root=None)
        tx.run("set_turn", uuid="root", turn=7)
        after, nobody = tx.ask("look_at_agent", uuid="root"), tx.ask("look_at_agent", uuid="nobody")
        return nobody(), after(), before()

    nobody, [after], before = store.write(work)
    assert (nobody, after[0], before) == ([], "root", [])
    assert 7 in after


class Because(Exception):
    """Why nothing is written."""


def test_what_is_required_runs_last_and_without_its_row_nothing_is_written_and_the_reason_is_raised(
    store: Store,
) -> None:
    store.write(lambda tx: add_agents(tx, a=None))
    store.write(add_host)

    def because(after: Transaction) -> Exception:
        return Because(after.run("batch_of", host=HOST), tree_version(after))

    def work(last: int, number: int) -> Callable[[Transaction], str]:
        def write(tx: Transaction) -> str:
            tx.require("set_batch", because, host=HOST, last=last, batch=last + 1)
            tx.run("tree_change")
            tx.defer("set_turn", uuid="a", turn=5)
            tx.append([message("a", number)])
            return "written"

        return write

    for last in (0, 1):
        assert store.write(work(last, last + 1)) == "written"
    with pytest.raises(Because) as refused:
        store.write(work(1, 3))
    written, version = refused.value.args
    assert written == [(2,)]
    assert version in (2, 3)  # looked at in the transaction, or in another one
    assert [row[1] for row in messages(store)] == [1, 2]
    assert store.read(tree_version) == 2
    store.write(work(2, 3))


def test_what_is_required_beside_a_statement_that_fails_is_told_by_that_statement(store: Store) -> None:
    store.write(lambda tx: add_agents(tx, a=None))

    def work(tx: Transaction) -> None:
        tx.require("set_batch", lambda after: Because(), host="nobody", last=0, batch=1)
        tx.append([message("a", 1), message("a", 1)])

    with pytest.raises(StoreConflict):
        store.write(work)
    assert messages(store) == []


def test_rows_are_what_they_were_however_many_are_appended(store: Store) -> None:
    store.write(lambda tx: add_agents(tx, root=None))
    for number in (1, 3, 49, 50, 51, 120):
        keep_rows(store, f"a{number}", number)


def keep_rows(store: Store, agent: str, number: int) -> None:
    """Append this many odd messages of a new agent, and read them."""
    odd = ["quotes \" and ' and \\\\", "{braces, commas}", "NULL", "", "line\nbreak\ttab", "ünï ☃ 😀", "%s %(x)s :name"]
    data = [None, '{"a": "\\u00e9 \\" \\\\ "}', ""]
    rows = [message(agent, n, odd[n % len(odd)], data[n % len(data)]) for n in range(1, number + 1)]
    rows = [(*row[:-1], bytes([row[1], 0, 92, 34, 255])) for row in rows]

    def work(tx: Transaction) -> None:
        add_agents(tx, **{agent: "root"})
        tx.append(rows[::-1])
        tx.append([], "mail")

    store.write(work)
    columns = "agent_uuid, id, kind, content, data, created_at, hash"
    read = f"SELECT {columns} FROM messages WHERE agent_uuid = '{agent}' ORDER BY id"
    assert store.read(lambda tx: sql(tx, read)) == rows


def test_a_read_that_writes_is_refused(store: Store) -> None:
    for work in (lambda tx: tx.run("tree_change"), lambda tx: tx.defer("tree_change")):
        with pytest.raises(StoreError):
            store.read(work)
    assert store.read(tree_version) == 0
    store.write(lambda tx: tx.run("tree_change"))


def test_a_transaction_that_is_over_is_refused(store: Store) -> None:
    for transact in (store.read, store.write):
        kept = transact(lambda tx: tx)
        with pytest.raises(StoreError, match="is over"):
            kept.run("schema_version")


def test_a_write_inside_a_write_is_refused_and_does_not_hang(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run("tree_change")
        with pytest.raises(StoreError):
            store.write(lambda inner: inner.run("tree_change"))

    store.write(work)
    assert store.read(tree_version) == 1


def test_threads_that_write_at_once_follow_one_another(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run("tree_change")

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(store.write, work) for _ in range(80)]:
            done.result(DEADLINE)
    assert store.read(tree_version) == 80


def test_nobody_reads_what_is_not_committed(durable: str) -> None:
    store = open_store(durable)
    ensure_schema(store)
    with ThreadPoolExecutor(1) as thread:

        def work(tx: Transaction) -> int:
            tx.run("tree_change")
            return thread.submit(store.read, tree_version).result(DEADLINE)

        assert store.write(work) == 0
    assert store.read(tree_version) == 1
    store.close()


def test_in_memory_a_reader_waits_for_the_writer() -> None:
    store = open_store(":memory:")
    ensure_schema(store)
    with ThreadPoolExecutor(1) as thread:

        def work(tx: Transaction) -> Future[int]:
            reading = thread.submit(store.read, tree_version)
            tx.run("tree_change")
            return reading

        assert store.write(work).result(DEADLINE) == 1
    store.close()


def test_a_read_sees_one_moment_while_others_write(durable: str) -> None:
    store, other = open_store(durable), open_store(durable)
    ensure_schema(store)

    def work(tx: Transaction) -> tuple[int, int]:
        first = tree_version(tx)
        other.write(lambda writer: writer.run("tree_change"))
        return first, tree_version(tx)

    assert store.read(work) == (0, 0)
    assert store.read(tree_version) == 1
    store.close()
    other.close()


def test_two_stores_on_one_database_see_each_others_commits(durable: str) -> None:
    first, second = open_store(durable), open_store(durable)
    ensure_schema(first)
    first.write(lambda tx: tx.run("tree_change"))
    assert second.read(tree_version) == 1
    second.write(lambda tx: tx.run("tree_change"))
    assert first.read(tree_version) == 2
    first.close()
    second.close()


def test_what_is_committed_is_there_after_a_new_start(durable: str) -> None:
    store = open_store(durable)
    ensure_schema(store)
    store.write(lambda tx: tx.run("tree_change"))
    store.close()
    store = open_store(durable)
    assert store.read(tree_version) == 1
    store.close()


def test_a_separate_store_is_the_same_database_and_closing_it_leaves_the_first_open(store: Store) -> None:
    separate = store.separate()
    separate.write(lambda tx: tx.run("tree_change"))
    assert separate.read(tree_version) == 1
    further = separate.separate()
    separate.close()
    separate.close()
    assert further.read(tree_version) == 1
    watch = further.watch()
    watch.close()
    assert not watch.wait()
    further.close()
    assert store.read(tree_version) == 1


def test_closing_a_watch_ends_the_waiting_at_once(store: Store) -> None:
    watch, begun = store.watch(), threading.Event()

    def wait() -> bool:
        watch.wait(0)  # that it listens is the first news
        begun.set()
        return watch.wait()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(wait)
        assert begun.wait(DEADLINE)
        watch.close()
        assert not waiting.result(DEADLINE)


def test_a_watch_that_is_woken_has_heard_nothing_and_waits_again(store: Store) -> None:
    watch = store.watch()
    while watch.wait(0):  # that it listens is the first news
        pass
    for _ in range(2):
        watch.wake()
        assert not watch.wait(DEADLINE)
    watch.close()
    watch.wake()
    assert not watch.wait()


def test_closing_twice_does_nothing_and_a_closed_store_refuses(store: Store) -> None:
    store.read(tree_version)
    store.close()
    store.close()
    for transact in (store.read, store.write):
        with pytest.raises(StoreError, match="closed"):
            transact(tree_version)


def test_closing_waits_for_the_transaction_in_progress(store: Store) -> None:
    entered, leave = threading.Event(), threading.Event()

    def work(tx: Transaction) -> None:
        tx.run("tree_change")
        entered.set()
        assert leave.wait(DEADLINE)

    with ThreadPoolExecutor(2) as threads:
        writing = threads.submit(store.write, work)
        assert entered.wait(DEADLINE)
        closing = threads.submit(store.close)
        leave.set()
        writing.result(DEADLINE)
        closing.result(DEADLINE)


@pytest.mark.empty
def test_opening_makes_no_tables_and_ensuring_the_schema_twice_makes_them_once(database: str) -> None:
    store = open_store(database)
    assert schema_version(store) == 0
    assert ensure_schema(store) == ensure_schema(store) == schema_version(store) == newest()
    require_schema(store)
    store.close()


def test_a_forwarding_store_forwards_each_call_of_a_store() -> None:
    calls = {name for name in vars(Store) if not name.startswith("_")}
    assert calls == {name for name in vars(ForwardingStore) if not name.startswith("_")}
