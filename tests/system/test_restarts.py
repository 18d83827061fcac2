"""Agents that crash: who is restarted, how often, who goes with it, and what becomes of the turn."""

import threading
from collections import Counter

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    FunctionProvider,
    ProviderError,
    Reply,
    Request,
    Signal,
    tool,
)
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.open_on import Withholding, open_on
from tests.kit.tool_scripts import calling


class Worker:
    """Code-driven agents that fail as often as they are told to."""

    def __init__(self, **failures: int) -> None:
        self.failures = Counter(failures)
        self.answered: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> str:
        name = request.name or "root"
        with self._lock:
            if self.failures[name] > 0:
                self.failures[name] -= 1
                raise LookupError(f"{name} stumbles")
            self.answered[name] += 1
        return f"{name} is done"

    def open(self, database: str) -> ActorSystem:
        """A system whose agents run this code."""
        return ActorSystem.open(database, provider=FunctionProvider(self, "code"))


def errors(agent: AgentRef) -> list[str]:
    """The errors in an agent's own log."""
    return [message.content for message in agent.history() if message.kind == Kind.ERROR]


def test_a_crash_is_healed_by_a_restart_and_whoever_waited_gets_the_answer(database: str) -> None:
    worker = Worker(child=1)
    with worker.open(database) as system:
        child = system.root.fork(name="child")
        assert child.prompt("go").get(timeout=DEADLINE).text == "child is done"
        assert [message.kind for message in child.history()] == ["fork", "user", "assistant"]
        assert child.record.status == "running"
        assert child.reply(timeout=DEADLINE).text == "child is done"


@pytest.mark.thorough("restarts that count over a restart, as those of an intensity below")
def test_the_statistics_of_an_agent_count_its_restarts_over_its_life(durable: str) -> None:
    worker = Worker(child=1)
    with worker.open(durable) as system:
        child = system.root.fork(name="child")
        assert child.statistics().restarts == 0
        child.prompt("go").get(timeout=DEADLINE)
        assert child.statistics().restarts == 1
        with AttachedSystem.open(durable) as attached:
            assert attached.agent("child").statistics().restarts == 1
    worker.failures["child"] = 1
    with worker.open(durable) as system:
        child = system.agent("child")
        child.prompt("go on").get(timeout=DEADLINE)
        assert child.statistics().restarts == 2
        assert system.root.statistics().restarts == 0


@pytest.mark.sample(2, "two of the types come back")
@pytest.mark.parametrize(
    ("restart", "status"), [("temporary", "dead"), ("transient", "running"), ("permanent", "running")]
)
def test_the_restart_type_says_who_comes_back_from_a_crash(database: str, restart: str, status: str) -> None:
    worker = Worker(child=1)
    with worker.open(database) as system:
        child = system.root.fork("go", name="child", restart=restart)
        if status == "dead":
            eventually(lambda: child.state == "dead", "the death")
            assert (child.record.exit_cause, child.record.exit_reason) == ("crashed", "LookupError: child stumbles")
            assert [mail.body for mail in system.root.read_mail()] == ["crashed: LookupError: child stumbles"]
        else:
            eventually(lambda: worker.answered["child"] == 1, "the answer")
        assert child.record.status == status


def test_a_permanent_agent_that_exits_is_restarted_with_its_turn_closed(database: str) -> None:
    with Worker().open(database) as system:
        child = system.root.fork(name="child", restart="permanent")
        child.exit("done for today")
        assert child.prompt("go").get(timeout=DEADLINE).text == "child is done"
        assert child.record.status == "running"


def past_the_intensity(worker: Worker, system: ActorSystem, child: AgentRef, times: int) -> None:
    """Crash a child so often, each time on a prompt of its own."""
    for _ in range(times):
        worker.failures[str(child.name)] = 1
        try:
            child.prompt("go").get(timeout=DEADLINE)
        except AgentDead:
            return


def test_at_agent_0_only_the_child_that_fails_too_often_is_buried(database: str) -> None:
    worker = Worker()
    with worker.open(database) as system:
        child, other = system.root.fork(name="child"), system.root.fork(name="other")
        past_the_intensity(worker, system, child, 4)
        eventually(lambda: child.state == "dead", "the burial")
        assert child.record.exit_cause == "gave up"
        assert other.prompt("go").get(timeout=DEADLINE).text == "other is done"


