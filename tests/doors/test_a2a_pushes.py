"""Push notifications of A2A: the official client names a receiver for a task, and the host tells it of the task."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler

import httpx
import pytest
from a2a.client import Client
from a2a.client.client import ClientCallContext
from a2a.types import a2a_pb2 as sdk
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import ParseDict

from ikigai_actors import FunctionProvider, Request, Signal
from ikigai_actors.api import AttachedSystem, Principal
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.outbox.pushed_tasks import PushedTask
from ikigai_actors.records.outbox.subscriptions import SubscriptionSpec
from ikigai_actors.records.outbox.task_subscriptions import SetTaskSubscription
from tests.doors.test_a2a import A2aStage, a2a_staged, asks_first, message, sent
from tests.doors.test_accounts import every_byte
from tests.doors.test_api import Stage
from tests.kit.blocking_provider import Gate
from tests.kit.databases import eventually
from tests.kit.http_servers import LocalServer
from tests.kit.program import COMMAND, PATIENCE, environment
from tests.kit.zygote import popen
from tests.system.test_subscriptions import hosted

TOKEN, CREDENTIALS = "canary-token-of-a-task", "canary-credentials"
DAY = 24 * 3600 * 1000


class TaskReceiver:
    """A client's web server, which reads each notification as the type of the official package."""

    def __init__(self) -> None:
        self.heard: list[sdk.Task] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.holds = threading.Event()
        self.holds.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                receiver.heard.append(ParseDict(body, sdk.StreamResponse()).task)
                receiver.holds.wait(PATIENCE)
                with suppress(ConnectionError):
                    self.send_response(receiver.status)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self._server = LocalServer(Handler)
        self.url = f"{self._server.url}/tasks"

    def states(self) -> list[str]:
        return [sdk.TaskState.Name(task.status.state).removeprefix("TASK_STATE_") for task in self.heard]

    def close(self) -> None:
        self.holds.set()
        self._server.close()


@pytest.fixture
def receiver() -> Iterator[TaskReceiver]:
    opened = TaskReceiver()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IKIGAI_KEYS", "env:PUSH_KEY")
    monkeypatch.setenv("PUSH_KEY", "a1" * 32)
    monkeypatch.setenv("IKIGAI_ALLOW_PRIVATE", "127.0.0.1")


def config_of(receiver: TaskReceiver, task: str = "", name: str = "") -> sdk.TaskPushNotificationConfig:
    proof = sdk.AuthenticationInfo(scheme="Bearer", credentials=CREDENTIALS)
    return sdk.TaskPushNotificationConfig(
        id=name, task_id=task, url=receiver.url, token=TOKEN, authentication=proof
    )  # fmt: skip


async def sent_with(
    client: Client, text: str, name: str, config: sdk.TaskPushNotificationConfig, **where: str
) -> sdk.Task:
    how = sdk.SendMessageConfiguration(return_immediately=True, task_push_notification_config=config)
    request = sdk.SendMessageRequest(message=message(text, name, **where), configuration=how)
    [event] = [event async for event in client.send_message(request, context=ClientCallContext(timeout=60))]
    return event.task


def settled(a2a: A2aStage) -> None:
    eventually(lambda: a2a.host.subscriptions.list() == [], "each subscription to a task has ended with it")
    assert check(a2a.host._store) == []


