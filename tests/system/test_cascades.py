"""Cascades: all or nothing, and nobody escapes, whoever forks meanwhile, and wherever the cascade comes from."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress

import pytest

from ikigai_actors import ActorSystem, AgentRef, FunctionProvider, Reply, Request, Signal, StoreError, StoreInUse
from ikigai_actors.errors import Fenced
from ikigai_actors.records.agents.registry import every
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.journal import CommitResult, Committed
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import lock, write_alone
from tests.conftest import NewDatabase
from tests.kit import outside, trees
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import Admin, backend, eventually, printed, python, sql
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on
from tests.kit.programs import cheaper
from tests.kit.races import Writer, meet
from tests.kit.tool_scripts import calling
from tests.kit.trees import HOST, fork, plant, record
from tests.records.test_races import OTHER, ROUNDS, Arena, arena  # noqa: F401  # a fixture

STORMS = int(os.environ.get("IKIGAI_TEST_STORMS", "2"))
"""Cascades into a tree that grows."""

KILL_ELSEWHERE = """
    import sys
    from ikigai_actors import Signal
    from tests.kit import outside
    for top in sys.stdin:
        outside.signal(sys.argv[1], top.strip(), Signal.KILL, cascade=True)
        print("done", flush=True)
"""


MOST = 400
"""Replies with forks in one storm: where the kill is slow to come, its tree shall not have grown beyond all bounds."""


class Brood:
    """Every agent forks two children at each step, which do the same."""

    def __init__(self) -> None:
        self.storm()

    def storm(self) -> None:
        """Another one begins."""
        self._left = iter(range(MOST))

    def multiply(self, request: Request) -> Reply:
        """Fork twice."""
        more = next(self._left, None) is not None
        return calling(*[("fork", {"prompt": "go"})] * 2) if more else Reply("enough")


Kill = Callable[[AgentRef], object]
"""Kills an agent and all below it."""


@contextmanager
def by_handle(database: str) -> Iterator[Kill]:
    """As a program does it."""
    yield lambda top: top.kill(cascade=True)


@contextmanager
def by_another_connection(database: str) -> Iterator[Kill]:
    """As another process does it."""
    yield lambda top: outside.signal(database, top.uuid, Signal.KILL, cascade=True, reason="", grace=1)


@contextmanager
def by_another_process(database: str) -> Iterator[Kill]:
    """Truly: it is started before there is anybody to kill."""
    process = python(KILL_ELSEWHERE, database)
    assert process.stdin is not None
    assert process.stdout is not None
    source, answers = process.stdin, process.stdout

    def kill(top: AgentRef) -> None:
        source.write(f"{top.uuid}\n")
        source.flush()
        assert answers.readline() == "done\n"

    yield kill
    assert printed(process) == ""


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "storms of forks")
@pytest.mark.parametrize("kill", [by_handle, by_another_connection, by_another_process])
def test_no_descendant_escapes_a_cascade_while_all_of_them_fork(
    durable: str, kill: Callable[[str], AbstractContextManager[Kill]]
) -> None:
    brood = Brood()
    with (
        ActorSystem.open(durable, provider=FunctionProvider(brood.multiply, "brood")) as system,
        kill(durable) as kill_all,
    ):
        tops = []
        for number in range(STORMS):
            brood.storm()
            top = system.root.fork("go")
            tops.append(top.uuid)
            eventually(lambda most=20 + 10 * number: len(system.agents("running")) > most, "the brood")  # type: ignore[misc]
            kill_all(top)
            left = system._store.read(lambda tx: (every(tx), tx.run("counts")))
            assert [agent.uuid for agent in left[0] if agent.living] == [system.root.uuid]
            eventually(
                lambda: (statistics := system.statistics()).agents == 1 and statistics.working == 0,
                "the end of all actors",
            )
            assert system._store.read(lambda tx: (every(tx), tx.run("counts"))) == left
        mails = system.root.read_mail()
        assert [mail.sender for mail in mails] == tops
        counts = [int(mail.body.partition("\n\n")[2].split()[0].replace(",", "")) for mail in mails]
        assert sum(counts) == len(system.agents("dead"))
        assert system.root.fork(name="later").record.living  # nobody holds a lock
        assert fsck.check(system._store) == []


@pytest.mark.thorough("a takeover in a cascade; every run has a cascade while all fork")
def test_no_descendant_escapes_a_cascade_of_a_host_that_took_over_while_the_one_before_still_forks(
    new_postgres: NewDatabase,
) -> None:
    """On SQLite a file lock keeps a second host out, whatever the first one does."""
    url = new_postgres()
    with ActorSystem.open(url, provider=FunctionProvider(Brood().multiply, "brood")) as first:
        top = first.root.fork("go")
        eventually(lambda: len(first.agents("running")) > 20, "the brood")
        second = open_over(url, first, FunctionProvider(Brood().multiply, "brood"))
        with second:
            size = len(second.agents())
            eventually(lambda: len(second.agents("running")) > size + 20, "the brood of the second host")
            second.handle(top.uuid).kill(cascade=True)
            left = second._store.read(lambda tx: (every(tx), tx.run("counts")))
            assert [agent.uuid for agent in left[0] if agent.living] == [second.root.uuid]
            eventually(
                lambda: (statistics := second.statistics()).agents == 1 and statistics.working == 0,
                "the end of all actors",
            )
            assert second._store.read(lambda tx: (every(tx), tx.run("counts"))) == left
            assert fsck.check(second._store) == []


def open_over(url: str, first: ActorSystem, provider: FunctionProvider) -> ActorSystem:
    """Open a database as the next host, as if the lease of the first one had run out without its notice."""
    while True:
        first._store.write(lambda tx: sql(tx, "UPDATE hosts SET lease_until = 1"))
        with suppress(StoreInUse):  # it was renewed in between
            return ActorSystem.open(url, provider=provider, resume=True)


def breed(writer: Writer, host: str, ancestors: list[str]) -> int:
    """Let agents of a host fork, and their children too, until none of them can any more; returns the births."""
    heads = dict.fromkeys(ancestors, 0)
    births = 0
    while heads:
        asked: list[tuple[str, str, Callable[[], CommitResult]]] = []
        for parent in list(heads)[-8:]:
            child = f"{parent}.{births + len(asked)}"
            asked.append((parent, child, writer.submit(fork(parent, child, heads[parent] + 1, host=host))))
        for parent, child, answer in asked:
            verdict = answer()
            if isinstance(verdict, Committed):
                births += 1
                heads[parent] += 1
                heads[child] = heads[parent]
            else:
                assert isinstance(verdict.error, Fenced)
                assert verdict.error.dead
                del heads[parent]
    return births


@pytest.mark.slow("takes half a second")
def test_no_descendant_escapes_a_cascade_while_those_of_two_hosts_fork(arena: Arena) -> None:  # noqa: F811
    """Two hosts own parts of one tree; the cascade comes from either of them, or from a third process."""
    tops = [f"top {number}" for number in range(STORMS)]
    for top in tops:
        arena.add((top, "root"), (f"{top} a", top), (f"{top} b", f"{top} a"))
        arena.add((f"{top} c", top), (f"{top} d", f"{top} b"), host=OTHER)
    arena.start()
    for number, top in enumerate(tops):
        with ThreadPoolExecutor(2) as threads:
            breeding = [
                threads.submit(breed, arena.one, HOST, [f"{top} a", f"{top} b"]),
                threads.submit(breed, arena.other, OTHER, [f"{top} c", f"{top} d"]),
            ]
            eventually(lambda most=20 + 20 * number: len(arena.store.read(trees.living)) > most, "the broods")  # type: ignore[misc]
            kill = SendSignal(top, Signal.KILL, 9, spread=True)
            if number % 3 == 2:
                dead = write_alone(arena.store, kill).dead
            else:
                verdict = (arena.one, arena.other)[number % 3].submit(kill)()
                assert isinstance(verdict, Committed)
                dead = verdict.value.dead
            births = sum(future.result(DEADLINE) for future in breeding)
        family = [record for record in arena.store.read(every) if record.uuid.startswith(top)]
        assert (
            {record.uuid for record in family if not record.living} == set(dead) == {record.uuid for record in family}
        )
        assert len(family) == 5 + births
    for writer in (arena.one, arena.other):
        assert writer.store.runs == writer.journal.statistics().batches  # nothing had to run again: no deadlock


@cheaper("rounds", 10, ROUNDS, "thirty races; every run has ten")
def test_no_child_escapes_a_cascade_from_another_writer(arena: Arena, rounds: int) -> None:  # noqa: F811
    trees = [(f"top {number}", f"middle {number}", f"leaf {number}") for number in range(rounds)]
    for top, middle, _ in trees:
        arena.add((top, "root"), (middle, top))
    arena.start()
    outcomes = set()
    for number, (top, middle, leaf) in enumerate(trees):
        birth, kill = fork(middle, leaf), SendSignal(top, Signal.KILL, 9, spread=True)
        if number % 3 == 0:
            born, killed = meet(arena.one, birth, arena.other, kill, arena.waits)
        elif number % 3 == 1:
            killed, born = meet(arena.other, kill, arena.one, birth, arena.waits)
        else:
            answers = (arena.one.submit(birth), arena.other.submit(kill))
            born, killed = (answer() for answer in answers)
        assert isinstance(killed, Committed)
        outcomes.add(isinstance(born, Committed))
        family = {middle, top, leaf} if isinstance(born, Committed) else {middle, top}
        assert set(killed.value.dead) == family
        assert {record.uuid for record in arena.store.read(every) if record.uuid.endswith(f" {number}")} == family
        assert all(record(arena.store, uuid).status == "dead" for uuid in family)
    assert outcomes == {True, False}
    assert arena.one.store.runs == arena.one.journal.statistics().batches  # nothing had to run again: no deadlock
    assert arena.other.store.runs == arena.other.journal.statistics().batches


DESCENDANTS = int(os.environ.get("IKIGAI_TEST_DESCENDANTS", "1000"))
"""How many agents die, or do not, in a cascade that something breaks midway."""


def grow(store: Store) -> None:
    """A top below agent 0, and below it as many agents, three to a supervisor."""
    ensure_schema(store)
    plant(store, top="root")
    rows = ((f"a{number}", f"a{number // 3}" if number > 2 else "top", number) for number in range(DESCENDANTS))
    values = ", ".join(f"('{uuid}', '{above}', '{above}', 0, 'running', {now})" for uuid, above, now in rows)
    columns = "uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at"
    store.write(lambda tx: sql(tx, f"INSERT INTO agents ({columns}) VALUES {values}"))


def check_all_or_nothing(store: Store) -> bool:
    """Whether everybody has died; nothing in between may be."""
    dead = len(store.read(lambda tx: every(tx, "dead")))
    counts = "SELECT (SELECT COUNT(*) FROM mail), (SELECT COUNT(*) FROM signals)"
    [(mails, signals)] = store.read(lambda tx: sql(tx, counts))
    mailed = record(store, "root").mailed
    assert (dead, mails, signals, mailed) in ((0, 0, 0, 0), (DESCENDANTS + 1, 1, 1, 1))
    return bool(dead)


DIES_MIDWAY = """
    import os, signal, sys
    from ikigai_actors import Signal
    from ikigai_actors.records.lives.signals import SendSignal
    from ikigai_actors.store import open_store
    from ikigai_actors.store.unit import lock

    kill = SendSignal("top", Signal.KILL, 9, spread=True)

    def work(tx):
        locked = lock(tx, (kill,))
        kill.write(tx, locked)
        if sys.argv[2] == "late":
            locked.settle(tx)
            tx.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    open_store(sys.argv[1]).write(work)
