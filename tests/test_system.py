"""The library, from outside: what a program that embeds it can rely on. On every database."""

import asyncio

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentNotFound,
    AgentStopped,
    AmbiguousAgent,
    BadInput,
    FunctionProvider,
    Kind,
    MarkNotFound,
    Message,
    NameTaken,
    NoCurrentAgent,
    NoTurn,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    Stream,
    Streamed,
    SystemClosed,
    TimedOut,
    TurnInterrupted,
    WouldDeadlock,
    WouldWaitForItself,
    current_agent,
)
from tests.gate import DEADLINE, Gate, Hanging
from tests.trees import stop


def echo(request: Request) -> str:
    """Answers with the last prompt, and how many messages it was shown."""
    last = request.messages[-1]["content"][-1]["text"]
    return f"{last} / {len(request.messages)}"


def open_echo(database: str) -> ActorSystem:
    return ActorSystem.open(database, provider=ScriptedProvider(echo))


def kinds(messages: list[Message]) -> list[str]:
    return [message.kind for message in messages]


def test_a_prompt_is_answered_and_both_are_history(database: str) -> None:
    with open_echo(database) as system:
        reply = system.root.prompt("hello").get(timeout=DEADLINE)
        assert reply.text == "hello / 1"
        assert [(m.kind, m.content) for m in system.root.history()] == [("user", "hello"), ("assistant", "hello / 1")]
        assert system.root.state == "idle"
        assert system.root.record.turn == 0


def test_a_child_inherits_the_history_and_goes_its_own_way(database: str) -> None:
    with open_echo(database) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork("two", name="kid")
        assert child.reply(timeout=DEADLINE).text == "two / 3"
        sibling = system.root.fork()
        system.root.prompt("three").get(timeout=DEADLINE)
        contents = [m.content for m in child.history() if m.kind in ("user", "assistant")]
        assert contents == ["one", "one / 1", "two", "two / 3"]
        assert sibling.prompt("mine").get(timeout=DEADLINE).text == "mine / 3"
        assert child.parent == system.root
        assert child.supervisor == system.root
        assert system.root.children() == [child, sibling]
        assert system.agent("kid") == child


def test_a_fork_costs_one_row_for_the_agent_and_two_messages(database: str) -> None:
    with open_echo(database) as system:
        for text in ("a", "b", "c"):
            system.root.prompt(text).get(timeout=DEADLINE)
        before = len(system.root.history(all=True))
        child = system.root.fork()
        assert len(system.root.history(all=True)) == before + 1
        assert kinds(child.history(all=True)[before:]) == [Kind.FORK]
        assert child.record.fork_message_id == before


def test_settings_are_inherited_and_a_fork_can_override_them(database: str) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return "ok"

    with ActorSystem.open(database, provider=ScriptedProvider(answer)) as system:
        system.root.configure(system="be brief", max_tokens=7)
        system.root.fork("x", system="be kind").reply(timeout=DEADLINE)
        assert (asked[0].system, asked[0].settings["max_tokens"]) == ("be kind", 7)
        system.root.clear()
        system.root.prompt("y").get(timeout=DEADLINE)
        assert (asked[1].system, asked[1].settings["max_tokens"]) == ("be brief", 7)
        assert len(asked[1].messages) == 1


def test_a_model_setting_chooses_among_the_registered_providers(database: str) -> None:
    other = ScriptedProvider(lambda request: f"other {request.model}")
    with ActorSystem.open(database, provider=ScriptedProvider(echo), providers={"other": other}) as system:
        system.root.configure(model="other:big")
        assert system.root.prompt("x").get(timeout=DEADLINE).text == "other big"
        child = system.root.fork(model="missing:model")
        with pytest.raises(ProviderError, match="'missing', which is not registered"):
            child.prompt("y").get(timeout=DEADLINE)
        assert kinds(child.history())[-1] == Kind.ERROR
        assert child.state == "idle"


def test_marks_and_rewinds_reach_into_the_inherited_history(database: str) -> None:
    with open_echo(database) as system:
        root = system.root
        root.prompt("one").get(timeout=DEADLINE)
        root.mark("start")
        root.prompt("two").get(timeout=DEADLINE)
        child = root.fork()
        child.rewind("start")
        assert child.prompt("again").get(timeout=DEADLINE).text == "again / 3"
        assert root.prompt("three").get(timeout=DEADLINE).text == "three / 5"
        with pytest.raises(MarkNotFound, match="'start'"):
            child.rewind("nowhere")
        child.clear()
        with pytest.raises(MarkNotFound, match="marks in force: none"):
            child.rewind()


