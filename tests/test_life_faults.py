"""Deaths and restarts where something else happens at the same time: other processes, outages, ends of the process."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    FunctionProvider,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    StoreInUse,
    fsck,
    tool,
)
from ikigai_actors.deaths import Bury
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.mailbox import latest
from ikigai_actors.parts import MACHINE
from ikigai_actors.restarts import GiveUp
from ikigai_actors.shell import client
from ikigai_actors.store import Store, open_store
from ikigai_actors.units import write_alone
from supervisors.signals import Status
from tests.calling import calling
from tests.databases import eventually, python
from tests.faults import Ending, FaultyStore, HeldStore
from tests.gate import DEADLINE, Gate
from tests.test_restarts import Worker
from tests.trees import HOST, change, plant, record


def kill_elsewhere(database: str, agent: str, *, cascade: bool = False, reason: str = "") -> None:
    """Kill an agent as another process does."""
    client.signal(database, agent, Signal.KILL, cascade=cascade, reason=reason, grace=30)


def test_the_reason_of_a_term_from_elsewhere_is_the_reason_of_the_death(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.root.fork("work", name="child")
        gate.wait_until_asked()
        client.signal(durable, "child", Signal.TERM, cascade=False, reason="enough", grace=3600)
        eventually(lambda: system.actor(child.uuid).state.status is Status.TERMINATING, "the signal")
        gate.open()
        eventually(lambda: child.state == "dead", "the death")
        assert (child.record.exit_cause, child.record.exit_reason) == ("terminated", "enough")


def test_who_dies_with_an_agent_that_was_killed_elsewhere_does_no_more(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        top = system.root.fork(name="top", on_orphan="cascade")
        kid = top.fork("work")
        gate.wait_until_asked()
        waiting = kid.ask.reply()
        kill_elsewhere(durable, "top")
        with pytest.raises(AgentDead, match="orphaned"):
            waiting.get(timeout=DEADLINE)


def test_who_is_paused_by_a_death_elsewhere_pauses(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        top = system.root.fork(name="top", on_orphan="stop")
        kid = top.fork("work")
        gate.wait_until_asked()
        kill_elsewhere(durable, "top")
        eventually(lambda: system.actor(kid.uuid).state.status is Status.STOPPED, "the pause")
        later = kid.prompt("more")
        gate.open()
        assert kid.reply(timeout=DEADLINE).text == "done"
        assert not later.done
        kid.signal(Signal.CONT)
        assert later.get(timeout=DEADLINE).text == "done"


def test_a_term_from_elsewhere_reaches_those_whom_it_leaves_behind(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        top = system.root.fork(name="top")
        kid = top.fork(name="kid")
        top.signal(Signal.STOP)
        client.signal(durable, "top", Signal.TERM, cascade=True, reason="", grace=3600)
        eventually(lambda: kid.state == "dead", "the death")
        assert (top.record.exit_cause, kid.record.exit_cause) == ("terminated", "terminated")


def test_an_orphan_that_fails_too_often_is_buried_alone(database: str) -> None:
    worker = Worker()
    with worker.open(database) as system:
        top = system.root.fork(on_orphan="continue")
        top.supervise(intensity=0)
        kid, other = top.fork(name="kid"), top.fork(name="other")
        top.kill()
        worker.failures["kid"] = 1
        with pytest.raises(AgentDead, match="gave up"):
            kid.prompt("go").get(timeout=DEADLINE)
        assert other.prompt("go").get(timeout=DEADLINE).text == "other is done"


def test_the_crash_that_a_supervisor_gives_up_on_counts_for_the_turn(database: str) -> None:
    worker = Worker(kid=3)
    with worker.open(database) as system:
        top = system.root.fork()
        top.supervise(intensity=1)
        kid = top.fork(name="kid")
        with pytest.raises(ProviderError, match="crashed its agent 2 times"):
            kid.prompt("go").get(timeout=DEADLINE)
        assert worker.failures["kid"] == 1
        eventually(lambda: kid.record.status == top.record.status == "running", "the restart")


def test_all_below_come_back_when_several_supervisors_give_up_in_a_row(database: str) -> None:
    worker = Worker(leaf=1)
    with worker.open(database) as system:
        top = system.root.fork(name="top")
        middle = top.fork(name="middle")
        leaf = middle.fork(name="leaf")
        for agent in (top, middle):
            agent.supervise(intensity=0)
        assert leaf.prompt("go").get(timeout=DEADLINE).text == "leaf is done"
        assert [agent.record.status for agent in (top, middle, leaf)] == ["running"] * 3


def test_a_process_that_ended_while_a_supervisor_gave_up_leaves_nobody_stopped(durable: str) -> None:
    worker = Worker()
    with worker.open(durable) as system:
        top = system.root.fork(name="top")
        _, _, three = (top.fork(name=name) for name in ("one", "two", "three"))
        three.signal(Signal.STOP)
    store = open_store(durable)
    write_alone(store, GiveUp(top.uuid))
    store.close()
    with worker.open(durable) as system:
        assert system.agent("one").prompt("go").get(timeout=DEADLINE).text == "one is done"
        assert [system.agent(name).record.status for name in ("one", "two", "three")] == [*["running"] * 2, "stopped"]


def test_the_children_of_a_supervisor_that_was_buried_when_it_gave_up_wait_for_a_person(database: str) -> None:
    worker = Worker(kid=1)
    with worker.open(database) as system:
        boss = system.root.fork(name="boss", restart="temporary")
        boss.supervise(intensity=0)
        kid = boss.fork(name="kid")
        waiting = kid.prompt("go")
        eventually(lambda: boss.state == "dead", "the burial")
        assert (kid.state, kid.record.exit_reason, kid.supervisor) == ("stopped", None, system.root)
        worker.failures["root"] = 1
        system.root.prompt("go").get(timeout=DEADLINE)
        assert kid.state == "stopped"
        kid.signal(Signal.CONT)
        assert waiting.get(timeout=DEADLINE).text == "kid is done"


def test_an_end_without_a_result_leaves_a_sound_database(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider([])) as system:
        child = system.root.fork()
        child.exit()
        assert fsck.check(system.store) == []


def open_on(store: Store, code: Callable[[Request], str]) -> ActorSystem:
    """A system on a store that a test may break or hold."""
    return ActorSystem.open(provider=FunctionProvider(code, "code"), parts=replace(MACHINE, open_store=lambda _: store))


def test_an_agent_that_crashes_while_the_store_is_down_is_restarted_when_it_is_back(durable: str) -> None:
    failing, leave = threading.Event(), threading.Event()

    def work(request: Request) -> str:
        if not failing.is_set():
            failing.set()
            assert leave.wait(DEADLINE)
            raise LookupError("once")
        return "done"

    store = FaultyStore(open_store(durable))
    with open_on(store, work) as system:
        child = system.root.fork()
        answer = child.prompt("go")
        assert failing.wait(DEADLINE)
        store.unreadable = StoreUnavailable("down, as planned")
        store.fails(*[StoreUnavailable("down, as planned")] * 3)
        reads = store.refused
        leave.set()
        eventually(lambda: store.refused > reads + 2, "several attempts to decide")
        assert not answer.done
        store.unreadable = None
        assert answer.get(timeout=DEADLINE).text == "done"
        assert child.record.status == "running"
        rows = system.store.read(lambda tx: tx.run("restart_numbers"))
        assert rows == [(child.uuid, 1, 1, 1)]


def test_who_is_killed_while_a_sibling_is_restarted_holds_nobody_up(durable: str) -> None:
    begun, leave, again = threading.Semaphore(0), threading.Event(), threading.Event()
    runs = Counter[str]()

    def work(request: Request) -> str:
        name = str(request.name)
        runs[name] += 1
        begun.release()
        if (name, runs[name]) == ("b", 1):
            assert leave.wait(DEADLINE)
            raise LookupError("b stumbles")
        if runs[name] == 1:
            assert again.wait(DEADLINE)
        return f"{name} is done"

    store = HeldStore(open_store(durable))
    with open_on(store, work) as system:
        boss = system.root.fork()
        boss.supervise(strategy="one_for_all")
        a, b, c = (boss.fork(name=name) for name in "abc")
        answers = [agent.prompt("go") for agent in (b, c)]
        for _ in answers:
            assert begun.acquire(timeout=DEADLINE)
        store.hold()  # so that the kill comes before the restart, and after the decision
        held = system.root.ask.configure(system="anything")
        assert store.held.wait(DEADLINE)
        killed = a.ask.kill()
        leave.set()
        eventually(lambda: system.statistics().journal.queued == 2, "the restart behind the kill")
        store.let_go()
        held.get(timeout=DEADLINE)
        assert killed.get(timeout=DEADLINE) == [a]
        assert [answer.get(timeout=DEADLINE).text for answer in answers] == ["b is done", "c is done"]
        again.set()


def test_a_storm_of_restarts_asks_no_more_than_the_intensity_allows(database: str) -> None:
    worker = Worker(**dict.fromkeys("abcdef", 1000))
    asked = Counter[str]()

    def count(request: Request) -> str:
        asked["all"] += 1
        return worker(request)

    with ActorSystem.open(database, provider=FunctionProvider(count, "code")) as system:
        boss = system.root.fork(name="boss")
        kids = [boss.fork(name=name) for name in "abcdef"]
        answers = [kid.prompt("go") for kid in kids]
        for answer in answers:
            with pytest.raises((AgentDead, ProviderError)):
                answer.get(timeout=DEADLINE)
        # Two crashes close each turn. Every fourth crash lets the boss give up, which cuts all six; the third time he
        # is restarted for that is the last that agent 0 allows.
        assert asked["all"] <= 6 * 2 + 3 * 6
        assert boss.record.status == "running"


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_a_code_driven_agent_with_tools_goes_on_with_its_calls_after_a_crash(database: str) -> None:
    crashes = Counter[str]()

    def work(request: Request) -> Reply | str:
        given = [block for block in request.messages[-1]["content"] if block["type"] == "tool_result"]
        if not given:
            return calling(("double", {"number": 21}))
        crashes["now"] += 1
        if crashes["now"] == 1:
            raise LookupError("with the result in hand")
        return f"it is {given[0]['content']}"

    with ActorSystem.open(database, provider=FunctionProvider(work, "code"), tools=[double]) as system:
        child = system.root.fork()
        assert child.prompt("go").get(timeout=DEADLINE).text == "it is 42"
        kinds = [message.kind for message in child.history()]
        assert kinds == ["fork", "user", "assistant", "tool_call", "tool_result", "assistant"]


CUT_OFF = """
    import os, sys, threading
    from ikigai_actors import ActorSystem, FunctionProvider, Signal

    asked = threading.Event()

    def hang(request):
        asked.set()
        threading.Event().wait()

    system = ActorSystem.open(sys.argv[1], provider=FunctionProvider(hang, "hang"), lease=1.0)
    child = system.root.fork("go", name="child")
    assert asked.wait(20)
    child.signal(Signal.TERM, reason="enough", grace=float(sys.argv[2]))
    print("sent", flush=True)
    threading.Event().wait()
