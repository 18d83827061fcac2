"""Races on the tree: two journals, each with a connection of its own, on one database.

In some rounds the order is forced: one transaction is held before its COMMIT until the other one waits for it. In the
others both are let loose at once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import AgentDead, Fenced, NameTaken, SystemClosed
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.lives.membership import JoinGroup, LeaveGroup
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.store import Transaction, open_store
from ikigai_actors.store.hosts.host import new_host, take_database
from ikigai_actors.store.journal import CommitResult, Committed
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import write_alone
from supervisors.signals import Signal
from tests.conftest import NewDatabase
from tests.kit import trees
from tests.kit.databases import DEADLINE, Admin, sql
from tests.kit.faults import HeldStore
from tests.kit.races import Writer, meet, somebody_waits
from tests.kit.trees import HOST, add, add_host, append, fork, ids, plant, record

OTHER = "host 2"
ROUNDS = 30


class Arena:
    """Two hosts' writers on one database, and the test's own look at it."""

    def __init__(self, url: str, admin: Admin | None) -> None:
        self.store = open_store(url)
        ensure_schema(self.store)
        plant(self.store)
        self.store.write(lambda tx: add_host(tx, OTHER))
        self.store.write(lambda tx: sql(tx, f"UPDATE shards SET host = '{OTHER}' WHERE id = 1"))
        self.one, self.other = Writer(url, HOST), Writer(url, OTHER)
        self._admin = admin

    def add(self, *agents: tuple[str, str], host: str = HOST) -> None:
        """Add agents, each (uuid, parent)."""

        def work(tx: Transaction) -> None:
            for uuid, parent in agents:
                add(tx, uuid, parent)
                if host == OTHER:
                    sql(tx, f"UPDATE agents SET shard = 1 WHERE uuid = '{uuid}'")

        self.store.write(work)

    def start(self) -> None:
        """Let both write."""
        self.one.start()
        self.other.start()

    def waits(self) -> bool:
        """Whether the second transaction is known to wait. SQLite cannot tell: there, that it has come is enough."""
        return self._admin is None or somebody_waits(self._admin)

    def check(self) -> None:
        """Every living agent but agent 0 has a living supervisor."""
        living = {agent.uuid: agent for agent in self.store.read(trees.living)}
        orphans = [uuid for uuid, agent in living.items() if uuid != "root" and agent.supervisor_uuid not in living]
        assert orphans == []

    def close(self) -> None:
        """Give everything back."""
        self.one.close()
        self.other.close()
        self.store.close()


@pytest.fixture
def arena(durable: str, request: pytest.FixtureRequest) -> Iterator[Arena]:
    admin = request.getfixturevalue("postgres_admin") if durable.startswith("postgres") else None
    arena = Arena(durable, admin)
    yield arena
    arena.close()


@pytest.mark.slow("takes a tenth of a second")
def test_no_child_of_a_dying_parent_escapes_reparenting(arena: Arena) -> None:
    outcomes: list[bool] = []
    arena.add(*[(f"parent {number}", "root") for number in range(ROUNDS)])
    arena.start()
    for number in range(ROUNDS):
        parent, child = f"parent {number}", f"child {number}"
        birth, burial = fork(parent, child), WriteDeath(parent, HOST, "race", 9)
        if number % 3 == 0:
            born, buried = meet(arena.one, birth, arena.other, burial, arena.waits)
            assert isinstance(born, Committed)
        elif number % 3 == 1:
            buried, born = meet(arena.other, burial, arena.one, birth, arena.waits)
            assert isinstance(getattr(born, "error", None), Fenced)
        else:
            birth_answer = arena.one.submit(birth)
            buried, born = arena.other.submit(burial)(), birth_answer()
        assert isinstance(buried, Committed)
        outcomes.append(isinstance(born, Committed))
        if outcomes[-1]:
            assert record(arena.store, child).supervisor_uuid == "root"
            assert ids(arena.store, child) == ids(arena.store, parent) == [1]
        else:
            assert ids(arena.store, child) == ids(arena.store, parent) == []
        arena.check()
    assert set(outcomes) == {True, False}
    assert arena.one.store.runs == arena.one.journal.statistics().batches  # nothing had to run again: no deadlock
    assert arena.other.store.runs == arena.other.journal.statistics().batches


def test_of_two_forks_with_one_name_exactly_one_wins(arena: Arena) -> None:
    arena.add(("a", "root"))
    arena.add(("b", "root"), host=OTHER)
    arena.start()
    at = {"a": 1, "b": 1}
    winners: list[str] = []
    for number in range(ROUNDS):
        name = f"name {number}"
        forks = {
            "a": (arena.one, fork("a", f"{number} of a", at["a"], name=name)),
            "b": (arena.other, fork("b", f"{number} of b", at["b"], name=name, host=OTHER)),
        }
        first, second = ("a", "b") if number % 2 else ("b", "a")
        if number % 3:
            verdicts = [submit() for submit in [writer.submit(unit) for writer, unit in forks.values()]]
            outcome = dict(zip(forks, verdicts, strict=True))
        else:
            verdicts = meet(*forks[first], *forks[second], arena.waits)
            outcome = dict(zip((first, second), verdicts, strict=True))
            assert isinstance(outcome[first], Committed)
        [winner] = [agent for agent, verdict in outcome.items() if isinstance(verdict, Committed)]
        [loser] = outcome.keys() - {winner}
        assert isinstance(getattr(outcome[loser], "error", None), NameTaken)
        at[winner] += 1
        winners.append(winner)
        named = [agent.uuid for agent in arena.store.read(trees.living) if agent.name == name]
        assert named == [f"{number} of {winner}"]
    assert set(winners) == {"a", "b"}


@pytest.mark.slow("takes a tenth of a second")
def test_nothing_is_appended_after_a_death(arena: Arena) -> None:
    arena.add(*[(f"agent {number}", "root") for number in range(ROUNDS)], ("bystander", "root"))
    arena.start()
    heads: list[int] = []
    for number in range(ROUNDS):
        agent = f"agent {number}"
        answers: list[Callable[[], CommitResult]] = []
        if number % 3 == 0:  # the append holds the agent; its death waits
            born, died = meet(arena.one, append(agent, 1), arena.other, WriteDeath(agent, HOST, "race", 9), arena.waits)
            assert isinstance(born, Committed)
        elif number % 3 == 1:  # the death holds it; the append waits, and is fenced
            died, late = meet(arena.other, WriteDeath(agent, HOST, "race", 9), arena.one, append(agent, 1), arena.waits)
            assert isinstance(getattr(late, "error", None), Fenced)
        else:
            answers = [arena.one.submit(append(agent, place)) for place in (1, 2, 3)]
            dying = arena.other.submit(WriteDeath(agent, HOST, "race", 9))
            answers += [arena.one.submit(append(agent, place)) for place in range(4, 20)]
            died = dying()
        assert isinstance(died, Committed)
        head = ids(arena.store, agent)  # what was there when the death was known
        answers += [arena.one.submit(append(agent, place)) for place in (1, 50)]
        answers += [arena.one.submit(append(agent, 1, epoch=2))]
        verdicts = [answer() for answer in answers]
        committed = [isinstance(verdict, Committed) for verdict in verdicts]
        assert committed == sorted(committed, reverse=True)  # up to the death everything, and then nothing
        assert committed[-3:] == [False] * 3
        assert all(isinstance(verdict, Committed) or isinstance(verdict.error, Fenced) for verdict in verdicts)
        assert ids(arena.store, agent) == head == list(range(1, len(head) + 1))
        heads.append(len(head))
        assert record(arena.store, agent).epoch == 2
    assert {0, 1} <= set(heads)
    assert arena.one.store.runs == arena.one.journal.statistics().batches
    assert arena.other.store.runs == arena.other.journal.statistics().batches


@pytest.mark.slow("takes a tenth of a second")
def test_the_death_of_an_agent_beside_the_death_of_its_supervisor(arena: Arena) -> None:
    families = [(f"top {number}", f"middle {number}", f"leaf {number}") for number in range(ROUNDS)]
    for top, middle, leaf in families:
        arena.add((top, "root"), (middle, top), (leaf, middle))
    arena.start()
    for number, (top, middle, leaf) in enumerate(families):
        upper, lower = WriteDeath(top, HOST, "race", 9), WriteDeath(middle, HOST, "race", 9)
        if number % 3 == 0:
            verdicts = meet(arena.one, upper, arena.other, lower, arena.waits)
        elif number % 3 == 1:
            verdicts = meet(arena.other, lower, arena.one, upper, arena.waits)
        else:
            verdicts = [answer() for answer in (arena.one.submit(upper), arena.other.submit(lower))]
        assert [isinstance(verdict, Committed) for verdict in verdicts] == [True, True]
        assert record(arena.store, leaf).supervisor_uuid == "root"
        arena.check()
    assert arena.one.store.runs + arena.other.store.runs == 2 * ROUNDS


def test_of_two_burials_of_one_agent_one_is_told_that_it_is_dead(arena: Arena) -> None:
    arena.add(*[(f"agent {number}", "root") for number in range(ROUNDS)])
    arena.start()
    for number in range(ROUNDS):
        burials = [WriteDeath(f"agent {number}", HOST, reason, 9) for reason in ("one", "other")]
        if number % 2:
            verdicts = meet(arena.one, burials[0], arena.other, burials[1], arena.waits)
        else:
            answers = [arena.one.submit(burials[0]), arena.other.submit(burials[1])]
            verdicts = [answer() for answer in answers]
        errors = [verdict.error for verdict in verdicts if not isinstance(verdict, Committed)]
        assert [type(error) for error in errors] == [AgentDead]
        assert record(arena.store, f"agent {number}").epoch == 2


@pytest.mark.slow("takes a tenth of a second")
def test_writers_let_loose_on_one_tree_leave_it_whole(arena: Arena) -> None:
    """Forks, appends and deaths by one host, deaths by the other, all at once and in each other's way."""
    arena.add(*[(f"{number}", "root" if number % 5 == 0 else f"{number - 1}") for number in range(60)])
    arena.start()
    answers: list[Callable[[], CommitResult]] = []
    for number in range(60):
        answers.append(arena.one.submit(append(f"{number}", 1)))
        answers.append(arena.one.submit(fork(f"{number}", f"child of {number}", 2)))
        answers.append(arena.other.submit(WriteDeath(f"{59 - number}", HOST, "race", 9)))
        answers.append(arena.one.submit(append(f"{number}", 3)))
        if number % 2:
            answers.append(arena.one.submit(WriteDeath(f"{number}", HOST, "race", 9)))
    errors = [getattr(answer(), "error", None) for answer in answers]
    assert {type(error) for error in errors if error is not None} <= {Fenced, AgentDead}
    arena.check()
    living = {agent.uuid for agent in arena.store.read(trees.living)}
    assert living - {"root"} == {uuid for uuid in living if uuid.startswith("child of")}
    for uuid in living - {"root"}:
        assert record(arena.store, uuid).supervisor_uuid == "root"
        assert ids(arena.store, uuid) == [2]


