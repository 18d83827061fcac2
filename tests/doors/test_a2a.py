"""A2A: what agents of other systems ask for, at the real database, with real agents, and with the official client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import a2a_pb2 as sdk
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

from ikigai_actors.api import Principal, api
from ikigai_actors.records.fsck.check import check
from tests.doors.test_api import Stage, staged
from tests.kit.blocking_provider import Gate

CARD = {
    "name": "Kid",
    "description": "Makes tea.",
    "skills": [{"id": "tea", "name": "Tea", "description": "Makes tea.", "tags": ["tea"]}],
}


class A2aStage:
    """A stage whose agent `kid` has a card."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.host = stage, stage.host
        self.kid = self.host.agent("kid")
        self.kid.configure(card=CARD)
        stage.app = api(stage.system, stage.principal_of, url="http://api")

    @asynccontextmanager
    async def http(self, who: str = "anna") -> AsyncIterator[httpx.AsyncClient]:
        headers = {"Authorization": f"Bearer {who}", "A2A-Version": "1.0"}
        transport = httpx.ASGITransport(app=self.stage.app)
        base = f"http://api/a2a/{self.kid.uuid}"
        async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=60) as client:
            yield client

    @asynccontextmanager
    async def client(self, who: str = "anna", *, streaming: bool = False) -> AsyncIterator[Client]:
        """The official client, made of the card."""
        async with self.http(who) as http:
            card = await A2ACardResolver(http, str(http.base_url)).get_agent_card()
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=["HTTP+JSON"], streaming=streaming)
            yield ClientFactory(config).create(card)

    def run(self, work: Callable[[Any], Awaitable[Any]], who: str = "anna", *, raw: bool = False, **more: Any) -> Any:
        async def main() -> Any:
            async with self.http(who) if raw else self.client(who, **more) as client:
                return await work(client)

        return asyncio.run(main())

    def said(self, context: str) -> list[str]:
        """The prompts that a context has taken up."""
        return [message.content for message in self.host.agent(context).history() if message.kind == "user"]


@contextmanager
def a2a_staged(database: str, *words: Any, **options: Any) -> Iterator[A2aStage]:
    with staged(database, *words, **options) as stage:
        yield A2aStage(stage)


@pytest.fixture
def a2a(durable: str) -> Iterator[A2aStage]:
    with a2a_staged(durable) as made:
        yield made


def message(text: str, name: str, *, context: str = "", task: str = "") -> sdk.Message:
    part = sdk.Part(text=text)
    return sdk.Message(message_id=name, context_id=context, task_id=task, role=sdk.ROLE_USER, parts=[part])


async def sent(client: Client, text: str, name: str, *, at_once: bool = False, **where: str) -> sdk.Task:
    how = sdk.SendMessageConfiguration(return_immediately=at_once)
    request = sdk.SendMessageRequest(message=message(text, name, **where), configuration=how)
    [event] = [event async for event in client.send_message(request, context=ClientCallContext(timeout=60))]
    return event.task


