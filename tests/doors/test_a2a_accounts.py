"""A2A and accounts: a task that needs an account of its client waits until the client has connected it."""

from collections.abc import Iterator

import pytest
from a2a.client import Client
from a2a.types import a2a_pb2 as sdk

from ikigai_actors import McpServer, ScriptedProvider
from ikigai_actors.api import Principal
from tests.doors.test_a2a import a2a_staged, sent
from tests.doors.test_a2a_pushes import TaskReceiver, config_of, sent_with
from tests.doors.test_accounts import KEY, hidden, house_of, model
from tests.kit.account_mcp import AccountMcp
from tests.kit.databases import eventually

pytestmark = pytest.mark.slow("starts servers on loopback")


@pytest.fixture
def server() -> Iterator[AccountMcp]:
    made = AccountMcp()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def receiver() -> Iterator[TaskReceiver]:
    opened = TaskReceiver()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IKIGAI_KEYS", "env:ACCOUNT_KEY")
    monkeypatch.setenv("ACCOUNT_KEY", KEY)
    monkeypatch.setenv("IKIGAI_ALLOW_PRIVATE", "127.0.0.1")


def test_a_task_that_needs_an_account_is_auth_required_until_its_client_has_connected_it(
    durable: str, server: AccountMcp, receiver: TaskReceiver
) -> None:
    options = {
        "tools": [McpServer(server.url, name="t", account="user")],
        "approvals": "ask",
        "labels": {"user": "anna"},
    }
    with a2a_staged(durable, ScriptedProvider(model), **options) as a2a, house_of(durable, server) as house:
        a2a.stage.principals["bob"] = Principal("bob", "bob", frozenset({"prompt"}))

        async def asks(client: Client) -> None:
            task = await sent_with(client, "whose notes?", "1", config_of(receiver))
            shown = await sent(client, "whose notes?", "1")
            assert (shown.id, shown.status.state) == (task.id, sdk.TASK_STATE_AUTH_REQUIRED)
            assert "user=anna" in shown.status.message.parts[0].text
            [listed] = (await client.list_tasks(sdk.ListTasksRequest(status=sdk.TASK_STATE_AUTH_REQUIRED))).tasks
            assert listed.id == task.id
            tasks.append(task)

        async def of_others(client: Client) -> None:
            shown = await client.get_task(sdk.GetTaskRequest(id=tasks[0].id))
            assert shown.status.state == sdk.TASK_STATE_WORKING

        tasks: list[sdk.Task] = []
        a2a.run(asks)
        a2a.run(of_others, "bob")
        eventually(lambda: receiver.states() == ["AUTH_REQUIRED"], "the push")
        house.connect()
        eventually(lambda: receiver.states() == ["AUTH_REQUIRED", "COMPLETED"], "the end")
        assert receiver.heard[-1].artifacts[0].parts[0].text == "anna may notes"

        async def done(client: Client) -> None:
            again = await sent(client, "whose notes?", "1")
            assert (again.id, again.status.state) == (tasks[0].id, sdk.TASK_STATE_COMPLETED)
            assert again.artifacts[0].parts[0].text == "anna may notes"

        a2a.run(done)
        assert hidden(durable)