def test_the_end_of_a_task_reaches_the_receiver_of_its_first_message_with_token_and_credentials(
    durable: str, receiver: TaskReceiver
) -> None:
    gate = Gate()
    with a2a_staged(durable, gate.provider) as a2a:

        async def work(client: Client) -> None:
            tasks.append(await sent_with(client, "tea", "1", config_of(receiver)))

        tasks: list[sdk.Task] = []
        a2a.run(work)
        gate.wait_until_asked()
        assert receiver.heard == []
        gate.open()
        settled(a2a)
        [task] = receiver.heard
        assert (task.id, task.context_id) == (tasks[0].id, tasks[0].context_id)
        assert task.status.state == sdk.TASK_STATE_COMPLETED
        assert task.artifacts[0].parts[0].text == a2a.host.agent(task.context_id).history()[-1].content
        shown = sdk.GetTaskRequest(id=task.id, history_length=0)
        assert a2a.run(lambda client: client.get_task(shown)) == task
        [headers] = receiver.headers
        assert headers["x-a2a-notification-token"] == TOKEN
        assert headers["authorization"] == f"Bearer {CREDENTIALS}"
        assert headers["webhook-id"].startswith("msg_")
        dump = every_byte(durable)
        for secret in (TOKEN, CREDENTIALS):
            assert secret.encode() not in dump
            assert secret.encode().hex().encode() not in dump


def test_a_receiver_hears_of_its_own_task_alone_and_each_task_ends_its_subscription(
    durable: str, receiver: TaskReceiver
) -> None:
    entered, released = threading.Event(), threading.Event()

    def answers(request: Request) -> str:
        said = str(request.messages[-1]["content"][-1]["text"])
        if said == "tea":
            entered.set()
            assert released.wait(PATIENCE)
        return f"heard {said}"

    with a2a_staged(durable, FunctionProvider(answers)) as a2a:

        async def work(client: Client) -> None:
            first = await sent(client, "tea", "1", at_once=True)
            assert await asyncio.to_thread(entered.wait, PATIENCE)
            second = await sent_with(client, "milk", "2", config_of(receiver), context=first.context_id)
            released.set()
            await sent(client, "cake", "3", context=first.context_id)
            await sent(client, "coffee", "4")
            eventually(lambda: len(receiver.heard) == 1, "the second task is pushed")
            [task] = receiver.heard
            assert (task.id, task.artifacts[0].parts[0].text) == (second.id, "heard milk")

        a2a.run(work)
        settled(a2a)
        assert len(receiver.heard) == 1


def test_configs_are_set_listed_shown_and_deleted_without_their_secrets(durable: str, receiver: TaskReceiver) -> None:
    gate = Gate()
    with a2a_staged(durable, gate.provider) as a2a:

        async def work(client: Client) -> None:
            task = await sent(client, "tea", "1", at_once=True)
            made = await client.create_task_push_notification_config(config_of(receiver, task.id))
            assert (made.id, made.task_id, made.url) == (task.id, task.id, receiver.url)
            assert (made.token, made.authentication.scheme, made.authentication.credentials) == ("", "Bearer", "")
            second = await client.create_task_push_notification_config(config_of(receiver, task.id, "second"))
            again = await client.create_task_push_notification_config(config_of(receiver, task.id, "second"))
            assert again == second
            listed = await client.list_task_push_notification_configs(
                sdk.ListTaskPushNotificationConfigsRequest(task_id=task.id)
            )
            assert [config.id for config in listed.configs] == [task.id, "second"]
            asked = sdk.GetTaskPushNotificationConfigRequest(task_id=task.id, id="second")
            assert await client.get_task_push_notification_config(asked) == second
            deleted = sdk.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="second")
            await client.delete_task_push_notification_config(deleted)
            await client.delete_task_push_notification_config(deleted)
            with pytest.raises(TaskNotFoundError):
                await client.get_task_push_notification_config(asked)
            with pytest.raises(TaskNotFoundError):
                await client.create_task_push_notification_config(config_of(receiver, f"{task.context_id}.m9"))
            for wrong in ({"url": "ftp://x/"}, {"url": ""}, {"token": "two\nlines"}, {"id": "a/b"}):
                bad = config_of(receiver, task.id)
                for field, value in wrong.items():
                    setattr(bad, field, value)
                with pytest.raises(InvalidParamsError) as refused:
                    await client.create_task_push_notification_config(bad)
                assert "canary" not in str(refused.value)
            many = [config_of(receiver, task.id, f"n{number}") for number in range(9)]
            for config in many:
                await client.create_task_push_notification_config(config)
            with pytest.raises(InvalidParamsError):
                await client.create_task_push_notification_config(config_of(receiver, task.id, "one more"))

        async def of_others(client: Client) -> None:
            [context] = a2a.kid.children()
            request = sdk.ListTaskPushNotificationConfigsRequest(task_id=f"{context.uuid}.m0")
            assert not (await client.list_task_push_notification_configs(request)).configs

        async def of_a_viewer(http: httpx.AsyncClient) -> None:
            [context] = a2a.kid.children()
            url = f"{str(http.base_url).rstrip('/')}/tasks/{context.uuid}.m0/pushNotificationConfigs"
            refused = [await http.post(url, json={"url": receiver.url}), await http.delete(f"{url}/second")]
            assert [answer.status_code for answer in refused] == [403, 403]

        a2a.run(work)
        a2a.stage.principals["bob"] = Principal("bob", "bob", frozenset({"prompt"}))
        a2a.run(of_others, "bob")
        a2a.run(of_a_viewer, "eve", raw=True)
        gate.open()
        settled(a2a)
        assert receiver.states() == ["COMPLETED"] * 10


