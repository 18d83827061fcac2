"""Hosts that share the agents of a database: each runs a part, and nobody sees where an agent lives."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    AsyncAgentRef,
    FunctionProvider,
    Provider,
    Reply,
    Request,
    Signal,
    ToolCall,
    tool,
)
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Event, HostChanged, HostEnded
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import (
    HostElsewhere,
    NoHost,
    RootProtected,
    StoreConflict,
    StoreInUse,
    StoreUnusable,
    SystemClosed,
)
from ikigai_actors.hooks import HookedCall, hook
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store import open_store
from ikigai_actors.store.hosts.placement import FEW_TURNS
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import Gate
from tests.kit.databases import DEADLINE, Admin, eventually, sql
from tests.kit.races import somebody_waits

REAL_HOSTS = pytest.mark.thorough(
    "real hosts; tests/testing/test_simulated_hosts.py and the machine of hosts do the same"
)


class Fleet:
    """Hosts of one database, each with a provider that says whose it is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.hosts: dict[str, ActorSystem] = {}
        self._opened = ExitStack()

    def __getitem__(self, name: str) -> ActorSystem:
        return self.hosts[name]

    def start(self, name: str, provider: Provider | None = None, **options: Any) -> ActorSystem:
        """Open a host, which moves agents only when it is told to, unless these options say otherwise."""
        own = provider or FunctionProvider(lambda request: f"{name} answers", "code")
        system = ActorSystem.open(self.url, provider=own, join=True, name=name, **{"balance": None, **options})
        self.hosts[name] = system
        self._opened.callback(system.close)
        return system

    def kill(self, name: str) -> None:
        """Cut a host off from the server, as when its process is killed."""
        self.hosts[name]._store.abandon("killed, as planned")

    def runs(self, name: str, *agents: AgentRef) -> bool:
        """Whether a host runs all of these agents."""
        [host] = [each for each in self.hosts[name].hosts() if each.name == name and each.ended_at is None]
        return all(self.hosts[name].handle(agent.uuid).record.owner == host.id for agent in agents)

    def wait_until(self, name: str, *agents: AgentRef) -> None:
        """Wait until a host runs these agents, and acts for them."""

        def acts() -> bool:
            for agent in agents:
                try:
                    self.hosts[name]._actor(agent.uuid)
                except HostElsewhere:
                    return False
            return True

        eventually(acts, f"the agents at {name}")

    def close(self) -> None:
        """Close what is open."""
        self._opened.close()


@pytest.fixture
def fleet(new_postgres: NewDatabase) -> Iterator[Fleet]:
    fleet = Fleet(new_postgres())
    yield fleet
    fleet.close()


@pytest.fixture
def apart(fleet: Fleet) -> tuple[AgentRef, AgentRef]:
    """A child that a runs, by a's handle, and one that b runs, also by a's handle."""
    a = fleet.start("a")
    near, far = a.root.fork(name="near"), a.root.fork(name="far")
    fleet.start("b")
    shared(fleet)
    a.move(far, "b", timeout=DEADLINE)
    fleet.wait_until("b", far)
    return near, far


def shared(fleet: Fleet) -> None:
    """Wait until every host has shards."""
    some = next(iter(fleet.hosts.values()))
    eventually(lambda: all(host.shards > 0 for host in some.hosts() if host.ended_at is None), "shards for everybody")


@pytest.mark.thorough("waits for the balance of real hosts; tests/store/test_placement.py decides on it")
def test_a_host_whose_agents_have_all_to_do_gives_some_of_them_away(fleet: Fleet) -> None:
    gate = Gate()
    options: dict[str, Any] = {"balance": 0.8, "lease": 2}  # each knows the other's number anew before it gives again
    a = fleet.start("a", gate.provider, **options)
    agents = [a.root.fork(name=f"agent-{number}") for number in range(5 * FEW_TURNS)]
    b = fleet.start("b", **options)
    eventually(lambda: b.statistics().agents >= 18, "about as many agents at each")
    answers = [agent.prompt("work") for agent in agents if fleet.runs("a", agent)]
    eventually(lambda: sum(answer.done() for answer in answers) >= 4, "answers of b, which has nothing else to do")
    gate.open()
    assert {answer.get(timeout=DEADLINE).text for answer in answers} == {"done", "b answers"}


