"""Words into a turn, from outside: where they enter in each phase, receipts, withdrawals. On every database."""

import threading

import pytest

from ikigai_actors import ActorSystem, AgentDead, Message, ProviderError, Signal, SystemClosed
from ikigai_actors.errors import BadInput, InboxFull, Withdrawn
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages.steered import Steered
from ikigai_actors.store import open_store
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.dialogue import Dialogue
from tests.kit.faults import HeldStore
from tests.kit.open_on import Withholding, open_on
from tests.kit.tool_scripts import calling, faults


def turns_of(messages: list[Message]) -> list[tuple[str, str]]:
    """Kind and content of each message."""
    return [(message.kind, message.content) for message in messages]


def test_a_word_behind_a_reply_that_would_end_the_turn_goes_on_with_it(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        answer = system.root.prompt("go")
        asked = model.asked()
        receipt = system.root.steer("wait, by train")
        asked.answer("by plane")
        again = model.asked()
        assert again.said == ["wait, by train"]
        assert faults(again.request) == []
        again.answer("by train")
        assert answer.get(timeout=DEADLINE).text == "by train"
        assert receipt.get(timeout=DEADLINE) == Steered(3, turn=1, opened=False)
        assert turns_of(system.root.history()) == [
            ("user", "go"),
            ("assistant", "by plane"),
            ("steer", "wait, by train"),
            ("assistant", "by train"),
        ]


def test_a_word_said_right_after_a_prompt_belongs_to_the_turn_of_that_prompt(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        answer = system.root.prompt("go")
        receipt = system.root.steer("by train")
        asked = model.asked()
        if asked.said == ["go"]:
            asked.answer("plane")
            asked = model.asked()
        asked.answer("train")
        assert (receipt.get(timeout=DEADLINE).turn, answer.get(timeout=DEADLINE).text) == (1, "train")
        assert check(system._store) == []


def test_words_stand_behind_the_results_of_a_step_in_their_order(database: str) -> None:
    @tool
    def look() -> str:
        first.set()
        assert go.wait(DEADLINE)
        return "seen"

    first, go, model = threading.Event(), threading.Event(), Dialogue()
    with ActorSystem.open(database, provider=model, tools=[look]) as system:
        answer = system.root.prompt("go")
        model.asked().answer(calling("look", "look"))
        assert first.wait(DEADLINE)
        receipts = [system.root.steer("one"), system.root.steer("two")]
        go.set()
        again = model.asked()
        assert again.said == ["seen", "seen", "one", "two"]
        again.answer("done")
        answer.get(timeout=DEADLINE)
        assert [receipt.get(timeout=DEADLINE).turn for receipt in receipts] == [1, 1]
        assert [receipt.get(timeout=DEADLINE).position for receipt in receipts] == [7, 8]


def test_an_idle_agent_opens_a_turn_with_all_that_wait(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        system.root.signal(Signal.STOP)
        receipts = [system.root.steer("one"), system.root.steer("two")]
        system.root.signal(Signal.CONT)
        asked = model.asked()
        assert asked.said == ["one", "two"]
        assert [receipt.get(timeout=DEADLINE) for receipt in receipts] == [Steered(1, 1, opened=True), Steered(2, 1)]
        asked.answer("done")
        assert system.root.reply(timeout=DEADLINE).text == "done"


def test_now_cuts_the_request_off_and_asks_again_with_the_word(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        answer = system.root.prompt("go")
        model.asked().say("By pl")
        system.root.steer("by train", now=True)
        model.asked().answer("by train")
        assert answer.get(timeout=DEADLINE).text == "by train"
        assert turns_of(system.root.history())[1:3] == [("assistant", "By pl"), ("steer", "by train")]
        assert system.root.history()[1].data["stop_reason"] == "interrupted"
        again = system.root.prompt("on")
        model.asked()
        system.root.steer("now", now=True)
        model.asked().answer("yes")
        assert again.get(timeout=DEADLINE).text == "yes"
        assert [message.kind for message in system.root.history()[5:]] == ["retry", "steer", "assistant"]


def test_now_ends_the_calls_that_run_and_those_that_were_not_begun(database: str) -> None:
    @tool
    def hold() -> str:
        began.set()
        go.wait(DEADLINE)
        return "late"

    @tool(policy="ask")
    def risk() -> str:
        raise AssertionError("nobody approves it")

    began, go, model = threading.Event(), threading.Event(), Dialogue()
    with ActorSystem.open(database, provider=model, tools=[hold, risk], approvals="ask") as system:
        answer = system.root.prompt("go")
        model.asked().answer(calling("hold", "risk"))
        assert began.wait(DEADLINE)
        system.root.steer("stop that", now=True)
        asked = model.asked()
        held, risked, said = asked.said
        assert "may or may not have run" in held
        assert "was not begun" in risked
        assert said == "stop that"
        assert faults(asked.request) == []
        go.set()
        asked.answer("done")
        assert answer.get(timeout=DEADLINE).text == "done"
        assert system.approvals.pending() == []


def test_a_word_ends_a_wait_and_does_not_decide_on_a_call_that_asks(database: str) -> None:
    @tool(policy="ask")
    def risk() -> str:
        return "dared"

    model = Dialogue()
    with ActorSystem.open(database, provider=model, tools=[risk], approvals="ask") as system:
        answer = system.root.prompt("go")
        model.asked().answer(calling(("wait", {})))
        eventually(lambda: system.root.history()[-1].kind == "tool_call", "the wait")
        system.root.steer("what now?")
        asked = model.asked()
        assert asked.said[0].startswith("The wait was ended")
        assert asked.said[1] == "what now?"
        asked.answer(calling("risk"))
        eventually(lambda: system.approvals.pending() != [], "the question")
        receipt = system.root.steer("mind the gap")
        [call] = system.approvals.pending()
        assert not receipt.done()
        system.approvals.approve(call)
        asked = model.asked()
        assert asked.said == ["dared", "mind the gap"]
        asked.answer("done")
        answer.get(timeout=DEADLINE)


def test_a_turn_that_ends_by_an_error_or_int_lets_the_word_open_the_next_one(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        answer = system.root.prompt("go")
        asked = model.asked()
        receipt = system.root.steer("then this")
        asked.answer(ProviderError("down"))
        with pytest.raises(ProviderError):
            answer.get(timeout=DEADLINE)
        asked = model.asked()
        assert receipt.get(timeout=DEADLINE).opened
        waiting = system.root.steer("and that")
        system.root.signal(Signal.INT)
        last = model.asked()
        assert waiting.get(timeout=DEADLINE).opened
        last.answer("done")
        assert system.root.reply(timeout=DEADLINE).text == "done"


def test_a_word_is_withdrawn_while_it_is_unread(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        answer = system.root.prompt("go")
        asked = model.asked()
        receipts = [system.root.steer("one"), system.root.steer("two")]
        assert receipts[0].withdraw()
        assert not receipts[0].withdraw()
        with pytest.raises(Withdrawn):
            receipts[0].get(timeout=DEADLINE)
        asked.answer("first")
        again = model.asked()
        assert again.said == ["two"]
        again.answer("second")
        assert answer.get(timeout=DEADLINE).text == "second"
        assert not receipts[1].withdraw()


def test_a_reply_whose_only_word_was_withdrawn_ends_the_turn(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        answer = system.root.prompt("go")
        asked = model.asked()
        assert system.root.steer("never mind").withdraw()
        asked.answer("done")
        assert answer.get(timeout=DEADLINE).text == "done"


def test_a_word_that_nobody_has_read_comes_back_with_the_database(durable: str) -> None:
    model = Dialogue()
    system = ActorSystem.open(durable, provider=model)
    system.root.prompt("go")
    model.asked()
    receipt = system.root.steer("after all")
    system.close()
    with pytest.raises(SystemClosed):
        receipt.get(timeout=DEADLINE)
    model = Dialogue()
    with ActorSystem.open(durable, provider=model, resume=False) as system:
        assert system.root.resume()
        asked = model.asked()
        assert asked.said == ["go", "after all"]
        asked.answer("done")
        assert system.root.reply(timeout=DEADLINE).text == "done"
        assert [message.kind for message in system.root.history()] == ["user", "steer", "assistant"]


def test_death_is_told_and_what_cannot_be_a_word_is_refused(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        child = system.root.fork("go")
        model.asked()
        receipt = child.steer("hear me")
        child.signal(Signal.KILL)
        with pytest.raises(AgentDead):
            receipt.get(timeout=DEADLINE)
        with pytest.raises(AgentDead):
            child.steer("anybody there?")
        for wrong in ("", " ", "x" * 70_000):
            with pytest.raises(BadInput):
                system.root.steer(wrong)


@pytest.mark.thorough("a mailbox that is full")
def test_a_mailbox_of_words_that_is_full_refuses_and_only_some_enter_at_once(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        system.root.signal(Signal.STOP)
        for number in range(1_000):
            system.root.steer(str(number))
        with pytest.raises(InboxFull):
            system.root.steer("one too many").get(timeout=DEADLINE)
        system.root.signal(Signal.CONT)
        assert model.asked().said == [str(number) for number in range(101)]


def test_a_model_tells_agents_below_it_and_no_others(database: str) -> None:
    model = Dialogue()
    with ActorSystem.open(database, provider=model) as system:
        lead = system.root.fork(name="lead")
        hand = lead.fork("work", name="hand")
        working = model.asked()
        lead.prompt("go")
        steer = {"body": "hurry", "steer": True}
        model.asked().answer(calling(("send", {"to": "hand", **steer}), ("send", {"to": system.root.uuid, **steer})))
        asked = model.asked()
        sent, refused = asked.said
        assert sent == "Told: it reads this before it goes on."
        assert "below you" in refused
        asked.answer("done")
        working.answer("slowly")
        asked = model.asked()
        assert asked.said == ['<steer from="lead">\nhurry\n</steer>']
        asked.answer("done")
        hand.reply(timeout=DEADLINE)


def test_a_word_to_an_agent_of_another_process_gets_its_receipt(durable: str) -> None:
    model = Dialogue()
    with ActorSystem.open(durable, provider=model), ActorSystem.attach(durable) as system:
        answer = system.root.prompt("go")
        model.asked().say("By pl")
        receipt = system.root.steer("by train", now=True)
        asked = model.asked()
        assert receipt.get(timeout=DEADLINE) == Steered(3, turn=1)
        asked.answer("by train")
        assert answer.get(timeout=DEADLINE).text == "by train"
        system.root.signal(Signal.STOP)
        withdrawn, opened = system.root.steer("never mind"), system.root.steer("more")
        assert withdrawn.withdraw()
        system.root.signal(Signal.CONT)
        asked = model.asked()
        assert opened.get(timeout=DEADLINE) == Steered(5, turn=5, opened=True)
        assert not opened.withdraw()
        with pytest.raises(Withdrawn):
            withdrawn.get(timeout=DEADLINE)
        asked.answer("done")
        assert system.root.reply(timeout=DEADLINE).text == "done"


def test_a_word_with_a_key_is_said_once(durable: str) -> None:
    model = Dialogue()
    with ActorSystem.open(durable, provider=model) as system:
        system.root.signal(Signal.STOP)
        receipts = [system.root.steer("by train", key="k1") for _ in range(2)]
        assert receipts[0].kept.get() == receipts[1].kept.get()
        with pytest.raises(BadInput, match="names another call"):
            system.root.steer("by plane", key="k1").get(timeout=DEADLINE)
        assert system.root.steer("never mind", key="k2").withdraw()
        system.root.signal(Signal.CONT)
        asked = model.asked()
        assert asked.said == ["by train"]
        assert [receipt.get(timeout=DEADLINE) for receipt in receipts] == [Steered(1, 1, opened=True)] * 2
        with ActorSystem.attach(durable) as attached:
            assert attached.root.steer("by train", key="k1").get(timeout=DEADLINE) == Steered(1, 1, opened=True)
        asked.answer("done")
        system.root.reply(timeout=DEADLINE)
    with ActorSystem.open(durable, provider=model) as system:
        again = system.root.steer("by train", key="k1")
        assert again.get(timeout=DEADLINE) == Steered(1, 1, opened=True)
        assert not again.withdraw()
        for wrong in ("", "a\nb", "k" * 201):
            with pytest.raises(BadInput):
                system.root.steer("by train", key=wrong)


def test_a_word_that_enters_the_history_just_before_a_kill_has_its_position(durable: str) -> None:
    model, store, dispatcher = Dialogue(), HeldStore(open_store(durable)), Withholding()
    with open_on(store, model, lambda _: dispatcher) as system:
        child = system.root.fork("go")
        asked, actor = model.asked(), system._actor(child.uuid)
        receipt = child.steer("by train")
        eventually(lambda: actor.backlog.words and not actor.actor_inbox.scheduled, "the word")
        store.hold()
        asked.answer("by plane")
        eventually(lambda: actor.actor_inbox.held and not actor.actor_inbox.scheduled, "the unit of the word")
        dispatcher.withhold(actor)
        store.let_go()
        eventually(lambda: len(actor.actor_inbox) == 1, "its commit, of which the agent does not know yet")
        child.signal(Signal.KILL)
        dispatcher.let_go()
        assert receipt.get(timeout=DEADLINE) == Steered(4, turn=2, opened=False)
