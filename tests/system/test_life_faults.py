"""Deaths and restarts while something else goes wrong: an outage, the end of the process, rows that are damaged."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRef,
    FunctionProvider,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    StoreInUse,
)
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.mail.mail import latest
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.handles.ref import System
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually, python
from tests.kit.faults import Ending, FaultyStore, HeldStore
from tests.kit.open_on import open_on
from tests.kit.trees import HOST, change, plant, record
from tests.system.test_restarts import Worker


@pytest.mark.slow("takes half a second")
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
        assert not answer.done()
        store.unreadable = None
        assert answer.get(timeout=DEADLINE).text == "done"
        assert child.record.status == "running"
        rows = system._store.read(lambda tx: tx.run("restart_numbers"))
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
        held = system.root.aio.configure(system="anything")
        assert store.held.wait(DEADLINE)
        killed = a.aio.kill()
        leave.set()
        eventually(lambda: system.statistics().journal.queued == 2, "the restart behind the kill")
        store.let_go()
        held.get(timeout=DEADLINE)
        assert killed.get(timeout=DEADLINE) == [a]
        assert [answer.get(timeout=DEADLINE).text for answer in answers] == ["b is done", "c is done"]
        again.set()


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


@pytest.mark.slow("takes half a second")
def test_the_grace_of_a_term_runs_on_when_its_process_is_killed(durable: str) -> None:
    process = python(CUT_OFF, durable, 0.5)
    assert process.stdout is not None
    assert process.stdout.readline() == "sent\n"
    process.kill()
    process.communicate()
    eventually(lambda: free(durable), "the end of the lease")
    with ActorSystem.open(durable, provider=ScriptedProvider([]), resume=False) as system:
        child = system.agents()[1]
        eventually(lambda: system.handle(child.uuid).state == "dead", "the death")
        record = system.handle(child.uuid).record
        assert (record.exit_cause, record.exit_reason) == ("killed", "enough; its turn did not end in time")
        assert [mail.sender for mail in system.root.read_mail()] == [child.uuid]


def free(database: str) -> bool:
    """Whether the database may be opened."""
    try:
        ActorSystem.open(database, provider=ScriptedProvider([]), resume=False).close()
    except StoreInUse:
        return False
    return True


@pytest.mark.sample(1, "a host ends at each commit")
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
        assert fsck.check(system._store) == []
        assert system.agent("leaf").prompt("again").get(timeout=DEADLINE).text == "leaf is done"
        assert [system.agent(name).record.status for name in ("top", "leaf")] == ["running"] * 2


def test_an_agent_whose_supervisors_run_in_a_circle_can_be_buried_and_agent_0_hears_of_it(store: Store) -> None:
    plant(store, a="root", b="a")
    change(store, "a", "supervisor_uuid = 'b'")
    assert list(write_alone(store, WriteDeath("a", HOST, "damaged", 9)).dead) == ["a"]
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
        killed = child.aio.kill()
        with pytest.raises(AgentDead, match="killed"):
            answer.get(timeout=DEADLINE)
        assert killed.get(timeout=DEADLINE) == [child]
        store.before, store.unreadable = (lambda: None), None


@pytest.mark.sample(1, "errors")
@pytest.mark.slow("takes a second")
@pytest.mark.parametrize(
    ("error", "cause"), [(LookupError("planted"), "gave up"), (StoreUnavailable("down, as planned"), None)]
)
def test_a_restart_that_cannot_read_the_log_counts_unless_the_database_is_down(
    durable: str, error: Exception, cause: str | None
) -> None:
    store = FaultyStore(open_store(durable))

    def work(request: Request) -> str:
        if not store.refused:
            store.unreadable, store.unreadable_by = error, "ikigai-reader"
            raise LookupError("once")
        return "done"

    with open_on(store, work) as system:
        system.root.supervise(intensity=1)
        child = system.root.fork()
        answer = child.prompt("go")
        if cause is None:
            eventually(lambda: store.refused > 1, "a second attempt")
            store.unreadable = None
            assert answer.get(timeout=DEADLINE).text == "done"
        else:
            eventually(lambda: child.state == "dead", "the burial")
            with pytest.raises(AgentDead, match="gave up"):
                answer.get(timeout=DEADLINE)
            assert (child.record.exit_cause, store.refused) == (cause, 1)
            assert "its log could not be read" in str(child.record.exit_reason)
        assert system._store.read(lambda tx: tx.run("restart_numbers")) == [(child.uuid, 1, 1, 1)]


@pytest.mark.slow("takes a second")
def test_a_temporary_agent_that_cannot_be_started_is_buried_and_forgotten(durable: str) -> None:
    store, busy, leave = FaultyStore(open_store(durable)), threading.Event(), threading.Event()

    def work(request: Request) -> str:
        if request.name == "passing":
            busy.set()
            assert leave.wait(DEADLINE)
        elif not store.refused:
            store.unreadable, store.unreadable_by = LookupError("planted"), "ikigai-reader"
            raise LookupError("once")
        return "done"

    with open_on(store, work) as system:
        boss = system.root.fork()
        boss.supervise(intensity=0)
        passing, staying = boss.fork("go", name="passing", restart="temporary"), boss.fork()
        assert busy.wait(DEADLINE)
        answer = staying.prompt("go")
        eventually(lambda: passing.state == "dead", "the burial")
        leave.set()
        assert "its log could not be read" in str(passing.record.exit_reason)
        store.unreadable = None
        assert answer.get(timeout=DEADLINE).text == "done"
        eventually(lambda: not system._supervision._failures, "the end of all that was to be decided")


def test_a_deadline_further_away_than_any_clock_can_tell_keeps_nobody_from_being_restarted(durable: str) -> None:
    gate, worker = Gate(), Worker(child=1)
    with ActorSystem.open(durable, gate.provider) as system:
        busy, child = system.root.fork("go"), system.root.fork(name="child")
        gate.wait_until_asked()
        busy.signal(Signal.TERM, grace=1e9)
        change(system._store, busy.uuid, f"deadline = {10**18}")  # as of an earlier version, which took any grace
    gate.open()
    with worker.open(durable) as system:
        assert system.handle(busy.uuid).state == "terminating"
        assert system.handle(child.uuid).prompt("go").get(timeout=DEADLINE).text == "child is done"


class Looked(SystemClock):
    """A clock at which somebody looks: then something happens first, once."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] | None = None

    def now_ms(self) -> int:
        self._look()
        return super().now_ms()

    def monotonic(self) -> float:  # on a server the calendar counts by this one
        self._look()
        return super().monotonic()

    def _look(self) -> None:
        if threading.current_thread().name.startswith("ikigai-worker"):
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile is not None:
                meanwhile()


