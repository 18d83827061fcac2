"""The observer over HTTP: who may ask, what is answered, and that a stream misses and doubles nothing."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, OfflineProvider, Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.sight import Observer, observe
from ikigai_actors.sight.served_pages import published
from ikigai_actors.system.approvals import person
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.tools import Policy
from tests.kit.blocking_provider import Gate
from tests.kit.databases import eventually

TIMEOUT = 60


class Asker:
    """A program that asks an observer."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.own = {"Authorization": f"Bearer {observer.token}", "Host": observer.address}

    def ask(
        self, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self.observer.address, timeout=TIMEOUT)
        sent = None if body is None else json.dumps(body)
        json_too = {} if body is None else {"Content-Type": "application/json", "X-Ikigai": "1"}
        connection.request(
            "GET" if body is None else "POST", path, sent, {**(self.own if headers is None else headers), **json_too}
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return (
            answer.status,
            json.loads(text) if answer.getheader("Content-Type", "").startswith("application/json") else text,
            answer,
        )

    def ask_with(self, path: str, body: bytes) -> tuple[int, str]:
        """The status and the text of the answer to a body that no program writes."""
        connection = http.client.HTTPConnection(self.observer.address, timeout=TIMEOUT)
        connection.request("POST", path, body, {**self.own, "Content-Type": "application/json", "X-Ikigai": "1"})
        answer = connection.getresponse()
        status_and_text = answer.status, answer.read().decode()
        connection.close()
        return status_and_text

    def get(self, path: str) -> Any:
        status, value, _ = self.ask(f"/api/{path}")
        assert status == 200, value
        return value

    def post(self, path: str, **body: Any) -> Any:
        status, value, _ = self.ask(f"/api/{path}", body)
        assert status == 200, value
        return value["done"]

    def stream(self, query: str, last_id: str | None = None) -> "Events":
        connection = http.client.HTTPConnection(self.observer.address, timeout=TIMEOUT)
        connection.request(
            "GET", f"/api/events?{query}", headers={**self.own, **({"Last-Event-ID": last_id} if last_id else {})}
        )
        return Events(connection)


class Events:
    """The events of a stream, one after the other."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection, self._answer = connection, connection.getresponse()
        assert self._answer.status == 200

    def __iter__(self) -> Iterator[tuple[str, Any, str]]:
        kind = number = ""
        for line in self._answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "id":
                number = value
            elif name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value), number
                number = ""

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        system.root.fork(name="ann").prompt("hello").get(timeout=TIMEOUT)
        yield system


@pytest.fixture
def asker(system: ActorSystem) -> Iterator[Asker]:
    with observe(system) as observer:
        yield Asker(observer)


@pytest.mark.slow("takes a tenth of a second")
def test_only_who_has_the_secret_comes_in_and_no_foreign_page_or_name(asker: Asker) -> None:
    address, token = asker.observer.address, asker.observer.token
    ours = {"Host": address}
    for headers in ({**ours}, {**ours, "Authorization": "Bearer x"}, {**ours, "Cookie": "ikigai=x"}):
        assert asker.ask("/api/tree", headers=headers)[0] == 401
        assert asker.ask("/", headers=headers)[0] == 401
    assert asker.ask("/healthz", headers={"Host": "10.0.0.7"})[:2] == (200, "ok\n")
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert asker.ask("/api/tree", headers={**asker.own, **foreign})[0] == 403
        assert asker.ask("/api/prompt", {"agent": "ann", "text": "x"}, {**asker.own, **foreign})[0] == 403
    status, _, answer = asker.ask(f"/?token={token}", headers=ours)
    cookie = answer.getheader("Set-Cookie", "")
    assert (status, answer.getheader("Location")) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert token not in cookie
    status, page, answer = asker.ask("/", headers={**ours, "Cookie": cookie.partition(";")[0]})
    assert (status, page.count('role="treegrid"')) == (200, 1)
    assert "unsafe-inline" not in answer.getheader("Content-Security-Policy", "")
    assert asker.ask("/page/app.js")[0] == 200
    assert asker.ask("/page/..%2fserver.py")[0] == asker.ask("/page/none.js")[0] == 404


def test_a_request_of_a_form_changes_nothing_and_bad_input_says_what_is_expected(asker: Asker) -> None:
    connection = http.client.HTTPConnection(asker.observer.address, timeout=TIMEOUT)
    connection.request("POST", "/api/prompt", "agent=ann&text=x", asker.own)
    assert connection.getresponse().status == 403
    connection.close()
    for path, status in (
        ("log", 400), ("log?agent=nobody99", 404), ("log?agent=ann&count=0", 400), ("log?agent=ann&until=x", 400),
        ("lanes?agents=&from=1&to=2", 400), ("lanes?agents=a&from=2&to=1", 400),
        ("at?agents=a&time=99999999999999999999", 400),
        ("document?path=none.md", 404), ("events?agents=a,b,c,d,e,f,g,h,i", 400), ("activity?step=0", 400),
        (f"events?agents=ann&after={10**22}", 400), ("events?agents=ann&after=x", 400), ("events?version=x", 400),
        (f"events?version={10**22}", 400), (f"log?agent=ann&until={'9' * 5000}", 400),
    ):  # fmt: skip
        answered, value, _ = asker.ask(f"/api/{path}")
        assert (answered, set(value)) == (status, {"error"}), path
    for body, status in (
        ({}, 400),
        ({"agent": "ann", "text": 5}, 400),
        ([], 400),
        ({"agent": "nobody99", "text": "x"}, 404),
    ):
        assert asker.ask("/api/prompt", body)[0] == status
    assert asker.ask("/api/signal", {"agent": "ann", "signal": "HUP"})[0] == 400
    assert asker.ask_with("/api/prompt", b"[" * 100_000)[0] == 400
    assert asker.ask("/api/fork", {"of": "ann", "at": 999})[0] in (400, 409)


def test_the_tree_a_log_and_any_moment_are_told(system: ActorSystem, asker: Asker) -> None:
    table = asker.get("tree")
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert [(row["name"], row["state"], row["parent"]) for row in rows] == [
        (None, "idle", None),
        ("ann", "idle", rows[0]["uuid"]),
    ]
    ann = system.agent("ann")
    log = asker.get("log?agent=ann")
    assert [(row["id"], row["kind"]) for row in log] == [
        (message.id, message.kind) for message in ann.history(all=True)
    ]
    prompt, reply = log[-2], log[-1]
    assert asker.get(f"log?agent={ann.uuid}&until={prompt['id']}&count=1")[0]["content"] == "hello"
    at = asker.get(f"at?agents={ann.uuid}&time={reply['at']}")[ann.uuid]
    assert at == {"position": reply["id"], "state": "idle"}
    lanes = asker.get(f"lanes?agents={ann.uuid}&from={table['now'] - 600_000}&to={table['now']}")["lanes"]
    assert [mark[0] for mark in lanes[0]["marks"]] == [row["id"] for row in log if row["agent"] == ann.uuid]
    assert sum(count for _, count in asker.get("activity?step=1000000000000")) == sum(
        len([message for message in system.handle(row["uuid"]).history(all=True) if message.agent_uuid == row["uuid"]])
        for row in rows
    )


def test_an_agent_of_the_past_does_what_its_log_says_of_it() -> None:
    gate = Gate()
    with ActorSystem.open(":memory:", gate.provider) as system, observe(system) as observer:
        ann, asker = system.root.fork(name="ann"), Asker(observer)
        kid = ann.fork(name="kid")  # its log has nothing but its birth
        asked = ann.prompt("go")
        gate.wait_until_asked()

        def states() -> list[str]:
            states = asker.get(f"at?agents={ann.uuid},{kid.uuid}&time={asker.get('tree')['now']}")
            return [states[agent.uuid]["state"] for agent in (ann, kid)]

        assert states() == ["thinking", "idle"]
        gate.open()
        asked.get(timeout=TIMEOUT)
        assert states() == ["idle", "idle"]


def test_a_stream_misses_and_doubles_nothing_over_a_cut(system: ActorSystem, asker: Asker) -> None:
    ann = system.agent("ann")
    before = max(message.id for message in ann.history(all=True))
    stream = asker.stream(f"agents={ann.uuid}&after={before}&version=0")
    seen, numbers = dict[str, Any](), list[int]()
    ann.prompt("and now?")
    for kind, data, number in stream:
        if kind == "rows":
            for row in data["rows"]:
                seen.setdefault(row["uuid"], {}).update(row)
        if kind == "message":
            numbers.append(data["id"])
            assert number == f"{ann.uuid}:{data['id']}"
            break
    stream.close()
    assert seen[ann.uuid]["name"] == "ann"
    ann.prompt("and then?").get(timeout=TIMEOUT)
    again = asker.stream(f"agents={ann.uuid}&after=0", last_id=f"{ann.uuid}:{numbers[-1]}")
    last = max(message.id for message in ann.history(all=True))
    for kind, data, _ in again:
        if kind == "message":
            numbers.append(data["id"])
            if data["id"] == last:
                break
    again.close()
    assert numbers == list(range(before + 1, last + 1))


def test_a_page_of_another_server_takes_the_table_first(asker: Asker) -> None:
    epoch = asker.get("tree")["epoch"]
    for query in ("epoch=another&version=0", f"epoch={epoch}&version=999999"):
        stream = asker.stream(query)
        assert next(iter(stream))[0] == "reset"
        stream.close()


@pytest.mark.slow("takes a tenth of a second")
def test_what_a_page_does_a_handle_does(system: ActorSystem, asker: Asker) -> None:
    born = asker.post("fork", of="ann", name="kid", at=2)
    kid, child = system.agent("kid"), born["agent"]
    assert (kid.uuid, kid.record.fork_message_id, born["handle"]) == (child, 2, None)
    begun = asker.post("prompt", agent="kid", text="look")
    assert begun == {"agent": child, "handle": f"{child}/m1"}
    eventually(lambda: kid.history()[-1].kind == "assistant", "the reply")
    assert kid.reply(timeout=TIMEOUT).text
    assert asker.post("send", agent="ann", text="The keel is laid.") == {"agent": system.agent("ann").uuid, "mail": 1}
    assert asker.post("fork", of="ann", prompt="look", name="son")["handle"].startswith(system.agent("son").uuid)
    assert asker.post("steer", agent="son", text="and tell me")["agent"] == system.agent("son").uuid
    assert asker.post("signal", agent="kid", signal="KILL") == [child]
    assert asker.ask("/api/prompt", {"agent": child, "text": "still there?"})[0] == 409
    diff = asker.get(f"diff?a=ann&b={child}")
    assert diff["common"] == 2


def test_a_call_that_waits_is_decided_on() -> None:
    @tool(policy=Policy.ASK)
    def launch(where: str) -> str:
        """Launch the ship."""
        return f"launched at {where}"

    script = ScriptedProvider([Reply("", (ToolCall("launch", {"where": "noon"}, "call_1"),)), Reply("done")])
    with ActorSystem.open(":memory:", script, tools=[launch], approvals="ask") as system, observe(system) as observer:
        asker, ann = Asker(observer), system.root.fork(name="ann")
        reply = ann.prompt("go")
        stream = asker.stream("version=0")
        next(
            None
            for kind, data, _ in stream
            if kind == "rows" and any(row.get("state") == "asking" for row in data["rows"])
        )
        stream.close()
        [asked] = asker.get("questions")
        assert (asked["agent"], asked["tool"], asked["input"]) == (ann.uuid, "launch", {"where": "noon"})
        name = asked["question"]
        assert asker.ask("/api/answer", {"question": "no such question", "answer": "allow"})[0] == 400
        assert asker.ask("/api/answer", {"question": name, "answer": "allow", "digest": "0" * 64})[0] == 400
        first = asker.post("answer", question=name, answer="allow", digest=asked["digest"])
        assert (first["answered"], first["how"], first["by"]) == (True, "approved", person())
        assert reply.get(timeout=TIMEOUT).text == "done"
        assert asker.post("answer", question=name, answer="deny")["answered"] is False


def test_a_page_leads_to_the_shell_in_the_browser_unless_nothing_may_be_done_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IKIGAI_HOME", str(tmp_path / "home"))
    with ActorSystem.open(tmp_path / "team.db", OfflineProvider()) as system, observe(system) as observer:
        assert Asker(observer).get("tree")["shell"] is None
        with published("serve", system._store.location, observer.link), observe(system, read_only=True) as reader:
            assert Asker(observer).get("tree")["shell"] == observer.link
            assert Asker(reader).get("tree")["shell"] is None


def test_read_only_does_nothing_and_a_remote_address_must_be_allowed(system: ActorSystem) -> None:
    with observe(system, read_only=True) as observer:
        assert Asker(observer).ask("/api/prompt", {"agent": "ann", "text": "x"})[0] == 403
    with pytest.raises(BadInput, match="allow_remote"):
        observe(system, host="0.0.0.0")
    with pytest.raises(BadInput, match="Expected an open system"):
        observe("team.db")  # type: ignore[arg-type]


def test_closing_ends_the_streams(system: ActorSystem) -> None:
    observer = observe(system)
    stream = Asker(observer).stream("version=0")
    observer.close()
    assert [kind for kind, _, _ in stream if kind == "message"] == []
    stream.close()
    observer.close()


def test_a_page_says_that_no_process_runs_the_agents(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    ActorSystem.open(database, OfflineProvider()).close()
    with AttachedSystem.open(database) as attached, observe(attached) as observer:
        stream = Asker(observer).stream("version=0")
        notice = next(data["text"] for kind, data, _ in stream if kind == "notice")
        stream.close()
        assert notice.startswith("No process runs the agents now.")
