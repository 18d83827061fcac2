"""Remote commands: what an attached handle asks for the host does once, and answers like a local one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    BadInput,
    NameTaken,
    NoTurn,
    OfflineProvider,
    Reply,
    ScriptedProvider,
    Signal,
    TimedOut,
    ToolCall,
    TurnInterrupted,
    tool,
)
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    AgentStopped,
    HostElsewhere,
    MarkNotFound,
    NoHost,
    RootProtected,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
    SystemClosed,
    Withdrawn,
)
from ikigai_actors.reach.conversation import Words
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.hosts.remote_commands import (
    AddRemoteCommand,
    RemoteCommandKey,
    answer_of,
    new_remote_commands,
)
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import AgentRef
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually, sql
from tests.kit.echo import echo
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


def kinds(agent: AgentRef) -> list[str]:
    return [message.kind for message in agent.history(all=True)]


def rows(store: Store) -> list[tuple[Any, ...]]:
    """Every remote command: its kind, and whether it has an answer."""
    kinds = store.read(lambda tx: sql(tx, "SELECT kind, answer IS NOT NULL FROM requests ORDER BY created_at, id"))
    return [(kind, bool(answered)) for kind, answered in kinds]


@pytest.mark.slow("takes half a second")
def test_all_that_an_agent_does_itself_is_done_by_the_host_and_answered(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        mark = root.mark("here", timeout=DEADLINE)
        kid = root.fork("milk", name="kid", restart="temporary", on_orphan="cascade", timeout=DEADLINE)
        assert kid.reply(timeout=DEADLINE).text.startswith("milk")
        assert (kid.record.restart, kid.record.on_orphan) == ("temporary", "cascade")
        assert root.configure(max_tokens=100, timeout=DEADLINE) > mark
        eventually(lambda: host.root.context().settings == {"max_tokens": 100}, "what the host shows behind its commit")
        root.prompt("sugar").get(timeout=DEADLINE)
        undone = root.undo(timeout=DEADLINE)
        back = root.rewind("here", timeout=DEADLINE)
        assert (back, root.clear(timeout=DEADLINE)) == (undone + 1, undone + 2)
        assert root.resume(timeout=DEADLINE) is False
        other = root.fork(timeout=DEADLINE)
        other.adopt(kid, timeout=DEADLINE)
        assert host.agent("kid").supervisor == host.handle(other.uuid)
        kid.exit("done", timeout=DEADLINE)
        assert (kid.record.status, kid.record.exit_reason) == ("dead", "done")
        eventually(lambda: not host._store.read(new_remote_commands), "all answers")
        assert {answered for _, answered in rows(host._store)} == {True}
        assert check(host._store) == []


@pytest.mark.thorough("prompts, logs and no host, which test_attached shows one by one")
@pytest.mark.empty
def test_a_program_attaches_to_agents_that_another_one_runs(durable: str) -> None:
    with pytest.raises(StoreUnusable):
        ActorSystem.attach(durable)
    with ActorSystem.open(durable, ScriptedProvider(echo)), ActorSystem.attach(durable) as system:
        kid = system.root.fork("tea", name="kid", timeout=DEADLINE)
        assert kid.reply(timeout=DEADLINE).text.startswith("tea")
    with ActorSystem.attach(durable) as system:
        assert [message.content for message in system.agent("kid").history()][-1].startswith("tea")
        with pytest.raises(NoHost):
            system.agent("kid").mark(timeout=DEADLINE)


def test_a_refusal_is_the_error_that_a_local_handle_raises(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        root, kid = system.root, system.handle(host.root.fork(name="kid").uuid)
        dead = system.handle(host.root.fork().uuid)
        dead.kill()
        for refused, error in (
            (lambda: root.fork(name="kid", timeout=DEADLINE), NameTaken),
            (lambda: root.rewind("nowhere", timeout=DEADLINE), MarkNotFound),
            (lambda: root.undo(timeout=DEADLINE), NoTurn),
            (lambda: root.exit(timeout=DEADLINE), RootProtected),
            (lambda: kid.adopt(root, timeout=DEADLINE), BadInput),
            (lambda: kid.adopt(dead, timeout=DEADLINE), AgentDead),
            (lambda: dead.mark(timeout=DEADLINE), AgentDead),
            (lambda: system.handle("A" * 22).mark(timeout=DEADLINE), AgentNotFound),
            (lambda: kid.move("b", timeout=DEADLINE), NoHost),
            (lambda: root.tools(), HostElsewhere),
        ):
            with pytest.raises(error) as raised:
                refused()
            assert type(raised.value) is error
        kid.signal(Signal.STOP)
        with pytest.raises(AgentStopped):
            kid.fork(timeout=DEADLINE)
        eventually(lambda: not host._store.read(new_remote_commands), "all answers")


def test_a_command_to_a_busy_agent_waits_and_a_time_out_says_that_it_may_still_happen(durable: str, gate: Gate) -> None:
    with ActorSystem.open(durable, gate.provider) as host, AttachedSystem.open(durable) as system:
        host.root.prompt("tea")
        gate.wait_until_asked()
        with pytest.raises(TimedOut, match="may still be carried out"):
            system.root.mark("later", timeout=0)
        eventually(lambda: host._actor(host.root.uuid).waiting == 1, "the command at its agent")
        assert host.statistics().pending == 0  # it is not lost with the process
        gate.open()
        eventually(lambda: kinds(host.root)[-1] == "mark", "the mark")


def test_prompts_and_requests_are_carried_out_in_the_order_in_which_they_were_asked_for(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        root = system.root
        futures: list[Any] = []
        for text in ("one", "two", "three"):
            futures += [root.aio.prompt(text), root.aio.mark(text)]
        for future in futures:
            future.get(timeout=DEADLINE)
        contents = [message.content for message in host.root.history(all=True) if message.kind in ("user", "mark")]
        assert contents == ["one", "one", "two", "two", "three", "three"]


def test_a_request_outlives_its_host_and_is_carried_out_by_the_next_one(durable: str, gate: Gate) -> None:
    host = ActorSystem.open(durable, gate.provider)
    with closing(open_store(durable)) as store:
        host.root.prompt("tea")
        gate.wait_until_asked()
        unit = AddRemoteCommand(host.root.uuid, "mark", '{"label": "x"}', 5)
        key = RemoteCommandKey(host.root.uuid, write_alone(store, unit))
        eventually(lambda: host._actor(host.root.uuid).waiting == 1, "the command at its agent")
        host.close()
        assert store.read(lambda tx: answer_of(tx, key)) is None
        gate.open()
        with ActorSystem.open(durable, ScriptedProvider(echo)) as after:
            eventually(lambda: store.read(lambda tx: answer_of(tx, key)), "the answer of the next host")
            assert kinds(after.root).count("mark") == 1


def test_a_request_that_nobody_takes_up_is_withdrawn_when_the_host_goes_away(durable: str, gate: Gate) -> None:
    host = ActorSystem.open(durable, gate.provider)
    with AttachedSystem.open(durable) as system:
        host.root.prompt("tea")
        gate.wait_until_asked()
        waiting = system.root.aio.mark("here")
        host.close()
        with pytest.raises(NoHost, match="will not be done later"):
            waiting.get(timeout=DEADLINE)
        with pytest.raises(NoHost, match="will not be done later"):
            system.root.fork(timeout=DEADLINE)
        assert rows(system._store) == [("mark", True)]
        gate.open()
        with ActorSystem.open(durable, ScriptedProvider(echo)) as after:
            after.root.mark("mine")
            assert kinds(after.root).count("mark") == 1


def test_closing_the_attached_system_ends_the_wait_and_not_the_request(durable: str, gate: Gate) -> None:
    with ActorSystem.open(durable, gate.provider) as host:
        system = AttachedSystem.open(durable)
        host.root.prompt("tea")
        gate.wait_until_asked()
        waiting = system.root.aio.mark("here")
        system.close()
        with pytest.raises(SystemClosed):
            waiting.get(timeout=DEADLINE)
        gate.open()
        eventually(lambda: kinds(host.root)[-1] == "mark", "the mark")


def test_an_agent_is_adopted_also_while_nobody_runs_it(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host:
        by, child = host.root.fork(), host.root.fork()
    with AttachedSystem.open(durable) as system:
        system.handle(by.uuid).adopt(child.uuid, timeout=DEADLINE)
        assert system.handle(child.uuid).supervisor == system.handle(by.uuid)
        with pytest.raises(BadInput, match="above"):
            system.handle(child.uuid).adopt(by.uuid, timeout=DEADLINE)


@pytest.mark.thorough("commands of coroutines beside a host, which test_aio has in their order")
def test_what_a_coroutine_asks_for_is_written_by_another_thread_and_answered(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)), AttachedSystem.open(durable) as system:

        async def ask() -> list[str]:
            child = await system.root.aio.fork(name="kid")
            await child.mark("here")
            await child.prompt("tea")
            return kinds(child.sync)

        assert asyncio.run(ask()) == ["fork", "mark", "user", "assistant"]


def test_what_is_asked_first_comes_before_what_is_written_next(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        kid = system.handle(host.root.fork().uuid)
        kid.aio.mark("here")
        kid.prompt("tea")
        mail = kid.send(host.root, "I have asked.")
        written = "SELECT kind FROM requests UNION ALL SELECT body FROM mail WHERE kind = 'prompt'"
        assert system._store.read(lambda tx: sql(tx, written)) == [("mark",), ("tea",)]
        assert mail == 1


def test_an_interrupt_that_meets_an_agent_of_another_process_ends_its_turn_there(durable: str, gate: Gate) -> None:
    with ActorSystem.open(durable, gate.provider) as host, AttachedSystem.open(durable) as system:
        answer = host.root.prompt("tea")
        gate.wait_until_asked()
        ended = Future[bool]()
        system._target(host.root.uuid).deliver(on.Interrupt(ended))
        assert ended.get(timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            answer.get(timeout=DEADLINE)


def test_an_agent_that_dies_before_it_answers_raises_that(durable: str, gate: Gate) -> None:
    with ActorSystem.open(durable, gate.provider) as host, AttachedSystem.open(durable) as system:
        kid = host.root.fork("tea")
        gate.wait_until_asked()
        waiting = system.handle(kid.uuid).aio.mark("here")
        kid.kill(reason="enough")
        with pytest.raises(AgentDead, match="enough"):
            waiting.get(timeout=DEADLINE)


def test_a_permanent_agent_that_is_asked_to_exit_comes_back(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        kid = system.root.fork(restart="permanent", timeout=DEADLINE)
        kid.exit("again", timeout=DEADLINE)
        assert kid.mark("here", timeout=DEADLINE)
        assert kid.statistics().restarts == 1
        assert host.handle(kid.uuid).record.living


def test_requests_that_cannot_be_read_are_refused_and_hold_nobody_up(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host:
        uuid = host.root.uuid
        wrong = [
            ("dance", "{}"),
            ("clear", "no json"),
            ("clear", "[]"),
            ("mark", "{}"),
            ("mark", '{"label": 5}'),
            ("configure", '{"settings": {"max_tokens": "many"}}'),
            ("adopt", '{"child": "nobody"}'),
            ("fork", '{"child": "x", "name": null, "prompt": null, "settings": {}, "restart": "a", "on_orphan": null}'),
        ]
        with closing(open_store(durable)) as store:
            keys = [
                RemoteCommandKey(uuid, write_alone(store, AddRemoteCommand(uuid, *request, 5))) for request in wrong
            ]
            eventually(lambda: not store.read(new_remote_commands), "the answers")
            answers = store.read(lambda tx: [answer_of(tx, key) for key in keys])
        assert [type(answer.value) for answer in answers if answer is not None] == [BadInput] * len(wrong)
        assert host.root.history(all=True) == []


def left(url: str, agent: str, label: str) -> None:
    """Ask an agent for a mark, as another process does."""
    with closing(open_store(url)) as store:
        write_alone(store, AddRemoteCommand(agent, "mark", f'{{"label": "{label}"}}', 5))


@pytest.mark.slow("takes half a second")
def test_a_request_whose_agent_could_not_be_read_is_carried_out_when_the_store_is_back(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        kid = system.root.fork(name="kid").uuid
    store = FaultyStore(open_store(durable))
    store.unreadable, store.unreadable_by = StoreUnavailable("down, as planned"), "ikigai-reader"
    with open_on(store, ScriptedProvider(echo)) as system:
        left(durable, kid, "here")
        eventually(lambda: store.refused, "an attempt to read the log")
        assert system._store.read(new_remote_commands)
        store.unreadable = None
        eventually(lambda: not system._store.read(new_remote_commands), "the answer")
        assert kinds(system.handle(kid)).count("mark") == 1
        assert store.refused < 10  # it does not try again and again at once


@pytest.mark.thorough("which reply ends a turn is decided in test_follower")
def test_the_reply_to_a_prompt_from_elsewhere_is_the_one_behind_the_calls_of_the_turn(durable: str) -> None:
    script = ScriptedProvider([Reply("", (ToolCall("check_mail", {}),)), "No mail.", "Tea."])
    with ActorSystem.open(durable, script) as host, AttachedSystem.open(durable) as system:
        kid = system.handle(host.root.fork().uuid)
        assert kid.prompt("Is there mail?").get(timeout=DEADLINE).text == "No mail."
        assert kid.reply(timeout=DEADLINE).text == "No mail."
        assert kid.prompt("What would you like?").get(timeout=DEADLINE).text == "Tea."
        assert kid.reply(timeout=DEADLINE).text == "Tea."
        host.handle(kid.uuid).kill(timeout=DEADLINE)
        assert kid.reply(timeout=DEADLINE).text == "Tea."


def test_a_host_that_shares_its_agents_with_nobody_moves_none(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        kid = host.root.fork(name="kid")
        for asked in (host, system):
            with pytest.raises(NoHost, match="shares"):
                asked.move("kid", "b", DEADLINE)
        eventually(lambda: rows(host._store) == [("move", True)], "the answer of the one that was asked by a row")
        assert kid.state == "idle"


@pytest.mark.slow("takes half a second")
def test_a_request_that_could_not_be_read_is_looked_for_again(durable: str) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(echo)) as system:
        store.unreadable, store.unreadable_by = StoreUnavailable("down, as planned"), "ikigai-following"
        left(durable, system.root.uuid, "here")
        eventually(lambda: kinds(system.root).count("mark") == 1, "the mark")
        assert store.refused


def test_a_request_whose_unit_cannot_be_written_is_answered_with_that_error(durable: str) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(echo)) as system:
        kid = system.root.fork()
        store.fails(StoreError("failed, as planned"))
        left(durable, kid.uuid, "here")
        eventually(lambda: not system._store.read(new_remote_commands), "the answer")
        answer = system._store.read(lambda tx: answer_of(tx, RemoteCommandKey(kid.uuid, 1)))
        assert answer is not None
        assert (type(answer.value), str(answer.value)) == (StoreError, "failed, as planned")
        assert "mark" not in kinds(kid)


def test_many_threads_ask_at_once_and_each_gets_its_own_answer(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as host, AttachedSystem.open(durable) as system:
        positions: dict[str, int] = {}

        def ask(label: str) -> None:
            positions[label] = system.root.mark(label, timeout=DEADLINE)

        threads = [threading.Thread(target=ask, args=(f"mark {number}",)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        marks = {message.content: message.id for message in host.root.history(all=True)}
        assert positions == marks
        assert len(marks) == len(threads)


def test_calls_that_ask_are_decided_on_from_elsewhere_and_once(durable: str) -> None:
    @tool(policy="ask")
    def launch() -> str:
        """Launch."""
        return "launched"

    with (
        ActorSystem.open(durable, OfflineProvider(), tools=[launch], approvals="ask") as host,
        AttachedSystem.open(durable) as system,
    ):
        answer = host.root.prompt("@launch")
        eventually(system.approvals.pending, "the question")
        [call] = system.approvals.pending()
        assert system.approvals.approve(call, timeout=DEADLINE) is True
        assert answer.get(timeout=DEADLINE)
        assert system.approvals.deny(call, "too late", timeout=DEADLINE) is False


@pytest.mark.thorough("a decision behind a restart, as in test_questions, from elsewhere, as in the test above")
def test_a_decision_goes_on_with_a_turn_that_was_cut_off(durable: str) -> None:
    @tool(policy="ask")
    def launch() -> str:
        """Launch."""
        return "launched"

    with ActorSystem.open(durable, OfflineProvider(), tools=[launch], approvals="ask") as host:
        host.root.prompt("@launch")
        eventually(host.approvals.pending, "the question")
    with (
        ActorSystem.open(durable, OfflineProvider(), tools=[launch], approvals="ask") as host,
        AttachedSystem.open(durable) as system,
    ):
        [call] = system.approvals.pending()
        assert system.approvals.deny(call, "not today", timeout=DEADLINE) is True
        eventually(lambda: system.root.state == "idle", "the end of the turn")
        assert any("not today" in message.content for message in host.root.history())


@pytest.mark.parametrize("attached", [False, True], ids=["here", "another process"])
def test_a_command_that_waits_for_a_turn_is_taken_back_and_one_that_has_begun_is_not(
    durable: str, gate: Gate, attached: bool
) -> None:
    with ActorSystem.open(durable, gate.provider) as host:
        with AttachedSystem.open(durable) if attached else nullcontext(host) as system:
            root, words = system.agent(host.root.uuid), Words()
            answer = host.root.prompt("work")
            gate.wait_until_asked()
            undo, here, there = root.aio.undo(), root.aio.mark("here"), root.aio.mark("there")
            lines = {"/undo": undo, "/mark here": here, "/mark there": there}
            for line, done in lines.items():
                words.keep(root, line, done)
            assert words.commands(root.uuid) == [*lines]
            assert words.take_back_latest(root) == "/mark there"
            with pytest.raises(Withdrawn):
                lines["/mark there"].get(timeout=DEADLINE)
            reply = words.prompt(root, "more")
            reply.stored.get(timeout=DEADLINE)
            assert [words.take_back_latest(root), words.take_back_latest(root)] == ["more", "/mark here"]
            gate.open()
            lines["/undo"].get(timeout=DEADLINE)
            assert (words.take_back_latest(root), words.commands(root.uuid)) == (None, [])
            answer.get(timeout=DEADLINE)
            assert kinds(root) == ["user", "assistant", "rewind"]
        assert check(host._store) == []
