"""A2aAgent: agents of other systems as tools, at a server of the official package and at one of ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput
from ikigai_actors.tools import A2aAgent, CurrentCall, Result
from ikigai_actors.tools.effect_keys import acting_call
from tests.doors.test_a2a import CARD
from tests.doors.test_api import served, staged
from tests.kit.a2a_agent_server import tea_agent
from tests.kit.tool_scripts import calling, scripted


@asynccontextmanager
async def opened(url: str, **how: Any) -> AsyncIterator[Callable[..., Awaitable[Result]]]:
    """The tool of an agent, as a call with a key of its own each."""
    agent = A2aAgent(url, name="tea", **how)
    [tool] = await agent.open(print)

    async def ask(text: str, key: str, **more: Any) -> Result:
        acting_call.set(CurrentCall(key, 1, "a" * 22, "1"))
        return await tool.call_async({"text": text, **more})

    try:
        yield ask
    finally:
        await agent.close()


def test_an_agent_of_another_system_answers_asks_back_and_fails() -> None:
    async def main() -> None:
        async with tea_agent() as (url, heard), opened(url) as ask:
            done = json.loads((await ask("green tea", "k1")).content)
            assert (done["state"], done["text"]) == ("completed", "green tea is ready")
            asked = json.loads((await ask("ask", "k2")).content)
            assert (asked["state"], asked["text"]) == ("input_required", "How strong?")
            answered = json.loads((await ask("strong", "k3", task=asked["task"])).content)
            assert (answered["state"], answered["task"]) == ("completed", asked["task"])
            failed = await ask("fail", "k4")
            assert failed.is_error
            assert "No tea is left." in failed.content
            refused = await ask("more", "k5", task=done["task"])
            assert refused.content.endswith("This call did not run.")
            again = json.loads((await ask("", "k6", task=done["task"])).content)
            assert again["text"] == "green tea is ready"
            assert heard.heard == ["green tea", "ask", "strong", "fail"]

    asyncio.run(main())


def test_a_call_that_is_repeated_is_one_task_of_an_agent_of_ours(durable: str) -> None:
    with staged(durable) as stage:
        kid = stage.host.agent("kid")
        kid.configure(card=CARD)

        async def main() -> None:
            async with served(stage) as (client, _):
                url = f"{str(client.base_url).rstrip('/')}/a2a/{kid.uuid}"
                async with opened(url, headers={"Authorization": "Bearer anna"}) as ask:
                    first, second = [await ask("tea", "k1") for _ in range(2)]
                    assert first == second
                    context = json.loads(first.content)["context"]
                    await ask("milk", "k2", context=context)
                async with opened(url, headers={"Authorization": "Bearer x"}) as ask:
                    refused = await ask("tea", "k3")
                    assert refused.is_error
                    assert "401" in refused.content
                    assert refused.content.endswith("This call did not run.")

        asyncio.run(main())
        [context] = kid.children()
        assert [each.content for each in context.history() if each.kind == "user"] == ["tea", "milk"]


@pytest.mark.parametrize("cut_at", ["card", "send"])
def test_what_is_cut_off_after_it_was_sent_is_unclear_and_all_else_did_not_run(cut_at: str) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            if head.startswith("GET") and cut_at != "card":
                interface = {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
                body = json.dumps({"supportedInterfaces": [interface]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, opened(url) as ask:
            failed = await ask("tea", "k1")
        assert failed.is_error
        assert ("may or may not" in failed.content) is (cut_at == "send")
        assert ("did not run" in failed.content) is (cut_at != "send")
        async with opened(url) as ask:
            assert "cannot be reached" in (await ask("tea", "k2")).content

    asyncio.run(main())


def test_a_card_that_names_another_host_gets_no_headers() -> None:
    async def main() -> None:
        async with tea_agent() as (url, heard), opened(url.replace("127.0.0.1", "localhost")) as ask:
            assert "names another host" in (await ask("tea", "k1")).content
            assert heard.heard == []

    asyncio.run(main())


def test_a_model_asks_an_agent_of_another_system(new_sqlite: Callable[[], str]) -> None:
    async def main() -> None:
        async with tea_agent() as (url, heard):
            provider = scripted([calling(("tea__ask", {"text": "green tea"})), "thanks"])

            def work() -> str:
                with ActorSystem.open(
                    new_sqlite(), provider, tools=[A2aAgent(url, name="tea", policy="allow")]
                ) as host:
                    assert host.root.prompt("tea, please").get(timeout=60).text == "thanks"
                    [result] = [each for each in host.root.history() if each.kind == "tool_result"]
                    return str(result.content)

            assert "green tea is ready" in await asyncio.to_thread(work)
            assert heard.heard == ["green tea"]

    asyncio.run(main())


@pytest.mark.parametrize("url", ["tea", "http://anna:secret@example.com", "https://example.com/#x"])
def test_an_address_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="address of an agent"):
        A2aAgent(url)
