"""Deaths beside everything else: forks, deaths, adoptions, mail, replies.

Nobody escapes, nobody acts after its death, and whoever asked learns who won.
"""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    BadInput,
    FunctionProvider,
    Reply,
    Request,
    Signal,
    TurnInterrupted,
    fsck,
)
from ikigai_actors.fsck import climb
from ikigai_actors.journal import Committed, Verdict
from ikigai_actors.mailbox import Send
from ikigai_actors.registry import every
from ikigai_actors.restarts import AdoptChild
from ikigai_actors.shell import client
from ikigai_actors.signalling import SendSignal
from tests.calling import calling
from tests.databases import eventually, printed, python
from tests.gate import DEADLINE
from tests.races import meet
from tests.test_races import ROUNDS, Arena, arena  # noqa: F401  # a fixture
from tests.trees import append, fork, ids, record

STORMS = 5
"""Cascades into a tree that grows."""

KILL_ELSEWHERE = """
    import sys
    from ikigai_actors import Signal
    from ikigai_actors.shell import client
    print(client.signal(*sys.argv[1:], Signal.KILL, cascade=True, reason="", grace=1))
"""


def multiply(request: Request) -> Reply:
    """Every agent forks two children at each step, which do the same."""
    return calling(*[("fork", {"prompt": "go"})] * 2)


def by_handle(database: str, top: AgentRef) -> None:
    top.kill(cascade=True)


def by_another_connection(database: str, top: AgentRef) -> None:
    client.signal(database, top.uuid, Signal.KILL, cascade=True, reason="", grace=1)


def by_another_process(database: str, top: AgentRef) -> None:
    assert "dead" in printed(python(KILL_ELSEWHERE, database, top.uuid))


@pytest.mark.parametrize("kill", [by_handle, by_another_connection, by_another_process])
def test_no_descendant_escapes_a_cascade_while_all_of_them_fork(
    durable: str, kill: Callable[[str, AgentRef], None]
) -> None:
    with ActorSystem.open(durable, provider=FunctionProvider(multiply, "brood")) as system:
        for number in range(STORMS):
            top = system.root.fork("go")
            eventually(lambda most=20 + 10 * number: len(system.agents("running")) > most, "the brood")  # type: ignore[misc]
            kill(durable, top)
            left = system.store.read(lambda tx: (every(tx), tx.run("counts")))
            assert [agent.uuid for agent in left[0] if agent.living] == [system.root.uuid]
            eventually(lambda: (one := system.statistics()).agents == 1 and one.working == 0, "the end of all actors")
            assert system.store.read(lambda tx: (every(tx), tx.run("counts"))) == left
        dead = {agent.uuid for agent in system.agents("dead")}
        reported = Counter(mail.sender for mail in system.root.read_mail())
        assert reported == Counter(dead)
        assert system.root.fork(name="later").record.living  # nobody holds a lock
        assert fsck.check(system.store) == []


def refusal(verdict: Verdict) -> type[Exception] | None:
    """The type of a unit's refusal, or None when it was committed."""
    return None if isinstance(verdict, Committed) else type(verdict.error)


def test_no_child_escapes_a_cascade_from_another_writer(arena: Arena) -> None:  # noqa: F811
    trees = [(f"top {number}", f"middle {number}", f"leaf {number}") for number in range(ROUNDS)]
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
        assert {one.uuid for one in arena.store.read(every) if one.uuid.endswith(f" {number}")} == family
        assert all(record(arena.store, uuid).status == "dead" for uuid in family)
    assert outcomes == {True, False}
    assert arena.one.store.runs == arena.one.journal.statistics().batches  # nothing had to run again: no deadlock
    assert arena.other.store.runs == arena.other.journal.statistics().batches


def test_of_two_crossed_adoptions_one_is_refused(arena: Arena) -> None:  # noqa: F811
    for number in range(ROUNDS):
        arena.add((f"a {number}", "root"), (f"b {number}", "root"))
    arena.start()
    for number in range(ROUNDS):
        a, b = f"a {number}", f"b {number}"
        one, other = AdoptChild(a, by=b), AdoptChild(b, by=a)
        if number % 2:
            verdicts = meet(arena.one, one, arena.other, other, arena.waits)
        else:
            answers = (arena.one.submit(one), arena.other.submit(other))
            verdicts = [answer() for answer in answers]
        assert sorted(map(str, map(refusal, verdicts))) == sorted([str(None), str(BadInput)])
    assert climb({one.uuid: one.supervisor_uuid for one in arena.store.read(every)})[0] == []


