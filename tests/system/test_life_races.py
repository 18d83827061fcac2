"""Deaths beside everything else: forks, deaths, adoptions, mail, replies.

Nobody escapes, nobody acts after its death, and whoever asked learns who won.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    BadInput,
    FunctionProvider,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    TurnInterrupted,
    tool,
)
from ikigai_actors.records.agents.registry import every
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.fsck.check import climb
from ikigai_actors.records.lives.signals import SendSignal
from ikigai_actors.records.lives.supervision import AdoptChild
from ikigai_actors.records.mail.mail import Send
from ikigai_actors.store.journal import CommitResult, Committed
from ikigai_actors.testing import simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import cheaper
from tests.kit.races import meet
from tests.kit.trees import append, ids, record
from tests.records.test_races import ROUNDS, Arena, arena  # noqa: F401  # a fixture
from tests.system.test_cascades import Kill, by_another_connection, by_handle


def refusal(verdict: CommitResult) -> type[Exception] | None:
    """The type of a unit's refusal, or None when it was committed."""
    return None if isinstance(verdict, Committed) else type(verdict.error)


@pytest.mark.slow("takes half a second")
def test_of_two_crossed_adoptions_one_is_refused(arena: Arena) -> None:  # noqa: F811
    for number in range(ROUNDS):
        arena.add((f"a {number}", "root"), (f"b {number}", "root"))
    arena.start()
    for number in range(ROUNDS):
        a, b = f"a {number}", f"b {number}"
        first, other = AdoptChild(a, b, 9), AdoptChild(b, a, 9)
        if number % 2:
            verdicts = meet(arena.one, first, arena.other, other, arena.waits)
        else:
            answers = (arena.one.submit(first), arena.other.submit(other))
            verdicts = [answer() for answer in answers]
        assert sorted(map(str, map(refusal, verdicts))) == sorted([str(None), str(BadInput)])
    assert climb({record.uuid: record.supervisor_uuid for record in arena.store.read(every)})[0] == []


@pytest.mark.thorough("a second race")
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


@cheaper("rounds", 10, ROUNDS, "thirty races; every run has ten")
def test_no_mail_and_no_message_comes_after_a_death(arena: Arena, rounds: int) -> None:  # noqa: F811
    arena.add(*[(f"agent {number}", "root") for number in range(rounds)])
    arena.start()
    outcomes = set()
    for number in range(rounds):
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


@pytest.mark.parametrize("others", [2, 3])
def test_no_request_and_no_tool_begins_after_a_kill_was_acknowledged(others: int) -> None:
    begun: list[str] = []

    @tool
    async def charge() -> None:
        begun.append("charge")

    def answer(request: Request) -> Reply:
        return Reply("", (ToolCall("charge", {}, "1"), ToolCall("charge", {}, "2")))

    for seed in range(3, 6):  # each of the planted faults shows in one of these
        with simulated(seed) as world:
            system = world.open(ScriptedProvider(answer), tools=[charge])
            top = system.root.fork()
            for agent in (top, *(top.fork() for _ in range(3))):
                agent.prompt("go")
            for _ in range(others):
                system.root.mark()
            top.kill(cascade=True)
            before = (len(world.requests), len(begun))
            world.settle()
            assert (len(world.requests), len(begun)) == before


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
        for future in both:
            future.result(DEADLINE)


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a database each")
@cheaper("rounds", 10, ROUNDS, "thirty races; every run has ten")
@pytest.mark.parametrize("kill", [by_handle, by_another_connection])
def test_of_a_kill_and_a_reply_one_wins_and_the_caller_learns_which(
    durable: str, kill: Callable[[str], AbstractContextManager[Kill]], rounds: int
) -> None:
    finish = Finish()
    with ActorSystem.open(durable, provider=FunctionProvider(finish, "finish")) as system, kill(durable) as end:
        for number in range(rounds):
            finish.asked.clear()
            finish.go.clear()
            child = system.root.fork()
            answer = child.prompt("go")
            assert finish.asked.wait(DEADLINE)
            race(finish.go.set, lambda child=child: end(child), swap=number % 2 == 0)  # type: ignore[misc]
            # From the store: the log in memory grows when the agent hears of its commit, which may be after the kill.
            said = [message.content for message in child.history(all=True) if message.kind == "assistant"]
            assert child.record.turn == 0
            try:
                assert [answer.get(timeout=DEADLINE).text] == said
            except AgentDead:
                assert said == []
            assert [message.content for message in child.history() if message.kind == "assistant"] == said
        assert fsck.check(system._store) == []


@cheaper("rounds", 10, ROUNDS, "thirty races; every run has ten")
def test_of_an_interrupt_and_a_reply_one_wins_and_both_callers_learn_which(database: str, rounds: int) -> None:
    finish = Finish()
    with ActorSystem.open(database, provider=FunctionProvider(finish, "finish")) as system:
        child = system.root.fork()
        for number in range(rounds):
            finish.asked.clear()
            finish.go.clear()
            answer = child.prompt(f"go {number}")
            assert finish.asked.wait(DEADLINE)
            interrupted: list[bool] = []
            race(finish.go.set, lambda ints=interrupted: ints.append(child.signal(Signal.INT)), swap=number % 2 == 0)  # type: ignore[misc]
            last = child.history()[-1]
            cut = "interrupted" in (last.kind, last.data.get("stop_reason"))  # a part that had come stays as a reply
            try:
                assert (answer.get(timeout=DEADLINE).text, interrupted, cut) == ("done", [False], False)
            except TurnInterrupted:
                assert (interrupted, cut) == ([True], True)