def test_a_config_that_comes_after_the_end_of_its_task_hears_of_the_end(durable: str, receiver: TaskReceiver) -> None:
    with a2a_staged(durable) as a2a:

        async def work(client: Client) -> None:
            task = await sent(client, "tea", "1")
            await client.create_task_push_notification_config(config_of(receiver, task.id))

        a2a.run(work)
        settled(a2a)
        assert receiver.states() == ["COMPLETED"]


def test_a_question_to_the_client_is_pushed_and_one_to_another_person_is_not(
    durable: str, receiver: TaskReceiver
) -> None:
    with a2a_staged(durable, FunctionProvider(asks_first), approvals="ask") as a2a:
        a2a.kid.configure(questions={"to": ["principal:anna"]})
        a2a.stage.principals["bob"] = Principal("bob", "bob", frozenset({"prompt"}))
        other = TaskReceiver()

        async def of_bob(client: Client) -> None:
            await client.create_task_push_notification_config(config_of(other, asked[0].id))

        async def work(client: Client) -> None:
            asked.append(await sent_with(client, "book", "1", config_of(receiver)))
            eventually(lambda: receiver.states() == ["INPUT_REQUIRED"], "the question")

        async def answers(client: Client) -> None:
            await sent(client, "first", "2", task=asked[0].id)

        asked: list[sdk.Task] = []
        a2a.run(work)
        a2a.run(of_bob, "bob")
        a2a.run(answers)
        settled(a2a)
        assert receiver.states() == ["INPUT_REQUIRED", "COMPLETED"]
        assert other.states() == ["COMPLETED"]
        other.close()


def test_a_task_that_is_canceled_or_whose_context_dies_is_pushed_as_such(durable: str, receiver: TaskReceiver) -> None:
    gate = Gate()
    with a2a_staged(durable, gate.provider) as a2a:

        async def work(client: Client) -> None:
            first = await sent_with(client, "tea", "1", config_of(receiver))
            gate.wait_until_asked()
            await client.cancel_task(sdk.CancelTaskRequest(id=first.id), context=ClientCallContext(timeout=60))
            eventually(lambda: receiver.states() == ["CANCELED"], "the cancellation")
            second = await sent_with(client, "milk", "2", config_of(receiver), context=first.context_id)
            a2a.host.agent(second.context_id).signal(Signal.KILL)
            eventually(lambda: receiver.states() == ["CANCELED", "FAILED"], "the death")

        a2a.run(work)
        settled(a2a)