@pytest.mark.parametrize("spread", [False, True])
def test_a_kill_beside_a_kill_of_the_supervisor(arena: Arena, spread: bool) -> None:  # noqa: F811
    trees = [(f"top {number}", f"middle {number}", f"leaf {number}") for number in range(ROUNDS)]
    for top, middle, leaf in trees:
        arena.add((top, "root"), (middle, top), (leaf, middle))
    arena.start()
    for number, (top, middle, leaf) in enumerate(trees):
        upper, lower = SendSignal(top, Signal.KILL, 9, spread=spread), SendSignal(middle, Signal.KILL, 9)
        if number % 3 == 0:
            verdicts = meet(arena.one, upper, arena.other, lower, arena.waits)
        elif number % 3 == 1:
            verdicts = meet(arena.other, lower, arena.one, upper, arena.waits)[::-1]
        else:
            answers = (arena.one.submit(upper), arena.other.submit(lower))
            verdicts = [answer() for answer in answers]
        assert refusal(verdicts[0]) is None
        assert refusal(verdicts[1]) in ((None, AgentDead) if spread else (None,))
        deaths = [uuid for verdict in verdicts if isinstance(verdict, Committed) for uuid in verdict.value.dead]
        assert len(deaths) == len(set(deaths))
        assert {top, middle} <= set(deaths)
        assert (record(arena.store, leaf).supervisor_uuid == "root") or leaf in deaths
        arena.check()


def test_no_mail_and_no_message_comes_after_a_death(arena: Arena) -> None:  # noqa: F811
    arena.add(*[(f"agent {number}", "root") for number in range(ROUNDS)])
    arena.start()
    outcomes = set()
    for number in range(ROUNDS):
        victim = f"agent {number}"
        kill = SendSignal(victim, Signal.KILL, 9)
        answers = [arena.one.submit(append(victim, 1)), arena.one.submit(Send(victim, "root", "before?", 9))]
        dying = arena.other.submit(kill)
        answers += [arena.one.submit(Send(victim, "root", "after?", 9)) for _ in range(5)]
        assert isinstance(dying(), Committed)
        head, mailed = ids(arena.store, victim), record(arena.store, victim).mailed
        answers += [arena.one.submit(append(victim, len(head) + 1)), arena.one.submit(Send(victim, "root", "late", 9))]
        verdicts = [isinstance(answer(), Committed) for answer in answers]
        assert verdicts == sorted(verdicts, reverse=True)  # up to the death everything, and then nothing
        assert verdicts[-2:] == [False, False]
        assert (ids(arena.store, victim), record(arena.store, victim).mailed) == (head, mailed)
        outcomes.add(mailed)
    assert arena.one.store.runs == arena.one.journal.statistics().batches


class Finish:
    """A provider whose answers all come at the moment that the test says."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> str:
        self.asked.set()
        assert self.go.wait(DEADLINE)
        return "done"


def race(first: Callable[[], object], second: Callable[[], object], swap: bool) -> None:
    """Do two things at once, as near as it goes."""
    barrier = threading.Barrier(2)

    def run(what: Callable[[], object]) -> None:
        barrier.wait(DEADLINE)
        what()

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(run, what) for what in ((second, first) if swap else (first, second))]
        for one in both:
            one.result(DEADLINE)


@pytest.mark.parametrize("kill", [by_handle, by_another_connection])
def test_of_a_kill_and_a_reply_one_wins_and_the_caller_learns_which(
    durable: str, kill: Callable[[str, AgentRef], None]
) -> None:
    finish = Finish()
    with ActorSystem.open(durable, provider=FunctionProvider(finish, "finish")) as system:
        for number in range(ROUNDS):
            finish.asked.clear()
            finish.go.clear()
            child = system.root.fork()
            answer = child.prompt("go")
            assert finish.asked.wait(DEADLINE)
            race(finish.go.set, lambda child=child: kill(durable, child), swap=number % 2 == 0)  # type: ignore[misc]
            said = [message.content for message in child.history() if message.kind == "assistant"]
            assert child.record.turn == 0
            try:
                assert [answer.get(timeout=DEADLINE).text] == said
            except AgentDead:
                assert said == []
        assert fsck.check(system.store) == []


def test_of_an_interrupt_and_a_reply_one_wins_and_both_callers_learn_which(database: str) -> None:
    finish = Finish()
    with ActorSystem.open(database, provider=FunctionProvider(finish, "finish")) as system:
        child = system.root.fork()
        for number in range(ROUNDS):
            finish.asked.clear()
            finish.go.clear()
            answer = child.prompt(f"go {number}")
            assert finish.asked.wait(DEADLINE)
            interrupted: list[bool] = []
            race(finish.go.set, lambda told=interrupted: told.append(child.signal(Signal.INT)), swap=number % 2 == 0)  # type: ignore[misc]
            last = child.history()[-1]
            cut = "interrupted" in (last.kind, last.data.get("stop_reason"))  # a part that had come stays as a reply
            try:
                assert (answer.get(timeout=DEADLINE).text, interrupted, cut) == ("done", [False], False)
            except TurnInterrupted:
                assert (interrupted, cut) == ([True], True)
