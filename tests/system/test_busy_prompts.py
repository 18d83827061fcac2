"""A person's prompt to a busy agent: it is stored at once as mail, and answered once, after the turn in progress."""

from ikigai_actors import ActorSystem, ScriptedProvider, Signal, StoreError
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.events import PromptKept
from ikigai_actors.reach.conversation import outcome_of_future, say
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.open_on import open_on
from tests.system.test_prompts_by_mail import prompted
from tests.system.test_stopped_prompts import kept, said


def test_it_outlives_the_process_and_is_answered_once_after_the_turn_before_it(durable: str) -> None:
    hanging = Hanging("So it begins")
    with ActorSystem.open(durable, hanging) as system:
        kid = system.root.fork(name="kid")
        for text in ("one", "two", "three"):
            say(kid, text).stored.get(timeout=DEADLINE)
        assert (said(kid), kept(kid)) == (["one"], ["two", "three"])
        assert (system.statistics().kept, system.statistics().pending) == (2, 0)
    with ActorSystem.open(durable, ScriptedProvider(prompted), resume=False) as system:
        kid = system.agent("kid")
        assert kid.resume(timeout=DEADLINE)
        eventually(lambda: [message.content for message in kid.history()][-1:] == ["heard three"], "the last answer")
        assert (said(kid), kept(kid)) == (["one", "two", "three"], [])


def test_it_is_answered_where_it_was_asked_and_keeps_its_place_among_commands(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, gate.provider) as system:
        first = say(system.root, "one")
        gate.wait_until_asked()
        mark, second = system.root.aio.mark("between"), say(system.root, "two")
        second.stored.get(timeout=DEADLINE)
        gate.open()
        assert [first.get(timeout=DEADLINE).text, second.get(timeout=DEADLINE).text] == ["done", "done"]
        assert mark.get(timeout=DEADLINE) == 3
        assert [message.kind for message in system.root.history(all=True)] == [
            "user",
            "assistant",
            "mark",
            "user",
            "assistant",
        ]


def test_it_is_said_to_wait_for_cont_when_its_agent_is_stopped_meanwhile(database: str) -> None:
    with ActorSystem.open(database, Hanging("So it begins")) as system:
        kid = system.root.fork("go")
        second = say(kid, "two")
        second.stored.get(timeout=DEADLINE)
        heard: list[Event] = []
        system.subscribe(heard.append, only=(PromptKept,))
        kid.signal(Signal.STOP)
        eventually(lambda: heard == [PromptKept(kid.uuid, 1, "two")], "the event")


def test_one_that_could_not_be_stored_says_so_and_the_next_one_is(durable: str) -> None:
    store = FaultyStore(open_store(durable))
    gate = Gate()
    with open_on(store, gate.provider) as system:
        first = system.root.prompt("one")
        gate.wait_until_asked()
        store.fails(StoreError("failed, as planned"))
        lost = say(system.root, "two")
        lost.stored.get(timeout=DEADLINE)
        assert isinstance(outcome_of_future(lost), StoreError)
        gate.open()
        outcome_of_future(first)
        third = say(system.root, "three")
        third.stored.get(timeout=DEADLINE)
        assert said(system.root)[-1] == "three"


def test_an_attached_process_knows_when_it_is_stored(durable: str) -> None:
    with ActorSystem.open(durable, Hanging("So it begins")) as system, AttachedSystem.open(durable) as attached:
        system.root.prompt("one")
        reply = say(attached.root, "two")
        reply.stored.get(timeout=DEADLINE)
        assert kept(system.root) == ["two"]