def test_a_receiver_at_an_address_that_is_not_allowed_is_not_reached(
    durable: str, receiver: TaskReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IKIGAI_ALLOW_PRIVATE", "")
    with a2a_staged(durable) as a2a:

        async def work(client: Client) -> None:
            await sent_with(client, "tea", "1", config_of(receiver))

        a2a.run(work)
        [made] = a2a.host.subscriptions.list()
        latest = a2a.host.subscriptions.deliveries
        eventually(lambda: [delivery.tries for delivery in latest(made.id)] == [1], "a try")
        assert "is not an address that this host may reach" in latest(made.id)[0].said
        assert receiver.heard == []


def test_secrets_are_refused_without_a_key_and_a_config_without_them_needs_none(
    durable: str, receiver: TaskReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IKIGAI_KEYS", "")
    with a2a_staged(durable) as a2a:

        async def work(client: Client) -> None:
            task = await sent(client, "tea", "1")
            with pytest.raises(InvalidParamsError, match="operator's key"):
                await client.create_task_push_notification_config(config_of(receiver, task.id))
            bare = sdk.TaskPushNotificationConfig(task_id=task.id, url=receiver.url)
            await client.create_task_push_notification_config(bare)

        a2a.run(work)
        settled(a2a)
        assert receiver.states() == ["COMPLETED"]
        assert "x-a2a-notification-token" not in receiver.headers[0]


def test_a_task_goes_on_to_be_pushed_once_its_card_is_gone_and_a_prune_ends_what_waits_for_a_dead_context(
    durable: str, receiver: TaskReceiver
) -> None:
    gate = Gate()
    with a2a_staged(durable, gate.provider) as a2a:

        async def work(client: Client) -> None:
            first = await sent_with(client, "tea", "1", config_of(receiver))
            gate.wait_until_asked()
            lost = config_of(receiver, f"{first.context_id}.m7")
            terms = PushedTask(lost.task_id, "", "anna", ())
            spec = SubscriptionSpec((), "a2a", task=terms)
            now = a2a.host._clock.now_ms()
            a2a.host._writer.perform(SetTaskSubscription("sub_lost", receiver.url, a2a.kid.uuid, terms, spec, now))

        a2a.run(work)
        [context] = a2a.kid.children()
        a2a.kid.configure(card=None)
        gate.open()
        eventually(lambda: receiver.states() == ["COMPLETED"], "the end")
        waiting = a2a.host.subscriptions.list
        eventually(lambda: [each.id for each in waiting()] == ["sub_lost"], "only the other waits")
        now = a2a.host._clock.now_ms() + 2 * DAY
        prune_logs(a2a.host._store, 0, now)
        assert len(a2a.host.subscriptions.list()) == 1
        receiver.status = 500
        context.kill()
        eventually(lambda: not context.record.living, "the death")
        prune_logs(a2a.host._store, 0, now)
        settled(a2a)


@pytest.mark.thorough("a host that ends within a push; test_outbox.py decides what is sent again")
def test_a_push_whose_host_is_killed_between_the_end_of_the_turn_and_the_answer_comes_again(
    durable: str, receiver: TaskReceiver
) -> None:
    words = ["--database", durable, "--provider", "offline", "host", "--allow-private", "127.0.0.1"]
    with ExitStack() as started:

        def host() -> "subprocess.Popen[bytes]":
            program = popen([*COMMAND, *words], env=environment(), stderr=subprocess.DEVNULL)
            started.callback(program.wait)
            started.callback(program.kill)
            return program

        receiver.holds.clear()
        with a2a_staged(durable):
            pass
        first = host()
        eventually(lambda: hosted(durable), "the host")
        with AttachedSystem.open(durable) as system:
            stage = A2aStage(Stage(system, system))

            async def work(client: Client) -> None:
                await sent_with(client, "tea", "1", config_of(receiver))

            stage.run(work)
            eventually(lambda: len(receiver.heard) == 1, "it is on its way")
            first.kill()
            first.wait()
            receiver.holds.set()
            host()
            eventually(lambda: system.subscriptions.list() == [], "it is received")
            stage.stage.app.close()
        assert receiver.states() == ["COMPLETED"] * 2
        assert len({headers["webhook-id"] for headers in receiver.headers}) == 1
