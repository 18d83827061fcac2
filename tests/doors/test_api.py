"""The network API: what a client asks for by HTTP, at the real database, with real agents."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import socket
import subprocess
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Mount

from ikigai_actors import ActorSystem, BadInput, OfflineProvider, Signal
from ikigai_actors.api import ApiRequest, AttachedSystem, Principal, api
from ikigai_actors.certificates import trusted_authorities
from ikigai_actors.doors.api import application
from ikigai_actors.doors.api.application import API_THREADS, Api
from ikigai_actors.doors.api.limits import OpenPlaces, RequestRates
from ikigai_actors.doors.api.openapi import openapi_page
from ikigai_actors.doors.api.operations import operations
from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.server import HttpServer
from ikigai_actors.providers.base import Provider
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.arrivals.endpoints import SetEndpoint
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.existing import open_existing
from ikigai_actors.system.endpoints import LARGEST_DELIVERY
from ikigai_actors.verbs.text.pages import history_page
from tests.kit.blocking_provider import Gate
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.npm import installed
from tests.kit.openapi import PAGE

PRINCIPALS = {
    "op": Principal("op", "Op", frozenset({"operate"})),
    "anna": Principal("anna", "Anna", frozenset({"prompt"})),
    "eve": Principal("eve", "Eve", frozenset({"look"})),
}


class Stage:
    """A host, the application on an attached system, and who may come in."""

    def __init__(self, host: Any, system: AttachedSystem) -> None:
        self.host, self.system = host, system
        self.principals = dict(PRINCIPALS)
        self.app = api(system, self.principal_of)
        self.server: HttpServer | None = None

    def principal_of(self, request: ApiRequest) -> Principal | None:
        return self.principals.get(request.bearer)

    @asynccontextmanager
    async def client(self, token: str = "op") -> AsyncIterator[httpx2.AsyncClient]:
        """A client of the application, without a network."""
        transport = httpx2.ASGITransport(app=self.app)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://api", headers=headers, timeout=60
        ) as client:
            yield client

    def run(self, work: Callable[[httpx2.AsyncClient], Awaitable[Any]], token: str = "op") -> Any:
        """Let a client do something."""

        async def main() -> Any:
            async with self.client(token) as client:
                return await work(client)

        return asyncio.run(main())

    def turns(self, name: str) -> list[str]:
        """The prompts that an agent has taken up."""
        return [message.content for message in self.host.agent(name).history() if message.kind == "user"]


@contextmanager
def staged(database: str, provider: Provider | None = None, **options: Any) -> Iterator[Stage]:
    with ActorSystem.open(database, provider or OfflineProvider(), **options) as host:
        host.root.rename("root")
        host.root.fork(name="kid")
        host.root.fork(name="other")
        with AttachedSystem.open(database) as system:
            stage = Stage(host, system)
            try:
                yield stage
            finally:
                stage.app.close()


@pytest.fixture
def stage(durable: str) -> Iterator[Stage]:
    with staged(durable) as made:
        yield made


def test_the_networks_that_an_application_may_reach_are_checked_when_it_is_made(new_sqlite: Callable[[], str]) -> None:
    with staged(new_sqlite()) as stage, pytest.raises(BadInput, match="not a network"):
        api(stage.system, stage.principal_of, allow_private=["not a network"])


def test_a_prompt_is_accepted_and_its_turn_is_waited_for_by_its_handle(stage: Stage) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        accepted = await client.post("/v1/agents/kid/prompt", json={"text": "tea"})
        assert accepted.status_code == 202
        assert accepted.headers["location"] == f"/v1/turns/{accepted.json()['turn']}"
        turn = (await client.get(accepted.headers["location"], params={"wait": 30})).json()
        assert (turn["status"], turn["name"]) == ("done", "kid")
        waited = await client.post("/v1/agents/kid/prompt", json={"text": "milk"}, headers={"Prefer": "wait=30"})
        assert (waited.status_code, waited.json()["outcome"]["status"]) == (200, "done")
        born = await client.post(
            "/v1/agents/~/fork", json={"name": "boy", "prompt": "hi"}, headers={"Prefer": "wait=30"}
        )
        assert born.json()["outcome"]["status"] == "done"
        assert born.json()["value"]["name"] == "boy"

    stage.run(work)
    assert stage.turns("kid") == ["tea", "milk"]


def test_a_key_does_its_request_once_whoever_of_twenty_comes_first(stage: Stage) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        async def ask() -> Any:
            return await client.post("/v1/agents/kid/prompt", json={"text": "tea"}, headers={"Idempotency-Key": "k"})

        answers = await asyncio.gather(*(ask() for _ in range(20)))
        assert len({response.json()["turn"] for response in answers}) == 1
        assert sum("idempotency-replayed" not in response.headers for response in answers) == 1
        again = await ask()
        assert again.headers["idempotency-replayed"] == "true"
        await client.get(again.headers["location"], params={"wait": 30})
        changed = await client.post("/v1/agents/kid/prompt", json={"text": "milk"}, headers={"Idempotency-Key": "k"})
        assert (changed.status_code, changed.json()["type"]) == (422, "urn:ikigai:problem:key-reused")
        async with stage.client("anna") as other:
            answer = await other.post("/v1/agents/kid/prompt", json={"text": "cake"}, headers={"Idempotency-Key": "k"})
            assert (await other.get(answer.headers["location"], params={"wait": 30})).json()["status"] == "done"

    stage.run(work)
    assert stage.turns("kid") == ["tea", "cake"]


KEYED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agents/root/fork", {"name": "boy"}),
    ("agents/kid/mark", {"label": "here"}),
    ("send", {"recipient": "kid", "text": "milk"}),
    ("timers", {"agent": "kid", "text": "tea", "after": "1h"}),
    ("agents/kid/rename", {"name": "lad"}),
    ("doc/write", {"path": "menu", "text": "tea"}),
    ("agents/lad/set", {"name": "temperature", "value": ["0.5"]}),
    ("agents/lad/rules", {"what": "add", "decision": "ask", "tool": "bash"}),
    ("agents/lad/supervise", {"intensity": 2}),
    ("agents/lad/read-mail", {}),
    ("agents/lad/kill", {}),
)


def test_each_verb_under_a_key_answers_a_second_request_as_the_first(stage: Stage) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        for number, (path, body) in enumerate(KEYED):
            headers = {"Idempotency-Key": f"k{number}"}
            first = await client.post(f"/v1/{path}", json=body, headers=headers)
            before = len(stage.host.root.check_mail().previews)
            again = await client.post(f"/v1/{path}", json=body, headers=headers)
            assert first.status_code == again.status_code == 200, (path, first.text, again.text)
            assert first.json() == again.json(), path
            assert again.headers["idempotency-replayed"] == "true", path
            assert before == len(stage.host.root.check_mail().previews)

    stage.run(work)
    assert len([record for record in stage.host.agents() if record.name == "boy"]) == 1
    assert stage.host.documents.read("menu").version == 1


def test_a_refusal_leaves_the_key_free(stage: Stage) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        headers = {"Idempotency-Key": "k"}
        refused = await client.post("/v1/agents/~/fork", json={"name": "kid"}, headers=headers)
        assert refused.status_code == 409  # the agent itself refused it: the name is taken
        stage.host.agent("kid").kill()
        done = await client.post("/v1/agents/~/fork", json={"name": "kid"}, headers=headers)
        assert (done.status_code, done.json()["value"]["name"]) == (200, "kid")

    stage.run(work)


def test_looking_changes_nothing(stage: Stage) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        assert (await client.get("/v1/agents/kid/prompt", params={"text": "tea"})).status_code == 405
        assert (await client.get("/v1/agents/kid/kill")).status_code == 405
        assert (await client.get("/v1/agents/kid/history")).status_code == 200
        assert (await client.get("/v1/timers")).json()["value"] == []
        async with stage.client("eve") as eve:
            refused = await eve.post("/v1/agents/kid/prompt", json={"text": "tea"})
            assert (refused.status_code, refused.json()["title"]) == (403, "Looks only")
            assert (await eve.post("/v1/agents/kid/settings", json={})).status_code == 200
        async with stage.client("anna") as anna:
            assert (await anna.post("/v1/agents/kid/kill", json={})).json()["title"] == "Not allowed"
        async with stage.client("nobody") as nobody:
            refused = await nobody.get("/v1/agents")
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")

    stage.run(work)
    assert stage.turns("kid") == []
    assert stage.host.agent("kid").record.living


def test_a_branch_sees_nothing_of_another(stage: Stage) -> None:
    kid = stage.host.agent("kid")
    kid.fork(name="inner")
    other = stage.host.agent("other")
    stage.principals["branch"] = Principal("b", "B", frozenset({"operate"}), under=kid.uuid)

    async def work(client: httpx2.AsyncClient) -> None:
        listed = (await client.get("/v1/agents")).json()
        assert [item["name"] for item in listed["items"]] == ["kid", "inner"]
        assert listed["items"][0]["supervisor"] is None
        for name in ("other", other.uuid, other.uuid[:6], "nobody"):
            for path in ("", "/history", "/messages", "/events", "/settings"):
                response = await client.get(f"/v1/agents/{name}{path}")
                assert response.status_code == 404, path
                assert response.json()["detail"].replace(name, "X") == await unknown(client, name)
        assert (await client.get(f"/v1/turns/{other.uuid}/m1")).status_code == 404
        assert (await client.get(f"/v1/requests/{other.uuid}/1")).status_code == 404
        assert (await client.get("/v1/doc/list")).status_code == 403
        assert (await client.get("/v1/agents/~")).json()["name"] == "kid"

    async def unknown(client: httpx2.AsyncClient, name: str) -> str:
        like = "A" * 22 if len(name) == 22 else "zzzz"
        return str((await client.get(f"/v1/agents/{like}")).json()["detail"]).replace(like, "X")

    stage.run(work, "branch")


def test_a_busy_agent_does_it_after_its_turn_and_the_request_says_so(durable: str) -> None:
    gate = Gate()
    with staged(durable, gate.provider) as stage:

        async def work(client: httpx2.AsyncClient) -> None:
            accepted = await client.post("/v1/agents/kid/prompt", json={"text": "tea"})
            await asyncio.to_thread(gate.wait_until_asked)
            later = await client.post("/v1/agents/kid/clear", json={}, headers={"Idempotency-Key": "c"})
            assert later.status_code == 202, later.text
            assert (await client.get(later.headers["location"])).json()["status"] == "working"
            again = await client.post("/v1/agents/kid/clear", json={}, headers={"Idempotency-Key": "c"})
            assert again.headers["location"] == later.headers["location"]
            gate.open()
            assert (await client.get(accepted.headers["location"], params={"wait": 30})).json()["status"] == "done"
            assert (await client.get(later.headers["location"], params={"wait": 30})).json()["status"] == "done"

        stage.run(work)


def test_lists_go_on_by_their_cursors(stage: Stage) -> None:
    for number in range(5):
        stage.host.root.fork(name=f"a{number}")
    stage.host.agent("kid").prompt("tea").get(timeout=60)

    async def work(client: httpx2.AsyncClient) -> None:
        names: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            listed = (await client.get("/v1/agents", params={"limit": 3, "cursor": cursor})).json()
            names += [item["name"] for item in listed["items"]]
            assert len(listed["items"]) <= 3
            cursor = listed["next"]
        assert names == ["root", "kid", "other", *(f"a{number}" for number in range(5))]
        first = (await client.get("/v1/agents/kid/messages", params={"limit": 1})).json()
        rest = (await client.get("/v1/agents/kid/messages", params={"after": first["next"]})).json()
        assert [item["id"] for item in first["items"] + rest["items"]] == [
            message.id for message in scrollback_of(stage.system._client, stage.host.agent("kid").uuid).latest(100)
        ]
        assert (await client.get("/v1/agents", params={"cursor": "x"})).status_code == 400

    stage.run(work)


def test_a_probe_needs_no_token_and_says_whether_a_host_lives(durable: str) -> None:
    with staged(durable) as stage:

        async def work(client: httpx2.AsyncClient) -> list[int]:
            del client.headers["Authorization"]
            return [(await client.get(path)).status_code for path in ("/healthz", "/readyz", "/openapi.json", "/v1/x")]

        assert stage.run(work) == [200, 200, 200, 401]
        stage.app.drain()
        assert stage.run(work) == [200, 503, 200, 401]


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "kid", "~", "..", "\x00", "\ud800", "a" * 5_000, "group:x", "-1", "1e400", "' OR 1=1"]),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none()), lambda inner: st.lists(inner, max_size=3)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(operations())),
            TEXTS,
            st.dictionaries(st.one_of(TEXTS, st.sampled_from(["text", "name", "number", "path"])), VALUES, max_size=3),
            st.booleans(),
        ),
        min_size=5,
        max_size=15,
    )
)
def test_no_request_breaks_the_server(stage: Stage, requests: list[tuple[str, str, dict[str, Any], bool]]) -> None:
    stage.principals["look"] = Principal("look", "L", frozenset({"look"}))

    async def work(client: httpx2.AsyncClient) -> None:
        for words, agent, body, looks in requests:
            operation = operations()[words]
            quoted = "".join(f"%{byte:02x}" for byte in agent.encode(errors="surrogatepass")) or "kid"
            path = operation.path.replace("{agent}", quoted)
            content = json.dumps({**dict.fromkeys(operation.schema["required"], "x"), **body}).encode()
            answer = await (client.get(path) if looks else client.post(path, content=content))
            assert answer.status_code < 500 or answer.json()["title"] in ("No host", "Busy"), (path, answer.text)
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["status"] == answer.status_code

    stage.app._rates = RequestRates(1e9, 1e9)
    stage.run(work, "look")


@pytest.mark.sample(4, "bad requests")
@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, b"{", 400), ({}, b"[]", 400), ({}, b'{"text": NaN}', 400), ({}, b"[" * 100_000, 400),
        ({"Content-Type": "text/xml"}, b"<a/>", 415), ({}, b'{"text": "' + b"a" * 5_000_000 + b'"}', 413),
        ({"Idempotency-Key": ""}, b'{"text": "tea"}', 400), ({"Idempotency-Key": "k" * 201}, b'{"text": "tea"}', 400),
        ({"Prefer": "wait=x"}, b'{"text": "tea"}', 400), ({}, b'{"text": "tea", "attach": ["/etc/passwd"]}', 400),
    ],
)  # fmt: skip
def test_bad_input_is_refused_and_does_nothing(stage: Stage, headers: dict[str, str], body: bytes, status: int) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        answer = await client.post("/v1/agents/kid/prompt", content=body, headers=headers)
        assert (answer.status_code, answer.json()["status"]) == (status, status)

    stage.run(work)
    assert stage.system._client.get(stage.host.agent("kid").uuid).mailed == 0


async def events(response: httpx2.Response) -> AsyncIterator[tuple[str, str, Any]]:
    """The events of a stream: kind, id, value."""
    kind, number = "", ""
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = value
        elif name == "data":
            yield kind, number, json.loads(value)
            number = ""


@asynccontextmanager
async def served(
    stage: Stage, trusted: Sequence[str] = (), listening: socket.socket | None = None
) -> AsyncIterator[tuple[httpx2.AsyncClient, asyncio.Event]]:
    """A client of a real server on this machine, and what ends it."""
    listening, stop = listening or listen("127.0.0.1", 0), asyncio.Event()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    stage.server = HttpServer(stage.app, listening, ConnectionLimits(), trusted=trusted)
    serving = asyncio.create_task(stage.server.serve(stop, 10.0))
    try:
        async with httpx2.AsyncClient(
            base_url=url, headers={"Authorization": "Bearer op"}, timeout=60, verify=trusted_authorities()
        ) as client:
            yield client, stop
    finally:
        stop.set()
        await serving


def test_a_stream_goes_on_where_the_client_was_and_ends_with_the_agent(stage: Stage) -> None:
    kid = stage.host.agent("kid")
    kid.prompt("tea").get(timeout=60)

    async def main() -> None:
        async with served(stage) as (client, _):
            seen: list[int] = []
            async with client.stream("GET", "/v1/agents/kid/events") as response:
                assert response.headers["content-type"] == "text/event-stream"
                async for kind, number, value in events(response):
                    if kind == "message":
                        assert number == str(value["id"])
                        seen.append(value["id"])
                    if kind == "message" and value["kind"] == "assistant":
                        break
            kid.aio.prompt("milk")
            ends = ""
            headers = {"Last-Event-ID": str(seen[-1])}
            async with client.stream("GET", "/v1/agents/kid/events", headers=headers) as response:
                async for kind, _, value in events(response):
                    if kind == "message":
                        seen.append(value["id"])
                        if value["kind"] == "assistant":
                            await asyncio.to_thread(kid.kill)
                    ends = kind
            assert ends == "died"
            scrollback = scrollback_of(stage.system._client, kid.uuid)
            assert seen == [message.id for message in scrollback.latest(1_000)]

    asyncio.run(main())


@pytest.mark.sample(2, "arguments")
@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("kid/delete-mail", {"number": [1]}),
        ("kid/delete-mail", {"number": {"a": 1}}),
        ("kid/history", {"count": float("1e999")}),
        ("kid/kill", {"cascade": 0}),
        ("kid/kill", {"cascade": {"a": True}}),
        ("kid/kill", {"reason": ["a"]}),
    ],
)
def test_an_argument_of_another_type_is_refused(stage: Stage, path: str, arguments: dict[str, Any]) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        body = json.dumps(arguments).replace("Infinity", "1e999")
        answer = await client.post(f"/v1/agents/{path}", content=body)
        assert (answer.status_code, "Expected" in answer.json()["detail"]) == (400, True)

    stage.run(work)
    assert stage.host.agent("kid").record.living


def test_a_null_for_the_text_of_a_verb_is_no_text(stage: Stage) -> None:
    async def work(client: httpx2.AsyncClient) -> int:
        return (await client.post("/v1/agents/kid/system", json={"text": None})).status_code

    assert stage.run(work) == 200


def test_a_mounted_application_follows_its_path_and_a_small_answer_leaves_at_once(stage: Stage) -> None:
    mounted = Starlette(routes=[Mount("/agents", app=stage.app)])

    async def main() -> None:
        made = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mounted), base_url="http://web", timeout=60)
        async with made as client:
            client.headers["Authorization"] = "Bearer op"
            accepted = await client.post("/agents/v1/agents/kid/prompt", json={"text": "tea"})
            assert accepted.headers["location"].startswith("/agents/v1/turns/")
            turn = await client.get(accepted.headers["location"], params={"wait": 30})
            assert turn.json()["status"] == "done"
            assert (await client.get("/agents/openapi.json")).json()["servers"] == [{"url": "/agents"}]
        async with served(stage) as (client, _):
            await client.get("/healthz")
            sockets = [
                transport.get_extra_info("socket")
                for transport in (stage.server._transports.values() if stage.server else ())
            ]
            assert [connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for connection in sockets] == [1]

    asyncio.run(main())


def test_the_stream_of_a_turn_ends_with_its_outcome(stage: Stage) -> None:
    async def main() -> None:
        async with served(stage) as (client, _):
            accepted = await client.post("/v1/agents/kid/prompt", json={"text": "tea"})
            path = f"{accepted.headers['location']}/events"
            async with client.stream("GET", path) as response:
                got = [(kind, value) async for kind, _, value in events(response)]
            kinds = [value["kind"] for kind, value in got if kind == "message"]
            assert kinds == ["user", "assistant"]
            assert got[-1][0] == "turn"
            assert got[-1][1]["status"] == "done"

    asyncio.run(main())


def test_a_server_that_ends_says_so_to_streams_and_answers_those_that_wait(durable: str) -> None:
    gate = Gate()
    with staged(durable, gate.provider) as stage:

        async def main() -> None:
            async with served(stage) as (client, stop):
                accepted = await client.post("/v1/agents/kid/prompt", json={"text": "tea"})
                waiting = asyncio.create_task(client.get(accepted.headers["location"], params={"wait": 60}))
                async with client.stream("GET", "/v1/agents/other/events") as response:
                    kinds: list[str] = []
                    async for kind, _, _ in events(response):
                        kinds.append(kind)
                        stop.set()
                    assert kinds[-1] == "bye"
                assert (await waiting).json()["status"] == "working"

        asyncio.run(main())
        gate.open()


def test_a_principal_that_asks_too_often_is_told_to_wait() -> None:
    rates = RequestRates(2, 3)
    assert [rates.count("a", 0) for _ in range(4)] == [True, True, True, False]
    assert rates.count("b", 0)
    assert [rates.count("a", 0.5), rates.count("a", 0.5)] == [True, False]
    places = OpenPlaces(1)
    assert [places.enter("a"), places.enter("a"), places.enter("b")] == [True, False, True]
    places.leave("a")
    assert places.enter("a")


def taken_away(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """What a client of the earlier page would miss, or would have to give as well."""
    match then, now:
        case dict(), dict():
            for name, part in then.items():
                if name not in now:
                    yield f"{where}: {name} is gone"
                elif name not in ("description", "summary", "required"):
                    yield from taken_away(part, now[name], f"{where}/{name}")
            if isinstance(now.get("required"), list):
                yield from (f"{where}: {key} is required" for key in now["required"] if key not in then["required"])
        case list(), list():
            named = {part.get("name", part.get("$ref")): part for part in now if isinstance(part, dict)}
            for part in then:
                if (
                    isinstance(part, dict)
                    and (counterpart := named.get(part.get("name", part.get("$ref")))) is not None
                ):
                    yield from taken_away(part, counterpart, where)
                elif part not in now:
                    yield f"{where}: {part} is gone"
        case _ if then != now:
            yield f"{where}: {then!r} is {now!r}"


def test_the_page_only_adds_to_the_one_that_is_checked_in() -> None:
    """After an addition, `python -m tests.kit.openapi` writes the page again."""
    then, now = json.loads(PAGE.read_text(encoding="utf-8")), json.loads(json.dumps(openapi_page("/")))
    assert [*taken_away(then, now)] == []
    body = now["paths"]["/v1/agents/{agent}/prompt"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    del body["properties"]["text"]
    body["required"].append("steer")
    assert [line.rpartition(": ")[2] for line in taken_away(then, now)] == ["text is gone", "steer is required"]


def test_every_verb_of_protocols_is_an_operation_by_both_methods() -> None:
    paths = openapi_page("/")["paths"]
    for operation in operations().values():
        assert set(paths[operation.path]) >= {"get", "post"}
        assert "attach" not in operation.schema["properties"]
    ids = [path[method]["operationId"] for path in paths.values() for method in ("get", "post") if method in path]
    assert len(ids) == len(set(ids))


def delivery(body: bytes, name: str, secret: str = "tea") -> dict[str, Any]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"content": body, "headers": {"X-Signature": signature, "X-Delivery": name, "Content-Type": "text/plain"}}


def test_a_signed_delivery_comes_in_without_a_token_and_is_done_once(stage: Stage, tmp_path: Path) -> None:
    place = tmp_path / "secret"
    place.write_text("tea", encoding="utf-8")
    stage.host.endpoints.add("shop", "kid", "hmac", [f"file:{place}"], template="Order {id}")

    async def work(client: httpx2.AsyncClient) -> None:
        first = await client.post("/in/shop", **delivery(b'{"id": 7}', "d1"))
        assert (first.status_code, first.json()["status"]) == (202, "taken")
        again = await client.post("/in/shop", **delivery(b'{"id": 7}', "d1"))
        assert (again.status_code, again.json()) == (200, {**first.json(), "repeated": True})
        forged = await client.post("/in/shop", **delivery(b'{"id": 7}', "d2", secret="milk"))
        assert (forged.status_code, forged.json()["type"]) == (401, "urn:ikigai:problem:forged")
        assert (await client.post("/in/nobody", **delivery(b"{}", "d3"))).status_code == 404
        assert (await client.post("/in/shop", **delivery(b"x" * (LARGEST_DELIVERY + 1), "d4"))).status_code == 413
        turn = f"/v1/turns/{first.json()['agent']}/m{first.json()['mail']}"
        assert (await client.get(turn, params={"wait": 30})).json()["status"] == "done"

    stage.run(work)
    assert stage.turns("kid") == ["Order 7"]


@pytest.mark.parametrize("committed", [False, True])
def test_whichever_commit_is_lost_what_is_answered_is_there_and_a_repetition_does_it_once(
    durable: str, tmp_path: Path, committed: bool
) -> None:
    place = tmp_path / "secret"
    place.write_text("tea", encoding="utf-8")
    with ExitStack() as opened:
        host = opened.enter_context(ActorSystem.open(durable, OfflineProvider()))
        kid = host.root.fork(name="kid")
        host.endpoints.add("shop", "kid", "hmac", [f"file:{place}"], way="mail", template="{n}")
        store = FaultyStore(open_existing(durable))
        opened.callback(store.close)
        system = AttachedSystem(store)
        opened.callback(system.close)
        system._start()
        stage = Stage(host, system)
        opened.callback(stage.app.close)

        def mails() -> list[str]:
            return [mail.body for mail in kid.mails()]

        async def repeated(text: str, after: int, ask: Callable[[], Awaitable[httpx2.Response]]) -> None:
            """Lose the commit after so many others; then repeat the request until it is answered."""
            for _ in range(after):
                store.works()
            store.breaks_during_commit(committed=committed)
            answer = await ask()
            store.recovers()
            if answer.status_code == 503:
                assert answer.json()["type"] == "urn:ikigai:problem:database-away"
                answer = await ask()
            assert answer.status_code in (200, 202), answer.text
            assert mails().count(text) == 1, text
            assert (await ask()).status_code == 200
            assert mails().count(text) == 1, text

        async def work(client: httpx2.AsyncClient) -> None:
            for after in range(3):
                text = f"key {after}"
                terms, headers = {"recipient": "kid", "text": text}, {"Idempotency-Key": text}
                await repeated(text, after, partial(client.post, "/v1/send", json=terms, headers=headers))
                sent = delivery(b'{"n": "delivery %d"}' % after, f"d{after}")
                await repeated(f"delivery {after}", after, partial(client.post, "/in/shop", **sent))

        stage.run(work)
        assert len(mails()) == 6
        assert check(host._store) == []


def test_a_server_with_too_much_to_do_says_so_and_loses_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, most = threading.Event(), API_THREADS + 20
    monkeypatch.setattr(application, "MOST_QUEUED", 20)

    def principal_of(request: ApiRequest) -> Principal | None:
        assert gate.wait(60)
        return Principal(request.bearer, "", frozenset({"prompt"}))

    async def main() -> None:
        stage.app = Api(stage.system, principal_of)
        async with stage.client() as client:

            async def ask(number: int) -> httpx2.Response:
                terms = {"recipient": "kid", "text": f"text {number}"}
                headers = {"Authorization": f"Bearer p{number}", "Idempotency-Key": "k"}
                return await client.post("/v1/send", json=terms, headers=headers)

            held = [asyncio.ensure_future(ask(number)) for number in range(most)]
            while stage.app._queued < most:
                await asyncio.sleep(0)
            refused = [await ask(number) for number in range(most, most + 3)]
            for answer in refused:
                assert (answer.status_code, answer.json()["type"]) == (503, "urn:ikigai:problem:busy")
                assert int(answer.headers["retry-after"]) > 0
            assert (await client.get("/healthz")).status_code == 200
            gate.set()
            assert {answer.status_code for answer in await asyncio.gather(*held)} == {200}
            again = [await ask(number) for number in range(most, most + 3)]
            assert {answer.status_code for answer in again} == {200}

    asyncio.run(main())
    sent = sorted(mail.body for mail in stage.host.agent("kid").mails())
    assert sent == sorted(f"text {number}" for number in range(most + 3))


@pytest.mark.sample(1, "refusals")
@pytest.mark.parametrize(
    ("endpoint", "body", "status"), [("shop", b"{}", 401), ("desk", b"{}", 404), ("shop", b"x" * 2**21, 413)]
)
def test_senders_that_are_refused_are_slowed(
    stage: Stage, tmp_path: Path, endpoint: str, body: bytes, status: int
) -> None:
    place = tmp_path / "secret"
    place.write_text("tea", encoding="utf-8")
    stage.host.endpoints.add("shop", "kid", "hmac", [f"file:{place}"])
    stage.app = Api(stage.system, stage.principal_of, clock=lambda: 0.0)

    async def work(client: httpx2.AsyncClient) -> list[int]:
        forged = delivery(body, "d", secret="milk")
        return [(await client.post(f"/in/{endpoint}", **forged)).status_code for _ in range(30)]

    assert stage.run(work) == [status] * 10 + [429] * 20


def test_a_server_takes_what_is_held_as_soon_as_it_has_begun(stage: Stage, tmp_path: Path) -> None:
    place = tmp_path / "secret"
    place.write_text("tea", encoding="utf-8")
    stage.host.endpoints.add("shop", "kid", "hmac", [f"file:{place}"], way="mail", template="Order {id}")
    stage.host.endpoints.pause("shop")

    async def main() -> None:
        async with stage.client() as client:
            assert (await client.post("/in/shop", **delivery(b'{"id": 7}', "d1"))).json()["status"] == "held"
        stage.host._writer.perform(SetEndpoint("shop"))  # it goes on, and nobody has taken what it holds
        ended, started = asyncio.Event(), asyncio.Event()
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> Any:
            if (kind := next(asked)) == "lifespan.shutdown":
                await ended.wait()
            return {"type": kind}

        async def send(message: Any) -> None:
            started.set()

        serving = asyncio.ensure_future(stage.app({"type": "lifespan"}, receive, send))
        await started.wait()
        await asyncio.to_thread(eventually, lambda: stage.host.agent("kid").mails(), "the delivery is taken")
        ended.set()
        await serving

    asyncio.run(main())
    assert [mail.body for mail in stage.host.agent("kid").mails()] == ["Order 7"]


def test_the_stream_of_a_branch_goes_on_where_the_client_was_and_hears_who_is_born(stage: Stage) -> None:
    kid = stage.host.agent("kid")

    async def main() -> None:
        async with served(stage) as (client, _):

            async def read(after: str, until: str) -> tuple[list[str], str, str]:
                """The agents and texts of messages up to one, and the latest place."""
                heard, place, raw = list[str](), "", ""
                headers = {"Last-Event-ID": after} if after else {}
                async with client.stream("GET", "/v1/events?under=kid", headers=headers) as response:
                    assert response.status_code == 200
                    async for kind, name, value in events(response):
                        place, raw = name or place, raw + json.dumps(value)
                        if kind == "place" and not after:
                            await asyncio.to_thread(lambda: kid.prompt("one").get(timeout=60))
                            await asyncio.to_thread(lambda: stage.host.root.prompt("elsewhere").get(timeout=60))
                            await asyncio.to_thread(lambda: kid.fork("two", name="grandchild"))
                        elif kind == "message":
                            heard.append(f"{value['kind']} {value['content']}")
                            if heard[-1].startswith(until) and name:
                                return heard, place, raw
                raise AssertionError("the stream has ended")

            heard, place, raw = await read("", "assistant You said “two”")
            assert [line for line in heard if line.startswith("user")] == ["user one", "user two"]
            assert "elsewhere" not in raw
            assert stage.host.root.uuid not in zlib.decompress(base64.urlsafe_b64decode(place[1:])).decode()
            await asyncio.to_thread(lambda: stage.host.agent("grandchild").prompt("three").get(timeout=60))
            heard, _, _ = await read(place, "assistant You said “three”")
            assert [line for line in heard if line.startswith("user")] == ["user three"]
            for wrong in ("?after=tea", "?under=nobody"):
                assert (await client.get(f"/v1/events{wrong}")).status_code in (400, 404)

    asyncio.run(main())


def test_a_wait_for_others_holds_no_thread(stage: Stage) -> None:
    kid = stage.host.agent("kid")
    kid.signal(Signal.STOP)
    kid.prompt("later")

    async def work(client: httpx2.AsyncClient) -> None:
        waits = [
            asyncio.ensure_future(client.post("/v1/agents/~/wait", json={"seconds": 50}, timeout=60)) for _ in range(30)
        ]
        begun = monotonic()
        assert (await client.get("/v1/agents")).status_code == 200  # there are 16 threads
        assert monotonic() - begun < 20
        assert not any(wait.done() for wait in waits)
        await asyncio.to_thread(lambda: kid.send(stage.host.root, "here"))
        for answered in await asyncio.gather(*waits):
            assert answered.json()["value"] == {"kid": "mail"}
        looked = await client.post("/v1/agents/~/wait", json={"seconds": 0, "agents": ["kid"]})
        assert [*looked.json()["value"].values()] == ["mail"]

    stage.run(work)


def test_headers_are_limited_whether_they_end_or_not(stage: Stage) -> None:
    async def main() -> None:
        async with served(stage) as (client, _):
            assert (await client.get("/healthz", headers={"x-a": "x" * 60_000})).status_code == 200
            assert (await client.get("/healthz", headers={"x-a": "x" * 66_000})).status_code == 431
            assert (await client.get(f"/healthz?{'x' * 9_000}", headers={"x-a": "x" * 58_000})).status_code == 431
            reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            with suppress(ConnectionError):
                for number in range(40):
                    writer.write(b"x-%d: %s\r\n" % (number, b"y" * 4_000))
                    await writer.drain()
            assert (await reader.read(100)).startswith(b"HTTP/1.1 431 ")
            writer.close()

    asyncio.run(main())


def test_a_connection_of_a_proxy_is_no_strangers_though_the_client_has_another_address(stage: Stage) -> None:
    kid = stage.host.agent("kid")

    async def main() -> None:
        async with served(stage, ["127.0.0.1"]) as (client, _), AsyncExitStack() as opened:
            headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
            heard: list[str] = []
            async with client.stream("GET", "/v1/agents/kid/events", headers=headers) as response:
                async for kind, _, value in events(response):
                    heard += [value["content"]] if kind == "message" else []
                    if len(heard) == 1:
                        for _ in range(60):  # as many as put out the strangers before them
                            _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
                            opened.callback(writer.close)
                        kid.aio.prompt("tea")
                    if heard[-1:] == ["tea"]:
                        break
            assert heard[-1] == "tea"

    asyncio.run(main())


@pytest.mark.thorough("compiles TypeScript; clients in Python show the same")
def test_the_client_in_typescript_compiles_prompts_and_follows_the_turn_though_it_is_over(
    stage: Stage, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    home = installed("typescript@5.9.3", cache)
    types = installed("@types/node@22.19.1", cache)
    example = Path(__file__).parents[2] / "examples" / "api_client.ts"
    options = ["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable"]
    options += ["--typeRoots", str(types / "node_modules" / "@types"), "--outDir", str(tmp_path), "--types", "node"]
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "api_client.ts").write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    compiler = str(home / "node_modules" / "typescript" / "bin" / "tsc")
    done = subprocess.run(
        ["node", compiler, *options, str(tmp_path / "api_client.ts")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")

    async def main() -> None:
        listening = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        environment = {**os.environ, "IKIGAI_URL": url, "IKIGAI_TOKEN": "op"}

        async def program() -> asyncio.subprocess.Process:
            words = ["node", str(tmp_path / "api_client.js")]
            return await asyncio.create_subprocess_exec(*words, env=environment, stdout=-1, stderr=-2)

        early = await program()
        assert early.stdout is not None
        refused = (await early.stdout.readline()).decode()
        assert "ECONNREFUSED" in refused
        async with served(stage, listening=listening):
            for client in (early, await program()):  # under its key the prompt is one turn, which is over now
                raw, _ = await client.communicate()
                printed = raw.decode()
                begun = [line.split()[0] for line in printed.splitlines() if not line.endswith("trying again")]
                assert (client.returncode, begun) == (0, ["user:", "assistant:", "done"]), printed

    asyncio.run(main())
    assert stage.turns("root") == ["Good morning"]


def test_what_a_principal_has_done_names_it(stage: Stage, tmp_path: Path) -> None:
    place = tmp_path / "secret"
    place.write_text("tea", encoding="utf-8")
    stage.host.endpoints.add("shop", "kid", "hmac", [f"file:{place}"], template="Order {id}")
    stage.host.endpoints.add("desk", "kid", "hmac", [f"file:{place}"], way="fork", template="Order {id}")
    stage.principals["olga"] = Principal("olga", "Olga", frozenset({"operate"}))

    async def work(client: httpx2.AsyncClient) -> None:
        waits = {"Prefer": "wait=30"}
        await client.post("/v1/agents/kid/prompt", json={"text": "tea"}, headers=waits)
        await client.post("/v1/agents/kid/fork", json={"name": "boy", "prompt": "hi"}, headers=waits)
        await client.post("/v1/agents/kid/mark", json={"label": "here"})
        await client.post("/v1/agents/other/set", json={"name": "temperature", "value": ["0.5"]})
        await client.post("/v1/send", json={"recipient": "other", "text": "a letter"})
        await client.post("/v1/doc/write", json={"path": "plan", "text": "go"})
        await client.post("/v1/agents/boy/signal", json={"name": "STOP"})
        arrived = (await client.post("/in/shop", **delivery(b'{"id": 7}', "d1"))).json()
        await client.get(f"/v1/turns/{arrived['agent']}/m{arrived['mail']}", params={"wait": 30})
        assert (await client.post("/in/desk", **delivery(b'{"id": 8}', "d2"))).status_code == 202
        await client.get("/v1/agents/kid/messages")

    stage.run(work, "olga")
    messages = stage.host.agent("kid").history()
    named = [
        (message.kind, message.content, message.data.get("principal"))
        for message in messages
        if message.kind in ("user", "mark")
    ]
    assert named == [("user", "tea", "olga"), ("mark", "here", "olga"), ("user", "Order 7", "endpoint:shop")]
    eventually(lambda: len(stage.host.agent("kid").children()) == 2, "the child of the delivery")
    kid = stage.host.agent("kid")
    own = [message for message in kid.history() if message.kind == "fork" and message.agent == kid.uuid]
    forks = [message.data.get("principal") for message in own if "child" in message.data]
    assert forks == ["olga", "endpoint:desk"]
    boy = [
        (message.content, message.data.get("principal"))
        for message in stage.host.agent("boy").history()
        if message.kind == "user"
    ]
    assert boy[-1] == ("hi", "olga")
    [order] = [child for child in stage.host.agent("kid").children() if child.record.name != "boy"]
    assert [message.data.get("principal") for message in order.history() if message.kind == "user"][
        -1
    ] == "endpoint:desk"

    def principals(tx: Transaction) -> list[Any]:
        columns = {"mail": ["body", "data"], "signals": ["principal"], "documents": ["principal"]}
        return [tuple(row) for name, its in columns.items() for part in tx.schema.scan(name, its) for row in part]

    rows = stage.system._store.read(principals)
    assert ("a letter", '{"principal": "olga"}') in rows
    assert rows.count(("olga",)) == 2
    page = [line.text for line in history_page(messages, stage.host.agent("kid").uuid, 20, "history")]
    assert any(line.endswith("tea  (by olga)") for line in page)
    assert check(stage.system._store) == []
