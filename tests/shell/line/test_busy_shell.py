"""The shell and agents that are busy: nothing blocks, and everything is told."""

import threading

import pytest

from ikigai_actors import AgentRef, Message, NoTurn, ProviderError, Reply, TurnInterrupted
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Event, StoreTrouble, StreamCut, Streamed, ToolTrouble
from ikigai_actors.errors import IkigaiError, SystemClosed
from ikigai_actors.reach.conversation import LiveConversation
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.line.output import Screen
from ikigai_actors.shell.line.turn import ShownTurn
from ikigai_actors.shell.line.wakeup import WakeupPipe
from ikigai_actors.verbs.text.wording import explained
from tests.kit.blocking_provider import Gate
from tests.kit.echo import open_echo
from tests.kit.sessions import OpenSession


def short(agent: AgentRef) -> str:
    return words_of(agent.uuid)


def test_the_fork_of_a_busy_agent_waits_without_blocking_and_is_told(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    root = session.system.root
    root.prompt("work")
    gate.wait_until_asked()
    printed = session("/fork --name late", "/mark", "/agents", gate.open)
    late = session.system.agent("late")
    printed[2] = printed[2].partition(", heartbeat ")[0]
    assert printed == [
        f"the fork waits for the next step boundary in the turn of {short(root)}; a notice will say when it is done",
        f"the mark waits for the end of the turn of {short(root)}; a notice will say when it is done",
        f"* {short(root)}  waiting for the model  0 inherited + 1 own",
        "1 running, 0 dead",
        "done",
        f"late: forked from {short(root)}; /switch late goes there",
        "marked",
    ]  # fmt: skip
    assert late.parent == root


def test_commands_that_wait_are_taken_back_the_latest_first_and_say_nothing_later(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    root = session.system.root
    root.prompt("work")
    gate.wait_until_asked()
    printed = session("/mark one", "/undo", "/queue --take-back", "/queue --take-back", "/queue --take-back", gate.open)
    assert printed[2:5] == ["[taken back: /undo]", "[taken back: /mark one]", f"Nothing waits for {short(root)}."]
    assert (printed[5:], [message.kind for message in root.history()]) == (["done"], ["user", "assistant"])


def test_one_can_go_to_a_busy_agent_and_away_and_hears_when_it_has_answered(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    root = session.system.root
    other = root.fork(name="other")
    other.prompt("work")
    gate.wait_until_asked()
    printed = session("/switch other", "/parent", gate.open)
    assert printed == [
        "now with other, waiting for the model",
        "it is in the middle of a turn: Enter shows its answer, Ctrl-C interrupts it",
        f"now with {short(root)}, idle",
        "other has answered: /switch other and /history show it",
    ]


def test_a_text_to_a_busy_agent_is_answered_after_its_turn(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    session.system.root.prompt("first")
    gate.wait_until_asked()
    opener = threading.Timer(0, gate.open)
    assert session(opener.start, "second") == ["done", "done"]
    opener.join()
    assert [message.content for message in session.system.root.history()] == ["first", "done", "second", "done"]


def test_what_the_database_tells_is_told_until_the_session_ends_with_words_of_its_own() -> None:
    with open_echo("sqlite:///:memory:") as system:
        wake = WakeupPipe()
        events = LiveConversation(system, wake.set, streams=True)
        for trouble in (StoreTrouble("no answer"), StoreTrouble(None), StoreTrouble("gone for good", final=True)):
            events.hear(trouble)
        assert [explained(trouble) for trouble in events.troubles()] == [
            "Trouble with the database; nothing is lost, agents wait. no answer",
            "The database answers again.",
        ]
        events.close()
        wake.close()


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (Reply("an answer"), "an answer\n"),
        (Reply("half", stop_reason="interrupted"), "half\n[interrupted]\n"),
        (TurnInterrupted("interrupted"), "[interrupted]\n"),
        (ProviderError("overloaded"), "[error: overloaded]\n"),
        (NoTurn("no turn is open"), ""),
        (SystemClosed("closed"), ""),
    ],
)
def test_the_end_of_a_turn_is_shown_also_when_nothing_of_it_was_heard(
    capsys: pytest.CaptureFixture[str], end: Reply | IkigaiError, shown: str
) -> None:
    with open_echo("sqlite:///:memory:") as system:
        wake = WakeupPipe()
        events = LiveConversation(system, wake.set, streams=True)
        outcome: Future[Reply] = Future()
        turn = ShownTurn(system.root, events).expect(outcome)
        outcome.settle(end)
        while not turn.over:
            wake.wait()
            turn.show(Screen())
        events.close()
        wake.close()
    assert capsys.readouterr().out == shown


def test_what_a_toolset_tells_does_not_stand_in_the_middle_of_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with open_echo("sqlite:///:memory:") as system:
        wake, screen = WakeupPipe(), Screen()
        events = LiveConversation(system, wake.set, streams=True)
        turn = ShownTurn(system.root, events)

        def happens(*heard: Event) -> list[str]:
            for event in heard:
                events.hear(event)
            turn.show(screen)
            return [explained(trouble) for trouble in events.troubles(patient=turn.answering)]

        uuid, trouble = system.root.uuid, ToolTrouble("files", "its server is gone")
        assert happens(Streamed(uuid, "half of ", "text"), trouble) == []
        assert happens(StoreTrouble("no answer")) == [explained(StoreTrouble("no answer"))]  # why nothing more comes
        finished = Message(uuid, 1, "assistant", "half of an answer", {"stop_reason": "end_turn"}, 0)
        assert happens(Streamed(uuid, "an answer", "text"), finished) == ["files: its server is gone"]
        assert happens() == []
        events.close()
        wake.close()
    assert capsys.readouterr().out == "half of an answer\n"


def test_a_reply_that_is_cut_off_with_its_host_is_shown_from_its_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    with open_echo("sqlite:///:memory:") as system:
        wake, screen, uuid = WakeupPipe(), Screen(), system.root.uuid
        events = LiveConversation(system, wake.set, streams=True)
        turn = ShownTurn(system.root, events)
        events.hear(Streamed(uuid, "half of", "text"))
        turn.show(screen)
        unseen: list[Event] = [
            Streamed(uuid, " an answer", "text"),
            StreamCut(uuid),
            Streamed(uuid, "half as ", "text"),
        ]
        for event in (*unseen, Message(uuid, 1, "assistant", "half as much", {"stop_reason": "end_turn"}, 0)):
            events.hear(event)
        turn.show(screen)
        events.close()
        wake.close()
    assert capsys.readouterr().out == "half of\nhalf as much\n"


def test_a_prompt_is_queued_listed_and_taken_back(open_session: OpenSession) -> None:
    gate = Gate()
    session = open_session(gate.provider)
    root = session.system.root
    root.prompt("work")
    gate.wait_until_asked()
    printed = session("/queue first of all", "/queue and then", "/queue", "/queue --take-back", "/queue", gate.open)
    assert printed == [
        "1  first of all",
        "2  and then",
        "[taken back: and then]",
        "1  first of all",
        "done",
        "done",
    ]
    assert [message.content for message in root.history() if message.kind == "user"] == ["work", "first of all"]
