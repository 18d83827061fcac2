"""The prompt cache over real HTTP: what a parent wrote, its forks read; and the model of the cache itself."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, AnthropicProvider
from ikigai_actors.testing.simulation.messages_api import redacted_thinking, thinking, violations
from tests.kit.blocking_provider import DEADLINE
from tests.kit.messages_server.cache import LOOKBACK, PromptCache, Served, tokens
from tests.kit.messages_server.server import MessagesServer, Says

FORKS = 6
MARKED: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


@contextmanager
def parent(server: MessagesServer, **options: Any) -> Iterator[AgentRef]:
    """Agent 0 with a long history, of more messages than the cache looks back."""
    provider = AnthropicProvider(base_url=server.url, api_key="key", **options)
    with ActorSystem.open("sqlite:///:memory:", provider) as system:
        system.root.configure(system="Be thorough. " * 50)
        for number in range(LOOKBACK):
            server.script.append(Says.text(f"Answer {number} is long. " * 20))
            system.root.prompt(f"Question {number} is long as well. " * 20).get(timeout=DEADLINE)
        yield system.root


def prefix(request: dict[str, Any], messages: int) -> int:
    """The tokens of a request's tools, system and first messages."""
    blocks = [*request["tools"], *request["system"]]
    return sum(map(tokens, blocks)) + sum(_sizes(request["messages"][:messages]))


def _sizes(messages: Sequence[dict[str, Any]]) -> list[int]:
    return [tokens(block) for message in messages for block in message["content"]]


def fork_calls(count: int) -> Says:
    uses = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "fork", "input": {"prompt": f"Part {number}."}}
        for number in range(count)
    ]
    return Says(({"type": "text", "text": "I divide the work. " * 20}, *uses), stop_reason="tool_use")


# The system


@pytest.mark.slow("takes a tenth of a second")
def test_each_turn_of_an_agent_reads_what_the_one_before_wrote(server: MessagesServer) -> None:
    with parent(server):
        for earlier, later in zip(server.served, server.served[1:], strict=False):
            assert later.read == earlier.read + earlier.written
            assert later.plain == 0
    whole = server.requests[-1]
    assert sum(each.written for each in server.served) == prefix(whole, len(whole["messages"])), "each token once"


@pytest.mark.thorough("a second way to share what was written")
def test_forks_by_command_read_the_history_that_was_written_once(server: MessagesServer) -> None:
    with parent(server) as root:
        before = len(server.served)
        written = prefix(server.requests[-1], len(server.requests[-1]["messages"]))
        for number in range(FORKS):
            child = root.fork(f"Do part {number}.")
            child.reply(timeout=DEADLINE)
        served, requests = server.served[before:], server.requests[before:]
        child.prompt("Go on.").get(timeout=DEADLINE)
        child.fork("Help it.").reply(timeout=DEADLINE)
        earlier, later = server.served[-2:]
        assert later.read == earlier.read + earlier.written, "a fork of a fork"
    shared = prefix(requests[0], 2 * LOOKBACK)
    assert [each.read for each in served] == [written] + [shared] * (FORKS - 1)
    own = [_sizes(request["messages"][2 * LOOKBACK :]) for request in requests]
    assert [each.written for each in served] == [shared - written + sum(own[0]), *map(sum, own[1:])]
    assert {each.plain for each in served} == {0}


@pytest.mark.slow("takes a tenth of a second")
def test_forks_by_calls_in_one_reply_send_the_same_bytes_and_read_what_was_written_once(server: MessagesServer) -> None:
    with parent(server) as root:
        before = len(server.served) + 1
        server.script.append(fork_calls(FORKS))
        root.prompt("Divide the work.").get(timeout=DEADLINE)
        assert [child.reply(timeout=DEADLINE).text for child in root.children()] == ["ok"] * FORKS
        asked = server.requests[before - 1]
        served, requests = server.served[before:], server.requests[before:]
    written, shared = prefix(asked, len(asked["messages"])), prefix(requests[0], len(asked["messages"]) + 1)
    assert sorted(each.read for each in served) == [written] + [shared] * FORKS, "the parent goes on as well"
    same = len(asked["messages"]) + 1
    sent = {json.dumps([request["tools"], request["system"], request["messages"][:same]]) for request in requests}
    assert (len(requests), len(sent)) == (FORKS + 1, 1), "marks included, and the parent's own next request too"


@pytest.mark.slow("takes a tenth of a second")
def test_a_step_of_more_calls_than_the_cache_looks_back_is_no_miss(server: MessagesServer) -> None:
    uses = tuple({"type": "tool_use", "id": f"toolu_{place}", "name": "none", "input": {}} for place in range(LOOKBACK))
    with parent(server) as root:
        server.script.append(Says(uses, stop_reason="tool_use"))
        root.prompt("Do all at once.").get(timeout=DEADLINE)
    earlier, later = server.served[-2:]
    assert later.read == earlier.read + earlier.written