"""


def test_the_grace_of_a_term_runs_on_when_its_process_is_killed(durable: str) -> None:
    process = python(CUT_OFF, durable, 0.5)
    assert process.stdout is not None
    assert process.stdout.readline() == "sent\n"
    process.kill()
    process.communicate()
    eventually(lambda: free(durable), "the end of the lease")
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        child = system.agents()[1]
        eventually(lambda: system.handle(child.uuid).state == "dead", "the death")
        record = system.handle(child.uuid).record
        assert (record.exit_cause, record.exit_reason) == ("killed", "enough; its turn did not end in time")
        assert [mail.sender for mail in system.root.read_mail()] == [child.uuid]


def free(database: str) -> bool:
    """Whether the database may be opened."""
    try:
        ActorSystem.open(database, provider=ScriptedProvider([])).close()
    except StoreInUse:
        return False
    return True


@pytest.mark.parametrize("commit", range(6))
def test_a_process_that_ends_at_any_commit_of_a_restart_leaves_all_as_it_must_be(durable: str, commit: int) -> None:
    """The leaf fails once, and its supervisor gives up at once; then no commit comes any more."""
    worker, store = Worker(leaf=1), Ending(open_store(durable))
    system = open_on(store, worker)
    top = system.root.fork(name="top")
    leaf = top.fork(name="leaf")
    top.supervise(intensity=0)
    store.left = commit
    leaf.prompt("go")
    eventually(lambda: store.left < 0 or worker.answered["leaf"], "the end")
    system.close()
    with worker.open(durable) as system:
        assert fsck.check(system.store) == []
        assert system.agent("leaf").prompt("again").get(timeout=DEADLINE).text == "leaf is done"
        assert [system.agent(name).record.status for name in ("top", "leaf")] == ["running"] * 2


def test_an_agent_whose_supervisors_run_in_a_circle_can_be_buried_and_agent_0_hears_of_it(store: Store) -> None:
    plant(store, a="root", b="a")
    change(store, "a", "supervisor_uuid = 'b'")
    assert list(write_alone(store, Bury("a", HOST, "damaged", 9)).dead) == ["a"]
    [mail] = store.read(lambda tx: latest(tx, "root"))
    assert (mail.kind, mail.sender) == ("exit", "a")
    assert record(store, "b").supervisor_uuid == "root"


def test_an_agent_is_killed_while_its_restart_waits_for_the_store(durable: str) -> None:
    store = FaultyStore(open_store(durable))

    def work(request: Request) -> str:
        store.before = lambda: setattr(store, "unreadable", StoreUnavailable("down for reading, as planned"))
        raise LookupError("once")

    with open_on(store, work) as system:
        child = system.root.fork()
        answer = child.prompt("go")
        eventually(lambda: store.refused, "the log that could not be read")
        killed = child.ask.kill()
        with pytest.raises(AgentDead, match="killed"):
            answer.get(timeout=DEADLINE)
        assert killed.get(timeout=DEADLINE) == [child]
        store.before, store.unreadable = (lambda: None), None
