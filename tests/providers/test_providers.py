"""The providers that need no network: offline, scripted, function, and the shorthand for replies."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ikigai_actors import ActorSystem
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.providers import base
from ikigai_actors.providers.base import Delta, Provider, Reply, Request, ToolCall
from ikigai_actors.providers.function import FunctionProvider
from ikigai_actors.providers.offline import SLOW_PACE, OfflineProvider
from ikigai_actors.providers.scripted import ScriptedProvider, Stream
from ikigai_actors.providers.shorthand import as_reply
from tests.kit.tool_scripts import OWN


def request(*prompts: str, name: str | None = None, model: str = "") -> Request:
    messages: list[dict[str, Any]] = []
    for prompt in prompts:
        messages.append({"role": "user", "content": [{"type": "text", "text": prompt}]})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "yes"}]})
    return Request("uuid", name, model, "", tuple(messages[:-1]))


def ask(provider: Provider, asked: Request | None = None) -> tuple[Reply, list[Delta]]:
    """One request on a loop of its own."""
    deltas: list[Delta] = []

    async def run() -> Reply:
        try:
            return await provider.respond(asked or request("hello"), deltas.append)
        finally:
            await provider.close()

    return asyncio.run(run()), deltas


def said(provider: Provider, asked: Request | None = None) -> str:
    return ask(provider, asked)[0].text


# Offline


def test_offline_names_the_prompt_and_how_to_get_a_model() -> None:
    text = said(OfflineProvider(), request("What is  this?"))
    assert text.startswith("You said “What is this?”.")
    assert "ANTHROPIC_API_KEY" in text


def test_offline_recalls_the_earlier_prompts() -> None:
    assert said(OfflineProvider(), request("one", "two", "three")) == (
        "You said “three”. I remember 3 prompts; before it came “one”, “two”."
    )


def test_offline_shortens_long_prompts_and_long_histories() -> None:
    text = said(OfflineProvider(), request(*(f"prompt {number} " + "x" * 90 for number in range(20))))
    assert "I remember 20 prompts" in text
    assert "“prompt 0" in text
    assert "15 more" in text
    assert len(text) < 320


def test_offline_recalls_what_a_summary_notes_also_where_a_digest_has_cut_the_notes() -> None:
    lines = ('<summary of="messages up to 9">', 'prompt: "one“"', 'prompt: "tw …', "Prompt at 7: three", "</summary>")
    assert said(OfflineProvider(), request("\n".join(lines), "four")) == (
        "You said “four”. I remember 4 prompts; before it came “one“”, “tw …”, “three”."
    )


def test_siblings_that_were_told_different_things_answer_differently() -> None:
    provider = OfflineProvider()
    assert said(provider, request("shared", "left", "now?")) != said(provider, request("shared", "right", "now?"))
    assert said(provider, request("shared", "left", "now?")) == said(provider, request("shared", "left", "now?"))


def test_offline_streams_its_answer_word_by_word_and_counts_words() -> None:
    reply, deltas = ask(OfflineProvider(), request("hello there"))
    assert "".join(delta.text for delta in deltas) == reply.text
    assert len(deltas) == len(reply.text.split())
    assert reply.usage == base.Usage(input_tokens=2, output_tokens=len(deltas))


def test_offline_makes_the_calls_of_all_words_that_come_after_results() -> None:
    call = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "seen"}
    words = [{"type": "text", "text": text} for text in ("@one", "and", "@two")]
    messages = (
        {"role": "user", "content": [{"type": "text", "text": "@look"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result, *words]},
    )
    reply, _ = ask(OfflineProvider(), Request("uuid", None, "", "", messages))
    assert [named.name for named in reply.tool_calls] == ["one", "two"]


def test_offline_answers_when_nothing_was_said() -> None:
    assert said(OfflineProvider(), Request("uuid", None, "", "", ())).startswith("Nothing was said yet.")


def test_a_paced_answer_can_be_cancelled() -> None:
    async def run() -> None:
        task = asyncio.create_task(OfflineProvider(pace=3600.0).respond(request("hello"), lambda _: None))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_the_slow_model_is_slow_unless_the_provider_has_a_pace() -> None:
    assert OfflineProvider().pace_of(request("hello")) == 0.0
    assert OfflineProvider().pace_of(request("hello", model="slow")) == SLOW_PACE
    assert OfflineProvider(pace=1.0).pace_of(request("hello", model="slow")) == 1.0


# Scripted


def test_a_script_is_played_in_order_and_each_text_is_one_delta() -> None:
    provider = ScriptedProvider(["first", Reply(text="second", stop_reason="max_tokens")])
    assert ask(provider) == (Reply(text="first"), [Delta("first")])
    assert ask(provider) == (Reply(text="second", stop_reason="max_tokens"), [Delta("second")])


def test_every_request_is_kept() -> None:
    provider = ScriptedProvider(["a", "b"])
    asked = [request("one"), request("two")]
    for each in asked:
        ask(provider, each)
    assert provider.requests == asked


def test_a_script_may_be_endless() -> None:
    def forever() -> Iterator[str]:
        while True:
            yield "again"

    provider = ScriptedProvider(forever())
    assert [said(provider) for _ in range(3)] == ["again"] * 3


def test_a_used_up_script_is_an_error_that_says_so() -> None:
    provider = ScriptedProvider(["only"])
    ask(provider)
    with pytest.raises(ProviderError, match="used up: request 2"):
        ask(provider)


def test_agents_have_scripts_of_their_own() -> None:
    provider = ScriptedProvider({"dba": ["tables"], None: ["nobody"]})
    assert said(provider, request("?", name="dba")) == "tables"
    assert said(provider, request("?")) == "nobody"
    with pytest.raises(ProviderError, match="script of agent 'dba' is used up"):
        ask(provider, request("?", name="dba"))


def test_an_agent_without_a_script_is_an_error_that_names_those_with_one() -> None:
    with pytest.raises(ProviderError, match=r"Expected a script for agent 'writer'.*'dba'"):
        ask(ScriptedProvider({"dba": []}), request("?", name="writer"))


def test_a_function_decides_by_the_request() -> None:
    assert said(ScriptedProvider(lambda asked: f"{len(asked.messages)}"), request("a", "b")) == "3"


def test_a_coroutine_function_may_decide_too() -> None:
    async def decide(asked: Request) -> str:
        return asked.agent

    assert said(ScriptedProvider(decide)) == "uuid"


@pytest.mark.parametrize("error", [ProviderError("overloaded"), KeyError("mine")])
def test_exceptions_of_a_script_are_raised_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        ask(ScriptedProvider([error]))
    assert raised.value is error


def test_a_stream_sends_its_pieces_and_becomes_their_text() -> None:
    reply, deltas = ask(ScriptedProvider([Stream((Delta("hm", "thinking"), "Hel", "lo"))]))
    assert reply == Reply(text="Hello")
    assert deltas == [Delta("hm", "thinking"), Delta("Hel"), Delta("lo")]


def test_a_stream_may_end_in_another_reply() -> None:
    call = ToolCall("read", {"path": "a"})
    reply, _ = ask(ScriptedProvider([Stream(("I read.",), then=Reply(text="I read.", tool_calls=(call,)))]))
    assert reply == Reply(text="I read.", tool_calls=(call,), stop_reason="tool_use")


def test_a_stream_that_breaks_off_leaves_its_text_in_the_error() -> None:
    with pytest.raises(ProviderError, match="cut") as raised:
        ask(ScriptedProvider([Stream(("Hel", "lo"), then=ProviderError("cut"))]))
    assert raised.value.partial == "Hello"


def test_a_delayed_stream_can_be_cancelled() -> None:
    async def run() -> None:
        provider = ScriptedProvider([Stream(("never",), delay=3600.0)])
        task = asyncio.create_task(provider.respond(request("hello"), lambda _: None))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


@pytest.mark.parametrize("script", ["text", Reply(), ProviderError("x"), Stream(), 7, {"dba": "text"}])
def test_a_single_reply_is_no_script(script: Any) -> None:
    with pytest.raises(BadInput, match="into a list"):
        ScriptedProvider(script)


# Shorthand


def test_calls_and_blocks_become_a_reply() -> None:
    call = ToolCall("read", {"path": "a"}, "c1")
    use = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
    text = {"type": "text", "text": "I read."}
    assert as_reply([call]) == Reply(tool_calls=(call,), stop_reason="tool_use")
    assert as_reply((text, use)) == Reply("I read.", (call,), "tool_use", blocks=(text, use))
    assert as_reply([text]) == Reply("I read.", blocks=(text,))
    assert as_reply([]) == Reply()


def test_what_a_reply_says_itself_is_kept() -> None:
    blocks = ({"type": "text", "text": "block"}, {"type": "tool_use", "name": "a", "input": {}})
    reply = Reply("own", (ToolCall("a"),), "max_tokens", blocks=blocks)
    assert as_reply(reply) == reply


def test_every_provider_fits_the_protocol() -> None:
    providers: list[Provider] = [OfflineProvider(), ScriptedProvider([]), FunctionProvider(lambda _: "")]
    assert [provider.name for provider in providers] == ["offline", "scripted", "function"]


def test_a_prompt_makes_the_offline_provider_call_tools_and_tell_what_they_gave() -> None:
    with ActorSystem.open(":memory:", provider=OfflineProvider()) as system:
        reply = system.root.prompt(
            'Do this:\n@fork {"prompt": "count the files", "name": "counter"}\n@agents\n@nope'
        ).get(timeout=60)
        child = system.agent("counter")
        lines = reply.text.splitlines()
        assert lines[0].startswith('agents gave: {"you": {"agent": "')
        assert lines[1] == f"nope failed: There is no such tool. Tools on offer: {', '.join(OWN)}."
        assert lines[2] == f"fork gave: Forked: the child is {child.record.short}."
        assert "count the files" in child.reply(timeout=20).text


def test_one_line_may_ask_for_several_calls() -> None:
    with ActorSystem.open(":memory:", provider=OfflineProvider()) as system:
        line = '@fork {"prompt": "find growers", "name": "a"} @agents @fork{"prompt": "find cafes", "name": "b"}'
        lines = system.root.prompt(line).get(timeout=60).text.splitlines()
        assert [text.split()[0] for text in lines] == ["agents", "fork", "fork"]
        said = [system.agent(name).reply(timeout=20).text for name in "ab"]
        assert [text[:23] for text in said] == ["You said “find growers”", "You said “find cafes”. "]


def test_what_stands_behind_then_is_asked_for_when_the_calls_before_it_have_their_results() -> None:
    with ActorSystem.open(":memory:", provider=OfflineProvider()) as system:
        turn = system.root.prompt('@fork {"name": "a"}\n@check_mail @then @then @nope @then\n@check_mail {}')
        assert turn.get(timeout=60).text == "check_mail gave: No unread mail."
        replies = [message for message in system.root.history() if message.kind == "assistant"]
        called = [[call["name"] for call in reply.data.get("tool_calls", ())] for reply in replies]
        assert called == [["fork", "check_mail"], ["nope"], ["check_mail"], []]
        assert "You said “and now?”." in system.root.prompt("and now?").get(timeout=60).text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("@fork {oops", "as JSON"),
        ("@check_mail @then @fork {oops", "as JSON"),
        ("@fork [1]", "must be a JSON object"),
        ("@fork {} please", "what follows the arguments of @fork"),
        ("mail me@home {}", "You said"),
        ("@agents of mine", "You said"),
    ],
)
def test_a_call_that_cannot_be_read_is_told_and_nothing_is_called(line: str, message: str) -> None:
    with ActorSystem.open(":memory:", provider=OfflineProvider()) as system:
        assert message in system.root.prompt(line).get(timeout=60).text
        assert len(system.agents()) == 1
