"""``ikigai api`` as a program: it is killed between a request and its answer, and nothing is done twice or lost."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from a2a.client import A2ACardResolver, A2AClientError, Client, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import a2a_pb2 as sdk
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict

from ikigai_actors import ActorSystem, OfflineProvider, Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.api import AttachedSystem
from ikigai_actors.shell.cli.main import run
from tests.doors.test_api import delivery
from tests.kit.blocking_provider import Speaker
from tests.kit.databases import eventually
from tests.kit.zygote import PYTHON, popen
from tests.system.test_subscriptions import SECRET, Receiver

pytestmark = pytest.mark.slow("starts real programs")


@contextmanager
def serving(database: Path | str, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The program, and where it listens."""
    words = [*PYTHON, "-m", "ikigai_actors", "--database", str(database), "api", "--listen", "127.0.0.1:0", *options]
    program = popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert program.stdout is not None
    try:
        yield program.stdout.readline().strip(), program
    finally:
        program.kill()
        program.communicate()


@contextmanager
def hosting(database: Path) -> Iterator[subprocess.Popen[str]]:
    """The program that runs the agents."""
    words = [*PYTHON, "-m", "ikigai_actors", "--database", str(database), "--provider", "offline", "host"]
    program = popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def token(database: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    capsys.readouterr()
    assert run(["--database", str(database), "token", "create", "ci", "--role", "prompt", "--json", *options]) == 0
    return {"Authorization": f"Bearer {json.loads(capsys.readouterr().out)['token']}"}


@pytest.mark.thorough("kills of a program; every run has a door that is killed, in test_programs.py")
def test_a_request_that_is_repeated_over_kills_is_done_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "team.db"
    with ActorSystem.open(str(database), OfflineProvider()) as host:
        host.root.fork(name="kid")
        headers = token(database, capsys, "--under", "kid")
        turns = set()
        for number in range(3):
            with serving(database) as (url, program):
                asked = {**headers, "Idempotency-Key": "k"}
                answer = httpx2.post(f"{url}/v1/agents/~/prompt", json={"text": "tea"}, headers=asked, timeout=60)
                turns.add(answer.json()["turn"])
                assert ("idempotency-replayed" in answer.headers) is (number > 0)
                assert httpx2.get(f"{url}/v1/agents/root", headers=headers).status_code == 404
                if number == 2:
                    done = httpx2.get(f"{url}/v1/turns/{answer.json()['turn']}?wait=30", headers=headers, timeout=60)
                    assert done.json()["status"] == "done"
                    assert run(["--database", str(database), "token", "revoke", "ci"]) == 0
                    assert httpx2.get(f"{url}/v1/agents", headers=headers).status_code == 401
                    program.send_signal(signal.SIGTERM)
                    assert program.wait(30) == 128 + signal.SIGTERM
        assert len(turns) == 1
        assert [message.content for message in host.agent("kid").history() if message.kind == "user"] == ["tea"]


def kinds_of(system: AttachedSystem, agent: str) -> list[str]:
    return [message.kind for message in system.agent(agent).history()]


@pytest.mark.thorough("kills of a program; every run has a door that is killed, in test_programs.py")
def test_a_delivery_that_comes_again_over_kills_of_api_and_host_is_one_turn(tmp_path: Path) -> None:
    database, secret = tmp_path / "team.db", tmp_path / "secret"
    secret.write_text("tea", encoding="utf-8")
    with ActorSystem.open(str(database), OfflineProvider()) as host:
        host.endpoints.add("shop", host.root.fork(name="kid"), "hmac", [f"file:{secret}"], template="Order {id}")

    def answered(url: str) -> dict[str, Any]:
        answer = httpx2.post(f"{url}/in/shop", **delivery(b'{"id": 7}', "d1"), timeout=60)
        outcome: dict[str, Any] = answer.json()
        assert answer.status_code == (200 if outcome.pop("repeated") else 202)
        return outcome

    with hosting(database) as first, AttachedSystem.open(str(database)) as watching:
        with serving(database) as (url, _):
            outcomes = [answered(url)]  # and the API is killed
        with serving(database) as (url, _):
            outcomes.append(answered(url))
            first.kill()
            outcomes.append(answered(url))
            with hosting(database):
                eventually(lambda: kinds_of(watching, "kid") == ["fork", "user", "assistant"], "the turn is over")
    assert outcomes == [outcomes[0]] * 3
    assert outcomes[0]["status"] == "taken"


def test_a_question_reaches_a_receiver_that_is_killed_and_its_call_runs_once_by_an_answer_of_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, secret, paid = str(tmp_path / "team.db"), tmp_path / "secret", list[int]()
    secret.write_text(SECRET, encoding="utf-8")

    @tool(policy="ask")
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    script = ScriptedProvider([Reply("", (ToolCall("pay", {"amount": 3}),)), Reply("Done")])
    with ExitStack() as opened:
        receiver = Receiver()
        opened.callback(receiver.close)
        host = opened.enter_context(
            ActorSystem.open(database, script, tools=[pay], approvals="ask", allow_private=["127.0.0.1"])
        )
        host.root.fork(name="kid")
        made = host.subscriptions.add(receiver.url, [f"file:{secret}"], ["question.asked"], agent="kid")
        headers = token(Path(database), capsys, "--role", "approve", "--under", "kid")
        with serving(database) as (url, _):
            prompted = httpx2.post(f"{url}/v1/agents/~/prompt", json={"text": "go"}, headers=headers, timeout=60)
            turn = prompted.headers["location"]
            receiver.dies = True
            eventually(lambda: receiver.kinds() == ["question.asked"], "the receiver is killed before it answers")
            eventually(lambda: host.subscriptions.deliveries(made)[0].tries == 1, "the host has noticed that")
            receiver.dies = False
            host.subscriptions.redeliver(made)  # at once, not after its five seconds
            eventually(lambda: host.subscriptions.counts(made) == {"received": 1}, "the next try is received")
            [(name, first), again] = receiver.got
            assert again == (name, first)
            asked = {key: first["data"][key] for key in ("question", "digest")}
        for number in range(2):  # and each time the API is killed
            with serving(database) as (url, _):
                terms, keyed = {**asked, "answer": "allow"}, {**headers, "Idempotency-Key": "k"}
                answered = httpx2.post(f"{url}/v1/questions/answer", json=terms, headers=keyed, timeout=60)
                assert (answered.status_code, answered.json()["value"]["how"]) == (200, "approved")
                assert ("idempotency-replayed" in answered.headers) is (number > 0)
                done = httpx2.get(f"{url}{turn}?wait=30", headers=headers, timeout=60).json()
                assert (done["status"], done["text"]) == ("done", "Done")
    assert paid == [3]


def test_an_address_for_other_machines_needs_a_proxy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "team.db")
    with ActorSystem.open(database, OfflineProvider()):
        assert run(["--database", database, "api", "--listen", "0.0.0.0:0"]) == 1
        assert "--trust-proxy" in capsys.readouterr().err
        assert run(["--database", database, "api", "--listen", "nowhere"]) == 1
    assert run(["--database", str(tmp_path / "none.db"), "api"]) == 1


