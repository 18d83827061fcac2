"""Attached systems and shells: a second look at agents that another process runs, through the database alone."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from ikigai_actors import (
    ActorSystem,
    BadInput,
    Message,
    NoTurn,
    OfflineProvider,
    ProviderError,
    ScriptedProvider,
    Signal,
    TurnInterrupted,
    tool,
)
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Event, HostChanged, StoreTrouble
from ikigai_actors.errors import AgentDead, HostElsewhere, NoHost, RootProtected, StoreUnusable, SystemClosed
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Hint, Watch
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.system.remote.following import AT_A_TIME
from ikigai_actors.system.remote.turn import RemoteTurn
from supervisors.signals import Status
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import add_agents, eventually, sql
from tests.kit.echo import echo
from tests.kit.sessions import Session


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


def spoken(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind in ("user", "assistant")]


def is_gone(host: ActorSystem, agent: AgentRef) -> bool:
    """Whether the host runs the agent no more."""
    try:
        host._actor(agent.uuid)
    except AgentDead:
        return True
    return False


def test_a_prompt_goes_to_the_host_and_its_reply_comes_back(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        assert system._asked_models({"model": "scripted:tea"}) == ()
        kid = host.root.fork(name="kid")
        assert system.agent("kid").prompt("tea").get(timeout=DEADLINE).text == "tea / 1"
        assert system.agent("kid").prompt("milk").get(timeout=DEADLINE).text == "milk / 3"
        assert system.agent("kid").reply(timeout=DEADLINE).text == "milk / 3"
        assert spoken(system.agent("kid")) == spoken(kid) == ["tea", "tea / 1", "milk", "milk / 3"]
        with pytest.raises(NoTurn):
            system.root.reply(timeout=DEADLINE)


def test_a_turn_in_progress_is_seen_interrupted_and_its_end_told(durable: str, gate: Gate) -> None:
    with ActorSystem.open(durable, gate.provider) as host, AttachedSystem.open(durable) as system:
        host.root.prompt("tea")
        gate.wait_until_asked()
        root = system.root
        assert root.state == "in a turn"
        outcome = root.aio.reply()
        assert root.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            outcome.get(timeout=DEADLINE)
        assert root.state == "idle"


def test_a_turn_that_fails_says_why(durable: str) -> None:
    with (
        ActorSystem.open(durable, ScriptedProvider([RuntimeError("no tea")])),
        AttachedSystem.open(durable) as system,
        pytest.raises(ProviderError, match="no tea"),
    ):
        system.root.prompt("tea").get(timeout=DEADLINE)


@pytest.mark.slow("takes a second")
def test_mail_signals_documents_and_waits_work_by_rows(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        kid = host.root.fork(name="kid")
        mine = system.agent("kid")
        assert system.root.send(mine, "hello") == 1
        assert system.root.wait([mine], timeout=DEADLINE) == {mine: "idle"}
        assert [mail.body for mail in kid.read_mail()] == ["hello"]
        kid.send(host.root, "hello too")
        assert set(system.root.wait(timeout=DEADLINE)) == {mine}
        assert [mail.body for mail in system.root.read_mail()] == ["hello too"]
        assert mine.signal(Signal.STOP)
        eventually(lambda: host._actor(kid.uuid).state.status is Status.STOPPED, "the host hears of STOP")
        assert mine.signal(Signal.CONT)
        eventually(lambda: host._actor(kid.uuid).state.status is Status.RUNNING, "the host hears of CONT")
        assert kid.prompt("tea").get(timeout=DEADLINE).text
        assert system.documents.write("plan", "# Plan", author=mine) == 1
        assert host.documents.read("plan").author == kid.uuid
        mine.supervise(strategy="one_for_all")
        assert kid.record.strategy == "one_for_all"
        with pytest.raises(RootProtected):
            system.root.kill()
        with pytest.raises(BadInput, match="blank"):
            mine.prompt(" ")
        assert system.send(mine, "from a person") == 2
        assert mine.signal(Signal.STOP)
        eventually(lambda: host._actor(kid.uuid).state.status is Status.STOPPED, "the stop")
        waiting = mine.prompt("never")
        assert mine.kill(reason="enough") == [mine]
        with pytest.raises(AgentDead, match="enough"):
            waiting.get(timeout=DEADLINE)
        eventually(lambda: is_gone(host, kid), "the end of its actor")


def test_what_only_the_memory_of_the_host_holds_is_refused_and_says_who_knows(new_sqlite: Callable[[], str]) -> None:
    database = new_sqlite()
    with ActorSystem.open(database, ScriptedProvider(echo)), AttachedSystem.open(database) as system:
        assert system._settings_at_hand(system.root.uuid) is None
        with pytest.raises(HostElsewhere, match=f"knows its tools: {re.escape(str(system._host))}"):
            system.root.tools()


def test_events_are_those_that_the_host_commits(durable: str) -> None:
    heard: list[Event] = []
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        system.subscribe(heard.append)
        kid = host.root.fork("tea", name="kid")
        kid.reply(timeout=DEADLINE)
        kid.kill(reason="enough")
        eventually(lambda: any(isinstance(event, Died) for event in heard), "the death")
    messages = [event for event in heard if isinstance(event, Message)]
    assert [each.content for each in messages if each.agent_uuid == kid.uuid][-2:] == ["tea", "tea / 1"]


def test_figures_of_an_agent_are_those_of_its_life_and_of_all_those_seen_since_it_was_attached(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host:
        host.root.prompt("before").get(timeout=DEADLINE)
        with AttachedSystem.open(durable) as system:
            system.root.prompt("after").get(timeout=DEADLINE)
            figures = system.root.statistics()
            assert (figures.state, figures.turns, figures.steps) == ("idle", 2, 2)
            assert (system.statistics().turns, system.statistics().steps) == (1, 1)
            assert system._statistics_of(system.root.uuid, system.root.record).turns == 1


def test_an_open_turn_and_a_stopped_agent_have_the_same_figures_at_the_host_and_attached(
    new_sqlite: Callable[[], str], gate: Gate
) -> None:
    database = new_sqlite()
    with ActorSystem.open(database, gate.provider) as host, AttachedSystem.open(database) as system:
        kid = host.root.fork("tea", name="kid")
        gate.wait_until_asked()
        assert kid.statistics().turns == system.agent("kid").statistics().turns == 0
        gate.open()
        kid.reply(timeout=DEADLINE)
        kid.signal(Signal.STOP)
        eventually(lambda: host._actor(kid.uuid).state.status is Status.STOPPED, "the stop")
        here, there = kid.statistics(), system.agent("kid").statistics()
        assert (here.state, here.turns) == (there.state, there.turns) == ("stopped", 1)


def test_when_the_host_goes_away_that_is_told_and_nobody_waits_for_ever(durable: str, gate: Gate) -> None:
    heard: list[Event] = []
    host = ActorSystem.open(durable, gate.provider)
    with AttachedSystem.open(durable) as system:
        system.subscribe(heard.append)
        assert "attached to pid" in system.attached
        waiting = system.root.prompt("tea")
        gate.wait_until_asked()
        host.close()
        with pytest.raises((NoHost, TurnInterrupted)):
            waiting.get(timeout=DEADLINE)
        eventually(lambda: HostChanged(None) in heard, "the news")
        assert system.attached == "attached, no host"
        assert system.root.state == "interrupted, no host"
        with pytest.raises(NoHost):
            system.root.prompt("milk").get(timeout=DEADLINE)
        with pytest.raises(NoHost):
            system.root.fork()
        gate.open()
        with ActorSystem.open(durable, ScriptedProvider(echo)) as other:
            eventually(lambda: heard[-1] == HostChanged(str(system._host)), "the next host")
            other.root.resume()
            eventually(lambda: "milk" in spoken(system.root), "the prompt that had waited")


def test_what_keeps_it_from_looking_is_told_and_that_it_looks_again(durable: str) -> None:
    heard: list[Event] = []
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        system.subscribe(heard.append)
        host._store.write(lambda tx: sql(tx, "ALTER TABLE hosts RENAME TO elsewhere"))
        eventually(lambda: heard, "the trouble")
        host._store.write(lambda tx: sql(tx, "ALTER TABLE elsewhere RENAME TO hosts"))
        eventually(lambda: len(heard) > 1, "its end")
    trouble = [event.reason for event in heard if isinstance(event, StoreTrouble)]
    assert [reason is None for reason in trouble] == [False, True]
    assert "hosts" in str(trouble[0])


@pytest.mark.empty
def test_a_database_without_agents_says_so_and_one_that_is_none_is_refused(durable: str) -> None:
    with pytest.raises(StoreUnusable):
        AttachedSystem.open(durable)
    with closing(open_store(durable)) as store:
        ensure_schema(store)
    with AttachedSystem.open(durable) as system, pytest.raises(NoHost, match="There are no agents yet"):
        assert system.root


def test_closing_ends_waits_and_leaves_the_agents_alone(durable: str, gate: Gate) -> None:
    with ActorSystem.open(durable, gate.provider) as host:
        system = AttachedSystem.open(durable)
        waiting = system.root.prompt("tea")
        gate.wait_until_asked()
        system.close()
        system.close()
        with pytest.raises(SystemClosed):
            waiting.get(timeout=DEADLINE)
        with pytest.raises(SystemClosed):
            system._target(host.root.uuid)
        gate.open()
        eventually(lambda: spoken(host.root) == ["tea", "done"], "the answer")


@pytest.fixture
def pair(durable: str, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[ActorSystem, Session]]:
    """A system that echoes, and a session that is attached to it."""
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        host.root.fork(name="kid")
        yield host, Session(system, capsys)


@pytest.mark.slow("takes a tenth of a second")
def test_lines_command_the_agents_of_the_host(pair: tuple[ActorSystem, Session]) -> None:
    host, session = pair
    home = f"/switch {host.root.uuid}"
    lines = ["tea", "/fork --name young", home, "/mark x", "/model offline", "/rewind x", "/clear", "/resume"]
    said = session(*lines, "/adopt kid", "/switch kid", "/finish", home, "/tools")
    assert [line for line in said if line.startswith("error")] == []
    assert said[-1].startswith("wait  ")  # of the tools, which the host has listed
    assert [message.kind for message in host.root.history(all=True)][-5:] == [
        "mark",
        "configure",
        "rewind",
        "clear",
        "configure",
    ]
    assert host.agent("young").record.living
    assert not host.agents("dead")[0].living


@pytest.mark.slow("takes a tenth of a second")
def test_calls_that_wait_for_approval_are_listed_and_decided_on(
    durable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @tool(policy="ask")
    def launch() -> str:
        """Launch."""
        return "launched"

    with (
        ActorSystem.open(durable, OfflineProvider(), tools=[launch], approvals="ask") as host,
        AttachedSystem.open(durable) as system,
    ):
        host.root.prompt("@launch")
        eventually(host.approvals.pending, "the question")
        said = Session(system, capsys)("/approvals", "/approve")
        assert said[0].endswith("launch {}")
        assert said[1] == "/approve N lets one run, /deny N does not."
        assert said[-1] == "launch gave: launched"  # the result before it is told if the turn is followed by then
        eventually(lambda: system.root.state == "idle", "the end of the turn")


class Told(Watch):
    """A watch that hears what a test says, after it did something; then it ends what waits."""

    def __init__(self, *steps: Callable[[], frozenset[str] | None]) -> None:
        self._steps = [*steps]
        self._heard: frozenset[str] | None = None
        self.end: Callable[[], object] = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        if not self._steps:
            self.end()
            return False
        self._heard = self._steps.pop(0)()
        return True

    def heard(self) -> Hint:
        return Hint(self._heard)

    def close(self) -> None:
        """Nothing waits."""


class OwnWatch(ForwardingStore):
    """A database with the watch of a test."""

    def __init__(self, store: SQLiteStore, receiver: Told) -> None:
        super().__init__(store)
        self._told = receiver

    def watch(self, *, hosts: bool = False) -> Watch:
        return self._told


@pytest.mark.thorough("very many agents")
@pytest.mark.parametrize("names", [True, False], ids=["named", "awaited, by a hint that names nobody"])
def test_whom_a_hint_concerns_while_very_many_agents_are_looked_at_does_not_wait_for_the_rest(names: bool) -> None:
    heard: list[str] = []
    middle, last = f"{AT_A_TIME + 1:05}", f"{2 * AT_A_TIME + 1:05}"
    with closing(SQLiteStore()) as store:
        ensure_schema(store)
        store.write(
            lambda tx: add_agents(tx, root=None, **{f"{number:05}": "root" for number in range(2 * AT_A_TIME + 9)})
        )

        def commit() -> frozenset[str] | None:
            rows = [(agent, 1, "user", "text", None, 1, b"") for agent in (middle, last)]
            store.write(lambda tx: tx.append(rows))
            return frozenset({last}) if names else None

        def hear(event: Event) -> None:
            if isinstance(event, Message):
                heard.append(event.agent_uuid)

        receiver = Told(lambda: None, commit)  # the latter when the first ones of all have been looked at
        with closing(AttachedSystem(OwnWatch(store, receiver))) as system:
            store.write(lambda tx: tx.run("register_host", id="host", hostname="h", pid=1, lease=0))
            system._others.refresh(lambda: system._others.follower.begin(0))
            if not names:
                system._others.await_turn(RemoteTurn(last, prompt=1), 0, Future())
            system.subscribe(hear)
            receiver.end = lambda: setattr(system._following, "_stopped", True)
            system._following.run()
    assert heard == [last, middle]