@pytest.mark.thorough("a third way to share what was written")
def test_who_summarises_reads_the_history_that_was_written_before(server: MessagesServer) -> None:
    """Between turns, within one, and under a summary: what is read anew is the prompt that asks for the text."""

    def asks_to_compact(text: str) -> list[Says]:
        use = {"type": "tool_use", "id": f"toolu_{text}", "name": "compact", "input": {}}
        return [Says((use,), stop_reason="tool_use"), Says.text(f"Notes {text}."), Says.text("On I go. " * 20)]

    with parent(server) as root:
        server.script.append(Says.text("Notes. " * 9))
        root.compact()
        between = server.served[-1]
        for number in range(LOOKBACK):
            server.script.append(Says.text(f"Answer {number} is long. " * 20))
            root.prompt(f"Question {number} is long as well. " * 20).get(timeout=DEADLINE)
        server.script += asks_to_compact("within")
        root.prompt("Go on.").get(timeout=DEADLINE)
        within = server.served[-2]
        assert [message.kind for message in root.history(all=True)].count("summary") == 2
        for served in (between, within):
            assert served.read >= 0.95 * sum(served)
        after, tools = server.served[-1], server.requests[-1]
        assert after.read == prefix(tools, 0), "tools and system prompt"


@pytest.mark.thorough("the absence of what the other tests show")
def test_without_the_cache_nothing_is_written_or_read(server: MessagesServer) -> None:
    with parent(server, prompt_cache=False) as root:
        reply = root.fork("Do your part.").reply(timeout=DEADLINE)
        assert reply.usage is not None
        assert reply.usage.input_tokens == prefix(server.requests[-1], 2 * LOOKBACK + 1)
    assert {(each.read, each.written) for each in server.served} == {(0, 0)}


# The model of the cache


def asked(*texts: str, at: Sequence[int] = (), model: str = "m", role: str = "user", **parts: Any) -> dict[str, Any]:
    """A request of one message, with marks at some of its blocks."""
    content = [{"type": "text", "text": text, **(MARKED if place in at else {})} for place, text in enumerate(texts)]
    return {"model": model, "max_tokens": 1, "messages": [{"role": role, "content": content}], **parts}


def test_a_prefix_is_read_where_it_was_written_and_nowhere_else() -> None:
    cache, size = PromptCache(), tokens({"type": "text", "text": "a"})
    assert cache.serve(asked("a", "b", "c", at=[1])) == Served(0, 2 * size, size)
    assert cache.serve(asked("a", "b", "d", at=[2])) == Served(2 * size, size, 0)
    assert cache.serve(asked("a", "x", at=[1])) == Served(0, 2 * size, 0), "no mark was at a"
    assert cache.serve(asked("a", "b")) == Served(0, 0, 2 * size), "without a mark nothing is read"
    assert cache.serve(asked("a", "b", at=[0, 1])) == Served(2 * size, 0, 0)


def test_another_model_role_or_system_prompt_is_another_prefix() -> None:
    cache = PromptCache()
    cache.serve(asked("a", at=[0]))
    for other in (asked("a", at=[0], model="n"), asked("a", at=[0], role="assistant"), asked("a", at=[0], system="s")):
        assert cache.serve(other).read == 0
    assert cache.serve(asked("a", at=[0])).read > 0


@pytest.mark.parametrize(("further", "hit"), [(LOOKBACK - 1, True), (LOOKBACK, False)])
def test_the_cache_looks_back_over_a_few_blocks_only(further: int, hit: bool) -> None:
    cache = PromptCache()
    cache.serve(asked("a", at=[0]))
    texts = ["a", *(str(number) for number in range(further))]
    assert (cache.serve(asked(*texts, at=[further])).read > 0) is hit


def test_marks_that_the_api_refuses_are_violations() -> None:
    assert violations(asked(*"abcd", at=range(4))) == []
    assert "maximum of 4 blocks" in violations(asked(*"abcde", at=range(5)))[0]
    assert "maximum of 4 blocks" in violations(asked(*"abcd", at=range(4), **MARKED))[0]
    assert "ephemeral" in violations({**asked("a"), "cache_control": {"type": "for ever"}})[0]
    assert any("empty text" in fault for fault in violations(asked("", at=[0])))
    system = [{"type": "text", "text": "", **MARKED}]
    assert any("empty text" in fault for fault in violations(asked("a", system=system)))
    for thought in (thinking("m", "x"), redacted_thinking("m", "x")):
        said = {"role": "assistant", "content": [{**thought, **MARKED}, {"type": "text", "text": "b"}]}
        body = {**asked("a"), "messages": [*asked("a")["messages"], said, *asked("c")["messages"]]}
        assert violations(body) == [f"{thought['type']}.cache_control: Extra inputs are not permitted"]