@pytest.mark.thorough("two hosts; every run has one that drains")
def test_of_two_hosts_that_ask_for_the_same_under_a_key_one_does_it_and_both_have_its_answer(
    fleet: Fleet, apart: tuple[AgentRef, AgentRef]
) -> None:
    near, far = apart

    def ask(agent: AgentRef, number: int) -> tuple[Any, ...]:
        kid = fleet["ab"[number % 2]].handle(agent.uuid)
        answer = kid.prompt("tea", key="k1").get(timeout=DEADLINE).text
        return answer, kid.fork("sail", key="k2").uuid, kid.send(near, "done", key="k3"), kid.name

    with ThreadPoolExecutor(8) as pool:
        answers = [set(pool.map(partial(ask, agent), range(8))) for agent in apart]
    assert [{(answer, name) for answer, *_, name in each} for each in answers] == [
        {("a answers", "near")},
        {("b answers", "far")},
    ]
    assert [len(each) for each in answers] == [1, 1]
    assert [len(agent.children()) for agent in apart] == [1, 1]
    assert len(near.mails(latest=9)) == 2
    fleet["b"].close()
    assert {ask(far, 0)} == answers[1]
    with closing(open_store(fleet.url)) as store:
        assert check(store) == []


@REAL_HOSTS
def test_statistics_of_an_agent_of_another_host_are_those_of_its_rows(
    fleet: Fleet, apart: tuple[AgentRef, AgentRef]
) -> None:
    far = apart[1]
    for text in ("one", "two"):
        far.prompt(text).get(timeout=DEADLINE)
    there, here = fleet["b"].handle(far.uuid).statistics(), far.statistics()
    assert (here.state, here.turns, here.steps, here.tokens) == ("idle", 2, 2, there.tokens)
    assert there.turns == 2
    assert (far.statistics().turns, fleet["a"]._statistics_of(far.uuid, far.record).turns) == (2, 2)


@REAL_HOSTS
def test_an_interrupt_ends_the_turn_of_an_agent_of_another_host(fleet: Fleet) -> None:
    gate = Gate()
    a = fleet.start("a")
    far = a.root.fork(name="far")
    fleet.start("b", gate.provider)
    shared(fleet)
    a.move(far, "b", timeout=DEADLINE)
    turn = far.prompt("think")
    eventually(lambda: far.record.turn, "the turn")
    assert far.signal(Signal.INT, timeout=DEADLINE)
    with pytest.raises(Exception, match="interrupted"):
        turn.get(timeout=DEADLINE)
    gate.open()