@pytest.mark.thorough("kills of a program; every run has a door that is killed, in test_programs.py")
def test_the_official_client_of_a2a_has_one_task_of_a_message_over_kills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "team.db"
    with ActorSystem.open(str(database), OfflineProvider()) as host:
        kid = host.root.fork(name="kid")
        kid.configure(card={"name": "Kid", "description": "Makes tea."})
        headers = token(database, capsys, "--under", "kid")

        async def asked(url: str) -> sdk.Task:
            async with httpx.AsyncClient(headers={**headers, "A2A-Version": "1.0"}, timeout=60) as http:
                card = await A2ACardResolver(http, f"{url}/a2a/kid").get_agent_card()
                config = ClientConfig(httpx_client=http, supported_protocol_bindings=["HTTP+JSON"], streaming=False)
                message = sdk.Message(message_id="1", role=sdk.ROLE_USER, parts=[sdk.Part(text="tea")])
                client = ClientFactory(config).create(card)
                [event] = [event async for event in client.send_message(sdk.SendMessageRequest(message=message))]
                return event.task

        tasks = list[sdk.Task]()
        for _ in range(2):
            with serving(database) as (url, _):
                tasks.append(asyncio.run(asked(url)))
        assert tasks[0].id == tasks[1].id
        assert tasks[1].status.state == sdk.TASK_STATE_COMPLETED
        [context] = kid.children()
        assert [each.content for each in context.history() if each.kind == "user"] == ["tea"]


@pytest.mark.thorough("kills of a program; every run has a door that is killed, in test_programs.py")
def test_who_subscribes_to_a_task_again_after_a_kill_of_the_api_has_its_whole_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, speaker = tmp_path / "team.db", Speaker()
    with ActorSystem.open(str(database), speaker) as host:
        host.root.fork(name="kid").configure(card={"name": "Kid", "description": "Makes tea."})
        headers = {**token(database, capsys, "--under", "kid"), "A2A-Version": "1.0"}
        message = sdk.Message(message_id="1", role=sdk.ROLE_USER, parts=[sdk.Part(text="tea")])
        how = ClientCallContext(timeout=60)

        @asynccontextmanager
        async def client_of(url: str) -> AsyncIterator[Client]:
            async with httpx.AsyncClient(headers=headers, timeout=60) as http:
                described = (await http.get(f"{url}/a2a/kid/.well-known/agent-card.json")).json()
                card = ParseDict(described, sdk.AgentCard())  # refuses a field that is not of the protocol
                validate_proto_required_fields(card)
                config = ClientConfig(httpx_client=http, supported_protocol_bindings=["HTTP+JSON"])
                yield ClientFactory(config).create(card)

        async def begin(url: str, program: "subprocess.Popen[str]") -> str:
            async with client_of(url) as client:
                events = client.send_message(sdk.SendMessageRequest(message=message), context=how)
                task = (await anext(events)).task.id
                await asyncio.to_thread(speaker.say, "green ")
                piece = await anext(events)
                while not piece.HasField("artifact_update"):
                    piece = await anext(events)
                assert piece.artifact_update.artifact.parts[0].text == "green "
                program.kill()
                with pytest.raises(A2AClientError):
                    _ = [event async for event in events]
                return task

        async def go_on(url: str, task: str) -> list[sdk.StreamResponse]:
            async with client_of(url) as client:
                events = client.subscribe(sdk.SubscribeToTaskRequest(id=task), context=how)
                first = await anext(events)
                assert (first.task.id, first.task.status.state) == (task, sdk.TASK_STATE_WORKING)
                await asyncio.to_thread(speaker.say, "tea", None)
                return [event async for event in events]

        with serving(database) as (url, program):
            task = asyncio.run(begin(url, program))
        with serving(database) as (url, _):
            events = asyncio.run(go_on(url, task))
        assert events[-1].status_update.status.state == sdk.TASK_STATE_COMPLETED
        [*_, whole] = [event.artifact_update for event in events if event.HasField("artifact_update")]
        assert (whole.append, whole.artifact.parts[0].text) == (False, "green tea")
