"""Turns, from outside: interrupts, waiting commands, restarts, resumption. On every database."""

import threading
from dataclasses import replace

import pytest

from ikigai_actors import (
    ActorSystem,
    FunctionProvider,
    Kind,
    ProviderError,
    ScriptedProvider,
    Signal,
    SystemClosed,
    TimedOut,
    TurnInterrupted,
)
from ikigai_actors.actors.inbox import INBOX_CAPACITY
from ikigai_actors.errors import InboxFull
from ikigai_actors.store import open_store
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.testing import simulated
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging, answers_what_comes_later
from tests.kit.databases import eventually
from tests.kit.echo import echo, kinds, open_echo
from tests.kit.faults import SlowToRead


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
    with open_echo(durable, resume=False) as system:
        assert system.root.state == "interrupted"
        with pytest.raises(TurnInterrupted, match=r"'s turn was cut off; resume\(\) goes on with it"):
            system.root.reply(timeout=DEADLINE)
        assert system.root.resume()
        assert system.root.reply(timeout=DEADLINE).text == "one / 1"
        assert not system.root.resume()
        assert kinds(system.root.history()) == ["user", "assistant"]
    gate.open()


def test_an_interrupt_that_waits_for_the_log_ends_the_turn_of_the_prompt_before_it_alone(durable: str) -> None:
    with open_echo(durable) as system:
        system.root.prompt("zero").get(timeout=DEADLINE)
    store, may_read, hanging = SlowToRead(open_store(durable)), threading.Event(), Hanging("")
    with ActorSystem.open(provider=hanging, parts=replace(SYSTEM_PLATFORM, open_store=lambda _: store)) as system:
        store.hold(may_read)
        first, second = system.root.prompt("one"), system.root.prompt("two")
        actor = system._actor(system.root.uuid)
        eventually(lambda: actor.waiting == 2 and actor.actor_inbox.empty(), "the prompts, where the log is waited for")
        interrupted = system.root.aio.signal(Signal.INT)  # it would overtake them in the inbox
        eventually(actor.actor_inbox.empty, "the interrupt behind them")
        may_read.set()
        assert interrupted.get(timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            first.get(timeout=DEADLINE)
        eventually(lambda: [message.content for message in system.root.history()][-1] == "two", "the second turn")
        assert not second.done()


def test_who_ends_while_turns_are_resumed_keeps_nobody_else_from_going_on(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        ended, other = system.root.fork().uuid, system.root.fork().uuid
        for uuid in (ended, other):
            system.agent(uuid).prompt("one")
            eventually(lambda uuid=uuid: system.agent(uuid).record.turn, "the turn")  # type: ignore[misc]
    with open_echo(durable, resume=False) as system:
        system._actor(ended).actor_ref.stop()
        assert [agent.uuid for agent in system.resume()] == [other]
        assert system.agent(other).reply(timeout=DEADLINE).text == "one / 1"
    gate.open()


def test_opening_with_resume_goes_on_with_every_turn_that_was_cut_off(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.root.fork("work")
        gate.wait_until_asked()
    gate.open()
    with ActorSystem.open(durable, provider=ScriptedProvider(echo), resume=True) as system:
        assert system.agent(child.uuid).reply(timeout=DEADLINE).text == "work / 1"


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


def test_int_ends_the_request_of_a_prompt_that_waited_with_it_for_the_log() -> None:
    with simulated() as world:
        world.open(Hanging(""))
        root = world.reopen().root
        world.settle()
        future = root.prompt("go")
        root.signal(Signal.CONT, timeout=DEADLINE)  # when it is answered the agent waits for its log
        assert root.signal(Signal.INT, timeout=DEADLINE)
        with pytest.raises(TurnInterrupted):
            future.get(timeout=DEADLINE)
        world.settle()
        assert not world.requests


@pytest.mark.slow("takes a tenth of a second")
def test_int_right_behind_a_prompt_ends_its_turn_and_no_later_one(database: str) -> None:
    with ActorSystem.open(database, FunctionProvider(answers_what_comes_later)) as system:
        for number in range(20):
            agent = system.root if number % 2 else system.root.fork()
            first, interrupted = agent.prompt("first"), agent.aio.signal(Signal.INT)
            later = agent.prompt("later")
            assert interrupted.get(timeout=DEADLINE)
            with pytest.raises(TurnInterrupted):
                first.get(timeout=DEADLINE)
            assert later.get(timeout=DEADLINE).text == "heard later"
            assert kinds(agent.history())[-4:] == ["user", "interrupted", "user", "assistant"]


def test_int_ends_what_the_oldest_of_the_prompts_before_it_opens_and_the_next_one_the_next() -> None:
    with simulated() as world:
        agent = world.open(ScriptedProvider(echo)).root
        prompts = [agent.prompt(text) for text in ("one", "two", "three")]
        signals = [agent.aio.signal(Signal.INT) for _ in range(2)]
        world.settle()
        assert [signal.get(timeout=DEADLINE) for signal in signals] == [True, True]
        assert [isinstance(prompt.exception(), TurnInterrupted) for prompt in prompts] == [True, True, False]
        assert [message.content for message in agent.history()] == ["one", "", "two", "", "three", "three / 1"]
        assert world.system.statistics().steps == 1


def test_an_int_with_nothing_before_it_does_nothing_to_the_prompt_behind_it() -> None:
    with simulated() as world:
        agent = world.open(ScriptedProvider(echo)).root
        signal_answer, prompt = agent.aio.signal(Signal.INT), agent.prompt("go")
        world.settle()
        assert (signal_answer.get(timeout=DEADLINE), prompt.get(timeout=DEADLINE).text) == (False, "go / 1")


def test_int_to_a_stopped_agent_ends_the_turn_of_the_prompt_that_waits_while_it_is_stopped() -> None:
    with simulated() as world:
        agent = world.open(ScriptedProvider(echo)).root
        agent.signal(Signal.STOP)
        kept, later = agent.prompt("kept"), agent.prompt("later")
        world.settle()
        assert agent.signal(Signal.INT, timeout=DEADLINE)
        assert isinstance(kept.exception(timeout=DEADLINE), TurnInterrupted)
        assert (kinds(agent.history()), later.done()) == (["user", "interrupted"], False)
        agent.signal(Signal.CONT)
        assert later.get(timeout=DEADLINE).text == "later / 1"


def test_int_of_a_branch_ends_the_turns_of_prompts_before_it_there_too() -> None:
    with simulated() as world:
        root = world.open(ScriptedProvider(echo)).root
        kids = root.fork(count=2)
        world.settle()
        prompts = [kid.prompt("work") for kid in kids]
        assert not root.signal(Signal.INT, cascade=True, timeout=DEADLINE)  # the topmost has nothing to do
        world.settle()
        assert all(isinstance(prompt.exception(), TurnInterrupted) for prompt in prompts)
        assert world.system.statistics().steps == 0


def test_int_ends_a_turn_that_was_cut_off_before_it_goes_on() -> None:
    with simulated() as world:
        world.open(Hanging(""))
        world.system.root.prompt("go")
        world.settle()
        system = world.reopen()
        resumed = system.root.aio.resume()
        system.root.signal(Signal.CONT, timeout=DEADLINE)  # when it is answered the agent waits for its log
        interrupted = system.root.aio.signal(Signal.INT)
        world.settle()
        assert (interrupted.get(timeout=DEADLINE), resumed.get(timeout=DEADLINE)) == (True, False)
        assert (kinds(system.root.history()), len(world.requests)) == (["user", "interrupted"], 1)


def test_what_cannot_be_stored_does_not_keep_a_turn_from_ending(database: str) -> None:
    hanging = Hanging("half\0 an \ud800nswer")
    failing = ScriptedProvider([ProviderError("bad \0 byte", "so \0 far"), "fine"])
    with ActorSystem.open(database, provider=hanging, providers={"failing": failing}) as system:
        system.root.prompt("go")
        hanging.wait_until_asked()
        assert system.root.signal(Signal.INT, timeout=DEADLINE)
        assert system.root.history()[-1].content == "half\ufffd an \ufffdnswer"
        system.root.configure(model="failing")
        with pytest.raises(ProviderError, match="byte"):
            system.root.prompt("go").get(timeout=DEADLINE)
        assert system.root.history()[-1].content == "bad \ufffd byte"
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "fine"


def test_a_fork_waits_for_the_step_boundary_and_overtakes_later_prompts(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        system.root.prompt("one")
        gate.wait_until_asked()
        second = system.root.prompt("two")
        with pytest.raises(TimedOut):
            system.root.fork(timeout=0.0)
        waiting = system.root.aio.fork(name="kid")
        assert not system.root.resume(timeout=DEADLINE)  # answered in order: the fork has been seen
        gate.open()
        child = waiting.get(timeout=DEADLINE).sync
        second.get(timeout=DEADLINE)
        assert [m.content for m in child.history() if m.kind == Kind.USER] == ["one"]


def test_commands_wait_for_the_end_of_the_turn_in_order_of_arrival(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        first = system.root.prompt("one")
        gate.wait_until_asked()
        marked = system.root.aio.mark("m")
        second = system.root.prompt("two")
        cleared = system.root.aio.clear()
        assert not system.root.resume(timeout=DEADLINE)
        gate.open()
        for future in (first, marked, second, cleared):
            future.get(timeout=DEADLINE)
        assert kinds(system.root.history(all=True)) == ["user", "assistant", "mark", "user", "assistant", "clear"]


@pytest.mark.thorough("ten thousand commands; tests/actors fills an inbox of a plain actor")
def test_commands_beyond_ten_thousand_are_refused_and_the_others_done(new_sqlite: NewDatabase) -> None:
    gate = Gate()
    with ActorSystem.open(new_sqlite(), provider=gate.provider) as system:
        first = system.root.prompt("first")
        gate.wait_until_asked()
        futures, inbox = [], system._actor(system.root.uuid).actor_inbox
        for number in range(INBOX_CAPACITY + 1):
            try:
                futures.append(system.root.aio.mark(str(number)))
            except InboxFull:
                eventually(lambda: len(inbox) < INBOX_CAPACITY, "room in the inbox")
                futures.append(system.root.aio.mark(str(number)))
        with pytest.raises(InboxFull, match="commands waiting"):
            futures[-1].get(timeout=DEADLINE)
        gate.open()
        first.get(timeout=DEADLINE)
        assert futures[0].get(timeout=DEADLINE) == 3