def test_a_takeover_waits_for_no_batch_that_was_not_sent_and_the_batch_is_fenced(
    new_postgres: NewDatabase, postgres_admin: Admin
) -> None:
    """The old host holds agents, and has yet to send its batch number; the new one claims them and ends its row."""
    arena = Arena(new_postgres(), postgres_admin)
    arena.add(("a", "root"), ("b", "root"))
    arena.one.start()
    arena.one.store.hold()
    before = arena.one.submit(append("a", 1))
    assert arena.one.store.held.wait(DEADLINE)
    taker = HeldStore(arena.store)
    with ThreadPoolExecutor(1) as thread:
        taking = thread.submit(lambda: take_database(new_host(taker, "host 3", SystemClock())))
        new = taking.result(DEADLINE)
    arena.one.store.let_go()
    assert isinstance(getattr(before(), "error", None), SystemClosed)
    assert ids(arena.store, "a") == []
    new.release()
    assert record(arena.store, "a").owner == "host 3"
    [separate] = taker.separated
    assert (separate.runs, arena.one.store.runs) == (1 + 1, 1)  # taken and released; nothing had to run again
    arena.close()


@pytest.mark.parametrize("name", [Signal.KILL, Signal.INT, Signal.STOP, Signal.CONT])
def test_a_signal_that_waits_behind_the_opening_of_a_turn_hits_that_turn(arena: Arena, name: Signal) -> None:
    arena.add(("a", "root"))
    arena.start()
    signal = SendSignal("a", name, 5, host=OTHER)
    done = meet(arena.one, append("a", 1, turn=1), arena.other, signal, arena.waits)
    assert all(isinstance(verdict, Committed) for verdict in done)
    [hit] = arena.store.read(lambda tx: sql(tx, "SELECT turn FROM signals WHERE agent_uuid = 'a'"))
    assert hit == (1,)
    [interrupted] = arena.store.read(lambda tx: sql(tx, "SELECT interrupted FROM agents WHERE uuid = 'a'"))
    assert interrupted == (int(name is Signal.INT),)


def test_who_dies_before_it_leaves_a_group_is_no_member_any_more(arena: Arena) -> None:
    arena.add(("a", "root"))
    write_alone(arena.store, JoinGroup("a", "team", 1))
    arena.start()
    died, left = meet(arena.one, WriteDeath("a", HOST, "race", 5), arena.other, LeaveGroup("a", "team", 9), arena.waits)
    assert isinstance(died, Committed)
    assert left == Committed(False)
