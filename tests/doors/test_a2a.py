"""A2A: what agents of other systems ask for, at the real database, with real agents, and with the official client."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import a2a_pb2 as sdk
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from ikigai_actors import Budget, FunctionProvider, ProviderError, Reply, Request
from ikigai_actors.api import Principal, api
from ikigai_actors.records.fsck.check import check
from tests.doors.test_api import Stage, served, staged
from tests.kit.blocking_provider import Gate, Speaker
from tests.kit.tool_scripts import calling

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
    async def http(self, who: str, app: Any) -> AsyncIterator[httpx.AsyncClient]:
        headers = {"Authorization": f"Bearer {who}", "A2A-Version": "1.0"}
        transport = None if app is None else httpx.ASGITransport(app=app)
        base = f"http://api/a2a/{self.kid.uuid}"
        async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=60) as client:
            yield client

    @asynccontextmanager
    async def client(self, who: str) -> AsyncIterator[Client]:
        """The official client, made of the card."""
        async with self.http(who, self.stage.app) as http:
            card = await A2ACardResolver(http, str(http.base_url)).get_agent_card()
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=["HTTP+JSON"], streaming=False)
            yield ClientFactory(config).create(card)

    def run(self, work: Callable[[Any], Awaitable[Any]], who: str = "anna", *, raw: bool = False) -> Any:
        async def main() -> Any:
            async with self.http(who, self.stage.app) if raw else self.client(who) as client:
                return await work(client)

        return asyncio.run(main())

    def stream(self, work: Callable[[Client], Awaitable[Any]], who: str = "anna") -> None:
        """As `run`, by a real server: the transport in the process gives no answer before its end."""

        async def main() -> None:
            async with served(self.stage) as (server, _), self.http(who, None) as http:
                http.base_url = httpx.URL(f"{str(server.base_url).rstrip('/')}/a2a/{self.kid.uuid}")
                card = await A2ACardResolver(http, str(http.base_url)).get_agent_card()
                card.supported_interfaces[0].url = str(http.base_url)
                config = ClientConfig(httpx_client=http, supported_protocol_bindings=["HTTP+JSON"])
                await work(ClientFactory(config).create(card))

        asyncio.run(main())

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
            ("GET", "/tasks/x.m1/pushNotificationConfigs", None, {}, 404, "TASK_NOT_FOUND"),
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


@pytest.mark.thorough("cancels of a task that is over; every run has one that ends its own turn and no other")
def test_who_cancels_a_task_that_is_over_or_runs_ends_no_later_one(durable: str) -> None:
    entered, released = threading.Event(), threading.Event()

    def answers(request: Request) -> str:
        said = str(request.messages[-1]["content"][-1]["text"])
        if said == "hold":
            entered.set()
            assert released.wait(60)
        return f"heard {said}"

    with a2a_staged(durable, FunctionProvider(answers)) as a2a:

        async def work(client: Client) -> None:
            first = await sent(client, "tea", "1")
            context = first.context_id
            await sent(client, "hold", "2", context=context, at_once=True)
            await asyncio.to_thread(entered.wait, 60)
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(sdk.CancelTaskRequest(id=first.id))
            released.set()
            assert (await sent(client, "hold", "2", context=context)).status.state == sdk.TASK_STATE_COMPLETED
            entered.clear()
            released.clear()
            runs = await sent(client, "hold", "3", context=context, at_once=True)
            await asyncio.to_thread(entered.wait, 60)
            await sent(client, "milk", "4", context=context, at_once=True)
            ended = await client.cancel_task(sdk.CancelTaskRequest(id=runs.id), context=ClientCallContext(timeout=60))
            assert ended.status.state == sdk.TASK_STATE_CANCELED
            released.set()
            assert (await sent(client, "milk", "4", context=context)).status.state == sdk.TASK_STATE_COMPLETED

        a2a.run(work)


def events_of(client: Client, text: str, name: str, **where: str) -> AsyncIterator[sdk.StreamResponse]:
    request = sdk.SendMessageRequest(message=message(text, name, **where))
    return client.send_message(request, context=ClientCallContext(timeout=60))


def test_a_stream_has_the_task_its_pieces_and_its_end_and_who_subscribes_hears_the_same(durable: str) -> None:
    speaker = Speaker()
    with a2a_staged(durable, speaker) as a2a:

        async def work(client: Client) -> None:
            first, second = Heard(), Heard()
            heard = events_of(client, "tea", "1")
            task = first.take(await anext(heard)).task
            request = sdk.SubscribeToTaskRequest(id=task.id)
            later = client.subscribe(request, context=ClientCallContext(timeout=60))
            assert second.take(await anext(later)).task.id == task.id
            await asyncio.to_thread(speaker.say, "green ")
            while not first.artifact:
                first.take(await anext(heard))
            assert first.artifact == "green "
            await asyncio.to_thread(speaker.say, "tea", None)
            for client_heard, stream in ((first, heard), (second, later)):
                async for event in stream:
                    client_heard.take(event)
                assert client_heard.artifact == "green tea"
                assert client_heard.sorts[-2:] == ["artifact_update", "status_update"]
                assert event.status_update.status.state == sdk.TASK_STATE_COMPLETED
            again = [event async for event in events_of(client, "tea", "1")]
            assert [event.task.status.state for event in again] == [sdk.TASK_STATE_COMPLETED]
            with pytest.raises(UnsupportedOperationError):
                _ = [event async for event in client.subscribe(request)]

        a2a.stream(work)


class Heard:
    """The events that a client has got of a task, and the artifact that they make."""

    def __init__(self) -> None:
        self.sorts, self.artifact = list[str | None](), ""

    def take(self, event: sdk.StreamResponse) -> sdk.StreamResponse:
        self.sorts.append(event.WhichOneof("payload"))
        if event.HasField("artifact_update"):
            said = event.artifact_update.artifact.parts[0].text
            self.artifact = self.artifact + said if event.artifact_update.append else said
        return event


def asks_first(request: Any) -> Reply | str:
    said = request.messages[-1]["content"]
    results = [] if isinstance(said, str) else [block for block in said if block["type"] == "tool_result"]
    return f"booked {results[0]['content']}" if results else calling(("ask_person", {"question": "Which?"}))


def test_a_question_asks_for_input_and_a_message_with_its_task_answers_once(durable: str) -> None:
    with a2a_staged(durable, FunctionProvider(asks_first), approvals="ask") as a2a:
        a2a.kid.configure(questions={"to": ["principal:anna"]})

        async def others(client: Client) -> None:
            task = await client.get_task(sdk.GetTaskRequest(id=asked[0].id))
            assert task.status.state == sdk.TASK_STATE_WORKING
            with pytest.raises(UnsupportedOperationError):
                await sent(client, "second", "9", task=task.id)

        async def work(client: Client) -> None:
            task = await sent(client, "book", "1")
            assert task.status.state == sdk.TASK_STATE_INPUT_REQUIRED
            assert task.status.message.parts[0].text == "Which?"
            asked.append(task)

        async def answers(client: Client) -> None:
            [task] = asked
            with pytest.raises(InvalidParamsError):
                await sent(client, "first", "2", task=task.id, context=a2a.kid.uuid)
            done = await sent(client, "first", "3", task=task.id)
            assert done.status.state == sdk.TASK_STATE_COMPLETED
            assert "first" in done.artifacts[0].parts[0].text
            again = await sent(client, "first", "3", task=task.id)
            assert again.artifacts == done.artifacts
            with pytest.raises(UnsupportedOperationError):
                await sent(client, "second", "4", task=task.id)

        asked: list[sdk.Task] = []
        a2a.run(work)
        a2a.stage.principals["bob"] = Principal("bob", "bob", frozenset({"prompt"}))
        a2a.run(others, "bob")
        a2a.run(answers)
        [context] = a2a.kid.children()
        assert [each.data["by"] for each in context.history() if "by" in each.data] == ["anna"]


def test_a_context_that_a_budget_refuses_is_a_rejected_task(new_sqlite: Callable[[], str]) -> None:
    with a2a_staged(new_sqlite()) as a2a:
        a2a.kid.set_budget(Budget(agents=0))

        async def work(client: Client) -> None:
            task = await sent(client, "tea", "1")
            assert task.status.state == sdk.TASK_STATE_REJECTED
            assert "agents" in task.status.message.parts[0].text
            assert (await client.get_task(sdk.GetTaskRequest(id=task.id))).status.state == sdk.TASK_STATE_REJECTED

        a2a.run(work)


def test_a_turn_that_fails_is_a_failed_task_that_says_why(new_sqlite: Callable[[], str]) -> None:
    def fails(request: Request) -> str:
        raise ProviderError("the kettle is empty")

    with a2a_staged(new_sqlite(), FunctionProvider(fails)) as a2a:

        async def work(client: Client) -> None:
            task = await sent(client, "tea", "1")
            assert task.status.state == sdk.TASK_STATE_FAILED
            assert "the kettle is empty" in task.status.message.parts[0].text
            assert not task.artifacts

        a2a.run(work)


def test_the_tasks_of_a_context_and_of_an_agent_are_listed_in_pages(a2a: A2aStage) -> None:
    async def work(client: Client) -> None:
        first = await sent(client, "tea", "1")
        more = [await sent(client, text, text, context=first.context_id) for text in ("milk", "cake", "jam")]
        other = await sent(client, "coffee", "5")
        names = [task.id for task in (other, *reversed(more), first)]
        every = await client.list_tasks(sdk.ListTasksRequest())
        assert ([task.id for task in every.tasks], every.total_size) == (names, 5)
        assert not every.tasks[0].artifacts
        assert every.tasks[0].history[0].parts[0].text == "coffee"
        seen, token = list[str](), ""
        while True:
            request = sdk.ListTasksRequest(context_id=first.context_id, page_size=3, page_token=token)
            page = await client.list_tasks(request)
            seen += [task.id for task in page.tasks]
            token = page.next_page_token
            if not token:
                break
        assert seen == names[1:]
        done = sdk.ListTasksRequest(status=sdk.TASK_STATE_WORKING, include_artifacts=True)
        assert not (await client.list_tasks(done)).tasks

    a2a.run(work)