def test_context_tells_what_the_history_means(database: str) -> None:
    with open_echo(database) as system:
        system.root.configure(system="s")
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork(name="kid")
        at = child.mark("m")
        context = child.context()
        assert (context.inherited, context.own) == (3, 2)
        assert context.settings == {"system": "s"}
        assert context.marks == (("m", at),)
        assert [r.agent_uuid for r in context.ranges] == [system.root.uuid, child.uuid]
        assert context.ranges == child.ranges()


def test_everything_comes_back_after_a_restart(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.configure(system="s")
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork("two", name="kid")
        child.reply(timeout=DEADLINE)
        child.mark("m")
        grandchild = child.fork()
        before = [(agent.uuid, agent.parent_uuid, agent.name) for agent in system.agents()]
        history, context = grandchild.history(), grandchild.context()
    with open_echo(durable) as system:
        assert [(agent.uuid, agent.parent_uuid, agent.name) for agent in system.agents()] == before
        again = system.agent(grandchild.uuid)
        assert again.history() == history
        assert again.context() == context
        assert again.rewind("m")
        assert again.prompt("go on").get(timeout=DEADLINE).text == "go on / 5"


def test_a_boot_reads_no_log_and_each_is_read_once_and_shared(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        children = [system.root.fork().uuid for _ in range(5)]
    with open_echo(durable) as system:
        assert system.statistics().read_logs == 0
        for uuid in children:
            system.agent(uuid).prompt("hi").get(timeout=DEADLINE)
        system.root.prompt("hi").get(timeout=DEADLINE)
        assert system.statistics().read_logs == 6


def test_an_open_turn_comes_back_as_interrupted_and_resume_sends_the_prompt_again(durable: str) -> None:
    gate = Gate()
    system = ActorSystem.open(durable, provider=gate.provider)
    future = system.root.prompt("one")
    gate.wait_until_asked()
    system.close()
    with pytest.raises(SystemClosed):
        future.get(timeout=DEADLINE)
    with open_echo(durable) as system:
        assert system.root.state == "interrupted"
        with pytest.raises(TurnInterrupted, match="cut off"):
            system.root.reply(timeout=DEADLINE)
        assert system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "one / 1"
        assert not system.root.resume()
        assert kinds(system.root.history()) == ["user", "assistant"]
    gate.open()


def test_opening_with_resume_goes_on_with_every_turn_that_was_cut_off(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.root.fork("work")
        gate.wait_until_asked()
    gate.open()
    with ActorSystem.open(durable, provider=ScriptedProvider(echo), resume=True) as system:
        assert system.agent(child.uuid).reply(timeout=DEADLINE).text == "work / 1"


def test_a_new_prompt_closes_the_turn_that_was_cut_off(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        system.root.prompt("lost")
        gate.wait_until_asked()
    gate.open()
    with open_echo(durable) as system:
        assert system.root.prompt("new").get(timeout=DEADLINE).text == "new / 1"
        assert kinds(system.root.history()) == ["user", "interrupted", "user", "assistant"]


@pytest.mark.parametrize("action", ["clear", "rewind"])
def test_clear_and_rewind_close_a_turn_that_was_cut_off(durable: str, action: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        system.root.mark()
        system.root.prompt("lost")
        gate.wait_until_asked()
    gate.open()
    with open_echo(durable) as system:
        getattr(system.root, action)()
        assert system.root.state == "idle"
        assert system.root.record.turn == 0
        assert kinds(system.root.history(all=True))[-2:] == ["interrupted", action]


@pytest.mark.parametrize("said", ["", "half an answer"])
def test_int_ends_a_turn_at_once_and_keeps_what_was_received(database: str, said: str) -> None:
    hanging = Hanging(said)
    with ActorSystem.open(database, provider=hanging) as system:
        future = system.root.prompt("go")
        hanging.wait_until_asked()
        assert system.root.state == "waiting for the model"
        assert system.root.signal(Signal.INT, timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            future.get(timeout=DEADLINE)
        assert system.root.state == "idle"
        last = system.root.history()[-1]
        assert (last.kind, last.content) == (("assistant" if said else "interrupted"), said)
        assert not system.root.signal(Signal.INT, timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            system.root.reply(timeout=DEADLINE)


def test_a_provider_error_ends_the_turn_and_the_agent_goes_on(database: str) -> None:
    script = ScriptedProvider([Stream(deltas=("so ", "far"), then=ProviderError("overloaded", "so far")), "fine"])
    with ActorSystem.open(database, provider=script) as system:
        with pytest.raises(ProviderError, match="overloaded"):
            system.root.prompt("one").get(timeout=DEADLINE)
        with pytest.raises(ProviderError, match="overloaded"):
            system.root.reply(timeout=DEADLINE)
        assert system.root.history()[-1].data["partial"] == "so far"
        assert system.root.prompt("two").get(timeout=DEADLINE).text == "fine"


def test_a_fork_waits_for_the_step_boundary_and_overtakes_later_prompts(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        system.root.prompt("one")
        gate.wait_until_asked()
        second = system.root.prompt("two")
        with pytest.raises(TimedOut):
            system.root.fork(timeout=0.0)
        waiting = system.root.ask.fork(name="kid")
        assert not system.root.resume(timeout=DEADLINE)  # answered in order: the fork has been seen
        gate.open()
        child = waiting.get(timeout=DEADLINE)
        second.get(timeout=DEADLINE)
        assert [m.content for m in child.history() if m.kind == Kind.USER] == ["one"]


def test_commands_wait_for_the_end_of_the_turn_in_order_of_arrival(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        first = system.root.prompt("one")
        gate.wait_until_asked()
        marked = system.root.ask.mark("m")
        second = system.root.prompt("two")
        cleared = system.root.ask.clear()
        assert not system.root.resume(timeout=DEADLINE)
        gate.open()
        for future in (first, marked, second, cleared):
            future.get(timeout=DEADLINE)
        assert kinds(system.root.history(all=True)) == ["user", "assistant", "mark", "user", "assistant", "clear"]


def test_a_stopped_agent_does_not_fork_and_goes_on_unharmed(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork()
        stop(system.store, child.uuid)
        with pytest.raises(AgentStopped, match="stopped"):
            child.fork("x", timeout=DEADLINE)
        stop(system.store, child.uuid, "running")
        assert child.fork("x").reply(timeout=DEADLINE).text == "x / 1"


def test_a_name_is_unique_among_the_living(database: str) -> None:
    with open_echo(database) as system:
        system.root.fork(name="dba")
        with pytest.raises(NameTaken, match="'dba'"):
            system.root.fork(name="dba")
        for bad in ("", "two words", "x" * 65, system.root.uuid, "/x"):
            with pytest.raises(BadInput):
                system.root.fork(name=bad)
        assert len(system.agents()) == 2


def test_agents_are_found_by_uuid_name_or_prefix_and_the_errors_differ(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork(name="dba")
        assert system.agent(child.uuid[:8]) == child
        for text in ("nobody", "", "abc", "A" * 22):
            with pytest.raises(AgentNotFound):
                system.agent(text)
        assert not issubclass(AmbiguousAgent, AgentNotFound)


def test_bad_input_is_refused_before_anything_is_written(database: str) -> None:
    with open_echo(database) as system:
        for text in ("", "  ", "nul \0 inside", "half \ud800 character"):
            with pytest.raises(BadInput):
                system.root.prompt(text)
        for settings in ({"modle": "x"}, {"max_tokens": "many"}, {"max_tokens": True}, {"system": "\0"}):
            with pytest.raises(BadInput):
                system.root.configure(**settings)
        with pytest.raises(BadInput, match="permanent, transient, temporary"):
            system.root.fork(restart="always")
        assert system.root.history() == []


def test_what_a_model_says_is_stored_even_when_no_database_could_hold_it(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider(["a\0b\ud800c"])) as system:
        assert system.root.prompt("x").get(timeout=DEADLINE).text == "a\ufffdb\ufffdc"
        assert system.root.history()[-1].content == "a\ufffdb\ufffdc"


def test_reply_without_a_turn_says_so(database: str) -> None:
    with open_echo(database) as system, pytest.raises(NoTurn, match="prompt it first"):
        system.root.reply(timeout=DEADLINE)


def test_a_closed_system_refuses_with_a_clear_error(database: str) -> None:
    system = open_echo(database)
    root = system.root
    system.close()
    system.close()
    with pytest.raises(SystemClosed):
        root.prompt("x")


def test_a_dead_agent_is_read_but_never_acts(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = system.root.fork()
        child.prompt("two").get(timeout=DEADLINE)
        system.store.write(lambda tx: tx.run("bury", uuid=child.uuid, reason="test", now=1))
    with open_echo(durable) as system:
        dead = system.agent(child.uuid)
        with pytest.raises(AgentDead, match="test"):
            dead.prompt("x")
        assert dead.state == "dead"
        assert [m.content for m in dead.history() if m.kind == Kind.USER] == ["one", "two"]


def test_an_agent_that_dies_elsewhere_is_fenced_and_its_callers_hear_it(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork()
        system.store.write(lambda tx: tx.run("bury", uuid=child.uuid, reason="test", now=1))
        with pytest.raises(Exception, match="is dead"):
            child.prompt("x").get(timeout=DEADLINE)
        assert kinds(child.history(all=True)) == [Kind.FORK]


def test_awaiting_a_future_does_not_block_the_event_loop(database: str) -> None:
    gate = Gate()

    async def program(system: ActorSystem) -> tuple[Reply, int]:
        ticks = 0
        waiting = asyncio.ensure_future(_await(system.root.prompt("x")))
        while ticks < 100:
            await asyncio.sleep(0)
            ticks += 1
        assert not waiting.done()
        gate.open()
        return await waiting, ticks

    with ActorSystem.open(database, provider=gate.provider) as system:
        reply, ticks = asyncio.run(program(system))
        assert (reply.text, ticks) == ("done", 100)


async def _await(future: object) -> Reply:
    return await future  # type: ignore[misc,no-any-return]  # a Future; `ensure_future` wants a coroutine


def test_cancelling_an_await_leaves_the_turn_alone(database: str) -> None:
    gate = Gate()

    async def program(system: ActorSystem) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await system.root.prompt("x")

    with ActorSystem.open(database, provider=gate.provider) as system:
        asyncio.run(program(system))
        gate.open()
        assert system.root.reply(timeout=DEADLINE).text == "done"


def test_a_blocking_call_on_a_thread_of_the_runtime_is_refused(database: str) -> None:
    failures: list[BaseException] = []

    async def answer(request: Request) -> str:
        try:
            system.agent(other.uuid).prompt("x").get()
        except WouldDeadlock as error:
            failures.append(error)
        return (await system.agent(other.uuid).prompt("y")).text

    with ActorSystem.open(
        database, provider=ScriptedProvider(echo), providers={"nested": ScriptedProvider(answer)}
    ) as system:
        other = system.root.fork()
        system.root.configure(model="nested")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "y / 3"
        assert "await" in str(failures[0])


def test_an_agents_own_provider_may_not_wait_for_the_agent_itself(database: str) -> None:
    def answer(request: Request) -> str:
        me = current_agent()
        for wait in (lambda: me.prompt("x").get(), me.fork, me.reply):
            with pytest.raises(WouldWaitForItself):
                wait()
        return me.uuid

    with ActorSystem.open(database, provider=FunctionProvider(answer)) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == system.root.uuid
    with pytest.raises(NoCurrentAgent):
        current_agent()


def test_a_function_provider_orchestrates_other_agents(database: str) -> None:
    def boss(request: Request) -> str:
        system = current_agent().system
        return system.agent("worker").prompt("sub-task").get(timeout=DEADLINE).text

    with ActorSystem.open(
        database, provider=ScriptedProvider(echo), providers={"boss": FunctionProvider(boss)}
    ) as system:
        system.root.fork(name="worker")
        system.root.configure(model="boss")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "sub-task / 1"


def test_subscribers_hear_messages_in_order_and_deltas_before_their_reply(database: str) -> None:
    heard: list[object] = []
    with ActorSystem.open(database, provider=ScriptedProvider([Stream(deltas=("a", "b"))])) as system:
        system.subscribe(heard.append)
        system.root.prompt("x").get(timeout=DEADLINE)
        uuid = system.root.uuid
    assert [e.kind if isinstance(e, Message) else e for e in heard] == [
        "user",
        Streamed(uuid, "a", "text"),
        Streamed(uuid, "b", "text"),
        "assistant",
    ]


def test_a_subscriber_that_fails_harms_nobody(database: str, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[object] = []

    def bad(event: object) -> None:
        raise ValueError("planted")

    with open_echo(database) as system:
        system.subscribe(bad)
        system.subscribe(heard.append)
        system.root.prompt("x").get(timeout=DEADLINE)
    assert len(heard) == 3
    assert "planted" in caplog.text


def test_a_thousand_agents_answer_on_two_workers(database: str) -> None:
    with open_echo(database) as system:
        children = [system.root.ask.fork(f"task {n}") for n in range(1_000)]
        replies = {child.get(timeout=60).reply(timeout=60).text for child in children}
        assert replies == {f"task {n} / 1" for n in range(1_000)}
        assert system.statistics().journal.batches < 3_000
