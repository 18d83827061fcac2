"""A turn as it happens, piece by piece."""

import asyncio
from collections.abc import Callable

import pytest

from ikigai_actors import (
    ActorSystem,
    AsyncActorSystem,
    BadInput,
    FunctionProvider,
    OfflineProvider,
    Reply,
    Request,
    ScriptedProvider,
    ToolCall,
    tool,
)
from ikigai_actors.agent.subscriptions import Event, StreamCut, Streamed
from ikigai_actors.records.messages.messages import Kind, new_message
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.reply_stream import PieceMaker, StreamPiece
from tests.kit.blocking_provider import DEADLINE, Gate


@tool
def weigh(what: str) -> str:
    """Weigh something."""
    return f"{what}: 3 kg"


def weighing(request: Request) -> Reply:
    if request.messages[-1]["content"][0]["type"] == "tool_result":
        return Reply("Three kilos.")
    return Reply("I weigh it.", tool_calls=(ToolCall("weigh", {"what": "tea"}, "c1"),))


def test_a_turn_comes_as_texts_calls_and_results_and_its_reply_ends_it(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), FunctionProvider(weighing), tools=[weigh]) as system:
        with system.root.stream("How heavy is the tea?") as stream:
            pieces = [(piece.kind, piece.text) for piece in stream]
        assert pieces == [
            ("text", "I weigh it."),
            ("call", "weigh"),
            ("result", "tea: 3 kg"),
            ("text", "Three kilos."),
        ]
        assert stream.reply.text == "Three kilos."
        assert [*system.root.stream()] == []


@pytest.mark.parametrize("attached", [False, True])
def test_the_pieces_of_a_streamed_text_are_the_reply(durable: str, attached: bool) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as host, AttachedSystem.open(durable) as other:
        stream = (other if attached else host).root.stream("a cup of tea")
        assert "".join(piece.text for piece in stream) == stream.reply.text


def test_the_turn_in_progress_is_followed_and_an_earlier_one_is_left_out(new_sqlite: Callable[[], str]) -> None:
    gate = Gate("done")
    with ActorSystem.open(new_sqlite(), gate.provider) as system:
        system.root.prompt("first")
        gate.wait_until_asked()
        now, later = system.root.stream(), system.root.stream("second")
        gate.open()
        assert [piece.text for piece in now] == ["done"]
        assert [piece.text for piece in later] == ["done"]


def test_who_leaves_a_stream_leaves_the_turn_as_it_is(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), OfflineProvider()) as system:
        for piece in (stream := system.root.stream("a cup of tea")):
            assert piece.kind == "text"
            break
        stream.close()
        assert [*stream] == []
        assert "a cup of tea" in stream.reply.text


def test_a_prompt_that_is_refused_ends_the_subscription(new_sqlite: Callable[[], str]) -> None:
    with ActorSystem.open(new_sqlite(), ScriptedProvider([])) as system:
        with pytest.raises(BadInput):
            system.root.stream(" ")
        assert not system._publisher.is_heard


def test_a_reply_that_is_asked_for_again_begins_again() -> None:
    made = PieceMaker(None)
    events: list[Event] = [
        Streamed("a", "Half", "text"),
        new_message("a", 2, Kind.RETRY, "The connection broke.", {}, 0),
        Streamed("a", "Who", "text"),
        StreamCut("a"),
        Streamed("a", "Whole", "text"),
        new_message("a", 3, Kind.ASSISTANT, "Whole.", {}, 0),
        Streamed("a", "other", "text"),
        new_message("a", 4, Kind.ASSISTANT, "New", {}, 0),
    ]
    pieces = [piece for event in events for piece in made.pieces_of(event)]
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("text", "Half"),
        ("retry", "The connection broke."),
        ("text", "Who"),
        ("retry", "The reply was cut off: its host has ended, or the agent has moved."),
        ("text", "Whole"),
        ("text", "."),
        ("text", "other"),
        ("retry", "The reply differs from what was received of it."),
        ("text", "New"),
    ]


def test_an_asyncio_program_reads_a_stream_and_awaits_its_reply(durable: str) -> None:
    async def run() -> tuple[list[StreamPiece], Reply]:
        async with AsyncActorSystem.open(durable, OfflineProvider()) as system:
            async with system.root.stream("a cup of tea") as stream:
                pieces = [piece async for piece in stream]
            return pieces, await stream.reply

    pieces, reply = asyncio.run(asyncio.wait_for(run(), DEADLINE))
    assert "".join(piece.text for piece in pieces) == reply.text