def as_sent(text: str, name: str, **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": name, "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def test_the_official_client_opens_a_context_goes_on_in_it_and_reads_its_tasks(a2a: A2aStage) -> None:
    async def work(client: Client) -> None:
        first = await sent(client, "green tea", "1")
        assert first.status.state == sdk.TASK_STATE_COMPLETED
        assert first.artifacts[0].parts[0].text
        assert first.id == f"{first.context_id}.m0"
        again = await sent(client, "green tea", "1")
        assert (again.id, again.artifacts) == (first.id, first.artifacts)
        second = await sent(client, "and milk", "2", context=first.context_id)
        assert (second.context_id, second.id) == (first.context_id, f"{first.context_id}.m1")
        assert (await sent(client, "and milk", "2", context=first.context_id)).id == second.id
        read = await client.get_task(sdk.GetTaskRequest(id=second.id))
        assert read.history[0].parts[0].text == "and milk"
        assert read.history[0].message_id == "2"
        bare = await client.get_task(sdk.GetTaskRequest(id=second.id, history_length=0))
        assert not bare.history
        assert a2a.said(first.context_id) == ["green tea", "and milk"]
        card = await client.get_extended_agent_card(sdk.GetExtendedAgentCardRequest())
        assert (card.name, card.skills[0].id) == ("Kid", "tea")

    a2a.run(work)
    assert a2a.said("kid") == []
    [context] = a2a.kid.children()
    assert "card" not in context.context().settings
    [opened, *_] = [each for each in context.history() if each.kind == "user"]
    assert opened.data["principal"] == "anna"
    assert check(a2a.host._store) == []


def test_two_principals_may_use_the_same_id_of_a_message(a2a: A2aStage) -> None:
    async def work(client: Client) -> sdk.Task:
        return await sent(client, "tea", "1")

    assert a2a.run(work).context_id != a2a.run(work, "op").context_id
    assert len(a2a.kid.children()) == 2


def test_a_message_that_comes_twenty_times_at_once_opens_one_task(a2a: A2aStage) -> None:
    async def work(client: Client) -> None:
        tasks = await asyncio.gather(*(sent(client, "tea", "1") for _ in range(20)))
        assert len({task.id for task in tasks}) == 1
        context = tasks[0].context_id
        tasks = await asyncio.gather(*(sent(client, "more", "2", context=context) for _ in range(20)))
        assert len({task.id for task in tasks}) == 1
        assert a2a.said(context) == ["tea", "more"]

    a2a.run(work)
    assert len(a2a.kid.children()) == 1


def test_a_stranger_finds_no_task_and_no_agent_of_another_branch(a2a: A2aStage) -> None:
    a2a.stage.principals["other"] = Principal("other", "other", frozenset({"operate"}), a2a.host.agent("other").uuid)
    a2a.host.agent("other").configure(card={**CARD, "name": "Other"})
    task = a2a.run(lambda client: sent(client, "tea", "1"))

    async def work(http: httpx.AsyncClient) -> None:
        hidden = await http.get(f"/tasks/{task.id}")
        assert (hidden.status_code, hidden.json()["error"]["status"]) == (404, "NOT_FOUND")
        other = f"http://api/a2a/{a2a.host.agent('other').uuid}"
        for path, body in (
            (f"/tasks/{task.id}", None),
            (f"/tasks/{task.id}:cancel", {}),
            ("/message:send", as_sent("tea", "2", contextId=task.context_id)),
            ("/message:send", as_sent("tea", "3", taskId=task.id)),
        ):
            answer = await (http.get(f"{other}{path}") if body is None else http.post(f"{other}{path}", json=body))
            assert answer.status_code == 404, answer.text
            assert "tea" not in answer.text.replace(task.context_id, "")

    a2a.run(work, "other", raw=True)
    assert a2a.said(task.context_id) == ["tea"]


def test_refusals_are_those_of_the_protocol_and_change_nothing(a2a: A2aStage) -> None:
    async def work(http: httpx.AsyncClient) -> None:
        url = str(http.base_url).rstrip("/")
        cases: list[tuple[str, str, Any, dict[str, str], int, str]] = [
            ("GET", "/tasks/x.m1", None, {}, 404, "TASK_NOT_FOUND"),
            ("GET", "/tasks/x.m1", None, {"A2A-Version": "0.3"}, 400, "VERSION_NOT_SUPPORTED"),
            ("GET", "/tasks/x.m1", None, {"Authorization": "Bearer x"}, 401, "NO_TOKEN"),
            ("POST", "/message:send", {}, {}, 400, "INVALID_PARAMS"),
            ("POST", "/message:send", b"{", {}, 400, "INVALID_REQUEST"),
            ("POST", "/message:send", as_sent("", "1"), {}, 400, "INVALID_PARAMS"),
            ("POST", "/message:send", as_sent("tea", "x" * 201), {}, 400, "INVALID_PARAMS"),
            ("POST", "/message:send", as_sent("tea", "1"), {"Authorization": "Bearer eve"}, 403, "NOT_ALLOWED"),
            ("POST", "/message:send", as_sent("tea", "1", contextId="nobody"), {}, 404, "NOT_FOUND"),
            ("POST", "/message:send", as_sent("tea", "1", contextId=a2a.kid.uuid), {}, 404, "NOT_FOUND"),
            ("POST", "/message:send", as_sent("tea", "1", taskId="x.m1"), {}, 404, "TASK_NOT_FOUND"),
            ("GET", "/nothing", None, {}, 404, "NOT_FOUND"),
        ]
        for method, path, body, headers, status, reason in cases:
            content = {} if body is None else {"content": body} if isinstance(body, bytes) else {"json": body}
            answer = await http.request(method, f"{url}{path}", headers=headers, **content)
            error = answer.json()["error"]
            assert (answer.status_code, error["details"][0]["reason"]) == (status, reason), answer.text
        linked = as_sent("tea", "1", parts=[{"url": "https://example.com/a.png"}])
        refused = await http.post(f"{url}/message:send", json=linked)
        assert refused.json()["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
        first = (await http.post(f"{url}/message:send", json=as_sent("tea", "1"))).json()["task"]
        other = await http.post(f"{url}/message:send", json=as_sent("milk", "1"))
        assert (other.status_code, other.json()["error"]["details"][0]["reason"]) == (422, "INVALID_PARAMS")
        assert a2a.said(first["contextId"]) == ["tea"]

    a2a.run(work, raw=True)
    assert len(a2a.kid.children()) == 1


def test_only_an_agent_with_a_card_is_there_and_its_card_needs_no_token(a2a: A2aStage) -> None:
    async def work(http: httpx.AsyncClient) -> None:
        del http.headers["Authorization"]
        card = await http.get("/.well-known/agent-card.json")
        assert card.json()["supportedInterfaces"][0]["url"] == f"http://api/a2a/{a2a.kid.uuid}"
        refused = [await http.get(f"http://api/a2a/{name}/.well-known/agent-card.json") for name in ("other", "nobody")]
        assert [answer.status_code for answer in refused] == [404, 404]
        assert refused[0].text.replace("other", "nobody") == refused[1].text
        asked = [await http.get("http://api/a2a/nobody/.well-known/agent-card.json") for _ in range(60)]
        assert {answer.status_code for answer in asked} == {404, 429}

    a2a.run(work, raw=True)


def test_a_cancellation_ends_its_own_turn_and_no_other(durable: str) -> None:
    gate = Gate()
    with a2a_staged(durable, gate.provider) as a2a:

        async def work(client: Client) -> None:
            first = await sent(client, "tea", "1", at_once=True)
            context = first.context_id
            await asyncio.to_thread(gate.wait_until_asked)
            second = await sent(client, "milk", "2", context=context, at_once=True)
            third = await sent(client, "cake", "3", context=context, at_once=True)
            assert second.status.state == sdk.TASK_STATE_SUBMITTED
            await client.cancel_task(sdk.CancelTaskRequest(id=second.id), context=ClientCallContext(timeout=60))
            gate.open()
            states = [
                (await sent(client, text, name, context=where)).status.state
                for text, name, where in (("tea", "1", ""), ("milk", "2", context), ("cake", "3", context))
            ]
            assert states == [sdk.TASK_STATE_COMPLETED, sdk.TASK_STATE_CANCELED, sdk.TASK_STATE_COMPLETED]
            for task in (first, second, third):
                with pytest.raises(TaskNotCancelableError):
                    await client.cancel_task(sdk.CancelTaskRequest(id=task.id))
            with pytest.raises(TaskNotFoundError):
                await client.cancel_task(sdk.CancelTaskRequest(id=f"{context}.m9"))

        a2a.run(work)
        assert check(a2a.host._store) == []