def test_who_is_prompted_just_as_it_crashes_answers_when_it_is_back(database: str) -> None:
    """Its next actor looks at the clock when it is made: it has not taken the place of the one that crashed yet."""
    clock = Looked()
    later: list[Future[Reply]] = []

    def work(request: Request) -> str:
        if not later:
            clock.meanwhile = lambda: later.append(child.prompt("two"))
            raise LookupError("once")
        return "done"

    parts = replace(SYSTEM_PLATFORM, clock=clock)
    with ActorSystem.open(database, provider=FunctionProvider(work, "code"), parts=parts) as system:
        child = system.root.fork()
        assert child.prompt("one").get(timeout=DEADLINE).text == "done"
        assert [prompt.get(timeout=DEADLINE).text for prompt in later] == ["done"]


class Slow:
    """A system to one that finds an actor, and is so slow that something happens before it is told, once."""

    def __init__(self, system: ActorSystem, meanwhile: Callable[[AgentActor], object]) -> None:
        self._system, self._meanwhile = system, [meanwhile]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    _tell = System._tell

    def _target(self, uuid: str) -> AgentActor:
        """Find the target of a command; what is to happen meanwhile happens before it is returned."""
        actor = self._system._actor(uuid)
        while self._meanwhile:
            self._meanwhile.pop()(actor)
        return actor


@pytest.mark.sample(1, "what comes")
@pytest.mark.parametrize("told_to", ["answer", "exit"])
def test_what_comes_too_late_for_an_actor_that_has_crashed_goes_to_the_next_one(database: str, told_to: str) -> None:
    begun, leave = threading.Event(), threading.Event()

    def work(request: Request) -> str:
        if not begun.is_set():
            begun.set()
            assert leave.wait(DEADLINE)
            raise LookupError("once")
        return "done"

    def crash(actor: AgentActor) -> None:
        leave.set()
        eventually(lambda: actor.actor_inbox.closed, "the crash")

    with ActorSystem.open(database, provider=FunctionProvider(work, "code")) as system:
        child = system.root.fork()
        first = child.prompt("one")
        assert begun.wait(DEADLINE)
        late = AgentRef(cast("System", Slow(system, crash)), child.uuid).aio
        if told_to == "answer":
            assert late.prompt("two").get(timeout=DEADLINE).text == "done"
        else:
            late.exit("enough").get(timeout=DEADLINE)
            assert child.record.exit_reason == "enough"
        assert first.get(timeout=DEADLINE).text == "done"


def test_what_comes_too_late_for_an_actor_whose_agent_has_died_since_is_answered_so(database: str) -> None:
    worker = Worker(child=1)
    with worker.open(database) as system:
        child = system.root.fork(name="child")
        crashed, answer = system._actor(child.uuid), Future[bool]()
        assert child.prompt("go").get(timeout=DEADLINE).text == "child is done"
        child.kill()
        eventually(lambda: crashed.actor_inbox.closed, "the crash")
        crashed.actor_inbox.put_urgent(on.Interrupt(answer))
        with pytest.raises(AgentDead):
            answer.get(timeout=DEADLINE)