@REAL_HOSTS
def test_a_cascade_takes_agents_of_all_hosts(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    near, far = apart
    below = fleet["b"].agent("far").fork(name="below")
    near.adopt(far.uuid)
    assert {record.uuid for record in near.kill(cascade=True, timeout=DEADLINE)} == {near.uuid, far.uuid, below.uuid}
    eventually(lambda: fleet["b"].statistics().agents == 0, "the end of the actors of b")


@REAL_HOSTS
def test_mail_and_waits_go_between_hosts(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    near, far = apart
    there = fleet["b"]
    waiting = there.agent("far").aio.wait(timeout=DEADLINE)
    near.send(far, "news")
    assert {
        agent.uuid: outcome
        for agent, outcome in waiting.get(timeout=DEADLINE).items()
        if isinstance(agent, AsyncAgentRef)
    } == {near.uuid: "mail"}
    assert [mail.body for mail in there.agent("far").read_mail(sender="near")] == ["news"]
    assert list(near.wait([far], timeout=DEADLINE).values()) == ["idle"]


@REAL_HOSTS
def test_a_name_that_another_host_gives_is_known_everywhere(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    _, far = apart
    there = fleet["b"]._actor(far.uuid)
    far.rename("dba")
    eventually(lambda: there.origin.name == "dba", "the new name")


@pytest.mark.slow("drains a real host")
def test_what_was_asked_of_a_host_that_drains_is_answered_by_another(fleet: Fleet) -> None:
    gate = Gate()
    a = fleet.start("a", gate.provider, lease=2)
    kids = [a.root.fork(name=f"kid{number}") for number in range(5)]
    turns = [kid.prompt("hello") for kid in kids]
    waiting = [kid.prompt("hello again") for kid in kids]
    gate.wait_until_asked()
    b = fleet.start("b")
    a.drain(timeout=DEADLINE)
    assert {host.name: (host.state, host.shards) for host in b.hosts()} == {"a": ("drains", 0), "b": ("runs", 1024)}
    assert {turn.get(timeout=DEADLINE).text for turn in (*turns, *waiting)} == {"b answers"}
    for kid in kids:
        said = [message.content for message in kid.history() if message.kind == "user"]
        assert said == ["hello", "hello again"]
    gate.open()


@pytest.mark.thorough("waits for real leases")
def test_the_end_of_a_host_is_told_once_to_the_others_and_to_who_is_attached(
    fleet: Fleet, apart: tuple[AgentRef, AgentRef]
) -> None:
    heard: dict[str, list[Event]] = {"a": [], "c": [], "attached": []}
    fleet.start("c")
    with ActorSystem.attach(fleet.url) as attached:
        for name, system in (("a", fleet["a"]), ("c", fleet["c"]), ("attached", attached)):
            system.subscribe(heard[name].append)
        eventually(lambda: sorted(host.agents for host in attached._owners) == [0, 1, 2], "the counts")
        fleet.kill("b")
        gone = HostEnded("b", 1, ("a", "c"))
        eventually(lambda: all(gone in events for events in heard.values()), "the news")
        assert attached.agent("far").prompt("hello").get(timeout=DEADLINE).text in ("a answers", "c answers")
    for events in heard.values():
        assert [event for event in events if isinstance(event, HostEnded | HostChanged)] == [gone]


@REAL_HOSTS
def test_the_last_host_does_not_drain_and_goes_on(fleet: Fleet) -> None:
    a = fleet.start("a")
    with pytest.raises(NoHost, match="No other host"):
        a.drain(timeout=DEADLINE)
    assert a.root.prompt("hello").get(timeout=DEADLINE).text == "a answers"


@REAL_HOSTS
def test_a_drain_ends_when_nobody_is_left_who_takes_the_rest(fleet: Fleet, postgres_admin: Admin) -> None:
    a = fleet.start("a")
    b = fleet.start("b")
    eventually(lambda: {host.shards for host in a.hosts()} == {512}, "the same share for both")
    with psycopg.connect(fleet.url) as holding, ThreadPoolExecutor() as pool:
        holding.execute(
            "SELECT s.id FROM shards s JOIN hosts h ON h.id = s.host WHERE h.name = 'a' ORDER BY s.id OFFSET 1 LIMIT 1"
            " FOR UPDATE OF s"
        )
        drained = pool.submit(a.drain, DEADLINE)
        eventually(lambda: somebody_waits(postgres_admin), "a gift that is held up, with others behind it")
        b.close()
        holding.rollback()
        with pytest.raises(NoHost, match="No other host is left"):
            drained.result(DEADLINE)


@REAL_HOSTS
def test_agent_0_and_hosts_that_are_not_there_are_refused(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    near, far = apart
    with pytest.raises(RootProtected):
        fleet["a"].move(fleet["a"].root, "b", timeout=DEADLINE)
    with pytest.raises(NoHost, match="those that live: a, b"):
        fleet["a"].move(near, "c", timeout=DEADLINE)
    fleet["a"].drain(timeout=DEADLINE)
    with pytest.raises(NoHost, match="Host a gives its agents away"):
        far.move("a", timeout=DEADLINE)
    assert fleet["a"].root.prompt("hello").get(timeout=DEADLINE).text == "b answers"


@pytest.mark.thorough("two hosts; every run has one that drains")
def test_an_agent_is_moved_by_its_own_host_whoever_asks(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    near, far = apart
    below = far.fork(name="below", timeout=DEADLINE)
    with ActorSystem.attach(fleet.url) as attached:
        with pytest.raises(HostElsewhere, match="far is one that host b runs"):
            fleet["a"]._actor(far.uuid)
        far.move("a", timeout=DEADLINE)  # from a host that does not run it
        fleet.wait_until("a", far, below)
        attached.agent("near").move("b", timeout=DEADLINE)
        fleet.wait_until("b", near)
        near.move("b", timeout=DEADLINE)  # it is there
        for agent, text in ((far, "a answers"), (near, "b answers")):
            assert attached.handle(agent.uuid).prompt("hello").get(timeout=DEADLINE).text == text
        for agent, host, error in (
            (attached.root, "b", RootProtected),
            (attached.agent("far"), "c", NoHost),
            (near, "c", NoHost),
        ):
            with pytest.raises(error):
                agent.move(host, timeout=DEADLINE)
    assert {answer for (answer,) in answers(fleet["a"])} == {True}
    assert check(fleet["a"]._store) == []


def answers(system: ActorSystem) -> list[tuple[bool]]:
    """Of each remote command whether it has an answer."""
    flags = system._store.read(lambda tx: sql(tx, "SELECT answer IS NOT NULL FROM requests WHERE kind = 'move'"))
    return [(bool(answered),) for (answered,) in flags]


class Work:
    """A tool that is not idempotent, and ends when the test says so; and a model that has it called."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.runs = 0
        self.model = FunctionProvider(self._answer, "code")

    def work(self) -> str:
        """Work."""
        self.runs += 1
        self.begun.set()
        assert self.may_end.wait(DEADLINE)
        return "worked"

    def _answer(self, request: Request) -> Reply | str:
        last = request.messages[-1]["content"][-1]
        return last["content"] if last["type"] == "tool_result" else Reply("", (ToolCall("work"),))


@REAL_HOSTS
def test_a_host_renews_its_lease_while_it_looks_at_its_agents_for_the_first_time(new_postgres: NewDatabase) -> None:
    renewals, drawn, again = count(), count(), threading.Event()

    def renewed() -> None:
        if next(renewals) == 2:  # the first one is the beginning of the lease
            again.set()

    def random_bytes(number: int) -> bytes:
        if next(drawn) == 1:  # those of agent 0, behind those of the host
            assert again.wait(DEADLINE)
        return b"\0" + os.urandom(number - 1)  # a uuid at the first try: some bytes begin none

    parts = replace(SYSTEM_PLATFORM, random_bytes=random_bytes)
    with ActorSystem.open(new_postgres(), join=True, name="a", lease=4, parts=parts, on_renewal=renewed) as system:
        assert system.root.record.living


@REAL_HOSTS
def test_a_tool_that_runs_when_its_agent_is_to_go_elsewhere_ends_first(fleet: Fleet) -> None:
    work = Work()
    a = fleet.start("a", work.model, tools=[tool(work.work)])
    kid, idle = a.root.fork(), a.root.fork()
    b = fleet.start("b", work.model, tools=[tool(work.work)])
    shared(fleet)
    answer = kid.prompt("hello")
    assert work.begun.wait(DEADLINE)
    gone = kid.aio.move("b")
    idle.move("b", timeout=DEADLINE)  # it was asked for later, and goes earlier
    assert not gone.done()
    with ThreadPoolExecutor() as pool:
        drained = pool.submit(a.drain, DEADLINE)
        eventually(
            lambda: [host.shards for host in b.hosts() if host.name == "a"] == [1], "the gift of all other shards"
        )
        work.may_end.set()
        gone.get(timeout=DEADLINE)
        drained.result(DEADLINE)
    assert answer.get(timeout=DEADLINE).text == "worked"
    assert work.runs == 1


@REAL_HOSTS
def test_an_agent_whose_turn_waits_for_a_hook_moves_to_the_host_that_has_it(fleet: Fleet) -> None:
    asked: list[str] = []

    @hook("before_call", tools="work")
    def audit(call: HookedCall) -> None:
        asked.append(call.tool)

    work = Work()
    work.may_end.set()
    a = fleet.start("a", work.model, tools=[tool(work.work)])
    kid = a.root.fork(name="kid")
    b = fleet.start("b", work.model, tools=[tool(work.work)], hooks=[audit])
    shared(fleet)
    if not fleet.runs("a", kid):
        b.move(kid, "a", timeout=DEADLINE)
        fleet.wait_until("a", kid)
    kid = a.handle(kid.uuid)
    kid.configure(hooks=["audit"])
    assert kid.prompt("hello").get(timeout=DEADLINE).text == "worked"
    assert (asked, work.runs) == (["work"], 1)
    assert fleet.runs("b", kid)


@REAL_HOSTS
def test_an_agent_that_is_adopted_while_its_branch_gets_ready_to_move_stays_and_works(fleet: Fleet) -> None:
    work = Work()
    a = fleet.start("a", work.model, tools=[tool(work.work)])
    kid = a.root.fork()
    below = kid.fork()
    b = fleet.start("b", work.model, tools=[tool(work.work)])
    shared(fleet)
    answer = kid.prompt("hello")
    assert work.begun.wait(DEADLINE)
    gone = kid.aio.move("b")
    a.root.adopt(below, timeout=DEADLINE)
    work.may_end.set()
    gone.get(timeout=DEADLINE)
    assert fleet.runs("b", b.handle(kid.uuid))
    assert fleet.runs("a", below)
    assert below.prompt("hello").get(timeout=DEADLINE).text == "worked"
    assert answer.get(timeout=DEADLINE).text == "worked"


@pytest.mark.thorough("waits for real leases")
def test_an_agent_that_is_moved_in_its_turn_goes_on_and_who_waits_gets_the_answer(fleet: Fleet) -> None:
    gate = Gate()
    a = fleet.start("a", gate.provider, lease=2)
    kid = a.root.fork(name="kid")
    b = fleet.start("b")
    shared(fleet)
    there = b.agent("kid")
    answer = kid.prompt("hello")
    gate.wait_until_asked()
    waiting, mark = there.aio.reply(), there.aio.mark("later")
    there.move("b", timeout=DEADLINE)
    assert (answer.get(timeout=DEADLINE).text, waiting.get(timeout=DEADLINE).text) == ("b answers", "b answers")
    assert mark.get(timeout=DEADLINE)
    assert [message.kind for message in kid.history(all=True)].count("mark") == 1
    gate.open()


@pytest.mark.parametrize("place", ["{}/team.db", "sqlite:///{}/team.db", ":memory:"])
def test_a_file_is_shared_with_nobody_and_none_is_made(tmp_path: Path, place: str) -> None:
    with pytest.raises(StoreUnusable, match=r"which has one host\. Hosts share agents on PostgreSQL"):
        ActorSystem.open(place.format(tmp_path), join=True)
    assert list(tmp_path.iterdir()) == []


def test_who_does_not_join_is_refused_while_hosts_share(fleet: Fleet) -> None:
    fleet.start("a")
    with pytest.raises(StoreInUse):
        ActorSystem.open(fleet.url)


@REAL_HOSTS
def test_every_command_reaches_an_agent_of_another_host(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    far = apart[1]
    here = fleet["b"].agent("far")
    child = far.fork("hello", name="child", timeout=DEADLINE)
    assert child.reply(timeout=DEADLINE).text == "b answers"
    assert child.parent == far
    far.mark("before", timeout=DEADLINE)
    assert far.prompt("forget this").get(timeout=DEADLINE).text == "b answers"
    far.rewind("before", timeout=DEADLINE)
    assert "forget this" not in [message.content for message in here.history()]
    far.configure(temperature=0.5, timeout=DEADLINE)
    assert here.context().settings["temperature"] == 0.5
    far.clear(timeout=DEADLINE)
    assert "user" not in [message.kind for message in here.history()]
    child.exit("that is all", timeout=DEADLINE)
    assert child.record.exit_reason == "that is all"


@REAL_HOSTS
def test_a_supervisor_whose_child_on_another_host_fails_too_often_is_restarted_by_its_own_host(fleet: Fleet) -> None:
    crashes: list[str] = []

    def crash(request: Request) -> str:
        if not crashes:
            return "fine by now"
        raise LookupError(crashes.pop())

    a = fleet.start("a")
    above = a.root.fork(name="above")
    above.supervise(intensity=0)
    child = above.fork(name="child")
    fleet.start("b", FunctionProvider(crash, "code"))
    shared(fleet)
    a.move(child, "b", timeout=DEADLINE)
    fleet.wait_until("b", child)
    before = a._actor(above.uuid)
    crashes.append("once")
    assert child.prompt("work").get(timeout=DEADLINE).text == "fine by now"
    assert before.actor_inbox.closed
    assert above.statistics().restarts == 1
    assert (above.record.status, child.record.status) == ("running", "running")


@REAL_HOSTS
def test_what_is_told_to_an_agent_elsewhere_while_its_host_closes_is_answered(
    fleet: Fleet, apart: tuple[AgentRef, AgentRef]
) -> None:
    far = apart[1]
    elsewhere, late = fleet["a"]._target(far.uuid), Future[Reply]()
    fleet["a"].close()
    elsewhere.deliver(on.GetOutcome(late))
    with pytest.raises(SystemClosed):
        late.get(timeout=DEADLINE)


@REAL_HOSTS
def test_an_agent_that_cannot_be_moved_goes_on_where_it_is(fleet: Fleet, apart: tuple[AgentRef, AgentRef]) -> None:
    near, far = apart
    below, store = near.fork(), fleet["a"]._store
    stays = f"CHECK (uuid <> '{near.uuid}' OR shard = {near.record.shard})"
    store.write(lambda tx: sql(tx, f"ALTER TABLE agents ADD CONSTRAINT stays {stays}"))
    for handle in (near, fleet["b"].handle(near.uuid)):
        with pytest.raises(StoreConflict, match="stays"):
            handle.move("b", timeout=DEADLINE)
    store.write(lambda tx: sql(tx, "ALTER TABLE agents DROP CONSTRAINT stays"))
    for agent, text in ((near, "a answers"), (below, "a answers"), (far, "b answers")):
        assert agent.prompt("are you there?").get(timeout=DEADLINE).text == text
    assert check(fleet["a"]._store) == []


@REAL_HOSTS
def test_children_that_fail_on_two_hosts_at_once_are_counted_together(fleet: Fleet) -> None:
    together = threading.Barrier(2)
    failing = threading.Event()

    def fail_once(request: Request) -> str:
        if failing.is_set():
            with suppress(threading.BrokenBarrierError):
                if together.wait(DEADLINE) == 0:
                    failing.clear()
                    together.abort()
            raise LookupError("both at once")
        return "fine by now"

    provider = FunctionProvider(fail_once, "code")
    a = fleet.start("a", provider)
    above = a.root.fork(name="above")
    above.supervise(intensity=1)
    near, far = above.fork(name="near"), above.fork(name="far")
    fleet.start("b", provider)
    shared(fleet)
    a.move(far, "b", timeout=DEADLINE)
    fleet.wait_until("b", far)
    failing.set()
    answers = [child.prompt("work") for child in (near, far)]
    assert [answer.get(timeout=DEADLINE).text for answer in answers] == ["fine by now"] * 2
    assert above.statistics().restarts == 1