"""


@pytest.mark.sample(1, "moments before the commit")
@pytest.mark.parametrize("moment", ["early", "late"])
def test_a_process_that_dies_midway_through_a_cascade_has_killed_nobody(durable: str, moment: str) -> None:
    """Early: the rows are written, the mails are not. Late: all is written, and not committed."""
    store = open_store(durable)
    grow(store)
    process = python(DIES_MIDWAY, durable, moment)
    process.communicate(timeout=DEADLINE + DESCENDANTS / 100)
    assert process.returncode == -signal.SIGKILL
    assert not check_all_or_nothing(store)
    assert len(write_alone(store, SendSignal("top", Signal.KILL, 9, spread=True)).dead) == DESCENDANTS + 1
    assert check_all_or_nothing(store)
    store.close()


def test_a_connection_that_breaks_midway_through_a_cascade_has_killed_nobody(
    new_postgres: NewDatabase, postgres_admin: Admin
) -> None:
    store = open_store(new_postgres())
    grow(store)
    kill = SendSignal("top", Signal.KILL, 9, spread=True)

    def work(tx: Transaction) -> None:
        kill.write(tx, lock(tx, (kill,)))
        postgres_admin.execute(f"SELECT pg_terminate_backend({backend(tx)})".encode())

    with pytest.raises(StoreError):
        store.write(work)
    assert not check_all_or_nothing(store)
    store.close()


@pytest.mark.parametrize("committed", [True, False])
def test_a_cascade_whose_commit_was_not_answered_happens_once(durable: str, committed: bool) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, lambda request: "done") as system:
        top = system.root.fork()
        kids = [top.fork() for _ in range(5)]
        store.breaks_during_commit(committed=committed)
        assert set(top.kill(cascade=True)) == {top, *kids}
        assert len(system.root.read_mail()) == 6
        assert fsck.check(system._store) == []


def test_whoever_survives_a_large_cascade_gets_one_mail_and_every_wait_for_the_dead_ends() -> None:
    with ActorSystem.open(":memory:", FunctionProvider(lambda request: "ok")) as system:
        top = system.root.fork(name="top")
        kids = top.fork(prompts=[None] * 30)
        future = system.root.aio.wait([agent.aio for agent in (top, *kids)], timeout=DEADLINE)
        busy = top.fork(name="busy")
        assert len(top.kill(cascade=True, reason="enough")) == 32
        assert set(system.root.wait([top, *kids, busy], timeout=DEADLINE).values()) == {"dead"}
        assert len(future.get(timeout=DEADLINE)) == 31
        [mail] = system.root.read_mail(top)
        assert mail.body.startswith("killed: enough\n\n32 agents died at once: 32 killed.")
        assert system.root.record.unread == 0