def test_past_its_intensity_a_supervisor_gives_up_and_comes_back_with_its_children(durable: str) -> None:
    worker = Worker()
    with worker.open(durable) as system:
        boss = system.root.fork(name="boss")
        boss.supervise(intensity=1)
        child, sibling = boss.fork(name="child"), boss.fork(name="sibling")
        past_the_intensity(worker, system, child, 1)
        worker.failures["child"] = 1
        assert child.prompt("go").get(timeout=DEADLINE).text == "child is done"
        assert [agent.record.status for agent in (boss, child, sibling)] == ["running"] * 3
        root = system.root.uuid
        rows = system._store.read(lambda tx: tx.run("restarts_of", supervisor=root, since=0))
        assert len(rows) == 1
        assert sibling.prompt("go").get(timeout=DEADLINE).text == "sibling is done"


def test_a_supervisor_counts_restarts_after_its_own_though_the_clock_was_set_back_in_between() -> None:
    with simulated() as world:
        system = world.open(FunctionProvider(Worker(boss=1, child=2), "code"))
        boss = system.root.fork(name="boss")
        boss.supervise(intensity=1)
        child = boss.fork(name="child")
        boss.prompt("go").get()
        world.clock.jump(-3600)
        with pytest.raises(ProviderError, match="crashed its agent 2 times"):
            child.prompt("go").get()
        assert boss.statistics().restarts == 2  # the boss gave up the second time


@pytest.mark.parametrize(("strategy", "cut"), [("one_for_one", ""), ("rest_for_one", "c"), ("one_for_all", "a c")])
def test_the_strategy_says_which_siblings_are_cut_and_resumed(database: str, strategy: str, cut: str) -> None:
    begun, leave = Counter[str](), threading.Event()
    all_begun = threading.Semaphore(0)

    def work(request: Request) -> str:
        name = str(request.name)
        begun[name] += 1
        all_begun.release()
        if name == "b":
            if begun["b"] == 1:
                raise LookupError("b stumbles")
            return "b is done"
        assert leave.wait(DEADLINE)
        return f"{name} is done"

    with ActorSystem.open(database, provider=FunctionProvider(work, "code")) as system:
        boss = system.root.fork(name="boss")
        boss.supervise(strategy=strategy)
        a, b, c = (boss.fork(name=name) for name in "abc")
        waiting = [agent.prompt("go") for agent in (a, c)]
        for _ in range(2):
            assert all_begun.acquire(timeout=DEADLINE)
        assert b.prompt("go").get(timeout=DEADLINE).text == "b is done"
        eventually(lambda: all(begun[name] == 2 for name in cut.split()), "those that were cut begin again")
        leave.set()
        assert [reply.get(timeout=DEADLINE).text for reply in waiting] == ["a is done", "c is done"]
        assert {name for name in "ac" if begun[name] == 2} == set(cut.split())


def test_a_restart_leaves_the_agents_own_children_alone(database: str) -> None:
    worker = Worker()
    with worker.open(database) as system:
        boss = system.root.fork(name="boss")
        child = boss.fork(name="child")
        worker.failures["boss"] = 1
        assert boss.prompt("go").get(timeout=DEADLINE).text == "boss is done"
        assert (child.state, child.supervisor) == ("idle", boss)


def test_restarts_count_across_a_restart_of_the_process(durable: str) -> None:
    worker = Worker()
    with worker.open(durable) as system:
        child = system.root.fork(name="child")
        past_the_intensity(worker, system, child, 3)
        assert child.state == "idle"
    with worker.open(durable) as system:
        child = system.agent("child")
        past_the_intensity(worker, system, child, 1)
        eventually(lambda: child.state == "dead", "the burial")


def test_agent_0_is_restarted_and_its_poisonous_turn_closed(database: str) -> None:
    worker = Worker(root=2)
    with worker.open(database) as system:
        with pytest.raises(ProviderError, match="crashed its agent 2 times"):
            system.root.prompt("go").get(timeout=DEADLINE)
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "root is done"


