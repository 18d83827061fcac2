"""What is sent to the Messages API is byte for byte what its client would send, and each message is encoded once."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anthropic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.providers import message_json
from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.base import Request
from ikigai_actors.providers.blocks import Blob, PictureBlock, ResultBlock, TextBlock
from ikigai_actors.providers.conversation import MessageForms, Passage, chain_of, extended
from ikigai_actors.providers.message_json import CHUNK, encoded, passage_with
from ikigai_actors.providers.prompt_cache import breakpoints
from tests.agent.test_assembly_of_trees import Grown, Step, steps
from tests.agent.turn.test_assembly import MODEL
from tests.kit.breakpoints import with_breakpoints
from tests.kit.messages_server.server import MessagesServer

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def as_the_client(value: object) -> str:
    """How the client of the API writes JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def written(request: Request, cached: bool = True) -> str:
    last = chain_of(request.messages)
    return b"".join(encoded(last, {}, breakpoints(last, request.shared) if cached else ())).decode()


class Sent(Grown):
    """A tree of agents; each request is compared with what the client would write of it, marked and not."""

    def ask(self, uuid: str, model: str = MODEL) -> Request:
        request = super().ask(uuid, model)
        plain = list(request.messages)
        assert written(request) == as_the_client(with_breakpoints({"messages": plain}, request.shared)["messages"])
        assert written(request, cached=False) == as_the_client(plain)
        return request


@pytest.mark.parametrize("chunk", [0, 150, CHUNK])
@given(script=steps)
@settings(max_examples=60, deadline=None)
def test_the_messages_of_any_tree_are_written_as_the_client_writes_them(chunk: int, script: Sequence[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:  # chains of a test are short: smaller chunks, for the joins
        patch.setattr(message_json, "CHUNK", chunk)
        sent = Sent()
        for step in script:
            sent.do(step)
        for uuid in sent.oracles:
            sent.ask(uuid)


texts = st.text(max_size=20)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(leaves, lambda of: st.lists(of) | st.dictionaries(texts, of), max_leaves=8)
contents = st.one_of(texts, st.lists(st.sampled_from([PICTURE, {"type": "text", "text": "seen"}]), min_size=1))
forms = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, texts),
    st.builds(
        lambda arguments: {"type": "tool_use", "id": "1", "name": "n", "input": arguments},
        st.dictionaries(texts, values),
    ),
    st.builds(lambda said: {"type": "tool_result", "tool_use_id": "1", "content": said, "is_error": True}, contents),
    st.builds(lambda arguments: {"type": "text", "cache_control": arguments, "text": "was marked"}, values),
)
some_forms = st.lists(forms, min_size=1, max_size=3)


@pytest.mark.slow("takes a second")
@given(st.lists(some_forms, min_size=1, max_size=6), st.integers(0, 400), st.data())
@settings(max_examples=150, deadline=None)
def test_any_blocks_are_written_as_the_client_writes_them_and_marked_where_they_were(
    sides: list[list[dict[str, Any]]], chunk: int, data: st.DataObject
) -> None:
    roles = ("user", "assistant")
    sides += [] if len(sides) % 2 else [[{"type": "text", "text": "and now?"}]]
    plain = [{"role": roles[place % 2], "content": side} for place, side in enumerate(sides)]
    last = chain_of(plain)
    shared = data.draw(st.integers(0, last.replied))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_json, "CHUNK", chunk)
        for _ in range(2):  # made, and kept
            written = b"".join(encoded(last, {}, breakpoints(last, shared))).decode()
            assert written == as_the_client(with_breakpoints({"messages": plain}, shared)["messages"])


def test_pictures_and_results_with_pictures_are_written_as_the_client_writes_their_forms() -> None:
    picture = PictureBlock(Blob("0" * 64, "image/png", 3, "plan.png"))
    blobs = {"0" * 64: b"png"}
    last = extended(None, "user", (picture, TextBlock("What is this?")))
    last = extended(last, "assistant", (TextBlock("I look."),))
    last = extended(last, "user", (ResultBlock("1", "look", "a plan", False, (picture,)), picture))
    plain = list(MessageForms(last, blobs))
    written = b"".join(encoded(last, blobs, breakpoints(last, 0))).decode()
    assert written == as_the_client(with_breakpoints({"messages": plain}, 0)["messages"])


def test_the_whole_body_is_the_one_that_the_client_makes_of_the_same_arguments() -> None:
    asked: Mapping[str, Any] = {
        "model": "m", "max_tokens": 99, "system": [{"type": "text", "text": "Be brief: “…”"}],
        "tools": [{"name": "read", "input_schema": {"type": "object", "properties": {}}}],
        "thinking": {"type": "adaptive"}, "stop_sequences": ["END"], "extra_body": {"temperature": 0.5, "top_p": 1},
    }  # fmt: skip
    messages = (
        {"role": "user", "content": [{"type": "text", "text": "Grüße 🍵"}, PICTURE]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "read", "input": {"a": [1.5, None]}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [PICTURE]}]},
    )
    settings = {"max_tokens": 99, "thinking": {"type": "adaptive"}, "stop_sequences": ["END"], **asked["extra_body"]}

    async def both(server: MessagesServer) -> None:
        provider = AnthropicProvider(base_url=server.url, api_key="key")
        request = Request("uuid", None, "m", asked["system"][0]["text"], messages, asked["tools"], settings)
        await provider.respond(request, lambda _: None)
        await provider.close()
        client = anthropic.AsyncAnthropic(base_url=server.url, api_key="key", max_retries=0)
        body = with_breakpoints({**asked, "messages": messages}, 0)
        async with client, await client.messages.create(**body, stream=True) as stream:
            await stream.close()

    with MessagesServer() as server:
        asyncio.run(both(server))
        ours, theirs = server.bodies
    assert ours == theirs


def _long(count: int, of: Passage | None = None) -> Passage:
    for place in range(count):
        role = "assistant" if of is not None and of.role == "user" else "user"
        of = extended(of, role, (TextBlock(f"{place} is said here and now. " * 4),))
    assert of is not None
    return of


def test_what_was_encoded_is_not_encoded_again_for_the_parent_or_for_a_child() -> None:
    last = _long(999)
    encoded(last, {}, ())
    reached: Passage | None = last
    while reached is not None:
        reached.blocks = [cast("Any", object()) for _ in reached.blocks]  # nothing that can be encoded
        reached = reached.earlier
    for child in (_long(2, last), _long(4, last)):
        assert len(json.loads(b"".join(encoded(child, {}, breakpoints(child, 999))))) == child.messages


def test_a_request_refers_to_what_was_written_by_chunks_and_siblings_share_them() -> None:
    last = _long(9_999)
    first, other = (encoded(end, {}, breakpoints(end, last.total)) for end in (_long(2, last), _long(2, last)))
    size = sum(map(len, first))
    assert len(first) < size / CHUNK * 1.2 + 2 * CHUNK / 100
    assert sum(len(part) for part in first if any(part is same for same in other)) > size - 3 * CHUNK


def test_a_block_is_found_from_the_end_by_way_of_the_chunks() -> None:
    last = _long(9_999)
    encoded(last, {}, ())
    for block in (1, 2, 5_000, 9_998, 9_999):
        assert passage_with(last, block).total == block


def test_half_of_a_character_is_refused_and_what_was_before_it_stays() -> None:
    bad = extended(_long(2), "user", (TextBlock("\ud800"),))
    for _ in range(2):
        with pytest.raises(UnicodeEncodeError):
            encoded(bad, {}, ())
    assert json.loads(b"".join(encoded(_long(2), {}, ())))[0]["role"] == "user"
