"""Streams of the provider: an answer, or a clean error; and the log still makes a valid request afterwards."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AnthropicProvider, ProviderError, Reply
from ikigai_actors.records.fsck.check import check
from tests.fuzz.hostile import fuzzed, texts, values
from tests.fuzz.mutations import mutated, shuffled
from tests.fuzz.shells import no_defects, refusals_allowed
from tests.kit.messages_server.server import MessagesServer, Refuses, Says, Sends, events_of

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")

KEY = "sk-ant-fuzz-0123456789"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


@pytest.fixture(scope="module")
def system(server: MessagesServer) -> Iterator[ActorSystem]:
    provider = AnthropicProvider(base_url=server.url, api_key=KEY)
    with ActorSystem.open("sqlite:///:memory:", provider) as opened:
        yield opened
        assert check(opened._store) == []


# No thinking: a thought that is altered on its way is the model's no more, and only the service can tell.
blocks: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(
        lambda name, number, arguments: {"type": "tool_use", "name": name, "id": number, "input": arguments},
        st.one_of(st.sampled_from(["fork", "send_mail", "none"]), texts),
        st.one_of(st.sampled_from(["toolu_1", "toolu_2"]), texts),
        st.one_of(st.dictionaries(st.sampled_from(["prompt", "name", "a"]), values, max_size=2), values),
    ),
    st.builds(lambda kind, value: {"type": kind, "of": value}, texts, values),
)

replies = st.builds(
    lambda said, stop: Says(tuple(said), stop),
    st.lists(blocks, max_size=3),
    st.one_of(st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"]), texts),
)


def _valid(value: Any) -> Any:
    """A value as JSON can say it; half a character is said, and infinity, which other programs refuse."""
    if isinstance(value, dict):
        return {str(key): _valid(each) for key, each in value.items()}
    return [_valid(each) for each in value] if isinstance(value, list) else value


def encoded(event: Any) -> bytes:
    kind = event.get("type") if isinstance(event, dict) else "odd"
    name = kind if isinstance(kind, str) and kind.isascii() and kind.isprintable() else "odd"
    return f"event: {name}\ndata: {json.dumps(_valid(event))}\n\n".encode()


@st.composite
def streams(draw: st.DrawFn) -> Sends:
    events = draw(
        shuffled(draw(mutated(events_of(draw(replies))).map(lambda each: each if isinstance(each, list) else [])))
    )
    data = b"".join(map(encoded, events))
    match draw(st.sampled_from(["whole", "whole", "whole", "cut", "garbage"])):
        case "cut":
            data = data[: draw(st.integers(0, len(data)))]
        case "garbage":
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(st.binary(max_size=12)) + data[at:]
    return Sends(data)


refusals = st.one_of(
    st.builds(Sends, st.binary(max_size=40), st.sampled_from([200, 204, 301, 400, 404, 418, 429, 500, 529]),
              st.sampled_from(["text/event-stream", "application/json", "text/html", "application/octet-stream"])),
    st.builds(lambda value, status: Sends(json.dumps(_valid(value)).encode(), status, "application/json"),
              values, st.sampled_from([200, 400, 401, 429, 500])),
    st.builds(Refuses, st.sampled_from([400, 401, 403, 404, 413, 429, 500, 529]), texts, texts, st.just({})),
)  # fmt: skip


def fresh(server: MessagesServer, system: ActorSystem, answer: Sends | Refuses) -> None:
    """One turn that gets this answer, and one after it that must get its own."""
    agent = system.root.fork()
    server.script[:] = [answer]
    with refusals_allowed(ProviderError, KEY):
        assert isinstance(agent.prompt("Go.").get(timeout=PATIENCE), Reply)
    server.script.clear()
    assert agent.prompt("And now?").get(timeout=PATIENCE).text == "ok"
    agent.kill(cascade=True)


@fuzzed(30)
@given(streams())
def test_a_broken_stream_is_an_answer_or_an_error_and_the_agent_goes_on(
    server: MessagesServer, system: ActorSystem, stream: Sends
) -> None:
    with no_defects():
        fresh(server, system, stream)


@pytest.mark.thorough("a second kind of replies")
@fuzzed(15)
@given(refusals)
def test_whatever_else_answers_is_an_error_and_the_agent_goes_on(
    server: MessagesServer, system: ActorSystem, answer: Sends | Refuses
) -> None:
    with no_defects():
        fresh(server, system, answer)


@pytest.mark.parametrize("size", [100_000])
def test_a_huge_delta_is_an_answer(server: MessagesServer, system: ActorSystem, size: int) -> None:
    fresh(server, system, Sends(b"".join(map(encoded, events_of(Says.text("漢" * size))))))
