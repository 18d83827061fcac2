"""A prompt to a stopped agent: it is kept as mail of kind ``prompt``, and taken up once when the agent goes on."""

import pytest

from ikigai_actors import ActorSystem, AgentDead, BadInput, Request, ScriptedProvider, Signal, StoreError, SystemClosed
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.events import PromptKept
from ikigai_actors.records.mail.mail import MAIL_LIMIT
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import AgentRef
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on
from tests.system.test_prompts_by_mail import leave, prompted


def kept(agent: AgentRef) -> list[str]:
    """The prompts that wait for an agent in the database, oldest first."""
    rows = agent.system._store.read(lambda tx: tx.run("new_prompts", host=None))
    return [text for uuid, _, text, *_ in rows if uuid == agent.uuid]


def said(agent: AgentRef) -> list[str]:
    """What the agent was prompted, as its history has it."""
    return [message.content for message in agent.history() if message.kind == "user"]


def test_it_is_kept_and_answered_when_the_agent_goes_on(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        heard: list[Event] = []
        system.subscribe(heard.append)
        answers = [kid.prompt(text) for text in ("one", "two", "three")]
        eventually(lambda: kept(kid) == ["one", "two", "three"], "three prompts in the database")
        eventually(
            lambda: (
                [event for event in heard if isinstance(event, PromptKept)]
                == [PromptKept(kid.uuid, 1, "one"), PromptKept(kid.uuid, 2, "two"), PromptKept(kid.uuid, 3, "three")]
            ),
            "three events",
        )
        assert not any(answer.done() for answer in answers)
        assert (kid.check_mail().unread, kid.mails(), said(kid)) == (0, [], [])
        kid.signal(Signal.CONT)
        texts = [answer.get(timeout=DEADLINE).text for answer in answers]
        assert texts == ["heard one", "heard two", "heard three"]
        assert (said(kid), kept(kid)) == (["one", "two", "three"], [])


@pytest.mark.slow("takes a tenth of a second")
def test_it_survives_the_end_of_the_process_and_is_taken_up_once(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork(name="kid")
        kid.signal(Signal.STOP)
        answer = kid.prompt("one")
        eventually(lambda: kept(kid) == ["one"], "the prompt in the database")
    with pytest.raises(SystemClosed):
        answer.get(timeout=DEADLINE)
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.agent("kid")
        assert (kid.state, said(kid), kept(kid)) == ("stopped", [], ["one"])
        kid.signal(Signal.CONT)
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard one"], "the answer")
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        assert said(system.agent("kid")) == ["one"]


def test_what_a_stopped_idle_agent_may_change_does_not_wait_behind_it(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        answer = kid.prompt("one")
        assert kid.resume(timeout=DEADLINE) is False
        position = kid.mark("here", timeout=DEADLINE)
        kid.configure(system="Be brief.", timeout=DEADLINE)
        kid.rewind("here", timeout=DEADLINE)
        assert position > 0
        kid.clear(timeout=DEADLINE)
        kid.signal(Signal.CONT)
        assert answer.get(timeout=DEADLINE).text == "heard one"


def test_prompts_of_all_sources_are_taken_up_in_order_and_each_once(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        first = kid.prompt("one")
        eventually(lambda: kept(kid) == ["one"], "the prompt in the database")
        leave(durable, kid.uuid, "two")
        with AttachedSystem.open(durable) as attached:
            heard: list[Event] = []
            attached.subscribe(heard.append)
            third = attached.handle(kid.uuid).prompt("three")
            eventually(lambda: PromptKept(kid.uuid, 3, "three") in heard, "the event")
            fourth = kid.prompt("four")
            eventually(lambda: len(kept(kid)) == 4, "the last prompt in the database")
            kid.signal(Signal.CONT)
            texts = [answer.get(timeout=DEADLINE).text for answer in (first, third, fourth)]
            assert texts == ["heard one", "heard three", "heard four"]
            assert said(kid) == ["one", "two", "three", "four"]


def test_a_prompt_that_no_mail_could_hold_is_kept_whole(database: str) -> None:
    long = "x" * (MAIL_LIMIT + 1)
    with ActorSystem.open(database, ScriptedProvider(["heard"])) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        answer = kid.prompt(long)
        eventually(lambda: kept(kid) == [long], "the prompt in the database")
        with pytest.raises(BadInput, match="65,536 bytes"):
            system.send(kid, long)
        kid.signal(Signal.CONT)
        assert answer.get(timeout=DEADLINE).text == "heard"
        assert said(kid) == [long]


def test_the_death_of_the_agent_is_told_to_who_waits_for_it(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        answer = kid.prompt("one")
        eventually(lambda: kept(kid) == ["one"], "the prompt in the database")
        kid.kill()
        with pytest.raises(AgentDead):
            answer.get(timeout=DEADLINE)


def test_one_that_could_not_be_kept_is_told_so_and_the_next_one_is_kept(durable: str) -> None:
    store = FaultyStore(open_store(durable))
    with open_on(store, ScriptedProvider(prompted)) as system:
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        store.fails(StoreError("failed, as planned"))
        with pytest.raises(StoreError, match="as planned"):
            kid.prompt("one").get(timeout=DEADLINE)
        answer = kid.prompt("two")
        kid.signal(Signal.CONT)
        assert answer.get(timeout=DEADLINE).text == "heard two"
        assert said(kid) == ["two"]


def test_it_waits_through_a_crash_of_the_supervisor_that_takes_its_agent_along(database: str) -> None:
    def code(request: Request) -> str:
        if request.name == "wild":
            raise LookupError("as planned")
        return f"heard {request.messages[-1]['content'][-1]['text']}"

    with open_on(open_store(database), code) as system:
        boss = system.root.fork(name="boss")
        boss.supervise(strategy="one_for_all")
        calm, wild = boss.fork(name="calm"), boss.fork(name="wild")
        calm.signal(Signal.STOP)
        answer = calm.prompt("one")
        eventually(lambda: kept(calm) == ["one"], "the prompt in the database")
        wild.prompt("go")
        eventually(lambda: "closed" in str(wild.history()[-1].content), "the end of the turn that crashes")
        assert not answer.done()
        calm.signal(Signal.CONT)
        assert answer.get(timeout=DEADLINE).text == "heard one"
        assert said(calm) == ["one"]
