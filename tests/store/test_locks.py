"""The lock protocol, with real races on PostgreSQL (SQLite has one writer, so there is nothing to race).

One transaction is held at a point of its work until another is seen waiting for it in the server's own list.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import permutations

import pytest

from ikigai_actors.records.agents.registry import descendants
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.unit import LockedRows
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin, add_agents, backend, eventually, sql
from tests.kit.trees import add

Work = Callable[[Transaction], object]


def bury(tx: Transaction, uuid: str) -> None:
    sql(tx, f"UPDATE agents SET status = 'dead', ended_at = 2, epoch = epoch + 1 WHERE uuid = '{uuid}'")


def statuses(tx: Transaction, *uuids: str) -> dict[str, str]:
    return {row[0]: row[1] for row in tx.run("lock_agents", uuids=uuids, writers=[])}


class Race:
    """Two hosts on one database: the first stops within its transaction until the second waits for it."""

    def __init__(self, url: str, admin: Admin) -> None:
        self._admin = admin
        self.hosts = [open_store(url), open_store(url)]
        [(self._schema,)] = self.hosts[0].read(lambda tx: sql(tx, "SELECT current_schema()"))
        self.third = open_store(url)
        self._threads = ThreadPoolExecutor(3)

    def run(self, first: Work, second: Work) -> tuple[object, object]:
        """Run first to its end, start second, see it wait, then let first commit; return what both return."""
        begun, leave = Future[int](), threading.Event()

        def held(tx: Transaction) -> object:
            result = first(tx)
            begun.set_result(backend(tx))
            assert leave.wait(DEADLINE)
            return result

        earlier = self.start(self.hosts[0], held)
        blocker = begun.result(DEADLINE)
        two = self.start(self.hosts[1], second)
        try:
            eventually(lambda: two.done() or self.waits_for(blocker), "the second transaction's wait")
            assert not two.done()
        finally:
            leave.set()
        return earlier.result(DEADLINE), two.result(DEADLINE)

    def start(self, host: Store, work: Work) -> "Future[object]":
        return self._threads.submit(host.write, work)

    def close(self) -> None:
        self._threads.shutdown()
        for host in (*self.hosts, self.third):
            host.close()

    def waiting(self) -> int:
        """How many transactions wait for a lock, of those that have locked a table here: tests share the server."""
        tables = "pg_locks other JOIN pg_class ON pg_class.oid = relation WHERE relnamespace = %s::text::regnamespace"
        query = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT other.pid FROM {tables})"
        return int(self._admin.execute(query.encode(), (self._schema,)).fetchall()[0][0])

    def waits_for(self, blocker: int) -> bool:
        """Whether some transaction waits for a lock that this server process holds."""
        waiting = "SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        return bool(self._admin.execute(waiting, (blocker,)).fetchall())


@pytest.fixture
def race(new_postgres: NewDatabase, postgres_admin: Admin) -> Iterator[Race]:
    """A tree root > a > b, and c beside a; two hosts."""
    race = Race(new_postgres(), postgres_admin)

    def plant(tx: Transaction) -> None:
        add_agents(tx, root=None, a="root", b="a", c="root")

    race.hosts[0].write(plant)
    yield race
    race.close()


def test_a_change_of_the_tree_waits_for_the_one_before_and_then_sees_its_rows(race: Race) -> None:
    def fork(tx: Transaction) -> None:
        tx.run("tree_change")
        add_agents(tx, new="b")

    def cascade(tx: Transaction) -> set[object]:
        tx.run("tree_change")
        rows = sql(
            tx,
            "WITH RECURSIVE sub(uuid) AS (SELECT CAST('a' AS TEXT)"
            " UNION SELECT agents.uuid FROM agents JOIN sub ON agents.supervisor_uuid = sub.uuid) SELECT uuid FROM sub",
        )
        return {row[0] for row in rows}

    assert race.run(fork, cascade)[1] == {"a", "b", "new"}


def test_a_cascade_waits_for_a_birth_of_another_host_and_then_sees_the_child(race: Race) -> None:
    def fork(tx: Transaction) -> None:
        tx.share_tree()
        add_agents(tx, new="b")

    def cascade(tx: Transaction) -> set[object]:
        tx.run("tree_change")
        return {descendant.uuid for descendant in descendants(tx, "a")}

    assert race.run(fork, cascade)[1] == {"b", "new"}


def test_a_death_waits_for_a_change_of_whomever_it_concerns_and_reads_those_that_count(race: Race) -> None:
    def change(tx: Transaction) -> None:
        tx.run("lock_agents", uuids=["b"], writers=[])
        tx.run("set_turn", uuid="b", turn=7)
        sql(tx, "UPDATE agents SET held_at = 7 WHERE uuid = 'a'")

    def die(tx: Transaction) -> object:
        locked = LockedRows(())
        locked.lock_dying(tx, ["b", "a"], ["root"])
        return {uuid: row.held_at for uuid, row in locked.items()}, sql(tx, "SELECT turn FROM agents WHERE uuid = 'b'")

    assert race.run(change, die)[1] == ({"a": 7, "root": 0}, [(7,)])


def test_nobody_is_born_below_whom_a_cascade_of_another_host_has_hit(race: Race) -> None:
    """Three hosts: a child is being born, a cascade waits for it, and behind the cascade a grandchild is asked for."""
    asked: list[Future[object]] = []

    def fork(tx: Transaction) -> None:
        tx.share_tree()
        add_agents(tx, child="b")

    def cascade(tx: Transaction) -> None:
        tx.run("tree_change")
        uuids = [descendant.uuid for descendant in descendants(tx, "a")]
        tx.run("lock_agents", uuids=["root", "a", *uuids], writers=[])
        asked.append(race.start(race.third, grandchild))
        eventually(lambda: race.waits_for(backend(tx)), "the grandchild's birth")
        for uuid in ("a", *uuids):
            bury(tx, uuid)

    def grandchild(tx: Transaction) -> dict[str, str]:
        tx.share_tree()
        return statuses(tx, "child")

    race.run(fork, cascade)
    assert asked[0].result(DEADLINE) == {"child": "dead"}


def test_births_of_two_hosts_do_not_wait_for_each_other(race: Race) -> None:
    def fork(uuid: str, parent: str) -> Work:
        def work(tx: Transaction) -> None:
            tx.share_tree()
            statuses(tx, parent)
            add_agents(tx, **{uuid: parent})

        return work

    def both(tx: Transaction) -> None:
        fork("one", "b")(tx)
        race.start(race.hosts[1], fork("two", "c")).result(DEADLINE)

    race.hosts[0].write(both)


def test_a_death_is_not_kept_waiting_by_births_that_come_behind_it(race: Race) -> None:
    waiting: list[Future[object]] = []

    def fork(tx: Transaction) -> None:
        tx.share_tree()
        add_agents(tx, one="b")
        waiting.append(race.start(race.hosts[1], lambda tx: tx.run("tree_change")))
        eventually(lambda: race.waits_for(backend(tx)), "the death")
        waiting.append(race.start(race.third, lambda tx: tx.share_tree()))
        eventually(lambda: race.waiting() == 2, "the birth behind it")

    race.hosts[0].write(fork)
    for future in waiting:
        future.result(DEADLINE)


def test_of_two_births_with_one_name_the_later_one_finds_it_taken(race: Race) -> None:
    def birth(uuid: str, parent: str) -> Work:
        def work(tx: Transaction) -> object:
            tx.share_tree()
            return add(tx, uuid, parent, name="dba")

        return work

    assert race.run(birth("one", "b"), birth("two", "c")) == (True, False)


def test_a_fork_waits_for_a_death_and_then_sees_that_its_parent_is_dead(race: Race) -> None:
    def death(tx: Transaction) -> None:
        tx.run("tree_change")
        tx.run("lock_agents", uuids=["root", "a"], writers=[])
        bury(tx, "a")

    def fork(tx: Transaction) -> dict[str, str]:
        tx.run("tree_change")
        return statuses(tx, "a")

    assert race.run(death, fork)[1] == {"a": "dead"}


def test_who_locks_an_agent_that_is_dying_waits_and_sees_it_dead(race: Race) -> None:
    def death(tx: Transaction) -> None:
        tx.run("tree_change")
        tx.run("lock_agents", uuids=["root", "a"], writers=[])
        bury(tx, "a")

    assert race.run(death, lambda tx: statuses(tx, "a", "c"))[1] == {"a": "dead", "c": "running"}


def test_a_death_waits_for_who_locked_the_agent(race: Race) -> None:
    def append(tx: Transaction) -> dict[str, str]:
        rows = statuses(tx, "a")
        tx.append([("a", 1, "user", "the last word", None, 1, b"")])
        return rows

    def death(tx: Transaction) -> int:
        tx.run("tree_change")
        tx.run("lock_agents", uuids=["root", "a"], writers=[])
        bury(tx, "a")
        return len(sql(tx, "SELECT id FROM messages WHERE agent_uuid = 'a'"))

    assert race.run(append, death) == ({"a": "running"}, 1)


def test_a_log_is_appended_to_while_another_agent_is_made_that_refers_to_its_owner(race: Race) -> None:
    """NO KEY UPDATE lets the reference of a new row through: neither transaction waits."""

    def fork(tx: Transaction) -> None:
        tx.run("tree_change")
        add_agents(tx, new="a")

    def append(tx: Transaction) -> None:
        statuses(tx, "a")
        race.start(race.hosts[1], fork).result(DEADLINE)

    race.hosts[0].write(append)


def test_a_statement_that_deadlocks_all_the_same_runs_again(race: Race) -> None:
    """Two transactions that lock against the order, on purpose: both are committed in the end."""
    both = threading.Barrier(2)
    runs: list[str] = []

    def crosswise(first: str, second: str) -> Work:
        def work(tx: Transaction) -> None:
            runs.append(first)
            statuses(tx, first)
            if runs.count(first) == 1:
                both.wait(DEADLINE)
            statuses(tx, second)
            sql(tx, f"UPDATE agents SET turn = turn + 1 WHERE uuid IN ('{first}', '{second}')")

        return work

    first = race.start(race.hosts[0], crosswise("a", "b"))
    two = race.start(race.hosts[1], crosswise("b", "a"))
    first.result(DEADLINE)
    two.result(DEADLINE)
    assert len(runs) > 2  # how often the server ends which one is its own business
    assert race.hosts[0].read(lambda tx: sql(tx, "SELECT turn FROM agents WHERE uuid = 'a'")) == [(2,)]


def test_overlapping_sets_in_any_order_never_deadlock(race: Race, postgres_admin: Admin) -> None:
    sets = list(permutations(["root", "a", "b", "c"], 3)) * 4
    runs: list[int] = []

    def touch(number: int) -> None:
        def work(tx: Transaction) -> None:
            runs.append(number)
            assert list(statuses(tx, *sets[number])) == sorted(sets[number])

        race.hosts[number % 2].write(work)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(touch, number) for number in range(len(sets))]:
            done.result(DEADLINE)
    assert sorted(runs) == list(range(len(sets)))  # no transaction had to run again


def test_a_set_that_is_locked_in_part_is_waited_for_and_nobody_waits_in_a_circle(race: Race) -> None:
    first = race.run(lambda tx: statuses(tx, "c", "a"), lambda tx: statuses(tx, "b", "c", "a"))
    second = race.run(lambda tx: statuses(tx, "b", "c", "a"), lambda tx: statuses(tx, "c", "a"))
    assert first[1] == second[0]
    assert first[0] == second[1]
