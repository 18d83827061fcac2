"""What a client of AG-UI shows is what the log says, however pieces, cuts and messages come, and wherever it begins."""

import json

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    FunctionCall,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolMessage,
)
from ag_ui.core import ToolCall as WebCall
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.doors.agui.transcript import CUT_NOTICE, ClientMessages, WebTranscript
from ikigai_actors.reach.replies_on_their_way import RepliesOnTheirWay
from ikigai_actors.records.messages.messages import BOUNDARIES, Kind, Message
from tests.kit.agui import Shown, Verifier

AGENT = "kid"

PIECES = ("a", "bc", "d\ud800", "e")
STEPS = st.lists(
    st.sampled_from([*PIECES, "reply", "other reply", "cut", "retry", "fork", "look", "look"]), min_size=3, max_size=25
)


class Client:
    """One that begins at some time; it looks only now and then."""

    def __init__(self, log: list[Message], has: ClientMessages | None = None) -> None:
        self._log, self.shown, self._verifier = log, Shown(), Verifier()
        boundary = max((message.id for message in log if message.kind in BOUNDARIES), default=0)
        reply = max((message.id for message in log if message.kind == Kind.ASSISTANT), default=0)
        self._transcript = WebTranscript(log[-1].id, boundary, reply, has)
        self.begun = log[-1].id
        self._take(RunStartedEvent(thread_id="t", run_id="r"))

    def look(self, replies: RepliesOnTheirWay) -> None:
        for message in self._log[self._transcript.place :]:
            for event in self._transcript.message(message):
                self._take(event)
        for event in () if replies.is_open(AGENT, self._transcript.seen[0]) else self._transcript.cut():
            self._take(event)
        if (piece := replies.behind(AGENT, self._transcript.seen)) is not None:
            for event in self._transcript.piece(AGENT, piece):
                self._take(event)

    def _take(self, event: BaseEvent) -> None:
        sent = json.loads(event.model_dump_json(by_alias=True))
        self._verifier.take(sent)
        self.shown.take(sent)

    def end(self, replies: RepliesOnTheirWay) -> dict[str, str]:
        """The texts that it shows, by their ids, when all is over."""
        self.look(replies)
        self._take(RunFinishedEvent(thread_id="t", run_id="r"))
        return {message["id"]: message["content"] for message in self.shown.messages}


@settings(max_examples=1000)
@given(STEPS, st.integers(0, 10))
def test_each_reply_is_shown_once_and_whole_and_what_came_to_nothing_says_so(steps: list[str], joins: int) -> None:
    log, replies, text = [Message(AGENT, 1, Kind.USER, "go", {}, 1)], RepliesOnTheirWay(), ""
    clients = [Client(log)]

    def commit(kind: str, content: str) -> None:
        log.append(Message(AGENT, len(log) + 1, kind, content, {}, 1))
        if kind in BOUNDARIES:
            replies.close(AGENT)

    for place, step in enumerate(steps):
        if place == joins:
            clients.append(Client([*log]))
            clients[-1]._log = log
        match step:
            case piece if piece in PIECES:
                text += piece
                replies.add(AGENT, piece, len(log))
            case "reply" | "other reply" | "retry":
                whole = text.replace("\ud800", "\ufffd") + "." if step == "reply" else "another"
                commit(Kind.RETRY if step == "retry" else Kind.ASSISTANT, whole)
                text = ""
            case "cut":
                replies.close(AGENT)
                text = ""
            case "fork":
                commit(Kind.FORK, "")
            case "look":
                for client in clients:
                    client.look(replies)
    commit(Kind.ASSISTANT, text.replace("\ud800", "\ufffd") + " end")
    for client in clients:
        shown = client.end(replies)
        said = [message.content for message in log if message.kind == Kind.ASSISTANT and message.id > client.begun]
        kept = [answer for answer in shown.values() if not answer.endswith(CUT_NOTICE)]
        assert [answer.replace("\ud800", "\ufffd") for answer in kept] == said


def test_a_client_gets_what_it_does_not_have() -> None:
    log = [Message(AGENT, 1, Kind.USER, "go", {}, 1)]
    call = {"tool_calls": [{"id": "c", "name": "look", "input": {}}]}
    log += [Message(AGENT, 2, Kind.ASSISTANT, "one two", call, 1)]
    log += [Message(AGENT, 3, Kind.TOOL_RESULT, "done", {"tool_use_id": "c"}, 1)]
    look = FunctionCall(name="look", arguments="{}")
    has = ClientMessages.of(
        [
            AssistantMessage(id="kid:1:reply", content="one ", tool_calls=[WebCall(id="2/c", function=look)]),
            ToolMessage(id="kid:3", content="done", tool_call_id="2/c"),
        ]
    )
    transcript = WebTranscript(1, 1, 0, has)
    events = [event for message in log[1:] for event in transcript.message(message)]
    assert events == [
        TextMessageStartEvent(message_id="kid:1:reply", role="assistant"),
        TextMessageContentEvent(message_id="kid:1:reply", delta="two"),
        TextMessageEndEvent(message_id="kid:1:reply"),
    ]


def test_pieces_of_a_reply_that_the_log_has_already_are_passed_over() -> None:
    log, replies = [Message(AGENT, 1, Kind.USER, "go", {}, 1)], RepliesOnTheirWay()
    replies.add(AGENT, "one ", 1)
    log.append(Message(AGENT, 2, Kind.ASSISTANT, "one two", {}, 1))
    client = Client(log[:1])
    client._log = log
    client.look(replies)  # the subscription has not heard of the message yet
    replies.close(AGENT)
    replies.add(AGENT, "three", 2)
    client.look(replies)
    log.append(Message(AGENT, 3, Kind.ASSISTANT, "three four", {}, 1))
    assert [*client.end(replies).values()] == ["one two", "three four"]