def test_what_waited_for_the_end_of_the_turn_is_done_after_a_restart(database: str) -> None:
    begun, leave = threading.Event(), threading.Event()
    runs = Counter[str]()

    def work(request: Request) -> str:
        runs["all"] += 1
        if runs["all"] == 1:
            begun.set()
            assert leave.wait(DEADLINE)
            raise LookupError("once")
        return "done"

    with ActorSystem.open(database, provider=FunctionProvider(work, "code")) as system:
        child = system.root.fork(name="child")
        first = child.prompt("one")
        assert begun.wait(DEADLINE)
        mark, second = child.aio.mark("here"), child.prompt("two")
        leave.set()
        assert [future.get(timeout=DEADLINE).text for future in (first, second)] == ["done", "done"]
        assert isinstance(mark.get(timeout=DEADLINE), int)


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_a_code_driven_agent_with_tools_goes_on_with_its_calls_after_a_crash(database: str) -> None:
    crashes = Counter[str]()

    def work(request: Request) -> Reply | str:
        outcomes = [block for block in request.messages[-1]["content"] if block["type"] == "tool_result"]
        if not outcomes:
            return calling(("double", {"number": 21}))
        crashes["now"] += 1
        if crashes["now"] == 1:
            raise LookupError("with the result in hand")
        return f"it is {outcomes[0]['content']}"

    with ActorSystem.open(database, provider=FunctionProvider(work, "code"), tools=[double]) as system:
        child = system.root.fork()
        assert child.prompt("go").get(timeout=DEADLINE).text == "it is 42"
        kinds = [message.kind for message in child.history()]
        assert kinds == ["fork", "user", "assistant", "tool_call", "tool_result", "assistant"]


def test_a_crash_whose_report_is_overtaken_by_a_siblings_restart_counts_for_its_turn(durable: str) -> None:
    """a fails just as it is to be cut: it has its second attempt, and no third one."""
    runs, stumble, fail = Counter[str](), threading.Event(), threading.Event()

    def work(request: Request) -> str:
        name = str(request.name)
        runs[name] += 1
        if (name, runs[name]) == ("b", 1):
            assert stumble.wait(DEADLINE)
            raise LookupError("b stumbles")
        if name == "a":
            assert fail.wait(DEADLINE)
            raise LookupError("a fails")
        return "done"

    dispatcher = Withholding()
    with open_on(open_store(durable), work, lambda _: dispatcher) as system:
        boss = system.root.fork()
        boss.supervise(strategy="one_for_all")
        a, b = (boss.fork(name=name) for name in "ab")
        answers = [agent.prompt("go") for agent in (a, b)]
        eventually(lambda: runs["a"] and runs["b"] and not system._actor(a.uuid).actor_inbox.scheduled, "both at work")
        actor = system._actor(a.uuid)
        dispatcher.withhold(actor)
        stumble.set()
        eventually(lambda: len(actor.actor_inbox) == 1, "the cut")
        fail.set()
        eventually(lambda: len(actor.actor_inbox) == 2, "the report")
        dispatcher.let_go()
        with pytest.raises(ProviderError, match="crashed its agent 2 times"):
            answers[0].get(timeout=DEADLINE)
        assert (runs["a"], answers[1].get(timeout=DEADLINE).text) == (2, "done")


def test_who_waits_for_an_agent_that_crashes_just_as_it_is_killed_is_told_of_its_death(durable: str) -> None:
    started, fail = threading.Event(), threading.Event()

    def work(request: Request) -> str:
        started.set()
        assert fail.wait(DEADLINE)
        raise LookupError("it stumbles")

    dispatcher = Withholding()
    with open_on(open_store(durable), work, lambda _: dispatcher) as system:
        child = system.root.fork()
        answer = child.prompt("go")
        assert started.wait(DEADLINE)
        actor = system._actor(child.uuid)
        eventually(lambda: not actor.actor_inbox.scheduled, "the end of its slice")
        dispatcher.withhold(actor)
        fail.set()
        eventually(lambda: len(actor.actor_inbox) == 1, "the report")
        later = child.prompt("and then")
        child.signal(Signal.KILL)
        dispatcher.let_go()
        for asked in (answer, later):
            with pytest.raises(AgentDead, match="is dead"):
                asked.get(timeout=DEADLINE)
