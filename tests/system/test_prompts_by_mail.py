"""Prompts from other processes: durable before they are told of, taken up once, when the agent is idle."""

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, Request, ScriptedProvider, Signal, StoreError, TurnInterrupted
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.records.mail.mail import PROMPT, Send
from ikigai_actors.store import open_store
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.attached import AttachedSystem
from tests.kit import outside
from tests.kit.blocking_provider import DEADLINE, Gate, answers_what_comes_later
from tests.kit.databases import eventually
from tests.kit.echo import echo, kinds
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on
from tests.kit.program import run
from tests.store.test_outage import damage


def leave(url: str, agent: str, *texts: str) -> None:
    """Prompt an agent as another process does."""
    store = open_store(url)
    for text in texts:
        write_alone(store, Send(agent, None, text, 5, PROMPT))
    store.close()


def prompted(request: Request) -> str:
    """Answers with the last prompt."""
    return f"heard {request.messages[-1]['content'][-1]['text']}"


def test_an_idle_agent_takes_up_prompts_in_order_and_each_once(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid")
        leave(durable, kid.uuid, "one", "two")
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard two"], "the second answer")
        leave(durable, kid.uuid, "three")
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard three"], "the third answer")
        spoken = [
            (message.kind, message.content, message.data.get("mail"))
            for message in kid.history()
            if message.kind == "user"
        ]
        assert spoken == [("user", "one", 1), ("user", "two", 2), ("user", "three", 3)]
        assert kid.mails() == []
        assert (kid.check_mail().unread, kid.record.unread, kid.record.mailed) == (0, 0, 3)


def test_a_prompt_waits_for_the_end_of_the_turn_and_its_agent_is_not_idle_meanwhile(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        kid = system.root.fork()
        kid.prompt("go")
        gate.wait_until_asked()
        leave(durable, kid.uuid, "next")
        gate.open()
        assert system.root.wait([kid], timeout=DEADLINE) == {kid: "idle"}
        assert [message.content for message in kid.history() if message.kind == "user"] == ["go", "next"]
        assert [message.content for message in kid.history() if message.kind == "assistant"] == ["done", "done"]


@pytest.mark.thorough("prompts that no host has taken up, as behind an INT below")
def test_a_prompt_without_a_host_is_taken_up_at_the_next_open(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid").uuid
    leave(durable, kid, "one")
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        eventually(
            lambda: [message.content for message in system.handle(kid).history()][-1:] == ["heard one"], "the answer"
        )
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        assert len(system.handle(kid).history()) == 3


@pytest.mark.thorough("a turn that goes on before the prompts behind it, as in test_busy_prompts")
def test_a_turn_that_was_cut_off_is_resumed_before_a_prompt_is_taken_up(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        kid = system.root.fork(name="kid").uuid
        system.handle(kid).prompt("go")
        gate.wait_until_asked()
    gate.open()
    leave(durable, kid, "next")
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        agent = system.handle(kid)
        assert agent.state == "interrupted"
        assert agent.resume(timeout=DEADLINE)
        eventually(lambda: [message.content for message in agent.history()][-1:] == ["heard next"], "the answer")
        assert [message.content for message in agent.history() if message.kind == "assistant"] == [
            "heard go",
            "heard next",
        ]


def test_an_int_behind_prompts_that_no_host_has_taken_up_ends_the_turn_of_the_first_and_asks_nobody(
    durable: str,
) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid").uuid
    with AttachedSystem.open(durable) as attached:
        attached.handle(kid).prompt("one")
        assert attached.handle(kid).signal(Signal.INT)
        attached.handle(kid).prompt("two")
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        eventually(lambda: kinds(system.handle(kid).history())[-1:] == ["assistant"], "the answer")
        assert [message.content for message in system.handle(kid).history()][1:] == ["one", "", "two", "heard two"]
        assert system.statistics().steps == 1


@pytest.mark.slow("takes a tenth of a second")
def test_an_int_right_behind_a_prompt_of_an_attached_process_ends_its_turn_and_no_later_one(durable: str) -> None:
    with ActorSystem.open(durable, FunctionProvider(answers_what_comes_later)) as system:
        kid = system.root.fork(name="kid")
        with AttachedSystem.open(durable) as attached:
            agent = attached.handle(kid.uuid)
            for _ in range(5):
                first = agent.prompt("first")
                agent.signal(Signal.INT)
                later = agent.prompt("later")
                with pytest.raises(TurnInterrupted):
                    first.get(timeout=DEADLINE)
                assert later.get(timeout=DEADLINE).text == "heard later"
        assert kinds(kid.history())[1:] == ["user", "interrupted", "user", "assistant"] * 5


@pytest.mark.slow("takes a tenth of a second")
def test_an_int_that_comes_while_a_prompt_is_taken_up_ends_its_turn_in_that_commit(durable: str) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid")

        def interrupt() -> None:
            store.before = lambda: None
            outside.signal(durable, "kid", Signal.INT)

        store.before = interrupt
        leave(durable, kid.uuid, "one", "two")
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard two"], "the answer")
        assert kinds(kid.history())[1:] == ["user", "interrupted", "user", "assistant"]
        assert system.statistics().steps == 1


def test_an_int_from_elsewhere_ends_the_turn_of_a_prompt_that_a_stopped_agent_keeps(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        stopped = system.root.fork()
        stopped.signal(Signal.STOP)
        leave(durable, stopped.uuid, "one", "two")
        outside.signal(durable, stopped.uuid, Signal.INT)
        eventually(lambda: kinds(stopped.history())[1:] == ["user", "interrupted"], "the end of the first")
        assert stopped.state == "stopped"
        stopped.signal(Signal.CONT)
        eventually(lambda: [message.content for message in stopped.history()][-1:] == ["heard two"], "the answer")


def test_a_stopped_agent_takes_it_up_when_it_goes_on(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        stopped = system.root.fork()
        stopped.signal(Signal.STOP)
        leave(durable, stopped.uuid, "one")
        leave(durable, system.root.uuid, "one")
        eventually(lambda: [message.content for message in system.root.history()][-1:] == ["heard one"], "the answer")
        assert [message for message in stopped.history() if message.kind == "user"] == []
        stopped.signal(Signal.CONT)
        eventually(lambda: [message.content for message in stopped.history()][-1:] == ["heard one"], "the answer")


def test_the_program_leaves_a_prompt_and_tells_what_is_wrong_with_one(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        kid = system.root.fork(name="kid")
        done = run("--database", durable, "prompt", "kid", "how", "are", "you?")
        assert (done.stdout, done.stderr, done.returncode) == ("prompt 1 to kid\n", "", 0)
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["how are you? / 1"], "the answer")
        for arguments, problem in ((("nobody", "x"), "nobody is called"), (("kid", " "), "Expected a prompt")):
            done = run("--database", durable, "prompt", *arguments)
            assert (done.stdout, done.returncode) == ("", 1)
            assert problem in done.stderr or "No agent is named" in done.stderr


@pytest.mark.slow("takes half a second")
def test_prompts_whose_unit_failed_are_taken_up_in_order_when_the_store_takes_them(durable: str) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        store.fails(StoreError("failed, as planned"))
        leave(durable, kid.uuid, "one", "two")
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard two"], "the second answer")
        assert [message.content for message in kid.history() if message.kind == "user"] == ["one", "two"]


@pytest.mark.thorough("a log that cannot be read, as for a request in test_remote_commands")
def test_a_prompt_whose_agent_could_not_be_read_is_taken_up_when_the_store_is_back(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid").uuid
    store = FaultyStore(open_store(durable))
    store.unreadable, store.unreadable_by = StoreUnavailable("down, as planned"), "ikigai-reader"
    with open_on(store, ScriptedProvider(prompted)) as system:
        leave(durable, kid, "one")
        eventually(lambda: store.refused, "an attempt to read the log")
        store.unreadable = None
        eventually(
            lambda: [message.content for message in system.handle(kid).history()][-1:] == ["heard one"], "the answer"
        )
        assert store.refused < 10  # it does not try again and again at once


def test_a_prompt_for_an_agent_0_with_wrong_rows_is_tried_once(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        damage(system, system.root.uuid)
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        leave(durable, system.root.uuid, "one")
        eventually(lambda: system.statistics().read_logs, "the attempt")
        for _ in range(200):
            system.agents()
        assert system.statistics().read_logs < 5


def test_a_defect_of_the_supervision_loop_is_logged_and_it_goes_on(
    durable: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        store.unreadable, store.unreadable_by = LookupError("planted"), "ikigai-supervision"
        leave(durable, kid.uuid, "one")
        eventually(lambda: store.refused, "the defect")
        store.unreadable = None
        leave(durable, kid.uuid, "two")
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard two"], "the second answer")
        assert [message.content for message in kid.history() if message.kind == "user"] == ["one", "two"]
    assert "ikigai-supervision failed" in caplog.messages
